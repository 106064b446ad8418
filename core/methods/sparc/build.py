"""Agents for every role, and what they search."""

from __future__ import annotations

from collections.abc import Callable

from core.answer.protocol import Reader
from core.corpus.index import Searchable
from core.encode.encoder import DualEncoder
from core.llm.protocol import Llm
from core.methods.sparc.agents import SparcAgents
from core.methods.sparc.events import SparcConfig
from core.methods.sparc.llm_agents import LlmAgents
from core.methods.sparc.retrievals import Retrievals
from core.methods.sparc.rules import RuleAgents


def build_agents(llm: Llm | None, reader: Reader, config: SparcConfig | None = None) -> SparcAgents:
    """Agents for runs of a configuration; it decides how many chunks the rules' memory holds."""
    return RuleAgents(reader, (config or SparcConfig()).k) if llm is None else LlmAgents(llm)


def asks_agent(encoder: DualEncoder, config: SparcConfig) -> bool:
    """Whether an encoder is the agent of a run: where it is searched with, and where it is trained."""
    return encoder.spec.trained or "qrag" in config.strategies


def build_retrievals(
    config: SparcConfig,
    encoder: DualEncoder,
    plain: DualEncoder,
    corpus_of: Callable[[DualEncoder], Searchable],
) -> Retrievals:
    """What a configuration's runs search. `plain`: untrained; `corpus_of`: the chunks under an encoder."""
    dense = "dense" in config.strategies
    return Retrievals(
        corpus_of(encoder),
        agent=encoder if asks_agent(encoder, config) else None,
        plain=plain if dense else None,
        plain_corpus=corpus_of(plain) if dense else None,
    )
