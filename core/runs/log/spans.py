"""A logged run as OpenInference spans.

One CHAIN, under it one RETRIEVER a step; of a SPARC run a CHAIN a round and a RETRIEVER a branch. The trace
has the run's id, and ids of spans follow from it, so that a run that is sent twice is the same trace. Decides
that spans follow each other by the time that looks took: how long a person thought between two steps is in
none of them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from core.base.events import StepTaken
from core.methods.sparc.events import Hit
from core.methods.sparc.naming import STRATEGY_NAMES, branch_name
from core.methods.sparc.trace import SparcBranch, SparcRound, SparcTrace
from core.runs.log.branches import readable_branches
from core.runs.log.places import Place, borders_of, place_of
from core.runs.log.wire import FinishedRun

PROJECT = "qrag-explorer"
"""What receivers file the traces under."""
_KIND, _INPUT, _OUTPUT, _METADATA = "openinference.span.kind", "input.value", "output.value", "metadata"
_DOCUMENTS = "retrieval.documents"
_NANOSECONDS = 1_000_000
"""In a millisecond."""

Attributes = dict[str, str | float]


@dataclass(frozen=True, slots=True)
class TraceSpan:
    """One piece of work. Times are nanoseconds since 1970."""

    span_id: str
    """16 hex digits."""
    parent_id: str
    """Empty for the whole run."""
    name: str
    start: int
    end: int
    attributes: Attributes
    failure: str = ""
    """Why it failed; empty where it did not."""


@dataclass(frozen=True, slots=True)
class RunSpans:
    """The spans of one run, the whole run first."""

    trace_id: str
    """32 hex digits."""
    spans: tuple[TraceSpan, ...]


def spans_of(run: FinishedRun) -> RunSpans:
    """The spans of a run. One without its texts has spans without texts."""
    trace = readable_branches(run)
    start = int(run.created_at.timestamp() * 1_000_000) * 1_000
    root = _span_id(run, "run")
    parts = [*(_steps(run, root, start) if trace is None else _rounds(run, trace, root, start))]
    end = max([start, *(span.end for span in parts)])
    attributes = _chain(run.record.query, _outcome(run)) | {_METADATA: _json(_run_facts(run, trace))}
    failure = (
        "" if run.status == "complete" else f"{run.status}: {run.message or 'it did not come to its end'}"
    )
    whole = TraceSpan(root, "", f"{run.record.method} run", start, end, attributes, failure)
    return RunSpans(run.record.run_id, (whole, *parts))


def _run_facts(run: FinishedRun, trace: SparcTrace | None) -> dict[str, Any]:
    """What decided how the run went, and how it ended."""
    record, stop = run.record, None if trace is None else trace.stopped
    ended = run.events[-1] if run.events else None
    reason = stop.reason if stop else None if ended is None or isinstance(ended, StepTaken) else ended.reason
    return {
        "method": record.method,
        "checkpoint": record.checkpoint,
        "checkpoint_fingerprint": record.checkpoint_fingerprint,
        "documents": [document.title for document in run.documents],
        "n_chunks": record.n_chunks,
        "config": record.config,
        "label": record.label,
        "stop_reason": reason,
        "taken_back": [] if ended is None or isinstance(ended, StepTaken) else list(ended.taken_back),
        "parent_run_id": record.parent_run_id,
    }


def _outcome(run: FinishedRun) -> str:
    """The answer; where none was read, the chunks that were kept."""
    answer = run.details.get("answer", {}).get("text")
    if isinstance(answer, str) and answer.strip():
        return answer
    taken_back = [] if not run.events or isinstance(run.events[-1], StepTaken) else run.events[-1].taken_back
    kept = (
        event for event in run.events if isinstance(event, StepTaken) and event.chunk_id not in taken_back
    )
    return "\n\n".join(step.text for step in kept if step.text)


def _steps(run: FinishedRun, root: str, start: int) -> Iterator[TraceSpan]:
    before: list[int] = []
    borders = borders_of(run.documents, run.record.n_chunks)
    for step in run.events:
        if not isinstance(step, StepTaken):
            continue
        end = start + int(step.milliseconds * _NANOSECONDS)
        metadata = {
            "step": step.step,
            "chosen_before": list(before),
            "chosen_by": step.chosen_by,
            "probability": step.probability,
            "state_value": step.state_value,
            "position": step.position,
        }
        hits = [Hit(step.chunk_id, step.q_value, step.text)]
        attributes = _retriever(run, run.record.query, hits, borders) | {_METADATA: _json(metadata)}
        yield TraceSpan(_span_id(run, f"step {step.step}"), root, f"step {step.step}", start, end, attributes)
        before.append(step.chunk_id)
        start = end


def _rounds(run: FinishedRun, trace: SparcTrace, root: str, start: int) -> Iterator[TraceSpan]:
    borders = borders_of(run.documents, run.record.n_chunks)
    for one in trace.rounds:
        end = start + int(one.cost.milliseconds * _NANOSECONDS)
        name, span_id = f"round {one.number}", _span_id(run, f"round {one.number}")
        note = one.merged.note.text if one.merged else ""
        before = trace.rounds[one.number - 2].merged if one.number > 1 else None
        attributes = _chain(before.note.text if before else run.record.query, note)
        yield TraceSpan(span_id, root, name, start, end, attributes | {_METADATA: _json(_round_facts(one))})
        for branch in one.branches:
            if branch.retrieved is None:
                continue
            named = (
                f"branch {branch_name(one.number, branch.number)}, {STRATEGY_NAMES[branch.query.strategy]}"
            )
            took = start + int(branch.retrieved.milliseconds * _NANOSECONDS)
            attributes = _retriever(run, branch.query.query, branch.retrieved.found, borders)
            attributes[_METADATA] = _json(_branch_facts(branch))
            yield TraceSpan(_span_id(run, named), span_id, named, start, took, attributes)
        start = end


def _round_facts(one: SparcRound) -> dict[str, Any]:
    merged = one.merged
    return {
        "calls": one.cost.calls,
        "prompt_tokens": one.cost.prompt_tokens,
        "completion_tokens": one.cost.completion_tokens,
        "best_branch": None if merged is None else branch_name(one.number, merged.best_branch),
        "overlap": None if merged is None else merged.overlap,
        "note_chunks": [] if merged is None else list(merged.note.chunk_ids),
    }


def _branch_facts(branch: SparcBranch) -> dict[str, Any]:
    return {
        "strategy": branch.query.strategy,
        "reason": branch.query.reason,
        "answer": branch.answered.answer if branch.answered else None,
        "confidence": branch.answered.confidence if branch.answered else None,
        "verdict": branch.judged.verdict if branch.judged else None,
        "why": branch.judged.reason if branch.judged else None,
    }


def _chain(query: str, outcome: str) -> Attributes:
    return {_KIND: "CHAIN", **_text(_INPUT, query), **_text(_OUTPUT, outcome)}


def _retriever(run: FinishedRun, query: str, hits: Sequence[Hit], borders: Sequence[int]) -> Attributes:
    support = (run.record.label or {}).get("support")
    attributes: Attributes = {_KIND: "RETRIEVER", **_text(_INPUT, query)}
    for i, one in enumerate(hits):
        prefix = f"{_DOCUMENTS}.{i}.document"
        place = place_of(one.chunk_id, run.documents, borders)
        facts = _place_facts(run, place) | ({"support": one.chunk_id in support} if support else {})
        attributes[f"{prefix}.id"] = str(one.chunk_id)
        attributes[f"{prefix}.score"] = float(one.score)
        attributes |= {f"{prefix}.content": one.text} if one.text else {}
        attributes |= {f"{prefix}.metadata": _json(facts)} if facts else {}
    return attributes | _text(_OUTPUT, "\n\n".join(one.text for one in hits if one.text))


def _place_facts(run: FinishedRun, place: Place | None) -> dict[str, Any]:
    if place is None:
        return {}
    title = run.documents[place.document].title
    return {"title": title, "headings": list(place.heading_path), "start": place.start, "end": place.end}


def _text(name: str, text: str) -> Attributes:
    """A text with its kind; nothing where there is none."""
    return {name: text, name.replace("value", "mime_type"): "text/plain"} if text else {}


def _span_id(run: FinishedRun, name: str) -> str:
    return hashlib.sha256(f"{run.record.run_id} {name}".encode()).hexdigest()[:16]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
