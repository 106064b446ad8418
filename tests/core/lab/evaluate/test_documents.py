"""Rows of questions about documents: means by kind, over what was measured, and lines that are read back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.base.rows import row_line
from core.lab.evaluate.documents import DocumentRow, read_document_rows, summarise_documents


def row(**changes: Any) -> DocumentRow:
    values: dict[str, Any] = {
        "id": "a",
        "kind": "bridge",
        "document": "d",
        "method": "auto",
        "ran": "hybrid",
        "checkpoint": "base",
        "k": 4,
        "stops": True,
        "covered": (True, False),
        "n_chunks": 9,
        "chunk_ids": (3, 1),
        "scores": (0.5, 0.25),
        "evidence": ((30, 40), (10, 20)),
        "stopped": False,
        "answer": "the red barn",
        "answer_confidence": 0.7,
        "answer_reliable": True,
        "answers": ("a barn",),
        "milliseconds": 2.0,
    }
    return DocumentRow(**values | changes)


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
        "unanswerable": [
            3,
            0,
            None,
            None,
            pytest.approx(1 / 3, abs=1e-6),
            pytest.approx(2 / 3, abs=1e-6),
            pytest.approx(1 / 3, abs=1e-6),
        ],
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
    assert list(json.loads(json.dumps(ROWS[0].to_json()))) == [
        *(
            "id",
            "kind",
            "document",
            "method",
            "checkpoint",
            "covered",
            "n_chunks",
            "evidence",
            "stopped",
            "answer",
            "answer_state",
            "answer_confidence",
            "answer_reliable",
            "completeness",
        )
    ]
