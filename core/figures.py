"""Plotly figures as pure functions of traces. Colours work on light and dark pages; nothing here knows a page.

Figures raise on bad input; whoever shows them decides what a person sees instead.
"""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from core.events import Trace

INK = "#7b818c"
"""Readable on white and on near-black (4.0:1 and 4.6:1)."""
LINE = "rgba(128, 132, 140, 0.28)"
ACCENT = "#4a7de0"
WARN = "#c27a1f"
SEQUENTIAL = ("#9ccbcf", "#6db5bf", "#4399b0", "#2e7ba1", "#3a68a8")
"""The middle of the strip's scale for Q, which both themes carry."""
STEP_COLOURS = ("#d1495b", "#1f9aab", "#b26e00", "#8563b8", "#3f8f4f", "#c2578f", "#5b7fbf", "#8a7a3a")
"""By step, repeating; close to those of the strip, in tones that both themes carry."""


def _figure(height: int = 240) -> go.Figure:
    figure = go.Figure()
    figure.update_layout(
        height=height,
        margin={"l": 48, "r": 16, "t": 16, "b": 40},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"family": "system-ui, sans-serif", "size": 12, "color": INK},
        showlegend=False,
        uirevision="keep",
        bargap=0.06,
    )
    figure.update_xaxes(gridcolor=LINE, zeroline=False, linecolor=LINE)
    figure.update_yaxes(gridcolor=LINE, zeroline=False, linecolor=LINE)
    return figure


def step_colour(step: int) -> str:
    """The colour of a 1-based step."""
    return STEP_COLOURS[(step - 1) % len(STEP_COLOURS)]


def best_q_figure(trace: Trace, score_name: str = "Q") -> go.Figure:
    """Q of the action at each step, and of the rejected one, against the stop threshold of the run."""
    figure = _figure()
    labels = [f"step {step.step}" for step in trace.steps]
    values = [step.q_value for step in trace.steps]
    colours = [step_colour(step.step) for step in trace.steps]
    if trace.stopped is not None and trace.stopped.q_value is not None:
        labels.append("stop")
        values.append(trace.stopped.q_value)
        colours.append(INK)
    hover = f"%{{x}}: {score_name} %{{y:.3f}}<extra></extra>"
    figure.add_scatter(x=labels, y=values, mode="lines+markers", line={"color": ACCENT, "width": 2}, marker={"size": 11, "color": colours}, hovertemplate=hover)
    threshold = trace.started.config.stop_threshold
    if threshold is not None:
        figure.add_hline(
            y=threshold, line={"color": WARN, "dash": "dash", "width": 1.5}, annotation={"text": f"stop below {threshold:.2f}", "font": {"color": WARN}}
        )
    figure.update_yaxes(title=score_name)
    return figure


def distribution_figure(values: np.ndarray, threshold: float | None, score_name: str = "Q") -> go.Figure:
    """How many chunks have which Q, on a log scale. values (N,), of the chunks that were available."""
    figure = _figure()
    lo, hi = float(values.min()), float(values.max())
    counts, edges = np.histogram(values.astype(np.float64), bins=48, range=(lo, max(hi, lo + 1e-3)))  # all alike: one bar of some width
    middles = (edges[:-1] + edges[1:]) / 2
    hover = f"{score_name} about %{{x:.3f}}: %{{y:,}} chunks<extra></extra>"
    figure.add_bar(x=middles, y=counts, marker={"color": middles, "colorscale": SEQUENTIAL}, width=np.diff(edges), hovertemplate=hover)
    if threshold is not None:
        figure.add_vline(x=threshold, line={"color": WARN, "dash": "dash", "width": 1.5})
    top = float(counts.max())
    ticks = [n * 10**power for power in range(7) for n in (1, 2, 5) if n * 10**power <= top]
    figure.update_yaxes(type="log", title="chunks (log)", range=[np.log10(0.5), np.log10(top * 1.3)], tickvals=ticks)
    figure.update_xaxes(title=score_name)
    return figure


def parts_figure(trace: Trace) -> go.Figure:
    """Q of each choice split into what its content and what its position contribute. Raises ValueError for a run without positions."""
    steps = [step for step in trace.steps if step.content_q is not None]
    if not steps:
        raise ValueError("no step has a position part")
    figure = _figure()
    labels = [f"step {step.step}" for step in steps]
    content = [step.content_q or 0.0 for step in steps]
    position = [step.q_value - part for step, part in zip(steps, content, strict=True)]
    figure.add_bar(x=labels, y=content, name="content", marker={"color": ACCENT}, hovertemplate="%{x}: content %{y:.3f}<extra></extra>")
    figure.add_bar(x=labels, y=position, name="position", marker={"color": "#c2578f"}, hovertemplate="%{x}: position %{y:.3f}<extra></extra>")
    figure.update_layout(barmode="relative", showlegend=True, legend={"orientation": "h", "y": 1.12})
    figure.update_yaxes(title="Q", zeroline=True, zerolinecolor=LINE)
    return figure
