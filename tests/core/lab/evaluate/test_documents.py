"""Rows of questions about documents: means by kind, over what was measured, and lines that are read back."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from core.base.rows import row_line
from core.lab.evaluate.documents import read_document_rows, summarise_documents
from tests.core.lab.evaluate.rows import document_row

row = partial(document_row, kind="bridge", covered=(True, False), answer="the red barn", answers=("a barn",))
UNANSWERABLE: dict[str, Any] = {"kind": "unanswerable", "covered": (), "answers": ()}
ROWS = [
    row(),
    row(id="b", covered=(True, True)),
    row(id="c", **UNANSWERABLE, answer=None),
    row(id="d", **UNANSWERABLE, answer=None, evidence=(), chunk_ids=(), scores=(), stopped=True),
    row(id="e", **UNANSWERABLE),
    row(method="topk", covered=(False, False)),
]


def test_means_are_over_what_was_measured() -> None:
    summary = summarise_documents(ROWS)
    assert {method: list(kinds) for method, kinds in summary.items()} == {
        "auto": ["bridge", "unanswerable", "all"],
        "topk": ["bridge", "all"],
    }
    names = ("n", "n_with_quotes", "passage_recall", "complete", "no_evidence", "no_answer", "stopped")
    figures = {kind: [means[name] for name in names] for kind, means in summary["auto"].items()}
    assert figures == {
        "bridge": [2, 2, 0.75, 0.5, 0, 0, 0],
        "unanswerable": [3, 0, None, None, 0.333333, 0.666667, 0.333333],
        "all": [5, 2, 0.75, 0.5, 0.2, 0.4, 0.2],
    }
    assert summary["auto"]["all"]["answer_f1"] == pytest.approx(2 / 3, abs=1e-6)
    assert summary["topk"]["all"]["complete"] == 0


def test_what_is_not_reliable_is_no_answer_shown() -> None:
    shown = summarise_documents(
        [row(), row(answer="a pier"), row(answer_reliable=False), row(answer=None), row(**UNANSWERABLE)]
    )["auto"]["all"]
    assert shown["reliable"] == pytest.approx(3 / 5)
    assert shown["reliable_right"] == pytest.approx(1 / 2)


def test_rows_are_read_back_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(map(row_line, ROWS)), encoding="utf-8")
    assert read_document_rows(path) == ROWS
    told = ROWS[0].to_json()
    assert (told["answer"], told["n_chunks"], "scores" in told) == ("the red barn", 9, False)
