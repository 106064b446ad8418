"""Beam search over Q: the greedy agent at width 1, exhaustive search at full width."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations

import pytest

from core.base.config import EpisodeConfig
from core.base.errors import BadRequest
from core.base.events import Trace, fold
from core.corpus.index import Corpus
from core.encode.encoder import DualEncoder
from core.methods.qrag.agent import Agent
from core.methods.qrag.episode import Episode
from core.methods.qrag.planner import plan

CHUNKS = [
    "mary got the milk .",
    "mary went to the garden .",
    "the night was cold .",
    "john left the apple .",
    "mary dropped the milk .",
]
QUERIES = ["where is the milk ?", "where was the apple before the garden ?", "where is john ?"]
CorpusOf = Callable[[DualEncoder, Sequence[str]], Corpus]


def worth(trace: Trace) -> float:
    """What the planner maximises: the mean of Q over the steps."""
    return sum(step.q_value for step in trace.steps) / len(trace.steps)


def exhaustive_worth(agent: Agent, query: str, corpus: Corpus, budget: int) -> float:
    """The largest mean of Q over all orders of `budget` chunks, every state scored by itself."""
    episode, seen = Episode(query, corpus, EpisodeConfig(step_budget=budget)), {}

    def q_values(chosen: tuple[int, ...]) -> list[float]:
        if chosen not in seen:
            seen[chosen] = agent.look([(episode, chosen)])[0].scores.q_values.tolist()
        return seen[chosen]

    return max(
        sum(q_values(path[:i])[chunk_id] for i, chunk_id in enumerate(path)) / budget
        for path in permutations(range(len(corpus)), budget)
    )


@pytest.mark.parametrize("name", ["none", "absolute", "relative10"])
@pytest.mark.parametrize("query", QUERIES)
def test_a_beam_of_one_is_the_greedy_agent(
    agents: dict[str, Agent], corpus_of: CorpusOf, name: str, query: str
) -> None:
    agent = agents[name]
    corpus = corpus_of(agent.encoder, CHUNKS)
    for config in (
        EpisodeConfig(step_budget=4),
        EpisodeConfig(step_budget=5, forbidden=(2,)),
        EpisodeConfig(step_budget=4, stop_threshold=1e6),
    ):
        planned, acted = fold(plan(agent, query, corpus, config)), fold(agent.run(query, corpus, config))
        assert planned.chosen == acted.chosen
        assert [s.q_value for s in planned.steps] == pytest.approx([s.q_value for s in acted.steps], abs=1e-5)
        assert (planned.stopped.reason, planned.stopped.chunk_id) == (
            acted.stopped.reason,
            acted.stopped.chunk_id,
        )


@pytest.mark.parametrize("name", ["none", "relative20"])
@pytest.mark.parametrize("query", QUERIES)
def test_a_beam_that_drops_nothing_finds_the_best_path(
    agents: dict[str, Agent], corpus_of: CorpusOf, name: str, query: str
) -> None:
    """Four chunks, two steps: 12 orders fit a beam of 16, so nothing is pruned and the result is the
    exhaustive one.
    """
    agent = agents[name]
    corpus = corpus_of(agent.encoder, CHUNKS[:4])
    config = EpisodeConfig(step_budget=2, beam_width=16)
    planned = fold(plan(agent, query, corpus, config))
    greedy = fold(agent.run(query, corpus, config.with_(beam_width=1)))
    assert worth(planned) == pytest.approx(exhaustive_worth(agent, query, corpus, 2), abs=1e-4)
    assert worth(planned) >= worth(greedy) - 1e-4


def test_paths_that_hold_the_same_chunks_share_a_place_in_the_beam(
    agents: dict[str, Agent], corpus_of: CorpusOf
) -> None:
    """State text in document order: four chunks make six pairs and four triples, so a beam of six prunes
    nothing up to three steps.
    """
    agent = agents["relative10"]
    assert agent.spec.state_order == "document"
    corpus = corpus_of(agent.encoder, CHUNKS[:4])
    for query in QUERIES:
        planned = fold(plan(agent, query, corpus, EpisodeConfig(step_budget=3, beam_width=6)))
        assert worth(planned) == pytest.approx(exhaustive_worth(agent, query, corpus, 3), abs=1e-4)


def test_planned_steps_are_a_run_that_could_have_been_forced(
    agents: dict[str, Agent], corpus_of: CorpusOf
) -> None:
    """Q, positions and texts of the best path are those of an agent that is made to take it."""
    agent = agents["relative10"]
    corpus = corpus_of(agent.encoder, CHUNKS)
    planned = fold(plan(agent, QUERIES[0], corpus, EpisodeConfig(step_budget=3, beam_width=4)))
    forced = fold(
        agent.run(
            QUERIES[0], corpus, EpisodeConfig(step_budget=3, forced=tuple(enumerate(planned.chosen, start=1)))
        )
    )
    assert planned.chosen == forced.chosen
    assert [step.q_value for step in planned.steps] == pytest.approx(
        [step.q_value for step in forced.steps], abs=1e-5
    )
    assert [step.position for step in planned.steps] == [step.position for step in forced.steps]


def test_the_threshold_stops_paths_one_by_one(agents: dict[str, Agent], corpus_of: CorpusOf) -> None:
    """No taken step lies below it, and a path goes on for as long as a chunk reaches it."""
    agent = agents["relative10"]
    corpus = corpus_of(agent.encoder, CHUNKS)
    values = sorted(
        step.q_value for step in fold(agent.run(QUERIES[0], corpus, EpisodeConfig(step_budget=5))).steps
    )
    trace = fold(
        plan(
            agent,
            QUERIES[0],
            corpus,
            EpisodeConfig(step_budget=5, beam_width=4, stop_threshold=(values[1] + values[2]) / 2),
        )
    )
    threshold = trace.started.config.stop_threshold
    assert all(step.q_value >= threshold for step in trace.steps)
    if trace.stopped.reason == "threshold":
        assert trace.stopped.q_value < threshold


def test_bad_requests(agents: dict[str, Agent], corpus_of: CorpusOf) -> None:
    corpus = corpus_of(agents["none"].encoder, CHUNKS)
    with pytest.raises(BadRequest, match="step budget 6 is above 5"):
        next(plan(agents["none"], QUERIES[0], corpus, EpisodeConfig(step_budget=6, beam_width=2)))
    with pytest.raises(BadRequest, match="beam width 17"):
        EpisodeConfig(beam_width=17)
    with pytest.raises(BadRequest, match="plans greedily"):
        EpisodeConfig(beam_width=2, temperature=0.1)
