"""Rows go to JSON lines and back; what is no row is refused with its line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.base.errors import BadRequest
from core.base.rows import group_rows, read_rows, row_line
from tests.core.lab.evaluate.rows import make_row


def test_rows_come_back_and_a_line_that_is_no_row_is_named(tmp_path: Path) -> None:
    path, rows = tmp_path / "rows.jsonl", [make_row(), make_row(id="☃", length=None, chosen=())]
    path.write_text("".join(map(row_line, rows)) + "\n", encoding="utf-8")
    assert read_rows(path) == rows
    for line in ("{}", "nonsense", json.dumps({**json.loads(row_line(make_row())), "colour": 1})):
        path.write_text(row_line(make_row()) + line + "\n", encoding="utf-8")
        with pytest.raises(BadRequest, match=r"line 2 of rows\.jsonl"):
            read_rows(path)
    with pytest.raises(BadRequest, match=r"can't be read .*; name a file that evaluate --rows wrote"):
        read_rows(tmp_path / "none.jsonl")


def test_evaluations_are_told_apart_by_everything_but_the_example() -> None:
    first = [make_row(id="a"), make_row(id="b", step_budget=2, chosen=(4, 9), best_q=(0.9, 0.8))]
    others = [
        make_row(length=2000),
        make_row(task="qa1"),
        make_row(fingerprint="f1"),
        make_row(stop_threshold=0.4),
        make_row(beam_width=2),
        make_row(seed=1),
    ]
    groups = group_rows([first[0], *others, first[1]])
    assert groups[0] == tuple(first)
    assert groups[1:] == [(row,) for row in others]
