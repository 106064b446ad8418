"""Traces as the JSON objects of the command line.

The contract that scripts and outside tests rely on. Pure: traces in, plain values out. Chunk ids are 0-based
over all documents, steps 1-based. What an agent's review took back is in `steps` but not in `evidence`.
"""

from __future__ import annotations

from typing import Any

from core.answer.evidence import EvidenceAnswer
from core.base.config import SETS
from core.base.events import StepTaken, Trace, share_searched
from core.base.types import Workspace
from core.methods.resrag.action import action_json, action_of
from core.views.ending import end_sentence


def trace_json(
    trace: Trace,
    *,
    timings: dict[str, float],
    full: bool = False,
    answer: EvidenceAnswer | None = None,
    completeness: float | None = None,
) -> dict[str, Any]:
    """The object that `trace --json` prints. `full` adds Q and position of all chunks to each step, null for
    a chunk that was not searched; `answer` and `completeness` are null where nobody knows them.
    """
    stopped, rejected = trace.stopped, None
    if stopped is not None and stopped.chunk_id is not None:
        rejected = {"chunk_id": stopped.chunk_id, "q_value": stopped.q_value}
    return {
        "query": trace.started.query,
        "checkpoint": trace.started.checkpoint,
        "config": trace.started.config.to_json(),
        "n_chunks": trace.started.n_chunks,
        "searched": round(share_searched(trace), 6),
        "stop_reason": None if stopped is None else stopped.reason,
        "stop_sentence": end_sentence(trace) or None,
        "steps": [_step_json(step, full) for step in trace.steps],
        "stop": rejected,
        "evidence": list(trace.evidence),
        "completeness": None if completeness is None else round(completeness, 4),
        "answer": None if answer is None else answer.to_json(),
        "timings": {name: round(value, 3) for name, value in timings.items()},
    }


def _step_json(step: StepTaken, full: bool) -> dict[str, Any]:
    names = ("step", "chunk_id", "q_value", "probability", "state_value", "position", "text")
    values: dict[str, Any] = {name: getattr(step, name) for name in names}
    values["milliseconds"] = round(step.milliseconds, 3)
    if full and step.scores is not None:
        values["q_values"] = [None if q != q else q for q in step.scores.q_values.tolist()]
        values["positions"] = None if step.scores.positions is None else step.scores.positions.tolist()
    return values


def method_json(
    trace: Trace, workspace: Workspace, milliseconds: float, answer: EvidenceAnswer | None = None
) -> dict[str, Any]:
    """One method's entry of `compare --json`; `answer` is its text, null where the evidence holds none or
    nobody read it. A set has its action, too.
    """
    values: dict[str, Any] = {
        "evidence": list(trace.evidence),
        "ranked": [{"chunk_id": step.chunk_id, "score": step.q_value} for step in trace.steps],
        "answer": None if answer is None else answer.told_text or None,
        "answer_state": None if answer is None else answer.state,
        "answer_reliable": None if answer is None else answer.state == "answer",
        "n_tokens": sum(workspace[chunk_id].n_tokens for chunk_id in trace.evidence),
        "milliseconds": round(milliseconds, 3),
    }
    if trace.started.method in SETS:
        values["action"] = action_json(action_of(trace.chosen, workspace.borders))
    return values
