"""What the same agent would have found in chunks of another size.

Of a run that lacks support because a passage is cut over several chunks, or lies right beside a chosen one. A
size is tried only where one chunk of it holds what lies on several now: each that is tried embeds the
documents.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.base.events import Trace, fold
from core.base.progress import finish
from core.base.types import Workspace
from core.corpus.index import Corpus
from core.corpus.opening import chunk_documents, index_workspace
from core.methods.qrag.agent import Agent
from core.runs.whatif.cuts import TextSpan, chunks_of, share_found, sizes_for
from core.runs.whatif.diagnosis import Diagnosis, Remedy

MOST_TRIED = 2
"""Sizes."""


def cut_that_helps(
    diagnosis: Diagnosis,
    agent: Agent,
    corpus: Corpus,
    trace: Trace,
    gold: Sequence[int],
    spans: Sequence[TextSpan],
    part: str = "",
) -> Remedy | None:
    """The least other size with which the agent finds more; None where none does. `spans`: the support by its
    characters. `part`: of the caches, see `core.corpus.opening`.
    """
    workspace, spec, n_tried = corpus.workspace, agent.spec, 0
    missed = [span for span in spans if diagnosis.chunk_id in chunks_of(workspace, [span])]
    now = [config for config in workspace.configs if config is not None]
    if (
        not missed
        or len(now) < len(workspace.documents)
        or not (diagnosis.split or diagnosis.beside is not None)
    ):
        return None
    for size in sizes_for(spec):
        configs = [spec.chunk_config(config.chunker, size) for config in now]
        other = finish(chunk_documents(workspace.documents, agent.encoder, configs, part))
        if configs == now or not _holds(
            other, missed, workspace, None if diagnosis.split else diagnosis.beside
        ):
            continue
        opened = finish(index_workspace(other, agent.encoder, part))
        n_found = _n_found(agent, opened.corpus, corpus, trace, gold, spans)
        if n_found > diagnosis.n_found:
            return Remedy("cut", size, n_found)
        n_tried += 1
        if n_tried == MOST_TRIED:
            break
    return None


def _holds(other: Workspace, missed: Sequence[TextSpan], workspace: Workspace, beside: int | None) -> bool:
    """Whether each passage lies in one chunk, together with some of the chosen chunk beside it."""
    for span in missed:
        holding = chunks_of(other, [span])
        if len(holding) != 1:
            return False
        if beside is not None:
            chunk, chosen = other[holding[0]], workspace[beside]
            if chunk.end <= chosen.start or chunk.start >= chosen.end:
                return False
    return True


def _n_found(
    agent: Agent, other: Corpus, corpus: Corpus, trace: Trace, gold: Sequence[int], spans: Sequence[TextSpan]
) -> int:
    """How much of the support the other cut finds, by the run as it was without a person's choices."""
    config = trace.started.config
    config = config.with_(step_budget=min(config.step_budget, len(other)), forced=(), forbidden=())
    picks = fold(agent.run(trace.started.query, other, config)).picks
    return sum(
        share_found(other.workspace, picks, _within(corpus.workspace, chunk_id, spans)) == 1.0
        for chunk_id in gold
    )


def _within(workspace: Workspace, chunk_id: int, spans: Sequence[TextSpan]) -> list[TextSpan]:
    """What of the support a chunk holds."""
    chunk = workspace[chunk_id]
    return [
        (document, max(start, chunk.start), min(end, chunk.end))
        for document, start, end in spans
        if document == chunk.document and start < chunk.end and end > chunk.start
    ]
