"""One run as a page that stands alone.

An HTML file for any browser, drawn as the app's pages are (core.views.draw). It loads nothing and runs one
script, its own; whatever came from documents, questions and labels stays text; and text of documents is in it
only when asked for: without, chunks are numbers. Without scripts the run map is a picture.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from core.base.events import StepTaken, Trace
from core.corpus.words import content_words
from core.methods.registry import facts_of
from core.methods.sparc.retriever import SPARC
from core.methods.sparc.trace import SparcTrace
from core.runs.export import live
from core.runs.export.logged import LoggedView, score_name, settings_of, strip_data, why_ended
from core.runs.log.records import LoggedDocument, LoggedRun, known_answer_of, place_of, readable_branches
from core.views.charts import Chart, Line
from core.views.draw import answers, sparc, sparc_line
from core.views.draw.evidence import evidence_rows
from core.views.draw.nodes import Html, Node, h, html_of
from core.views.draw.run_map import run_picture
from core.views.draw.sparc import ShownSparc
from core.views.draw.steps import step_card, stop_card
from core.views.draw.story import story_nodes
from core.views.draw.tables import fields
from core.views.draw.text import path_words
from core.views.draw.trail import gold_trail
from core.views.draw.words import counted
from core.views.quotes import CARD, Excerpt, choice_in, quoted
from core.views.story import missed_support, story_of
from core.views.svg import svg

MAX_WHOLE = 150_000
"""Longest document that stands in the page whole; of others, what is around the chosen chunks."""
AROUND = 4_000
"""Characters before and behind a chosen chunk that a long document keeps."""


def run_page(run: LoggedRun, documents: Sequence[LoggedDocument], *, with_text: bool = False) -> str:
    """The page. `documents`: those of the run, in order. `with_text`: with texts of chunks and documents."""
    view = LoggedView(run, documents, with_text)
    branches = readable_branches(run) if with_text else None  # nearly all that they say is text of documents
    if branches is not None:
        data, body = _branch_data(view, branches), _branch_sections(view, branches)
    else:
        answer = answers.answer(view.answer, view.passage, known_answer_of(run))
        is_sparc = run.record.method == SPARC  # its branches value only what they retrieve
        data = {} if is_sparc or not view.looks else _data(view)
        body = [
            *([] if is_sparc else [_story(view), *_instrument(view, data)]),
            h("div.qx-sides", _steps(view), h("div", *answer, _evidence(view), live.reading_card())),
            h("div.qx-below", *_trail(view), _chart(run.trace)),
        ]
    record = run.record
    names = {"Run": record.run_id, "Weights": record.checkpoint_fingerprint, "Vectors": record.vectors}
    sections = [
        _head(run, documents, view.support),
        *body,
        *(_documents(run.trace, documents, view.borders) if with_text else []),
        live.about(names, documents, with_text),
    ]
    return live.framed(f"{run.trace.started.query[:80]} · Q-RAG run", sections, data)


def _head(run: LoggedRun, documents: Sequence[LoggedDocument], support: Sequence[int]) -> Node:
    record = run.record
    facts = (
        f"{record.method} · {record.checkpoint} · {counted(record.n_chunks, 'chunk')} ·"
        f" {run.created_at:%Y-%m-%d %H:%M} UTC · {run.status}"
    )
    n_found = len({*support} & {*run.trace.evidence})
    words = f"{n_found} of {counted(len(support), 'support chunk')} found"
    hits = h("p", {"class": "qx-found" if n_found == len(support) else "qx-mut"}, words) if support else None
    return live.head_of(record.query, documents, facts, hits, h("dl", *fields(settings_of(run))))


# Pictures


def _story(view: LoggedView) -> Node:
    story = story_of(view.trace, view.passage, view.support, view.answer, known_answer_of(view.run))
    tokens = sum(view.workspace[i].n_tokens for i in view.trace.picks) if view.workspace else None
    nodes = story_nodes(story, look=view.look, n_looks=view.n_looks, tokens=tokens)
    return h("section.qx-card.qx-story-card", {"id": "qx-story"}, *nodes)


def _instrument(view: LoggedView, data: dict[str, Any]) -> Iterator[Node]:
    """The strip, which the script fills, and for a browser without scripts the run map."""
    if not view.looks:
        yield h("p.qx-mut", "Q of all chunks was not kept with this run, so there is no picture of it.")
        return
    yield live.walk_bar(bool(data["texts"]))
    yield live.strip_card()
    n, n_looks = len(data["runs"][0]["rows"]), view.trace.n_looks
    cut = f"The strip has the first {n} steps of {n_looks}." if n < n_looks else ""
    yield from live.left_out(data, score_name(view.run), cut, view.run.record.n_chunks)
    yield Html(f"<noscript>{html_of(run_picture(view.trace))}</noscript>")


def _data(view: LoggedView) -> dict[str, Any]:
    """What the script draws from: the strip as the app sends it, Q of every look, texts that have room."""
    numbers, rounded, [rows] = live.packed_together([view.looks], live.NUMBERS_ROOM)
    if not rows:  # a look of more chunks than have room
        (numbers, rounded), rows = live.packed_looks(view.looks[:1]), [0]
    places, first = view.places, [*view.trace.chosen, *view.support]
    texts, n_texts = live.packed_texts(places, first, view.looks) if places else ("", 0)
    return {
        "runs": [strip_data(view, rows)],
        "numbers": numbers,
        "n_rows": 1 + max(rows),
        "rounded_bits": rounded,
        "texts": texts,
        "n_texts": n_texts,
    }


def _chart(trace: Trace) -> Node | None:
    """Q of each choice, and of the one that was refused, against the threshold; SPARC has no one scale."""
    if trace.started.method == SPARC:
        return None
    points = [(step.step, step.q_value) for step in trace.steps]
    if trace.stopped is not None and trace.stopped.q_value is not None:
        points.append((len(trace.steps) + 1, trace.stopped.q_value))
    if not points:
        return None
    lines = [Line("best", tuple(float(x) for x, _ in points), tuple(y for _, y in points))]
    threshold, last = trace.started.config.stop_threshold, float(max(2, len(points)))
    if threshold is not None:
        lines.append(Line("stop below", (1.0, last), (threshold, threshold), dashed=True))
    name = facts_of(trace.started.method).score_name
    steps = "step" if len(points) == len(trace.steps) else f"step; {len(points)}: where it stopped"
    chart = Chart(f"{name} of the best chunk", steps, name, tuple(lines))
    return h("div.qx-card.qx-chart", Html(svg([chart])))


# Texts


def _steps(view: LoggedView) -> Node:
    trace, run = view.trace, view.run
    words = content_words(trace.started.query)
    cards = [
        step_card(
            trace,
            step,
            gold=view.support,
            scale=view.scale,
            on=step.step == view.look,
            score_name=score_name(run),
            quote=_quote(view, step, words),
        )
        for step in trace.steps
    ]
    tokens = sum(view.workspace[i].n_tokens for i in trace.evidence) if view.workspace else None
    end = stop_card(why_ended(run), trace, tokens)
    return h("section.qx-card", {"id": "qx-steps"}, h("h3", counted(len(cards), "choice")), *cards, end)


def _quote(view: LoggedView, step: StepTaken, words: Sequence[str]) -> Excerpt:
    """What counts in a choice; its number where texts stay out."""
    if not view.with_text:
        return Excerpt(f"chunk {step.chunk_id:,}", "", "")
    return quoted(choice_in(view.workspace, step), None, words, most=CARD)


def _trail(view: LoggedView) -> Iterator[Node]:
    if view.looks and (nodes := gold_trail(view.trace, view.support)):
        yield h("section.qx-card", {"id": "qx-trail"}, *nodes)


def _branch_sections(view: LoggedView, trace: SparcTrace) -> list[Node]:
    run = view.run
    sparc_run = ShownSparc(
        trace=trace,
        status=run.status,
        message=run.message,
        workspace=view.workspace,
        gold=view.support,
        known_answer=known_answer_of(run),
    )
    story = h("div.qx-tree", *sparc_line.story(sparc_run))
    ends = live.panels({"qx-sparc-final": sparc.final(sparc_run), "qx-sparc-costs": sparc.costs(sparc_run)})
    return [
        h("section.qx-card.qx-story-card", {"id": "qx-story"}, story),
        *live.panels({"qx-sparc-run": sparc.rounds(sparc_run)}),
        live.reading_card(),
        h("div.qx-below", *ends),
    ]


def _branch_data(view: LoggedView, trace: SparcTrace) -> dict[str, Any]:
    """What the script reads chunks from: those of the documents that have room, what branches found first."""
    finders = sparc.finders_of(trace)
    places = view.places or {
        chunk.chunk_id: ("", chunk.text)
        for turn in trace.rounds
        for branch in turn.branches
        for chunk in branch.chunks
    }
    texts, n_texts = live.packed_texts(places, [*finders, *view.support], [])
    pins = [
        {"chunk_id": chunk_id, "name": names[0], "step": int(names[0].partition(".")[2])}
        for chunk_id, names in finders.items()
    ]
    return {"runs": [], "reading": view.reading(pins, view.support), "texts": texts, "n_texts": n_texts}


def _evidence(view: LoggedView) -> Node:
    """Chosen chunks in their paragraphs; where texts stay out or were not kept, in a list."""
    trace = view.trace
    if view.workspace is not None:
        steps = {step.chunk_id: step.step for step in trace.steps if step.chunk_id in trace.picks}
        missed = missed_support(trace, view.support)
        rows = evidence_rows(view.workspace, steps, missed, view.look, view.answer)
        return _evidence_card(h("ol.qx-evidence", *rows))
    texts = {step.chunk_id: step.text for step in trace.steps}
    items = []
    for chunk_id in sorted({*trace.evidence}):  # an imported run may name one twice
        place = place_of(chunk_id, view.documents, view.borders)
        path = ""
        if place is not None:
            headings = place.heading_path if view.with_text else ()
            path = path_words(view.documents[place.document].title, headings)
        name = h("strong", f"chunk {chunk_id:,} ")
        children = [h("p", name, h("span.qx-mut", {"dir": "auto"}, path))]
        if view.with_text:
            children.append(h("blockquote", {"dir": "auto"}, texts[chunk_id]))
        items.append(h("li", *children))
    return _evidence_card(h("ol.qx-plain", *items))


def _evidence_card(rows: Node) -> Node:
    return h("section.qx-card", {"id": "qx-evidence"}, h("h3", "Evidence in document order"), rows)


def _documents(trace: Trace, documents: Sequence[LoggedDocument], borders: Sequence[int]) -> Iterator[Node]:
    places = [place_of(chunk_id, documents, borders) for chunk_id in sorted({*trace.evidence})]
    yield h("h2", "Documents")
    for i, document in enumerate(documents):
        chosen = [(place.start, place.end) for place in places if place and place.document == i]
        if document.text is None:
            yield h("p.qx-mut", f"The text of {document.title} was not kept.")
        else:
            yield h(
                "details",
                h("summary", {"dir": "auto"}, document.title),
                h("pre", {"dir": "auto"}, *_marked(document.text, chosen)),
            )


def _marked(text: str, chosen: Sequence[tuple[int, int]]) -> Iterator[Node]:
    """The text with the chosen ranges, in order, as marks; of a long text only what is around them."""
    whole = len(text) <= MAX_WHOLE
    at = 0
    for start, end in chosen:
        start = max(start, at)
        if not whole and start - at > AROUND + (AROUND if at else 0):
            if at:
                yield text[at : at + AROUND]
            yield "\n[…]\n"
            at = start - AROUND
        yield text[at:start]
        yield h("mark", text[start:end])
        at = max(at, end)
    yield text[at:] if whole or len(text) - at <= AROUND else text[at : at + AROUND] + "\n[…]"
