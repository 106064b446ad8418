"""The structured action as JSON, and as chunk ids."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.methods.resrag.action import Action, action_json, action_of, chunk_ids_of

SIZES = st.lists(st.integers(0, 6), min_size=1, max_size=5)


@st.composite
def actions(draw: st.DrawFn) -> tuple[Action, list[int]]:
    sizes = draw(SIZES)
    return tuple(
        tuple(draw(st.lists(st.integers(1, size), unique=True))) if size else () for size in sizes
    ), sizes


@given(actions())
def test_actions_survive_json_and_chunk_ids(drawn: tuple[Action, list[int]]) -> None:
    action, sizes = drawn
    values = action_json(action)
    assert tuple(tuple(values[f"Document_{number + 1}"]) for number in range(len(sizes))) == action
    borders = np.concatenate([[0], np.cumsum(sizes)])
    assert action_of(chunk_ids_of(action, borders), borders) == action
