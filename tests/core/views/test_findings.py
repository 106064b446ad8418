"""Sets and ranks against slower ways of computing them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from core.base.events import Trace
from core.views.findings import first_look_rank, found_by, sets
from core.views.trail import gold_trails
from tests.core.views.greedy import trace_of

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


@given(st.lists(st.sampled_from([-1.0, 0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=12))
def test_ranks_of_the_first_look_are_those_of_a_stable_sort(scores: list[float]) -> None:
    order = sorted(range(len(scores)), key=lambda i: -scores[i])
    trace = trace_of(scores)
    assert [first_look_rank(trace, i) for i in order] == list(range(1, len(scores) + 1))


def test_what_differs_by_rounding_ranks_as_the_agent_takes_it() -> None:
    """The agent takes the first of those; a method that sorts takes the largest."""
    scores = [0.1, 0.5, 0.5 + 2e-7]
    assert [first_look_rank(trace_of(scores), i) for i in range(3)] == [3, 1, 2]
    assert [first_look_rank(trace_of(scores, method="topk"), i) for i in range(3)] == [3, 2, 1]
    assert [gold_trails(trace_of(scores), [i])[0].standings[0].rank for i in (1, 2)] == [1, 2]


def test_no_rank_where_nothing_was_seen_or_no_word_is_shared() -> None:
    scores = [0.0, 2.0, 1.0]
    assert [first_look_rank(trace_of(scores, method="bm25"), i) for i in range(3)] == [None, 1, 2]
    assert [first_look_rank(trace_of(scores, method="topk"), i) for i in range(3)] == [3, 1, 2]
    assert first_look_rank(Trace(trace_of(scores, method="topk").started), 0) is None
