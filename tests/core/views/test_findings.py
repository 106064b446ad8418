"""Sets and ranks against slower ways of computing them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.base.config import EpisodeConfig
from core.base.events import RunStarted, StepScores, StepTaken, Trace
from core.views.findings import first_look_rank, found_by, overlap, sets
from core.views.trail import gold_trails

CHOSEN = st.dictionaries(
    st.sampled_from("abcd"), st.lists(st.integers(0, 9), max_size=6, unique=True), max_size=4
)


@given(CHOSEN)
def test_sets_part_what_was_found(chosen: dict[str, list[int]]) -> None:
    kinds, finders = sets(chosen), found_by(chosen)
    union = {chunk_id for ids in chosen.values() for chunk_id in ids}
    parted = [*kinds.by_all, *kinds.by_some, *kinds.by_one]
    assert sorted(parted) == sorted(union) == sorted(finders)
    everywhere = set.intersection(*map(set, chosen.values())) if len(chosen) > 1 else set()
    assert set(kinds.by_all) == everywhere
    assert set(kinds.by_one) == {
        chunk_id for chunk_id in union if sum(chunk_id in ids for ids in chosen.values()) == 1
    }
    for name, ids in chosen.items():
        assert {chunk_id for chunk_id, names in finders.items() if name in names} == set(ids)
    earliest = [min(ids.index(i) for ids in chosen.values() if i in ids) for i in finders]
    assert earliest == sorted(earliest)


@given(st.lists(st.integers(0, 9), unique=True), st.lists(st.integers(0, 9), unique=True))
def test_overlap_is_even_handed_and_between_0_and_1(a: list[int], b: list[int]) -> None:
    value = overlap(a, b)
    assert value == overlap(b, a)
    assert value is None if not a and not b else 0 <= value <= 1
    assert overlap(a, a) == (1.0 if a else None)


def trace_of(method: str, *rows: list[float]) -> Trace:
    """A greedy run whose look k scored rows[k]; nothing is asked of an encoder."""
    trace = Trace(
        RunStarted("where is the milk ?", method, "", len(rows[0]), EpisodeConfig(step_budget=len(rows)))
    )
    for step, row in enumerate(rows, start=1):
        scores = np.array(row, np.float32)
        best = max((i for i in range(len(row)) if i not in trace.chosen), key=lambda i: scores[i])
        trace = trace.with_event(
            StepTaken(
                step, best, float(scores[best]), 1.0, 0.0, None, "", 0.0, scores=StepScores(scores, None)
            )
        )
    return trace


@given(st.lists(st.sampled_from([-1.0, 0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=12))
def test_ranks_of_the_first_look_are_those_of_a_stable_sort(scores: list[float]) -> None:
    order = sorted(range(len(scores)), key=lambda i: -scores[i])
    trace = trace_of("qrag", scores)
    assert [first_look_rank(trace, i) for i in order] == list(range(1, len(scores) + 1))


def test_what_differs_by_rounding_ranks_as_the_agent_takes_it() -> None:
    """The agent takes the first of those; a method that sorts takes the largest."""
    scores = [0.1, 0.5, 0.5 + 2e-7]
    assert [first_look_rank(trace_of("qrag", scores), i) for i in range(3)] == [3, 1, 2]
    assert [first_look_rank(trace_of("topk", scores), i) for i in range(3)] == [3, 2, 1]
    assert [gold_trails(trace_of("qrag", scores), [i])[0].standings[0].rank for i in (1, 2)] == [1, 2]


def test_no_rank_where_nothing_was_seen_or_no_word_is_shared() -> None:
    scores = [0.0, 2.0, 1.0]
    assert [first_look_rank(trace_of("bm25", scores), i) for i in range(3)] == [None, 1, 2]
    assert [first_look_rank(trace_of("topk", scores), i) for i in range(3)] == [3, 1, 2]
    assert first_look_rank(Trace(trace_of("topk", scores).started), 0) is None
