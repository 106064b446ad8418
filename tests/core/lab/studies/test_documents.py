"""The report on questions about whole documents."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.base.errors import BadRequest
from core.lab.evaluate.documents import DocumentRow
from core.lab.studies.documents import documents
from tests.core.lab.evaluate.rows import document_row
from tests.core.lab.evaluate.test_completeness import ROWS


def row(
    document: str, number: int, method: str, covered: tuple[bool, ...], answer: str | None = None
) -> DocumentRow:
    return document_row(
        id=f"{document}-{number}",
        document=document,
        method=method,
        ran="qrag" if method == "auto" else method,
        checkpoint="" if method == "bm25" else "general",
        covered=covered,
        answer=answer,
        answers=("Anna",) if covered else (),
    )


def test_kinds_of_documents_and_tests_against_what_the_app_chose() -> None:
    rows = [row("Doyle_Lost_1912.txt", i, "auto", (True, i < 6), "Anna") for i in range(8)]
    rows += [row("Doyle_Lost_1912.txt", i, "bm25", (False, False), "Boris") for i in range(8)]
    rows += [
        row("page.html", 0, "auto", (True,)),
        row("page.html", 1, "auto", ()),
        row("page.html", 1, "bm25", (), "Anna"),
    ]
    found, answered = documents(rows).tables
    lines = {line[:2]: line[2:] for line in found.rows}
    assert list(lines) == [
        (kind, method) for kind in ("novels", "pages, essays, lists", "all") for method in ("auto", "bm25")
    ]
    n, recall, complete, several, *tests = lines["novels", "auto"]
    assert (n, several, tests) == (8, 0.75, [None, None])
    assert str(recall).startswith("0.875 [")
    assert str(complete).startswith("0.750 [")
    assert str(lines["novels", "bm25"][-2]).startswith("+0.875 (p = 0.0")
    assert lines["pages, essays, lists", "auto"][0] == 1, "a question without quotes has nothing to find"
    assert lines["pages, essays, lists", "bm25"] == (0, None, None, None, None, None)
    told = {line[:2]: line[2:] for line in answered.rows}
    assert told["novels", "auto"] == (8, 1.0, 1.0, 0.0, 1.0, 1.0, None, 0.25)
    assert told["novels", "bm25"] == (8, 0.0, 0.0, 0.0, 1.0, 0.0, None, 0.75)
    assert told["pages, essays, lists", "auto"] == (2, 0.0, 0.0, 1.0, 0.0, None, 1.0, None)
    assert told["pages, essays, lists", "bm25"] == (1, None, None, None, None, None, 0.0, 0.75)


def test_rows_that_know_their_state_say_what_was_told() -> None:
    told = [(True,), (True,), (True,), (), ()]
    answers, states = (
        ["Anna", "Boris", "Anna", "Anna", None],
        ["answer", "answer", "guess", "guess", "absent"],
    )
    rows = [
        replace(row("a.md", i, "auto", covered, answer), answer_state=state)
        for i, (covered, answer, state) in enumerate(zip(told, answers, states, strict=True))
    ]
    [*_, line] = documents(rows).tables[2].rows
    assert line[2:] == pytest.approx((2 / 3, 1 / 3, 1 / 3, 1.0, 0.0, 0.5))


def test_the_note_is_of_the_methods_and_not_of_what_is_the_best_that_any_could_do() -> None:
    best = replace(row("a.md", 0, "gold", (True,)), k=9)
    told = [replace(row("a.md", 0, "auto", (True,)), stops=True)]
    assert (
        documents([best, *told]).notes[0].startswith("1 documents, at most 4 chunks a question, agents free")
    )
    with pytest.raises(BadRequest, match=r"question 'a\.md-0' stands 2 times"):
        documents([best, *told, *told])


def test_completeness_is_told_by_thirds_and_by_what_the_page_warns_of() -> None:
    told = documents(ROWS).tables[-1]
    assert told.title.startswith("Completeness")
    assert {line[0] for line in told.rows} == {4, 8, 12}
    lowest, _, warned, other = (line for line in told.rows if line[0] == 4)
    assert (lowest[2], warned[2], other[2]) == (40, 40, 60)
    assert [str(line[4])[:6] for line in (lowest, warned, other)] == ["0.250 ", "0.250 ", "0.750 "]
    assert [table.title for table in documents(ROWS[:20]).tables] == ["Found", "Answered"]
