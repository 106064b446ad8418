"""Figures say what the trace says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from core.base.config import EpisodeConfig
from core.base.events import RunStarted, StepTaken, Stopped, Trace
from core.views.charts import Chart, Line
from core.views.figures import (
    CURVE_POINTS,
    INK,
    STEP_COLOURS,
    best_q_figure,
    block_of,
    card_figure,
    counts_figure,
    curves_figure,
    distribution_figure,
    line_colours,
    parts_figure,
    step_colour,
    step_figure,
    stops_figure,
    update_figure,
    validation_figure,
)


def trace_of(*q_values: float, threshold: float | None = 0.3, content: float | None = None) -> Trace:
    position = None if content is None else 3.5
    steps = tuple(
        StepTaken(i, i, q, 1.0, q, position, "text", 1.0, content) for i, q in enumerate(q_values, start=1)
    )
    return Trace(
        RunStarted("where ?", "qrag", "base", 9, EpisodeConfig(stop_threshold=threshold)),
        steps,
        Stopped("threshold", len(steps), 7, 0.25),
    )


def test_best_q_has_a_point_a_step_and_the_rejected_one() -> None:
    figure = go.Figure(best_q_figure(trace_of(0.9, 0.5)))
    (line,) = figure.data
    assert (list(line.x), list(line.y)) == (["step 1", "step 2", "stop"], [0.9, 0.5, 0.25])
    (threshold,) = figure.layout.shapes
    assert threshold.y0 == threshold.y1 == 0.3
    assert "0.30" in figure.layout.annotations[0].text
    bare = go.Figure(best_q_figure(trace_of(threshold=None)))
    assert (list(bare.data[0].x), bare.layout.shapes) == (["stop"], ())


def test_the_distribution_counts_every_chunk() -> None:
    figure = go.Figure(
        distribution_figure(np.random.default_rng(0).normal(size=1000).astype(np.float32), 0.4)
    )
    assert sum(figure.data[0].y) == 1000
    assert (figure.layout.shapes[0].x0, figure.layout.yaxis.type) == (0.4, "log")
    equal = go.Figure(distribution_figure(np.zeros(5, np.float32), None))
    assert (sum(equal.data[0].y), equal.layout.shapes) == (5, ())


def test_parts_add_up_to_q() -> None:
    trace = trace_of(0.9, 0.5, content=0.6)
    content, position = go.Figure(parts_figure(trace)).data
    assert (content.name, position.name) == ("content", "position")
    np.testing.assert_allclose(np.add(content.y, position.y), [0.9, 0.5])
    steps = tuple(replace(step, position=None, words_q=0.25) for step in trace.steps)
    _, words = go.Figure(parts_figure(replace(trace, steps=steps))).data
    assert (words.name, list(words.y)) == ("words", [0.25, 0.25])
    with pytest.raises(ValueError, match="Q of no step has more than one part"):
        parts_figure(trace_of(0.9))


def test_a_chart_of_a_study() -> None:
    lines = (
        Line("measured", (1.0, 10.0), (0.5, None)),
        Line("ideal", (1.0, 10.0), (0.0, 1.0), dashed=True),
        Line("oracle", (2.0,), (0.9,), points_only=True),
    )
    chart = Chart("Title", "tokens", "F1", lines, log_x=True)
    figure = card_figure(chart)
    assert [(line.name, line.mode, list(line.x), list(line.y)) for line in figure.data] == [
        ("measured", "lines+markers", [1, 10], [0.5, None]),
        ("ideal", "lines", [1, 10], [0, 1]),
        ("oracle", "markers", [2], [0.9]),
    ]
    x, y = figure.layout.xaxis, figure.layout.yaxis
    assert (x.type, y.type, x.title.text, figure.layout.showlegend) == ("log", "linear", "tokens", True)
    assert figure.layout.title.text is None, "a card has it"


def test_a_line_has_its_colour_and_a_target_that_of_its_line() -> None:
    x, solid = (0.0, 1.0, 2.0), [Line(f"line {i}", (0.0, 1.0, 2.0), (0.0, 1.0, 2.0)) for i in range(3)]
    target, diagonal = Line("target", x, x, dashed=True), Line("ideal", x[:2], x[:2], dashed=True)
    assert line_colours([solid[0], target, solid[1], diagonal, solid[2]]) == [
        *STEP_COLOURS[:1] * 2,
        STEP_COLOURS[1],
        INK,
        STEP_COLOURS[2],
    ]


def updates(*success: float, **more: Any) -> list[dict[str, Any]]:
    told = [{"event": "update", "update": i, "success": value} for i, value in enumerate(success, start=1)]
    return [{"event": "started"}, *(event | more for event in told)]


def test_a_curve_has_a_point_an_update_and_later_one_a_block() -> None:
    figure = update_figure(updates(0.25, 0.75), "success", "loss", log=True)
    assert (list(figure.data[0].x), list(figure.data[0].y)) == ([1, 2], [0.25, 0.75])
    assert figure.layout.yaxis.type == "log"
    many = updates(*np.linspace(0, 1, 10 * CURVE_POINTS + 3))
    (line,) = update_figure(many, "success", "share").data
    size = block_of(len(many) - 1)
    assert len(line.x) == -(-(len(many) - 1) // size) <= CURVE_POINTS
    assert line.x[-1] == len(many) - 1
    assert line.y[0] == pytest.approx(np.mean([event["success"] for event in many[1 : size + 1]]))


def test_a_training_that_has_told_nothing_has_no_figure() -> None:
    for draw in (
        lambda: update_figure([], "success", "share"),
        lambda: step_figure(updates(), "q", "Q"),
        lambda: validation_figure([]),
    ):
        with pytest.raises(ValueError, match="yet"):
            draw()


def test_steps_have_their_colours_and_v_is_dashed() -> None:
    events = updates(1.0, q=[0.5, 0.25], v=[0.75, 0.0]) + updates(1.0, q=[0.5, 0.25, 1.0], v=[0.75, 0.0, 0.0])
    lines = {line.name: line for line in step_figure(events, "q", "Q", beside="v").data}
    assert list(lines) == ["step 1", "step 1, v", "step 2", "step 3"], "V beyond the cap is 0 throughout"
    assert lines["step 1"].line.color == lines["step 1, v"].line.color == step_colour(1)
    assert lines["step 1, v"].line.dash == "dash"
    assert list(lines["step 3"].y) == [None, 1.0], "an update without this step leaves it out"
    stacked = step_figure(events, "q", "Q", stacked=True)
    assert {line.stackgroup for line in stacked.data} == {"sum"}


def test_validation_has_a_line_a_task_and_their_mean() -> None:
    def validated(update: int, **scores: float) -> dict[str, Any]:
        tasks = {task: {"n": 5, "fact_f1_oracle_stop": score} for task, score in scores.items()}
        score = sum(scores.values()) / len(scores)
        return {"event": "validated", "update": update, "score": score, "tasks": tasks}

    figure = validation_figure([validated(0, qa1=0.5, qa2=0.25), validated(100, qa1=1.0)])
    assert {line.name: list(line.y) for line in figure.data} == {
        "qa1": [0.5, 1.0],
        "qa2": [0.25, None],
        "all tasks": [0.375, 1.0],
    }
    (alone,) = validation_figure([validated(0, own=0.5)]).data
    assert (alone.name, alone.mode) == ("all tasks", "lines+markers")


def test_stops_are_stacked_under_the_threshold_that_is_looked_at() -> None:
    figure = stops_figure(
        (0.0, 0.5, 1.0), {"perfect": (0.0, 0.75, 0.0), "early": (1.0, 0.25, 1.0)}, 0.5, (0.5, 0.9, 0.1)
    )
    perfect, early, f1 = figure.data
    assert (perfect.stackgroup, early.stackgroup, f1.stackgroup) == ("stops", "stops", None)
    assert list(np.add(perfect.y, early.y)) == [1, 1, 1]
    assert (f1.name, figure.layout.shapes[0].x0) == ("Fact F1", 0.5)


def test_runs_are_lines_that_end_hollow_where_the_agent_refused() -> None:
    two = curves_figure([("1. <b>who</b>", (0.9, 0.5), 0.1), ("2. %{x}", (0.7,), None)])
    first, second = two.data
    many = curves_figure([(str(run), (0.5,), None) for run in range(12)])
    assert many.layout.height >= two.layout.height + 10 * 18, "a line of text each name"
    assert (first.name, list(first.x), list(first.y)) == (
        "1. &lt;b&gt;who&lt;/b&gt;",
        [1, 2, 3],
        [0.9, 0.5, 0.1],
    )
    assert list(first.marker.symbol) == ["circle", "circle", "circle-open"]
    assert list(second.y) == [0.7]
    assert "%{x}" not in second.hovertemplate.replace("step %{x}", "")


def test_outcomes_are_stacked_by_method() -> None:
    figure = counts_figure({"qrag a": {"hit": 2, "miss": 1}, "topk <i>": {"miss": 3}})
    hits, misses = figure.data
    assert (hits.name, list(hits.y), list(misses.y)) == ("hit", [2, 0], [1, 3])
    assert list(misses.x) == ["qrag a", "topk &lt;i&gt;"]
    assert figure.layout.barmode == "stack"
