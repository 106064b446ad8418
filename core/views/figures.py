"""Plotly figures as pure functions.

Of traces, of a training's events and of a study's charts. Colours work on light and dark pages. Those that
every step of a run draws anew are drawings: plain values that plotly's own classes have not checked, since
checking them takes five times as long as drawing. The tests have them checked. Figures raise on bad input;
whoever shows them decides what a person sees instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape as html_escape
from itertools import cycle
from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go

from core.base.batches import batches
from core.base.events import StepTaken, Trace
from core.views.charts import Chart, Line

INK = "#7b818c"
"""Readable on white and on near-black (4.0:1 and 4.6:1)."""
LINE = "rgba(128, 132, 140, 0.28)"
ACCENT = "#4a7de0"
WARN = "#c27a1f"
THRESHOLD = {"color": WARN, "dash": "dash", "width": 1.5}
SEQUENTIAL = ("#9ccbcf", "#6db5bf", "#4399b0", "#2e7ba1", "#3a68a8")
"""The middle of the strip's scale for Q, which both themes carry."""
STEP_COLOURS = ("#d1495b", "#1f9aab", "#b26e00", "#8563b8", "#3f8f4f", "#c2578f", "#5b7fbf", "#8a7a3a")
"""By step, repeating; close to those of the strip, in tones that both themes carry."""
STOP_COLOURS = {"perfect": "#3f8f4f", "late": "#5b7fbf", "early": "#b26e00", "never": INK}
"""By stop class (`core.lab.evaluate.outcomes`)."""
COUNT_COLOURS = {"hit": "#3f8f4f", "miss": "#b26e00", "not labelled": INK}
CURVE_POINTS = 80
"""Most points of a curve over updates: each is the mean of as many updates as that takes."""
_ABOVE = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "traceorder": "normal"}
"""Where a legend lies: in a line over its figure."""

Drawing = dict[str, Any]
"""A figure as plotly's script takes it, `data` and `layout`; `go.Figure(drawing)` is the checked object."""

Events = Sequence[dict[str, Any]]
"""What a training tells (`core.lab.train.sitting`), in order."""


AXIS: dict[str, Any] = {
    "gridcolor": LINE,
    "zeroline": False,
    "linecolor": LINE,
    "automargin": True,
    "title": {"standoff": 15},
}


def _layout(height: int = 240, *, names: bool = False) -> dict[str, Any]:
    """What all figures have in common. names: whether a legend lies over it."""
    return {
        "height": height,
        "margin": {"l": 48, "r": 16, "t": 34 if names else 16, "b": 40},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "system-ui, sans-serif", "size": 12, "color": INK},
        "showlegend": names,
        "legend": _ABOVE,
        "uirevision": "keep",
        "bargap": 0.06,
        "xaxis": AXIS,
        "yaxis": AXIS,
    }


def _figure(x: str | None, y: str, height: int = 240, *, names: bool = False, **of_y: Any) -> go.Figure:
    """One without curves. x, y: titles of its axes. of_y: what is particular to the second one."""
    figure = go.Figure(layout=_layout(height, names=names))
    figure.update_xaxes(title=x)
    figure.update_yaxes(title=y, **of_y)
    return figure


def _drawing(
    traces: Sequence[dict[str, Any]], x: str | None, y: dict[str, Any], *, names: bool = False, **layout: Any
) -> Drawing:
    """Without plotly's template. x: title of that axis. y: what is particular to the other one."""
    title = AXIS["title"]
    axes = {
        "xaxis": AXIS | {"title": title | {"text": x}},
        "yaxis": AXIS | y | {"title": title | {"text": y["title"]}},
    }
    whole = {"template": {}, **_layout(names=names), **axes, **layout}
    return {"data": list(traces), "layout": whole}


def _dashed_line(axis: Literal["x", "y"], at: float) -> dict[str, Any]:
    """The threshold, across the whole figure."""
    other = "x" if axis == "y" else "y"
    ends = {f"{axis}0": at, f"{axis}1": at, f"{other}0": 0, f"{other}1": 1}
    frame = {f"{axis}ref": axis, f"{other}ref": f"{other} domain"}
    return {"type": "line", **frame, **ends, "line": THRESHOLD}


def step_colour(step: int) -> str:
    """The colour of a 1-based step."""
    return STEP_COLOURS[(step - 1) % len(STEP_COLOURS)]


def best_q_figure(trace: Trace) -> Drawing:
    """Q of the action at each step, and of the rejected one, against the stop threshold of the run."""
    labels = [f"step {step.step}" for step in trace.steps]
    values = [step.q_value for step in trace.steps]
    colours = [step_colour(step.step) for step in trace.steps]
    if trace.stopped is not None and trace.stopped.q_value is not None:
        labels.append("stop")
        values.append(trace.stopped.q_value)
        colours.append(INK)
    points = {
        "type": "scatter",
        "x": labels,
        "y": values,
        "mode": "lines+markers",
        "line": {"color": ACCENT, "width": 2},
        "marker": {"size": 11, "color": colours},
        "hovertemplate": "%{x}: Q %{y:.3f}<extra></extra>",
    }
    threshold = trace.started.config.stop_threshold
    if threshold is None:
        return _drawing([points], None, {"title": "Q"})
    name = {"text": f"stop below {threshold:.2f}", "font": {"color": WARN}, "showarrow": False}
    name |= {"x": 1, "xref": "x domain", "xanchor": "right", "y": threshold, "yref": "y", "yanchor": "bottom"}
    return _drawing([points], None, {"title": "Q"}, shapes=[_dashed_line("y", threshold)], annotations=[name])


def distribution_figure(values: np.ndarray, threshold: float | None) -> Drawing:
    """How many chunks have which Q, on a log scale. values (N,), of the chunks that were available."""
    lo, hi = float(values.min()), float(values.max())
    # all alike: one bar of some width
    counts, edges = np.histogram(values.astype(np.float64), bins=48, range=(lo, max(hi, lo + 1e-3)))
    middles = (edges[:-1] + edges[1:]) / 2
    scale = [[i / (len(SEQUENTIAL) - 1), colour] for i, colour in enumerate(SEQUENTIAL)]
    bars = {
        "type": "bar",
        "x": middles,
        "y": counts,
        "marker": {"color": middles, "colorscale": scale},
        "width": np.diff(edges),
        "hovertemplate": "Q about %{x:.3f}: %{y:,} chunks<extra></extra>",
    }
    top = float(counts.max())
    ticks = [n * 10**power for power in range(7) for n in (1, 2, 5) if n * 10**power <= top]
    ends = [np.log10(0.5), np.log10(top * 1.3)]
    log = {"type": "log", "title": "chunks (log)", "range": ends, "tickvals": ticks}
    return _drawing([bars], "Q", log, shapes=[] if threshold is None else [_dashed_line("x", threshold)])


def parts_figure(trace: Trace) -> Drawing:
    """Q of each choice by what content, position, words and reranker contribute. Raises ValueError."""
    steps = [step for step in trace.steps if step.content_q is not None]
    if not steps:
        raise ValueError("Q of no step has more than one part")
    bars = [
        {
            "type": "bar",
            "x": [f"step {step.step}" for step in steps],
            "y": [_part_of(step, field) for step in steps],
            "name": name,
            "marker": {"color": colour},
            "hovertemplate": f"%{{x}}: {name} %{{y:.3f}}<extra></extra>",
        }
        for name, field, colour in _PARTS
        if any(getattr(step, field) is not None for step in steps)
    ]
    zero = {"title": "Q", "zeroline": True, "zerolinecolor": LINE}
    return _drawing(bars, None, zero, names=True, barmode="relative")


_PARTS = (
    ("content", "content_q", ACCENT),
    ("position", "position", "#c2578f"),
    ("words", "words_q", "#3f8f4f"),
    ("reranker", "reranked_q", "#7a6ad8"),
)
"""Of Q: name, field of a step that says whether it has that part, colour."""


def _part_of(step: StepTaken, field: str) -> float:
    """What a part contributes to a choice's Q: position the rest of it."""
    if field != "position":
        return float(getattr(step, field) or 0.0)
    return step.q_value - sum(_part_of(step, other) for _, other, _ in _PARTS if other != field)


def line_colours(lines: Sequence[Line]) -> list[str]:
    """A dashed curve has the colour of its target, the line before it; a dashed straight line is ink."""
    colours: list[str] = []
    solid = cycle(STEP_COLOURS)
    for line in lines:
        if line.dashed:
            colours.append(colours[-1] if colours and len(line.x) > 2 else INK)
        else:
            colours.append(next(solid))
    return colours


def card_figure(chart: Chart) -> go.Figure:
    """A study's chart for a card that has a heading of its own."""
    x_type, y_type = ("log" if log else "linear" for log in (chart.log_x, chart.log_y))
    figure = _figure(chart.x_title, chart.y_title, 280, names=len(chart.lines) > 1, type=y_type)
    figure.update_xaxes(type=x_type)
    figure.update_layout(margin={"t": 34})
    for line, colour in zip(chart.lines, line_colours(chart.lines), strict=True):
        mode = "markers" if line.points_only else "lines" if line.dashed else "lines+markers"
        look: dict[str, Any] = {"mode": mode, "marker": {"color": colour, "size": 6}, "hovertemplate": None}
        _add_curve(figure, line.x, line.y, line.name, colour, "dash" if line.dashed else "solid", **look)
    return figure


def block_of(n_updates: int) -> int:
    """Updates that one point of a curve is the mean of.

    >>> block_of(1), block_of(80), block_of(900)
    (1, 1, 12)
    """
    return max(1, -(-n_updates // CURVE_POINTS))


def update_figure(events: Events, name: str, title: str, *, log: bool = False) -> go.Figure:
    """One number of every update, such as `success`. Raises ValueError before the first update."""
    blocks = _blocks(events)
    ticks = [n * 10.0**power for power in range(-6, 4) for n in (1, 2, 5)]
    scale = {"type": "log", "tickvals": ticks, "tickformat": "~g"} if log else {"rangemode": "tozero"}
    figure = _figure("update", title, **scale)
    y = [float(np.mean([event[name] for event in block])) for block in blocks]
    _add_curve(figure, [block[-1]["update"] for block in blocks], y, title, ACCENT)
    return figure


def step_figure(
    events: Events, name: str, title: str, *, beside: str | None = None, stacked: bool = False
) -> go.Figure:
    """A number of every step of the episode, such as `q`, a colour a step; `beside` is drawn dashed. Raises
    ValueError before the first update.

    Where an update has no such step, its curve leaves it out; a dashed curve that is 0 throughout, as V
    beyond the step cap, is not drawn. stacked: the sum over the steps is the upper edge.
    """
    blocks = _blocks(events)
    figure = _figure("update", title, names=True)
    at = [block[-1]["update"] for block in blocks]
    for step in range(1, max(len(event[name]) for block in blocks for event in block) + 1):
        colour, label = step_colour(step), f"step {step}"
        values = [_step_mean(block, name, step) for block in blocks]
        _add_curve(figure, at, values, label, colour, stackgroup="sum" if stacked else None)
        others = [_step_mean(block, beside, step) for block in blocks] if beside is not None else []
        if any(others):
            _add_curve(figure, at, others, f"{label}, {beside}", colour, "dash", showlegend=False)
    return figure


def validation_figure(events: Events) -> go.Figure:
    """Validation score; thinner each task's, named on hover. Raises ValueError before any validation."""
    validated = [event for event in events if event["event"] == "validated"]
    if not validated:
        raise ValueError("there is no validation yet")
    figure = _figure("update", "Fact F1", range=[0, 1.03])
    at = [event["update"] for event in validated]
    tasks = sorted({task for event in validated for task in event["tasks"]})
    for i, task in enumerate(tasks if len(tasks) > 1 else [], start=1):
        y = [event["tasks"].get(task, {}).get("fact_f1_oracle_stop") for event in validated]
        _add_curve(figure, at, y, task, step_colour(i), width=1.0)
    scores = [event["score"] for event in validated]
    _add_curve(figure, at, scores, "all tasks", ACCENT, width=3.0, mode="lines+markers")
    return figure


def stops_figure(
    thresholds: Sequence[float],
    shares: Mapping[str, Sequence[float]],
    threshold: float,
    fact_f1: Sequence[float],
) -> go.Figure:
    """How episodes stop at every threshold, stacked to 1, Fact F1 over it, and the threshold that
    is looked at. Shares by name, from the lowest up.
    """
    figure = _figure("stop threshold (Q)", "share of episodes", 280, names=True, range=[0, 1.01])
    for name, values in shares.items():
        _add_curve(figure, thresholds, values, name, STOP_COLOURS[name], stackgroup="stops", width=0.5)
    _add_curve(figure, thresholds, fact_f1, "Fact F1", ACCENT, width=2.5)
    figure.add_vline(x=threshold, line=THRESHOLD)
    return figure


def curves_figure(curves: Sequence[tuple[str, Sequence[float], float | None]]) -> go.Figure:
    """Best Q by step for (name, Q of each chosen chunk, Q refused in the end), the refused one hollow.

    Each name has a line of its own over the curves, which keep their height.
    """
    names = len(curves) > 1
    figure = _figure("step", "best Q", 300 + 19 * len(curves) * names, names=names)
    figure.update_layout(margin={"t": 34})
    figure.update_xaxes(dtick=1 if max((len(chosen) for _, chosen, _ in curves), default=0) < 12 else None)
    for i, (name, chosen, refused) in enumerate(curves):
        colour, last = step_colour(i + 1), [] if refused is None else [refused]
        symbols = ["circle"] * len(chosen) + ["circle-open"] * len(last)
        look: dict[str, Any] = {
            "mode": "lines+markers",
            "marker": {"size": 7, "color": colour, "symbol": symbols},
            "hovertemplate": "%{fullData.name}<br>step %{x}: Q %{y:.3f}<extra></extra>",
        }
        values, dash = [*chosen, *last], "solid" if i < len(STEP_COLOURS) else "dot"
        _add_curve(figure, range(1, len(values) + 1), values, html_escape(name), colour, dash, **look)
    return figure


def counts_figure(counts: Mapping[str, Mapping[str, int]]) -> go.Figure:
    """How many of each kind, such as hits and misses, under each name, such as a method; one bar a name."""
    highest = max((sum(by_kind.values()) for by_kind in counts.values()), default=0)
    figure = _figure(None, "runs", 300, names=True, dtick=1 if highest < 10 else None)
    figure.update_layout(barmode="stack")
    figure.update_xaxes(type="category")
    for kind in dict.fromkeys(kind for by_kind in counts.values() for kind in by_kind):
        figure.add_bar(
            x=[html_escape(name) for name in counts],
            y=[by_kind.get(kind, 0) for by_kind in counts.values()],
            width=0.5,
            name=html_escape(kind),
            marker={"color": COUNT_COLOURS.get(kind, INK)},
            hovertemplate="%{x}: %{y:,} %{fullData.name}<extra></extra>",
        )
    return figure


def _blocks(events: Events) -> list[Events]:
    """Updates in consecutive blocks."""
    updates = [event for event in events if event["event"] == "update"]
    if not updates:
        raise ValueError("there is no update yet")
    return list(batches(updates, block_of(len(updates))))


def _step_mean(block: Events, name: str, step: int) -> float | None:
    values = [event[name][step - 1] for event in block if len(event[name]) >= step]
    return float(np.mean(values)) if values else None


def _add_curve(
    figure: go.Figure,
    x: Sequence[float],
    y: Sequence[float | None],
    name: str,
    colour: str,
    dash: str = "solid",
    *,
    width: float = 2.0,
    **look: Any,
) -> None:
    """A line; a single point gets a mark, since it would be no line. `look`: what is particular to it."""
    usual = {
        "mode": "lines+markers" if len(x) == 1 else "lines",
        "marker": {"size": 6},
        "hovertemplate": f"{name}<br>%{{x:.4~g}}: %{{y:.3f}}<extra></extra>",
    }
    line = {"color": colour, "width": width, "dash": dash}
    figure.add_scatter(x=list(x), y=list(y), name=name, line=line, **usual | look)
