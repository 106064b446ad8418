"""Making a logged run again, with vectors from cache or encoder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from core.answer.protocol import Reader
from core.base.config import RESRAG_LLM, ChunkConfig, EpisodeConfig
from core.base.errors import BadRequest, LogError
from core.base.events import fold
from core.base.progress import finish
from core.base.types import Workspace
from core.corpus.index import Corpus
from core.corpus.opening import Opened, Progress, index_workspace
from core.encode.encoder import DualEncoder
from core.methods.registry import build_retriever, facts_of
from core.methods.sparc.build import build_agents, build_retrievals
from core.methods.sparc.events import Retrieved, SparcEvent
from core.methods.sparc.naming import decided_by_rules, reader_of
from core.methods.sparc.retrievals import Retrievals
from core.methods.sparc.retriever import SPARC
from core.methods.sparc.run import run_sparc
from core.methods.sparc.trace import SparcTrace, fold_sparc
from core.runs.again.compare import ReplayReport, compare_sparc, compare_traces
from core.runs.log import LoggedDocument, LoggedRun
from core.runs.log.records import sparc_trace_of


def workspace_of_run(run: LoggedRun, documents: Sequence[LoggedDocument]) -> Workspace:
    """The workspace that a logged run searched. Raises LogError where a text or its borders are missing."""
    tables = [document.table for document in documents if document.table is not None]
    if len(tables) < len(documents):
        raise LogError(
            f"run {run.record.run_id} was logged without its chunk borders; open its documents again"
        )
    configs = [
        ChunkConfig(**values) if values["chunker"] != "given" else None for values in run.record.chunking
    ]
    return Workspace(tuple(document.document() for document in documents), tuple(tables), tuple(configs))


@dataclass(frozen=True)
class Replay:
    """A run made again: how it compares, and which vectors it used."""

    run_id: str
    report: ReplayReport
    logged_vectors: str
    used_vectors: str
    n_embedded_again: int
    """Chunks whose vectors were not in the cache any more."""
    same_weights: bool

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self) | {"holds": self.report.holds, "summary": self.report.summary}


def config_again(run: LoggedRun) -> EpisodeConfig:
    """The configuration that repeats a run from its first step: what it kept of its parent is forced."""
    config = EpisodeConfig.from_json(run.record.config)
    if not run.record.fork_step:
        return config
    forced = tuple((step.step, step.chunk_id) for step in run.trace.steps[: run.record.fork_step])
    # one of them may have been forbidden since: it can't be chosen again anyway
    chunk_ids = {chunk_id for _, chunk_id in forced}
    return config.with_(
        forced=(*forced, *(pair for pair in config.forced if pair[0] > len(forced))),
        forbidden=tuple(chunk_id for chunk_id in config.forbidden if chunk_id not in chunk_ids),
    )


def replay_run(
    run: LoggedRun,
    documents: Sequence[LoggedDocument],
    encoder: DualEncoder,
    hear: Progress = lambda _: None,
    part: str = "",
    *,
    plain: Callable[[], DualEncoder] | None = None,
    reader_named: Callable[[str], Reader] | None = None,
) -> Replay:
    """Makes a run again with the same configuration, the kept steps of its parent and forced and forbidden
    chunks included; of a SPARC run where a language model decided, its searches alone, since that is not
    asked again.

    `encoder`: the agent's. `hear`: of its documents being opened. `part`: of the caches. For SPARC, `plain`:
    the untrained encoder, where the agent's is another, and `reader_named`: the reader by the name that the
    run has of it. Raises BadRequest for a run that a language model chose, LogError for a SPARC run without
    its branches.
    """
    method, workspace = run.record.method, workspace_of_run(run, documents)
    if method == RESRAG_LLM:
        raise BadRequest(
            f"run {run.record.run_id[:8]} was chosen by a language model, which may choose otherwise; ask it"
            " again"
        )
    if (facts := facts_of(method)).foreign:
        raise BadRequest(
            f"run {run.record.run_id[:8]} is what {facts.label} returned, which is not asked again here;"
            " import what it returns now, and compare both"
        )
    opened = dict[str, Opened]()

    def corpus_of(which: DualEncoder) -> Corpus:
        key = which.vector_fingerprint
        if key not in opened:
            opened[key] = finish(index_workspace(workspace, which, part), hear)
        return opened[key].corpus

    if method == SPARC:
        report = _sparc_again(run, encoder, plain, reader_named, corpus_of)
    else:
        retriever, _ = build_retriever(method, encoder, encoder)
        fresh = fold(retriever.retrieve(run.record.query, corpus_of(encoder), config_again(run)))
        report = compare_traces(run.trace, fresh)
    return Replay(
        run_id=run.record.run_id,
        report=report,
        logged_vectors=run.record.vectors,
        used_vectors=encoder.vector_fingerprint,
        n_embedded_again=sum(each.n_embedded for each in opened.values()),
        same_weights=encoder.fingerprint == run.record.checkpoint_fingerprint,
    )


def _sparc_again(
    run: LoggedRun,
    encoder: DualEncoder,
    plain: Callable[[], DualEncoder] | None,
    reader_named: Callable[[str], Reader] | None,
    corpus_of: Callable[[DualEncoder], Corpus],
) -> ReplayReport:
    logged = sparc_trace_of(run)
    if logged is None:
        raise LogError(
            f"run {run.record.run_id[:8]} was logged without its branches; ask its question again with"
            " `sparc`"
        )
    config = logged.started.config
    retrievals = build_retrievals(config, encoder, encoder if plain is None else plain(), corpus_of)
    if not decided_by_rules(logged):
        again = (_searched_again(logged, event, retrievals) for event in logged.events)
        return compare_sparc(logged, fold_sparc(again))
    if reader_named is None:
        raise BadRequest(
            f"run {run.record.run_id[:8]} is one of SPARC, which needs a reader to be made again"
        )
    agents = build_agents(None, reader_named(reader_of(logged)), config)
    events = run_sparc(logged.started.question, corpus_of(encoder), agents, retrievals, config)
    return compare_sparc(logged, fold_sparc(events))


def _searched_again(logged: SparcTrace, event: SparcEvent, retrievals: Retrievals) -> SparcEvent:
    """The event with what its branch finds today, where it is a search."""
    if not isinstance(event, Retrieved):
        return event
    query = logged.rounds[event.round - 1].branches[event.branch - 1].query
    before = logged.rounds[event.round - 2].merged if event.round > 1 else None
    memory = before.note.chunk_ids if before is not None else ()
    return replace(
        event, found=retrievals.search(query.strategy, query.query, logged.started.config.k, memory)
    )
