"""A SPARC run as a graph in GraphML.

The question, branches, chunks, merged notes, the answer, and who asked, found, kept and said what.
"""

from __future__ import annotations

import io
from typing import Any

from core.base.errors import LogError
from core.methods.sparc.naming import branch_name
from core.runs.log.branches import sparc_trace_of
from core.runs.log.places import borders_of, place_of
from core.runs.log.wire import FinishedRun

QUESTION, ANSWER = "question", "answer"
"""Ids of two nodes; the others are "branch 1.1", "note 1", "chunk 34"."""


def graphml_of(run: FinishedRun) -> bytes:
    """A SPARC run's graph for Gephi, yEd, Cytoscape or networkx. Raises LogError without branches."""
    import networkx  # half a second, and only this needs it

    trace = sparc_trace_of(run)
    if trace is None:
        raise LogError(
            f"run {run.record.run_id} is no SPARC run that has its branches, and GraphML is for those; choose"
            " another format, or export it with its texts"
        )
    graph = networkx.DiGraph(run_id=run.record.run_id, agents=_legal(trace.started.agents))
    borders = borders_of(run.documents, run.record.n_chunks)

    def node(name: str, kind: str, **values: Any) -> str:
        attributes = {
            key: _legal(value) if isinstance(value, str) else value for key, value in values.items()
        }
        graph.add_node(
            name, kind=kind, **{key: value for key, value in attributes.items() if value is not None}
        )
        return name

    def chunk(chunk_id: int, text: str | None = None) -> str:
        place = place_of(chunk_id, run.documents, borders)
        where = {} if place is None else {"start": place.start, "end": place.end}
        title = None if place is None else run.documents[place.document].title
        return node(f"chunk {chunk_id}", "chunk", text=text, document=title, **where)

    before = node(QUESTION, "question", text=trace.started.question)
    for one in trace.rounds:
        for branch in one.branches:
            answered, judged = branch.answered, branch.judged
            name = node(
                f"branch {branch_name(one.number, branch.number)}",
                "branch",
                text=branch.query.query,
                round=one.number,
                strategy=branch.query.strategy,
                reason=branch.query.reason or None,
                answer=answered.answer if answered else None,
                confidence=answered.confidence if answered else None,
                verdict=judged.verdict if judged else None,
            )
            graph.add_edge(before, name, kind="asks")
            for rank, hit in enumerate(branch.chunks, start=1):
                graph.add_edge(
                    name, chunk(hit.chunk_id, hit.text), kind="finds", rank=rank, score=float(hit.score)
                )
        if one.merged is None:
            continue
        note = node(f"note {one.number}", "note", text=one.merged.note.text, overlap=one.merged.overlap)
        graph.add_edge(f"branch {branch_name(one.number, one.merged.best_branch)}", note, kind="chosen")
        for chunk_id in one.merged.note.chunk_ids:
            graph.add_edge(chunk(chunk_id), note, kind="kept")
        before = note
    stopped, best = trace.stopped, trace.chosen_branch
    if stopped is not None and best is not None:
        node(ANSWER, "answer", text=trace.answer, reason=stopped.reason, confidence=trace.confidence)
        graph.add_edge(f"branch {branch_name(stopped.round, stopped.branch)}", ANSWER, kind="says")
        for chunk_id in best.answered.citations if best.answered else ():
            graph.add_edge(chunk(chunk_id), ANSWER, kind="cited")
    buffer = io.BytesIO()
    networkx.write_graphml_xml(graph, buffer)
    return buffer.getvalue()


def _legal(text: str) -> str:
    """Text without the characters that XML has no way to write."""
    return "".join(
        c
        if c in "\t\n\r" or (c >= " " and not "\ud800" <= c <= "\udfff" and c not in "\ufffe\uffff")
        else " "
        for c in text
    )
