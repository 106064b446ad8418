"""The retrieval methods, in the order in which they are listed everywhere."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from core.base.config import RESRAG_LLM
from core.base.errors import BadRequest
from core.base.events import Event, Trace, fold
from core.encode.encoder import DualEncoder
from core.llm.protocol import Llm
from core.methods.bm25 import BM25, Bm25
from core.methods.hybrid import HYBRID, Hybrid
from core.methods.protocol import Method, Retriever
from core.methods.qrag.agent import Agent
from core.methods.qrag.episode import Episode
from core.methods.qrag.retriever import MULTISTEP, QRAG, AgentRetriever
from core.methods.resrag.card import policy_for, read_card
from core.methods.resrag.llm.policy import RESRAG_LLM_METHOD, LlmEvidenceSet, unread
from core.methods.resrag.retriever import RESRAG_METHOD, EvidenceSet
from core.methods.sparc.retriever import SPARC_METHOD
from core.methods.threshold import THRESHOLD, Threshold, cut_short
from core.methods.topk import DOCUMENT_ORDER, TOPK, TopK, TopKInOrder

PLAIN = "base"
"""The untrained checkpoint."""

_BUILT_BY: dict[Method, Callable[[DualEncoder], Retriever]] = {
    QRAG: lambda encoder: AgentRetriever(Agent(encoder)),
    HYBRID: Hybrid,
    TOPK: TopK,
    DOCUMENT_ORDER: TopKInOrder,
    BM25: lambda _: Bm25(),
    THRESHOLD: Threshold,
    MULTISTEP: lambda encoder: AgentRetriever(Agent(encoder, MULTISTEP.name)),
    RESRAG_METHOD: EvidenceSet,
}
"""Each made from the encoder whose vectors it searches."""

METHODS = {method.name: method for method in (*_BUILT_BY, RESRAG_LLM_METHOD, SPARC_METHOD)}
BY_ENCODER = tuple(method.name for method in _BUILT_BY)
"""Those that an encoder is enough for."""
OTHERS = tuple(name for name, method in METHODS.items() if not method.trained)
"""All beside the trained agents, of which there are as many as checkpoints."""


def check_names(names: Iterable[str], known: Collection[str] = tuple(METHODS)) -> None:
    """Raises BadRequest for a name that is none of the known."""
    for name in names:
        if name not in known:
            raise BadRequest(f"method {name[:80]!r} does not exist; choose among {', '.join(known)}")


IMPORTED, IMPORTED_BY_RANK = "imported:", "imported-ranks:"
"""Begin the names of methods that ran elsewhere, by what is known of choices: scores, or ranks alone."""


def facts_of(name: str) -> Method:
    """What there is to be told of a run's method, also of one that ran elsewhere or in another version."""
    for prefix, score_name, how in ((IMPORTED, "score", ""), (IMPORTED_BY_RANK, "1/rank", " by rank")):
        if name.startswith(prefix):
            label = name.removeprefix(prefix)
            return Method(
                name=name,
                label=label,
                sentence=f"What {label} returned, imported",
                score_name=score_name,
                long_label=f"{label} (imported{how})",
                foreign=True,
            )
    return METHODS.get(name) or Method(name=name, label=name, sentence=f"A method called {name}")


def notice_of(trace: Trace) -> str:
    """What a method left out for want of room, in a sentence; mostly empty."""
    return cut_short(trace) or unread(trace)


def vectors_of(name: str, agent: str) -> str:
    """Checkpoint whose vectors a method without an agent searches beside `agent`. Raises BadCheckpoint."""
    return read_card(policy_for(agent)).encoder if name == RESRAG_METHOD.name else PLAIN


def build_retriever(
    name: str, agent: DualEncoder, plain: DualEncoder, llm: Llm | None = None
) -> tuple[Retriever, DualEncoder]:
    """(method, the encoder it searches with). `plain`: what `vectors_of` names. Raises BadRequest."""
    check_names([name], (*BY_ENCODER, RESRAG_LLM))
    if name == RESRAG_LLM:
        return LlmEvidenceSet(llm, plain), plain
    method = METHODS[name]
    encoder = agent if method.trained else plain
    return _BUILT_BY[method](encoder), encoder


def retrieve_all(retriever: Retriever, episodes: Sequence[Episode]) -> list[Trace]:
    """Complete runs, in order; an unplanned agent embeds the states of all together. Raises BadRequest."""
    plans = any(episode.config.beam_width > 1 for episode in episodes)
    if plans or not isinstance(retriever, AgentRetriever):
        return [fold(retriever.retrieve(one.query, one.corpus, one.config)) for one in episodes]
    events: list[list[Event]] = [[] for _ in episodes]
    for i, event in retriever.agent.run_batch(episodes):
        events[i].append(event)
    return [fold(own) for own in events]
