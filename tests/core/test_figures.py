"""Figures say what the trace says: read back out of the plotly objects."""

from __future__ import annotations

import numpy as np
import pytest

from core.config import EpisodeConfig
from core.events import RunStarted, StepTaken, Stopped, Trace
from core.figures import STEP_COLOURS, best_q_figure, chart_figure, distribution_figure, parts_figure, step_colour
from core.studies.report import Chart, Line


def trace_of(*q_values: float, threshold: float | None = 0.3, content: float | None = None) -> Trace:
    steps = tuple(StepTaken(i, i, q, 1.0, q, None, "text", 1.0, content) for i, q in enumerate(q_values, start=1))
    return Trace(RunStarted("where ?", "qrag", "base", 9, EpisodeConfig(stop_threshold=threshold)), steps, Stopped("threshold", len(steps), 7, 0.25))


def test_best_q_has_a_point_a_step_and_the_rejected_one() -> None:
    figure = best_q_figure(trace_of(0.9, 0.5))
    (line,) = figure.data
    assert list(line.x) == ["step 1", "step 2", "stop"]
    assert list(line.y) == [0.9, 0.5, 0.25]
    (threshold,) = figure.layout.shapes
    assert threshold.y0 == threshold.y1 == 0.3
    assert "0.30" in figure.layout.annotations[0].text


def test_best_q_without_threshold_or_steps() -> None:
    figure = best_q_figure(trace_of(threshold=None))
    assert not figure.layout.shapes
    assert list(figure.data[0].x) == ["stop"]


def test_the_distribution_counts_every_chunk() -> None:
    values = np.random.default_rng(0).normal(size=1000).astype(np.float32)
    figure = distribution_figure(values, 0.4)
    assert sum(figure.data[0].y) == 1000
    assert figure.layout.shapes[0].x0 == 0.4
    assert figure.layout.yaxis.type == "log"
    assert not distribution_figure(values, None).layout.shapes


@pytest.mark.parametrize("values", [np.zeros(5, np.float32), np.array([0.5], np.float32)])
def test_the_distribution_of_equal_values(values: np.ndarray) -> None:
    assert sum(distribution_figure(values, None).data[0].y) == len(values)


def test_parts_add_up_to_q() -> None:
    content, position = parts_figure(trace_of(0.9, 0.5, content=0.6)).data
    assert (content.name, position.name) == ("content", "position")
    np.testing.assert_allclose(np.add(content.y, position.y), [0.9, 0.5])


def test_a_run_without_positions_has_no_parts() -> None:
    with pytest.raises(ValueError, match="no step has a position part"):
        parts_figure(trace_of(0.9))


def test_step_colours_repeat() -> None:
    assert step_colour(1) == step_colour(len(STEP_COLOURS) + 1) == STEP_COLOURS[0]
    assert len(set(STEP_COLOURS)) == len(STEP_COLOURS)


def test_a_chart_of_a_study() -> None:
    lines = (Line("measured", (1.0, 10.0), (0.5, None)), Line("ideal", (1.0, 10.0), (0.0, 1.0), dashed=True), Line("oracle", (2.0,), (0.9,), points_only=True))
    figure = chart_figure(Chart("Title", "tokens", "F1", lines, log_x=True))
    assert [(line.name, line.mode, list(line.x), list(line.y)) for line in figure.data] == [
        ("measured", "lines+markers", [1, 10], [0.5, None]),
        ("ideal", "lines", [1, 10], [0, 1]),
        ("oracle", "markers", [2], [0.9]),
    ]
    assert (figure.layout.xaxis.type, figure.layout.yaxis.type, figure.layout.xaxis.title.text) == ("log", "linear", "tokens")
    assert figure.layout.showlegend
