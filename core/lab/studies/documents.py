"""Methods side by side on questions about whole documents.

The kind of a document is read off its name, as the data set `natural` names them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import itemgetter
from pathlib import PurePosixPath

import numpy as np

from core.answer.confidence import expected_calibration_error
from core.answer.protocol import State
from core.base.metrics import RIGHT_FROM, answer_f1
from core.base.rows import grouped
from core.base.statistics import mean
from core.lab.evaluate.completeness import LOW, JudgedQuestions, questions_by_size
from core.lab.evaluate.documents import DOCUMENT_METRICS, GOLD, DocumentRow
from core.lab.studies.tables import check_groups, filled, paired
from core.views.charts import Cell, Report, Table, mean_with_interval, with_p

CHOSEN = "auto"
NOVELS, MANUALS, PAGES = "novels", "manuals, meetings", "pages, essays, lists"
Asked = tuple[str, str, list[DocumentRow]]
"""A kind of document, a method, and the rows of all methods over such documents."""
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
    check_groups(grouped(rows, lambda row: row.method), "make some with evaluate-documents --rows FILE")
    groups = {kind: [row for row in rows if kind_of(row.document) == kind] for kind in kinds}
    methods = dict.fromkeys(row.method for row in rows)
    by_kind = groups | {"all": [*rows]}
    asked = [(kind, method, group) for kind, group in by_kind.items() if group for method in methods]
    tables = [filled("Found", _FOUND, asked), filled("Answered", _ANSWERED, asked)]
    if all(row.answer_state is not None for row in rows):
        tables.append(filled("Told", _TOLD, asked))
    chosen = [row for row in rows if row.method == CHOSEN]
    checkpoints = sorted({row.checkpoint for row in chosen})
    judged = [(name, *by_size) for name in checkpoints for by_size in questions_by_size(chosen, name).items()]
    if judged:
        cells = tuple(line for _, size, questions in judged for line in _told_complete(size, questions))
        tables.append(Table("Completeness, as the lead of Q tells it", _COMPLETENESS, cells))
    # the best that any method can do takes as many chunks as it needs, and never stops
    ran = [row for row in rows if row.ran != GOLD] or rows
    note = (
        f"{len({row.document for row in rows})} documents, at most {max(row.k for row in ran)} chunks a"
        f" question, {'agents free to stop' if ran[0].stops else 'no stop'}"
    )
    if named := ", ".join(filter(None, checkpoints)):
        note += f"; {CHOSEN} took {named}"
    return Report("documents", tuple(tables), notes=(f"{note}.", *(_calibrated(*of) for of in judged)))


def _told_complete(size: int, judged: JudgedQuestions) -> Iterator[tuple[Cell, ...]]:
    """Thirds by lead, then what the page warns of and what it does not."""
    ends = np.quantile(judged.leads, [1 / 3, 2 / 3])
    third = np.searchsorted(ends, judged.leads)
    parts = {
        f"lowest third, up to {ends[0]:.2f}": third == 0,
        f"up to {ends[1]:.2f}": third == 1,
        f"above {ends[1]:.2f}": third == 2,
        f"any, said below {LOW:g}": judged.estimates < LOW,
        f"any, said {LOW:g} or more": judged.estimates >= LOW,
    }
    for words, part in parts.items():
        if part.any():
            complete = mean_with_interval(judged.complete[part].astype(float).tolist())
            yield size, words, int(part.sum()), float(judged.estimates[part].mean()), complete


def _calibrated(agent: str, size: int, judged: JudgedQuestions) -> str:
    error = f"ECE {judged.ece:.2f}" + ("" if judged.auc is None else f", AUC {judged.auc:.2f}")
    return f"{agent}, {size} chunks: completeness said of each document by a curve of the others ({error})."


def _own(asked: Asked, *, quotes: bool | None = None) -> list[DocumentRow]:
    """The method's rows; with `quotes`, those of questions that have quotes, or that have none."""
    _, method, group = asked
    return [row for row in group if row.method == method and quotes in (None, bool(row.covered))]


def _measured(asked: Asked, metric: str) -> list[float | None]:
    """Over questions with quotes."""
    return [DOCUMENT_METRICS[metric](row) for row in _own(asked, quotes=True)]


def _against(asked: Asked, metric: str) -> str | None:
    """What the app chooses minus the method, on the same questions."""
    kind, method, group = asked
    if method == CHOSEN:
        return None
    chosen = _own((kind, CHOSEN, group), quotes=True)
    return with_p(paired(chosen, _own(asked), lambda row: row.id, DOCUMENT_METRICS[metric]))


def _calibration_error(asked: Asked) -> float | None:
    # a question with quotes may come without an answer, and then nobody knows
    given = [row for row in _own(asked) if row.answer is not None and (row.answers or not row.covered)]
    right = [_is_right(row) for row in given]
    return expected_calibration_error([row.answer_confidence for row in given], right)


def _told(asked: Asked, states: Sequence[State], *, right: bool | None, quotes: bool = True) -> float | None:
    """Share of the questions that are told in these states, and right or wrong where that is asked."""
    own = _own(asked, quotes=quotes)
    return mean(float(row.answer_state in states and right in (None, _is_right(row))) for row in own)


def _is_right(row: DocumentRow) -> bool:
    return bool(row.answers) and answer_f1(row.answer or "", row.answers) >= RIGHT_FROM


_NAMED: dict[str, Callable[[Asked], Cell]] = {"documents": itemgetter(0), "method": itemgetter(1)}
_FOUND = _NAMED | {
    "n": lambda asked: len(_own(asked, quotes=True)),
    "passages found": lambda asked: mean_with_interval(_measured(asked, "passage_recall")),
    "all of them": lambda asked: mean_with_interval(_measured(asked, "complete")),
    "all of two or more": lambda asked: mean(
        float(all(row.covered)) for row in _own(asked) if len(row.covered) > 1
    ),
    f"{CHOSEN} minus this: found": partial(_against, metric="passage_recall"),
    "all": partial(_against, metric="complete"),
}
_ANSWERED = _NAMED | {
    "n": lambda asked: len(_own(asked)),
    "answer F1": lambda asked: mean(_measured(asked, "answer_f1")),
    "answer EM": lambda asked: mean(_measured(asked, "answer_em")),
    "no answer though there is one": lambda asked: mean(_measured(asked, "no_answer")),
    "shown as reliable": lambda asked: mean(_measured(asked, "reliable")),
    "right of these": lambda asked: mean(_measured(asked, "reliable_right")),
    "none shown where there is none": lambda asked: mean(
        1.0 - float(row.answer is not None and row.answer_reliable) for row in _own(asked, quotes=False)
    ),
    "ECE of answers": _calibration_error,
}
_TOLD = _NAMED | {
    "right, as an answer or a guess": partial(_told, states=("answer", "guess"), right=True),
    "right as an answer": partial(_told, states=("answer",), right=True),
    "wrong as an answer": partial(_told, states=("answer",), right=False),
    "guesses that are right": lambda asked: mean(
        float(_is_right(row)) for row in _own(asked, quotes=True) if row.answer_state == "guess"
    ),
    "none there, answered": partial(_told, states=("answer",), right=None, quotes=False),
    "none there, guessed": partial(_told, states=("guess",), right=None, quotes=False),
}
