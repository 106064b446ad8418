"""Leave one out against runs that are begun without the choice that is left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from core.base.config import EpisodeConfig
from core.base.events import fold
from core.corpus.index import Corpus
from core.encode.encoder import DualEncoder
from core.methods.qrag.agent import Agent
from core.runs.whatif.influence import leave_one_out

CHUNKS = [
    f"{name} went to the {place} ."
    for name in ("mary", "john", "sandra")
    for place in ("garden", "office", "kitchen")
]
QUERY = "where is john ?"


@pytest.mark.parametrize("name", ["none", "relative10"])
def test_each_row_is_what_the_agent_would_have_seen(
    agents: dict[str, Agent], corpus_of: Callable[[DualEncoder, Sequence[str]], Corpus], name: str
) -> None:
    agent, config = agents[name], EpisodeConfig(step_budget=4)
    corpus = corpus_of(agent.encoder, CHUNKS)
    trace = fold(agent.run(QUERY, corpus, config))
    found = leave_one_out(agent, QUERY, corpus, config, trace.chosen)
    assert [len(row) for row in found] == [0, 1, 2, 3]
    assert found[1][0] == pytest.approx(trace.steps[0].scores.q_values[trace.chosen[1]], abs=1e-5), (
        "without the first, only the question is left"
    )
    for step, row in enumerate(found):
        for left_out, q_value in enumerate(row):
            kept = [chunk_id for i, chunk_id in enumerate(trace.chosen[:step]) if i != left_out]
            *_, then, _ = agent.run(QUERY, corpus, config.with_(step_budget=len(kept) + 1), kept)
            assert q_value == pytest.approx(then.scores.q_values[trace.chosen[step]], abs=1e-5)


def test_nothing_comes_before_the_first(
    agents: dict[str, Agent], corpus_of: Callable[[DualEncoder, Sequence[str]], Corpus]
) -> None:
    agent = agents["none"]
    assert leave_one_out(agent, QUERY, corpus_of(agent.encoder, CHUNKS), EpisodeConfig(), []) == ()
    assert leave_one_out(agent, QUERY, corpus_of(agent.encoder, CHUNKS), EpisodeConfig(), [3]) == ((),)
