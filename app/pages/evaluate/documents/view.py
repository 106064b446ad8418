"""An evaluation over whole documents as trees of plain data."""

from __future__ import annotations

from collections.abc import Sequence

from app.components.address import part_of
from app.pages.evaluate.view import figures, heading, number
from app.pages.widgets.notices import notice, progress
from app.services.document_evaluations import DocumentsProgress
from core.base.rows import row_line
from core.base.statistics import interval, mean
from core.lab.evaluate.document_evaluation import AUTO
from core.lab.evaluate.documents import DOCUMENT_METRICS, DocumentRow
from core.lab.studies.documents import documents
from core.methods.qrag.retriever import QRAG
from core.methods.registry import facts_of
from core.views.charts import Table
from core.views.draw.answers import WHY
from core.views.draw.nodes import Node, act, h, link_to
from core.views.draw.tables import PAGE, on_page, pager, report_table, table
from core.views.draw.words import counted

ROWS_FILE = "rows.jsonl"
_FIRST = {
    "passage_recall": ("passages found", "Of the needed passages, how many the chunks hold"),
    "complete": ("all passages found", "Questions whose chunks hold all needed passages"),
    "answer_f1": ("answer F1", "Words that the reader's answers share with the right ones"),
    "reliable": ("reliable answers", "Questions whose answer the reader is sure enough of"),
}
"""Label and sentence of the metrics that say most; the last one where nobody knows the answers."""
_MOST_LEFT_OUT = 5
"""Sentences on questions that were left out."""


def label_of(method: str) -> str:
    """What a method is called here; what the app chooses for each document searches by an agent."""
    return QRAG.label if method == AUTO else facts_of(method).label


def following(state: DocumentsProgress) -> list[Node]:
    """How far it is."""
    if state.ended:
        return []
    words = "Reading documents and questions…"
    if state.document:
        words = f"Document {state.n_done + 1} of {state.n_documents}: {state.document}"
    if state.now is not None and state.now.stage != "indexing":
        return [h("p.qx-mut", words), *progress(state.now)]
    if state.now is not None:  # the index takes a moment, the questions asked of it the time
        words += ", asking its questions"
    bar = h("div.qx-progress", {"role": "status"}, h("progress", {"aria-label": words}))
    return [h("p.qx-mut", words), bar]


def methods(state: DocumentsProgress, key: str = "") -> list[Node]:
    """What all documents so far amount to: three figures, and on demand all, a line a method. `key`: by which
    it is found again.
    """
    if not state.rows:
        return notice("No question could be asked.") + _left_out(state) if state.ended else []
    tables = [_of_all(table) for table in documents(state.rows, kinds=()).tables[:2]]
    every = [node for table in tables for node in report_table(table)]
    shown = figures(_first_figures(state.rows), every, sum(len(table.columns) - 1 for table in tables))
    lines = "".join(map(row_line, state.rows)) if state.ended else ""
    link = f"?tab=evaluate&{part_of(documents=[key])}"
    takes = [act("copy-link", link, "Copy link", title="The address of this evaluation")] * bool(key)
    takes += [act("download", lines, "Rows as JSON lines", data_name=ROWS_FILE)] * bool(lines)
    done = h(
        "p.qx-mut.qx-sm",
        f"{counted(len(state.questions), 'question')} about {state.n_done:,} of"
        f" {counted(state.n_documents, 'document')}. Their runs are not in Experiments.",
    )
    return [heading(*takes), done, *shown, *_left_out(state)]


def _first_figures(rows: Sequence[DocumentRow]) -> list[Node]:
    """Of the first method, each beside the best of the others."""
    by_method: dict[str, list[DocumentRow]] = {}
    for row in rows:
        by_method.setdefault(row.method, []).append(row)
    nodes: list[Node] = []
    for name, (label, sentence) in _FIRST.items():
        values = {method: [*map(DOCUMENT_METRICS[name], own)] for method, own in by_method.items()}
        means = {method: mean(some) for method, some in values.items()}
        if len(nodes) == 3 or all(value is None for value in means.values()):
            continue
        first, *others = means
        best = max(others, key=lambda method: means[method] or 0.0, default=first)
        named = dict.fromkeys((first, best))
        words = [f"{label_of(method)} {_with_interval(values[method])}" for method in named]
        nodes.append(number(label, " · ".join(words), sentence))
    return nodes


def _with_interval(values: Sequence[float | None]) -> str:
    value, ends = mean(values), interval(values)
    around = "" if ends is None else f" [{ends[0]:.2f}, {ends[1]:.2f}]"
    return "–" if value is None else f"{value:.2f}{around}"


def _of_all(report: Table) -> Table:
    """Without the kind of document: it is all of them."""
    rows = tuple((label_of(str(row[1])), *row[2:]) for row in report.rows)
    return Table(report.title, report.columns[1:], rows)


def questions(state: DocumentsProgress, page: int) -> list[Node]:
    """What each method found for each question; the last page for one behind it."""
    if not state.questions:
        return []
    page = min(page, (len(state.questions) - 1) // PAGE)
    by_question: dict[str, dict[str, DocumentRow]] = {}
    for row in state.rows:
        by_question.setdefault(row.id, {})[row.method] = row
    shown = on_page(state.questions, page)
    names = list(dict.fromkeys(row.method for row in state.rows))
    lines = [
        h(
            "tr",
            h("td", _question(state, place)),
            h("td", one.document),
            *(_support_cell(by_question[one.id].get(name)) for name in names),
            _answer(by_question[one.id].get(names[0])),
        )
        for place, one in enumerate(shown, page * PAGE)
    ]
    columns = [(label_of(name), "Of the needed passages, how many its chunks hold") for name in names]
    answers = f"Answer, {label_of(names[0])}"
    head: list[str | tuple[str, str]] = ["Question", "Document", *columns, answers]
    return [table(head, lines, "Questions one by one"), *pager("questions-page", page, len(state.questions))]


def _question(state: DocumentsProgress, place: int) -> Node:
    """A question, which asks itself in Explore where its document is a file."""
    words = state.questions[place].question
    if state.source(place) is None:
        return words
    title = "Open the document in Explore and ask this"
    return link_to("ask", place, words, title=title)


def _support_cell(row: DocumentRow | None) -> Node:
    if row is None:
        return h("td", {"title": "the language model wrote no set"}, "?")
    if not row.covered:
        return h("td", {"title": "nobody can answer it from this document"}, "–")
    hit = "qx-share qx-hit" if all(row.covered) else "qx-share"
    return h("td", h("span", {"class": hit}, f"{sum(row.covered)} of {len(row.covered)}"))


def _answer(row: DocumentRow | None) -> Node:
    """The score table counts what was read, shown or not, so an answer in doubt stands here too."""
    if row is None or row.answer is None:
        return h("td.qx-mut", "no answer")
    if not row.answer_reliable:
        state = row.answer_state or "guess"
        name = {"guess": "guess", "unsure": "not sure", "passages": "passage"}.get(state, "not shown")
        return h("td.qx-mut", {"title": WHY[state]}, f"{row.answer} ({name})")
    right = DOCUMENT_METRICS["reliable_right"](row)
    if right is None:
        return h("td", row.answer)
    verdict = h("span.qx-mark.qx-hit", "✓ right") if right else h("span.qx-mark.qx-warn", "✗ wrong")
    return h("td", {"title": f"known: {'; '.join(row.answers[:3])}"}, row.answer, " ", verdict)


def _left_out(state: DocumentsProgress) -> list[Node]:
    more = len(state.left_out) - _MOST_LEFT_OUT
    last = [f"{more} more like these; the command evaluate-documents names all."] if more > 0 else []
    sentences = [*state.left_out[:_MOST_LEFT_OUT], *last]
    return [node for sentence in sentences for node in notice(sentence, "info")]
