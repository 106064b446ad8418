"""The drawing is well-formed, holds every point, and stays inside its frame."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.views.charts import Chart, Line
from core.views.svg import svg

NAMESPACE = "{http://www.w3.org/2000/svg}"
VALUES = st.floats(-1e6, 1e6).map(lambda value: round(value, 3))


def circles(text: str) -> list[tuple[float, float]]:
    return [
        (float(dot.get("cx", 0)), float(dot.get("cy", 0)))
        for dot in ElementTree.fromstring(text).iter(f"{NAMESPACE}circle")
    ]


@given(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=30))
def test_every_point_is_drawn_inside_the_panel(points: list[tuple[float, float]]) -> None:
    chart = Chart(
        "Title", "x", "y", (Line("line", tuple(x for x, _ in points), tuple(y for _, y in points)),)
    )
    drawn = circles(svg([chart]))
    assert len(drawn) == len(points)
    assert all(57 <= x <= 447 and 33 <= y <= 275 for x, y in drawn)


def test_larger_is_further_right_and_up() -> None:
    line = Line("l", (1.0, 10.0, 100.0), (1.0, 100.0, 10_000.0))
    (x1, y1), (x2, y2), (x3, y3) = circles(svg([Chart("t", "x", "y", (line,), log_x=True, log_y=True)]))
    assert x2 - x1 == pytest.approx(x3 - x2, abs=0.11)
    assert y1 - y2 == pytest.approx(y2 - y3, abs=0.11)
    assert x1 < x2
    assert y1 > y2


def test_between_two_steps_there_is_no_tick() -> None:
    text = svg([Chart("t", "step", "Q", (Line("l", (1.0, 2.0, 3.0), (0.1, 0.2, 0.3)),))])
    assert re.findall(r'middle">([^<]*)<', text) == ["1", "2", "3", "step", "Q"]


def test_missing_values_break_the_line() -> None:
    text = svg([Chart("t", "x", "y", (Line("l", (1.0, 2.0, 3.0, 4.0), (1.0, None, 3.0, 4.0)),))])
    (path,) = re.findall(r'd="([^"]*)" fill="none"', text)
    assert path.count("M") == 2
    assert len(circles(text)) == 3


def test_names_are_escaped_and_several_charts_become_panels() -> None:
    lines = (
        Line("a < b & c", (0.0, 1.0), (0.0, 1.0)),
        Line("ideal", (0.0, 1.0), (0.0, 1.0), dashed=True),
        Line("star", (0.5,), (0.5,), points_only=True),
    )
    root = ElementTree.fromstring(svg([Chart("<Title>", "x", "y", lines)] * 3))
    texts = [element.text for element in root.iter(f"{NAMESPACE}text")]
    assert texts.count("a < b & c") == 3
    assert texts.count("<Title>") == 3
    assert (root.get("width"), len(root.findall(f"{NAMESPACE}g"))) == ("920", 3)


def test_what_can_not_be_drawn_is_said() -> None:
    with pytest.raises(ValueError, match="no chart"):
        svg([])
    assert "nothing was measured" in svg([Chart("t", "x", "y", (Line("l", (1.0,), (None,)),))])
    with pytest.raises(ValueError, match="logarithmic"):
        svg([Chart("t", "x", "y", (Line("l", (0.0,), (1.0,)),), log_x=True)])
