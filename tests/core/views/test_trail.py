"""Gold trails against a plain sort of what could be chosen, and what counts as lost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.base.config import EpisodeConfig
from core.base.events import RunStarted, StepScores, StepTaken, Trace, fold
from core.methods.qrag.agent import Agent
from core.views.trail import Standing, Trail, gold_trails
from tests.core.conftest import CorpusOf
from tests.core.views.greedy import trace_of

CHUNKS = [
    f"{name} went to the {place} ."
    for name in ("mary", "john", "sandra")
    for place in ("garden", "office", "kitchen")
]


def trail(*ranks: int | None, found_at: int | None = None) -> Trail:
    return Trail(0, tuple(None if rank is None else Standing(rank, 0.0) for rank in ranks), found_at)


@pytest.mark.parametrize(
    ("ranks", "lost_at"),
    [
        ((5, 2, 9), 2),
        ((5, 2, 2, 9), 3),
        ((9, 5, 2), None),
        ((None, None), None),
        ((1, 4, None), 1),
    ],
)
def test_the_choice_after_the_best_place_is_the_one_that_lost_it(
    ranks: tuple[int | None, ...], lost_at: int | None
) -> None:
    loss = trail(*ranks).loss
    assert trail(*ranks, found_at=len(ranks)).loss is None, "what was found is not lost"
    assert (loss.step if loss else None) == lost_at
    assert loss is None or (loss.before.rank, loss.after.rank) == ranks[loss.step - 1 : loss.step + 1]


@given(
    st.lists(
        st.lists(st.sampled_from([-1.0, 0.0, 0.5, 1.0]), min_size=6, max_size=6), min_size=1, max_size=4
    ),
    st.sets(st.integers(0, 5), max_size=1),
)
def test_places_are_those_of_a_stable_sort_behind_what_was_taken(
    rows: list[list[float]], forbidden: set[int]
) -> None:
    trace = trace_of(*rows, forbidden=tuple(forbidden))
    left = [i for i in range(6) if i not in forbidden]
    for chunk_id, found in enumerate(gold_trails(trace, range(6))):
        assert found.found_at == (trace.chosen.index(chunk_id) + 1 if chunk_id in trace.chosen else None)
        for look, (standing, row) in enumerate(zip(found.standings, rows, strict=True)):
            if chunk_id in forbidden or (found.found_at is not None and look >= found.found_at):
                assert standing is None
                continue
            ahead = trace.chosen[:look]
            line = [*ahead, *sorted((i for i in left if i not in ahead), key=lambda i: -row[i])]
            assert standing == Standing(line.index(chunk_id) + 1, row[chunk_id])


def test_a_rank_does_not_change_where_others_are_taken() -> None:
    scores = StepScores(np.arange(6, 0, -1, dtype=np.float32), None)
    trace = Trace(RunStarted("where ?", "qrag", "", 6, EpisodeConfig(step_budget=3)))
    for step in (1, 2, 3):
        trace = trace.with_event(StepTaken(step, step - 1, 0, 1, 0, None, "", 0, scores=scores))
    ranks = [
        [standing and standing.rank for standing in one.standings] for one in gold_trails(trace, range(6))
    ]
    assert ranks == [[1, None, None], [2, 2, None], [3, 3, 3], [4, 4, 4], [5, 5, 5], [6, 6, 6]]


def test_the_look_after_which_the_agent_stopped_counts(agents: dict[str, Agent], corpus_of: CorpusOf) -> None:
    agent = agents["relative10"]
    corpus, config = corpus_of(agent.encoder, CHUNKS), EpisodeConfig(step_budget=4)
    whole = fold(agent.run("where is john ?", corpus, config))
    threshold = min(step.q_value for step in whole.steps) + 1e-6
    stopped = fold(agent.run("where is john ?", corpus, config.with_(stop_threshold=threshold)))
    assert stopped.stopped.reason == "threshold"
    (found,) = gold_trails(stopped, [stopped.stopped.chunk_id])
    assert len(found.standings) == len(stopped.steps) + 1
    assert found.standings[-1] == Standing(len(stopped.steps) + 1, stopped.stopped.q_value), (
        "the next in line"
    )
    assert found.loss is None
    bare = replace(whole, steps=tuple(replace(step, scores=None) for step in whole.steps))
    first = whole.chosen[0]
    assert gold_trails(bare, [first])[0].standings[:4] == (None,) * 4, (
        "looks that were not kept have no ranks"
    )
