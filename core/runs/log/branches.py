"""Rounds and branches of a logged SPARC run, checked.

Imports bring what anybody wrote, so a trace is taken only
when it folds and names no chunk that the run's documents don't have.
"""

from __future__ import annotations

from core.base.errors import BadRequest, LogError
from core.methods.sparc.trace import SparcTrace
from core.runs.log.records import LoggedRun


def sparc_trace_of(run: LoggedRun) -> SparcTrace | None:
    """The branches of a run; None where it has none, as a run of another method and one that came without
    texts. Raises LogError when they are damaged.
    """
    value = run.details.get("sparc")
    if value is None:
        return None
    try:
        trace = SparcTrace.from_json(value)
    except BadRequest as error:
        raise LogError(f"run {run.record.run_id} can't be drawn: {error}") from error
    n = run.record.n_chunks
    named = {*trace.pool, *trace.note.chunk_ids, *(trace.stopped.evidence if trace.stopped else ())}
    if trace.started.n_chunks != n or any(not 0 <= chunk_id < n for chunk_id in named):
        raise LogError(
            f"run {run.record.run_id} can't be drawn: its trace names chunks that its documents don't have"
        )
    return trace


def readable_branches(run: LoggedRun) -> SparcTrace | None:
    """The branches of a run where they can be read, for what is drawn or sent without them, too."""
    try:
        return sparc_trace_of(run)
    except LogError:
        return None
