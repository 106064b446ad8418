"""An agent searches held-out episodes as it would be served."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from core.base.config import EpisodeConfig
from core.base.metrics import fact_f1
from core.base.rows import EpisodeRow
from core.encode.cache import VectorStore
from core.encode.encoder import DualEncoder
from core.lab.evaluate.outcomes import oracle_steps
from core.lab.evaluate.run import Setting, evaluate
from core.lab.tasks.example import Example
from core.methods.qrag.agent import Agent
from core.methods.qrag.retriever import AgentRetriever


def validation_rows(
    examples: Sequence[Example], encoder: DualEncoder, config: EpisodeConfig, scratch: Path
) -> list[EpisodeRow]:
    """A row an example. `scratch`: keeps the vectors of chunks, for another call with the same towers."""
    store = VectorStore(scratch / "vectors", encoder.dim, np.dtype(encoder.spec.vectors))
    agent = AgentRetriever(Agent(encoder))
    return list(evaluate(examples, Setting(split="validation"), agent, encoder, config, store=store))


def oracle_f1(rows: Sequence[EpisodeRow]) -> list[float]:
    """Fact F1 of each episode, were it stopped when it has all support."""
    return [fact_f1(row.chosen[: oracle_steps(row)], row.support) for row in rows]
