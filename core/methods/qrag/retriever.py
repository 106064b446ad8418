"""The agent as a retrieval method: trained, or the untrained encoder."""

from __future__ import annotations

from collections.abc import Iterator

from core.base.config import EpisodeConfig
from core.base.events import Event
from core.corpus.index import Searchable
from core.methods.protocol import Method
from core.methods.qrag.agent import Agent

QRAG = Method(
    name="qrag",
    label="Q-RAG",
    sentence=(
        "A trained agent: after each choice it reads question and chosen chunks again and values every chunk"
        " anew (Q-RAG section 3)"
    ),
    trained=True,
    looks_again=True,
)
MULTISTEP = Method(
    name="multistep",
    label="multi-step",
    long_label="multi-step, not trained",
    sentence=(
        "The untrained encoder step by step, as the agent goes: shows what steps alone bring, without"
        " training"
    ),
    looks_again=True,
)


class AgentRetriever:
    """A Q-RAG agent, planning with a beam above one; with the untrained encoder, multi-step untrained."""

    def __init__(self, agent: Agent) -> None:
        self.agent, self.name = agent, agent.name

    def retrieve(self, query: str, corpus: Searchable, config: EpisodeConfig) -> Iterator[Event]:
        """See `Retriever`."""
        return self.agent.run(query, corpus, config)
