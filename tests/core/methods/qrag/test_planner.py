"""Beam search over Q: exhaustive search at full width."""

from __future__ import annotations

from itertools import permutations

import pytest

from core.base.config import EpisodeConfig
from core.base.events import Trace, fold
from core.corpus.index import Corpus
from core.methods.qrag.agent import Agent
from core.methods.qrag.episode import Episode
from tests.core.conftest import CorpusOf

CHUNKS = [
    "mary got the milk .",
    "mary went to the garden .",
    "the night was cold .",
    "john left the apple .",
    "mary dropped the milk .",
]
QUERIES = ["where is the milk ?", "where was the apple before the garden ?", "where is john ?"]


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


@pytest.mark.parametrize(("name", "budget", "width"), [("none", 2, 16), ("relative10", 3, 6)])
def test_a_beam_that_drops_nothing_finds_the_best_path(
    agents: dict[str, Agent], corpus_of: CorpusOf, name: str, budget: int, width: int
) -> None:
    """Four chunks, two steps: 12 orders fit a beam of 16. With the state's text in document order, paths that
    hold the same chunks share a place, so that a beam of six prunes nothing up to three steps.
    """
    agent = agents[name]
    assert agent.spec.state_order == "document" or width == 16
    corpus = corpus_of(agent.encoder, CHUNKS[:4])
    for query in QUERIES:
        config = EpisodeConfig(step_budget=budget, beam_width=width)
        planned = fold(agent.run(query, corpus, config))
        greedy = fold(agent.run(query, corpus, config.with_(beam_width=1)))
        assert worth(planned) == pytest.approx(exhaustive_worth(agent, query, corpus, budget), abs=1e-4)
        assert worth(planned) >= worth(greedy) - 1e-4


def test_planned_steps_are_a_run_that_could_have_been_forced(
    agents: dict[str, Agent], corpus_of: CorpusOf
) -> None:
    """Q, positions and texts of the best path are those of an agent that is made to take it."""
    agent = agents["relative10"]
    corpus = corpus_of(agent.encoder, CHUNKS)
    planned = fold(agent.run(QUERIES[0], corpus, EpisodeConfig(step_budget=3, beam_width=4)))
    config = EpisodeConfig(step_budget=3, forced=tuple(enumerate(planned.chosen, start=1)))
    forced = fold(agent.run(QUERIES[0], corpus, config))
    assert planned.chosen == forced.chosen
    values = [step.q_value for step in forced.steps]
    assert [step.q_value for step in planned.steps] == pytest.approx(values, abs=1e-5)
    assert [step.position for step in planned.steps] == [step.position for step in forced.steps]


def test_the_threshold_stops_paths_one_by_one(agents: dict[str, Agent], corpus_of: CorpusOf) -> None:
    """No taken step lies below it, and a path goes on for as long as a chunk reaches it."""
    agent = agents["relative10"]
    corpus, config = corpus_of(agent.encoder, CHUNKS), EpisodeConfig(step_budget=5)
    values = sorted(step.q_value for step in fold(agent.run(QUERIES[0], corpus, config)).steps)
    threshold = (values[1] + values[2]) / 2
    trace = fold(agent.run(QUERIES[0], corpus, config.with_(beam_width=4, stop_threshold=threshold)))
    assert all(step.q_value >= threshold for step in trace.steps)
    if trace.stopped.reason == "threshold":
        assert trace.stopped.q_value < threshold
