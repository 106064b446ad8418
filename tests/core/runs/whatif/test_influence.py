"""Leave one out against runs that are begun without the choice that is left out."""

from __future__ import annotations

import pytest

from core.base.config import EpisodeConfig
from core.base.events import fold
from core.methods.qrag.agent import Agent
from core.runs.whatif.influence import leave_one_out
from tests.core.conftest import CorpusOf
from tests.core.runs.whatif.test_variant import CHUNKS

QUERY = "where is john ?"


@pytest.mark.parametrize("name", ["none", "relative10"])
def test_each_row_is_what_the_agent_would_have_seen(
    agents: dict[str, Agent], corpus_of: CorpusOf, name: str
) -> None:
    agent, config = agents[name], EpisodeConfig(step_budget=4)
    corpus = corpus_of(agent.encoder, CHUNKS)
    trace = fold(agent.run(QUERY, corpus, config))
    found = leave_one_out(agent, QUERY, corpus, config, trace.chosen)
    assert [len(row) for row in found] == [0, 1, 2, 3]
    for step, row in enumerate(found):
        for left_out, q_value in enumerate(row):
            kept = [chunk_id for i, chunk_id in enumerate(trace.chosen[:step]) if i != left_out]
            *_, then, _ = agent.run(QUERY, corpus, config.with_(step_budget=len(kept) + 1), kept)
            assert q_value == pytest.approx(then.scores.q_values[trace.chosen[step]], abs=1e-5)
