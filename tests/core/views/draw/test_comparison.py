"""Pins and colours of a comparison's columns."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from core.views.draw.comparison import HOLLOW, colours, spread_pins


@given(st.dictionaries(st.integers(0, 10_000), st.floats(0, 100), max_size=12))
def test_pins_keep_order_and_distance(places: dict[int, float]) -> None:
    pins = spread_pins(places)
    order = sorted(places, key=lambda chunk_id: places[chunk_id])
    xs = [pins[chunk_id] for chunk_id in order]
    assert all(4 - 1e-6 <= x <= 96 + 1e-6 for x in xs)
    assert all(after - before >= 7.9 for before, after in pairwise(xs))


@given(
    st.dictionaries(
        st.integers(0, 30), st.lists(st.sampled_from("abcd"), min_size=1, unique=True), max_size=20
    )
)
def test_neighbouring_colours_differ_and_lone_chunks_are_hollow(found: dict[int, list[str]]) -> None:
    paint = colours(found)
    shared = [paint[chunk_id] for chunk_id, names in found.items() if len(names) > 1]
    assert shared == [f"qx-c{i % 8 + 1}" for i in range(len(shared))]
    assert all(paint[chunk_id] == HOLLOW for chunk_id, names in found.items() if len(names) == 1)
