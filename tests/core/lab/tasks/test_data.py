"""Where data sets are looked for, and lines that no reader should trust."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from core.base.errors import BadRequest
from core.lab.tasks.data import babi_folder, data_folder, json_lines


def test_a_named_folder_comes_before_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("QRAG_DATA", str(tmp_path))
    assert data_folder() == tmp_path
    assert babi_folder() == tmp_path / "babi" / "en-10k"
    (tmp_path / "other").mkdir()
    assert data_folder(tmp_path / "other") == tmp_path / "other"


def test_an_absent_folder_is_one_sentence_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("QRAG_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(
        BadRequest, match=r"not in .*nowhere; put them there, or name their folder in QRAG_DATA"
    ):
        data_folder()
    monkeypatch.setenv("QRAG_DATA", "")
    with pytest.raises(BadRequest, match=r"^no data sets are named; name their folder in QRAG_DATA, or with"):
        data_folder()


def lines(
    path: Path, max_bytes: int = 1000, max_line_bytes: int = 100
) -> list[tuple[str, dict[str, object]]]:
    return list(json_lines(path, max_bytes=max_bytes, max_line_bytes=max_line_bytes))


def test_lines_are_counted_with_the_blank_ones(tmp_path: Path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": 1}\n\n{"b": 2}', encoding="utf-8")
    assert lines(path) == [("a.jsonl line 1", {"a": 1}), ("a.jsonl line 3", {"b": 2})]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"a": 1}\nnonsense', "line 2 is no JSON"),
        (b"[1, 2]", "line 1 is JSON, but no object"),
        (b"\xff\xfe{}", "line 1 is no JSON"),
        (b"[" * 90, "line 1 is no JSON"),
        (b'{"a": "' + b"x" * 200, "line 1 has more than 100 bytes"),
        (b'{"a": "bcdefghijklmnopqrstuvwxyz"}\n' * 40, "more than 1,000 bytes"),
    ],
)
def test_hostile_lines_are_named(tmp_path: Path, content: bytes, message: str):
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(content))
    with pytest.raises(BadRequest, match=message):
        lines(path)


def test_unreadable_files_are_named(tmp_path: Path):
    (tmp_path / "b.jsonl.gz").write_bytes(b"no gzip")
    for path in (tmp_path / "b.jsonl.gz", tmp_path / "missing.jsonl"):
        with pytest.raises(BadRequest, match="can't be read"):
            lines(path)
