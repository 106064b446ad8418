"""Methods side by side on questions about whole documents.

By kind of document, with paired tests against what the app chooses by itself. The kind of a document is read
off its name, as the data set `natural` names them. Pure functions of rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePosixPath

import numpy as np

from core.answer.confidence import expected_calibration_error
from core.base.errors import BadRequest
from core.base.metrics import RIGHT_FROM, answer_f1
from core.base.statistics import mean, paired_test
from core.lab.evaluate.completeness import LOW, JudgedQuestions, questions_by_size
from core.lab.evaluate.documents import DOCUMENT_METRICS, DocumentRow
from core.views.charts import Cell, Report, Table, mean_with_interval, with_p

CHOSEN = "auto"
"""The method that the others are tested against."""
NOVELS, MANUALS, PAGES = "novels", "manuals, meetings", "pages, essays, lists"
_FOUND = (
    "documents",
    "method",
    "n",
    "passages found",
    "all of them",
    "all of two or more",
    f"{CHOSEN} minus this: found",
    "all",
)
_ANSWERED = (
    *("documents", "method", "n", "answer F1", "answer EM", "no answer though there is one"),
    *("shown as reliable", "right of these", "none shown where there is none", "ECE of answers"),
)
_COMPLETENESS = ("chunks", "lead of the best Q", "n", "said to be complete", "complete")


def kind_of(name: str) -> str:
    """The kind of a document, by its name.

    >>> names = ("Doyle_Lost_1912.txt", "meeting_academic_val2.txt", "ruff_docs.md", "essay-avg.txt")
    >>> tuple(map(kind_of, names))
    ('novels', 'manuals, meetings', 'manuals, meetings', 'pages, essays, lists')
    """
    if re.search(r"_\d{4}\.txt$", name):
        return NOVELS
    return MANUALS if name.startswith("meeting") or PurePosixPath(name).suffix == ".md" else PAGES


def documents(rows: Sequence[DocumentRow], kinds: Sequence[str] = (NOVELS, MANUALS, PAGES)) -> Report:
    """A line a kind of document and method, then a line a method over all. Raises BadRequest for no rows."""
    if not rows:
        raise BadRequest("there are no rows to study; make some with evaluate-documents --rows FILE")
    groups = [(kind, [row for row in rows if kind_of(row.document) == kind]) for kind in kinds] + [
        ("all", list(rows))
    ]
    methods = tuple(dict.fromkeys(row.method for row in rows))
    passage_rows = [_method_row(kind, method, group) for kind, group in groups if group for method in methods]
    answered = [_answered(kind, method, group) for kind, group in groups if group for method in methods]
    first = rows[0]
    stops = "agents free to stop" if first.stops else "no stop"
    checkpoints = ", ".join(
        sorted({row.checkpoint for row in rows if row.method == CHOSEN and row.checkpoint})
    )
    chosen = f"; {CHOSEN} took {checkpoints}" if checkpoints else ""
    note = (
        f"{len({row.document for row in rows})} documents, at most {max(row.k for row in rows)} chunks a"
        f" question, {stops}{chosen}."
    )
    tables = [Table("Found", _FOUND, tuple(passage_rows)), Table("Answered", _ANSWERED, tuple(answered))]
    chosen_rows = [row for row in rows if row.method == CHOSEN]
    by_size = {
        agent: questions_by_size(chosen_rows, agent)
        for agent in sorted({row.checkpoint for row in chosen_rows})
    }
    of_all = [(agent, size, one) for agent, sizes in by_size.items() for size, one in sizes.items()]
    if of_all:
        cells = tuple(line for _, size, one in of_all for line in _told_complete(size, one))
        tables.append(Table("Completeness, as the lead of Q tells it", _COMPLETENESS, cells))
    return Report("documents", tuple(tables), notes=(note, *(_calibrated(*one) for one in of_all)))


def _told_complete(size: int, one: JudgedQuestions) -> Iterator[tuple[Cell, ...]]:
    """Thirds by lead, then what the page warns of and what it does not."""
    ends = np.quantile(one.leads, [1 / 3, 2 / 3])
    third = np.searchsorted(ends, one.leads)
    parts = {
        f"lowest third, up to {ends[0]:.2f}": third == 0,
        f"up to {ends[1]:.2f}": third == 1,
        f"above {ends[1]:.2f}": third == 2,
        f"any, said below {LOW:g}": one.estimates < LOW,
        f"any, said {LOW:g} or more": one.estimates >= LOW,
    }
    for words, part in parts.items():
        if part.any():
            complete = one.complete[part].astype(float).tolist()
            yield (
                size,
                words,
                int(part.sum()),
                float(one.estimates[part].mean()),
                mean_with_interval(complete),
            )


def _calibrated(agent: str, size: int, one: JudgedQuestions) -> str:
    auc = "" if one.auc is None else f", AUC {one.auc:.2f}"
    return (
        f"{agent}, {size} chunks: completeness said of each document by a curve of the others"
        f" (ECE {one.ece:.2f}{auc})."
    )


def _method_row(kind: str, method: str, group: Sequence[DocumentRow]) -> tuple[Cell, ...]:
    own = [row for row in group if row.method == method and row.covered]
    several = [float(all(row.covered)) for row in own if len(row.covered) > 1]
    recall, complete = (
        [DOCUMENT_METRICS[name](row) for row in own] for name in ("passage_recall", "complete")
    )
    tests = [
        None if method == CHOSEN else _against(group, method, name) for name in ("passage_recall", "complete")
    ]
    cells = (mean_with_interval(values) for values in (recall, complete))
    return (kind, method, len(own), *cells, mean(several), *tests)


def _against(group: Sequence[DocumentRow], method: str, metric: str) -> str | None:
    """The chosen one minus a method on the same questions."""
    measure: Callable[[DocumentRow], float | None] = DOCUMENT_METRICS[metric]
    ours, theirs = ({row.id: row for row in group if row.method == name} for name in (CHOSEN, method))
    common = [key for key in ours if key in theirs and ours[key].covered]
    test = paired_test([measure(ours[key]) for key in common], [measure(theirs[key]) for key in common])
    return with_p(test)


def _answered(kind: str, method: str, group: Sequence[DocumentRow]) -> tuple[Cell, ...]:
    own = [row for row in group if row.method == method]
    asked, hopeless = (
        [row for row in own if bool(row.covered) is has_quotes] for has_quotes in (True, False)
    )
    of_asked = (
        mean(DOCUMENT_METRICS[name](row) for row in asked)
        for name in ("answer_f1", "answer_em", "no_answer", "reliable", "reliable_right")
    )
    # a question with quotes may come without an answer, and then nobody knows
    given = [row for row in own if row.answer is not None and (row.answers or not row.covered)]
    right = [bool(row.answers) and answer_f1(row.answer or "", row.answers) >= RIGHT_FROM for row in given]
    return (
        kind,
        method,
        len(own),
        *of_asked,
        mean(1.0 - float(row.answer is not None and row.answer_reliable) for row in hopeless),
        expected_calibration_error([row.answer_confidence for row in given], right),
    )
