"""A logged run as OpenInference spans.

One CHAIN, under it one RETRIEVER a step; of a SPARC run a CHAIN a round and a RETRIEVER a branch. Ids follow
from the run's, so that a run that is sent twice is the same trace. Spans follow each other by the time that
looks took: how long a person thought between two steps is in none of them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from core.methods.sparc.events import Hit
from core.methods.sparc.naming import STRATEGY_NAMES, branch_name
from core.methods.sparc.trace import SparcBranch, SparcRound, SparcTrace
from core.runs.log.database import storable
from core.runs.log.records import LoggedRun, borders_of, place_of, readable_branches

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

PROJECT = "qrag-explorer"
"""What receivers file the traces under."""
_KIND, _INPUT, _OUTPUT, _METADATA = "openinference.span.kind", "input.value", "output.value", "metadata"
_DOCUMENTS = "retrieval.documents"
_NANOSECONDS = 1_000_000
"""In a millisecond."""

_ROOT = "run"
"""Of the span of the whole run, what its id is made of; the others have their names for that."""

Attributes = dict[str, str | float]


def spans_of(run: LoggedRun) -> list[ReadableSpan]:
    """The spans of a run, that of the whole run first. One without its texts has spans without texts."""
    trace = readable_branches(run)
    start = int(run.created_at.timestamp() * 1_000_000) * 1_000
    parts = [*(_steps(run, start) if trace is None else _rounds(run, trace, start))]
    end = max([start, *(span.end_time or 0 for span in parts)])
    attributes = _chain(run.record.query, _outcome(run)) | {_METADATA: _json(_run_facts(run, trace))}
    return [_span(run, f"{run.record.method} run", None, start, end, attributes), *parts]


def _span(
    run: LoggedRun, name: str, parent: str | None, start: int, end: int, attributes: Attributes
) -> ReadableSpan:
    """Times in nanoseconds since 1970. parent: its name; None for the whole run."""
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import SpanContext, Status, StatusCode

    def context(named: str) -> SpanContext:
        digest = hashlib.sha256(f"{run.record.run_id} {named}".encode()).digest()
        return SpanContext(int(run.record.run_id, 16), int.from_bytes(digest[:8]), is_remote=False)

    status = Status(StatusCode.OK)
    if parent is None and run.status != "complete":
        why = f"{run.status}: {run.message or 'it did not come to its end'}"
        status = Status(StatusCode.ERROR, storable(why))
    words = {key: storable(value) for key, value in attributes.items() if isinstance(value, str)}
    return ReadableSpan(
        name,
        context(_ROOT if parent is None else name),
        parent=None if parent is None else context(parent),
        resource=Resource({"service.name": PROJECT, "openinference.project.name": PROJECT}),
        instrumentation_scope=InstrumentationScope(PROJECT),
        attributes={**attributes, **words},
        status=status,
        start_time=start,
        end_time=end,
    )


def _run_facts(run: LoggedRun, trace: SparcTrace | None) -> dict[str, Any]:
    record, stopped = run.record, trace.stopped if trace and trace.stopped else run.trace.stopped
    return {
        "method": record.method,
        "checkpoint": record.checkpoint,
        "checkpoint_fingerprint": record.checkpoint_fingerprint,
        "documents": list(run.titles),
        "n_chunks": record.n_chunks,
        "config": record.config,
        "label": record.label,
        "stop_reason": stopped and stopped.reason,
        "taken_back": list(run.trace.taken_back),
        "parent_run_id": record.parent_run_id,
    }


def _outcome(run: LoggedRun) -> str:
    """The answer; where none was read, the chunks that were kept."""
    answer = run.details.get("answer", {}).get("text")
    if isinstance(answer, str) and answer.strip():
        return answer
    kept = (step for step in run.trace.steps if step.chunk_id not in run.trace.taken_back)
    return "\n\n".join(step.text for step in kept if step.text)


def _steps(run: LoggedRun, start: int) -> Iterator[ReadableSpan]:
    borders = borders_of(run.documents, run.record.n_chunks)
    for i, step in enumerate(run.trace.steps):
        end = start + int(step.milliseconds * _NANOSECONDS)
        metadata = {
            "step": step.step,
            "chosen_before": list(run.trace.chosen[:i]),
            "chosen_by": step.chosen_by,
            "probability": step.probability,
            "state_value": step.state_value,
            "position": step.position,
        }
        hits = [Hit(step.chunk_id, step.q_value, step.text)]
        attributes = _retriever(run, run.record.query, hits, borders) | {_METADATA: _json(metadata)}
        yield _span(run, f"step {step.step}", _ROOT, start, end, attributes)
        start = end


def _rounds(run: LoggedRun, trace: SparcTrace, start: int) -> Iterator[ReadableSpan]:
    borders = borders_of(run.documents, run.record.n_chunks)
    question = run.record.query
    for turn in trace.rounds:
        end = start + int(turn.cost.milliseconds * _NANOSECONDS)
        name, note = f"round {turn.number}", turn.merged.note.text if turn.merged else ""
        attributes = _chain(question, note) | {_METADATA: _json(_round_facts(turn))}
        yield _span(run, name, _ROOT, start, end, attributes)
        for branch in turn.branches:
            if branch.retrieved is None:
                continue
            strategy = STRATEGY_NAMES[branch.query.strategy]
            took = start + int(branch.retrieved.milliseconds * _NANOSECONDS)
            attributes = _retriever(run, branch.query.query, branch.retrieved.found, borders)
            attributes[_METADATA] = _json(_branch_facts(branch))
            named = f"branch {branch_name(turn.number, branch.number)}, {strategy}"
            yield _span(run, named, name, start, took, attributes)
        start, question = end, note if turn.merged else run.record.query


def _round_facts(turn: SparcRound) -> dict[str, Any]:
    merged = turn.merged
    return {
        "calls": turn.cost.calls,
        "prompt_tokens": turn.cost.prompt_tokens,
        "completion_tokens": turn.cost.completion_tokens,
        "best_branch": None if merged is None else branch_name(turn.number, merged.best_branch),
        "overlap": None if merged is None else merged.overlap,
        "note_chunks": [] if merged is None else list(merged.note.chunk_ids),
    }


def _branch_facts(branch: SparcBranch) -> dict[str, Any]:
    answered, judged = branch.answered, branch.judged
    return {
        "strategy": branch.query.strategy,
        "reason": branch.query.reason,
        "answer": answered and answered.answer,
        "confidence": answered and answered.confidence,
        "verdict": judged and judged.verdict,
        "why": judged and judged.reason,
    }


def _chain(query: str, outcome: str) -> Attributes:
    return {_KIND: "CHAIN", **_text(_INPUT, query), **_text(_OUTPUT, outcome)}


def _retriever(run: LoggedRun, query: str, hits: Sequence[Hit], borders: Sequence[int]) -> Attributes:
    support = (run.record.label or {}).get("support")
    attributes: Attributes = {_KIND: "RETRIEVER", **_text(_INPUT, query)}
    for i, hit in enumerate(hits):
        prefix, facts = f"{_DOCUMENTS}.{i}.document", _place_facts(run, hit.chunk_id, borders)
        facts |= {"support": hit.chunk_id in support} if support else {}
        attributes[f"{prefix}.id"] = str(hit.chunk_id)
        attributes[f"{prefix}.score"] = float(hit.score)
        attributes |= {f"{prefix}.content": hit.text} if hit.text else {}
        attributes |= {f"{prefix}.metadata": _json(facts)} if facts else {}
    return attributes | _text(_OUTPUT, "\n\n".join(hit.text for hit in hits if hit.text))


def _place_facts(run: LoggedRun, chunk_id: int, borders: Sequence[int]) -> dict[str, Any]:
    place = place_of(chunk_id, run.documents, borders)
    if place is None:
        return {}
    title = run.documents[place.document].title
    return {"title": title, "headings": list(place.heading_path), "start": place.start, "end": place.end}


def _text(name: str, text: str) -> Attributes:
    """A text with its kind; nothing where there is none."""
    return {name: text, name.replace("value", "mime_type"): "text/plain"} if text else {}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
