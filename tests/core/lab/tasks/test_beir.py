"""BEIR folders as questions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.base.errors import BadRequest
from core.lab.tasks.qa_sets import read_qa


def beir(folder: Path, qrels: str, name: str = "test.tsv") -> Path:
    passages = [{"_id": f"d{row}", "title": f"T{row}", "text": f"text {row}"} for row in range(4)]
    queries = [
        {"_id": f"q{row}", "text": text} for row, text in enumerate(("First?", "Second?", "Third?"), 1)
    ]
    for file, records in (("corpus.jsonl", passages), ("queries.jsonl", queries)):
        (folder / file).write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    (folder / "qrels").mkdir()
    (folder / "qrels" / name).write_text(qrels, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("name", "qrels"),
    [
        ("test.tsv", "query-id\tcorpus-id\tscore\nq1\td2\t1\nq1\td0\t2\nq2\td3\t1\nq2\td1\t0\n"),
        ("test.txt", "q1 0 d2 1\nq1 0 d0 2\nq2 0 d3 1\nq2 0 d1 0\n"),
        ("test.tsv", "query-id\tcorpus-id\tscore\nq1\td2\t1.0\nq1\td0\t2\nq2\td3\t0.5\n"),
    ],
)
def test_judged_queries_share_the_corpus(tmp_path: Path, name: str, qrels: str) -> None:
    first, second = read_qa(beir(tmp_path, qrels, name), "test")
    assert (first.question, first.support) == ("First?", (0, 2))
    assert (second.question, second.support) == ("Second?", (3,))
    assert first.chunks is second.chunks
    assert first.chunks[0] == "T0: text 0"


@pytest.mark.parametrize(
    ("qrels", "message"),
    [
        ("q1\td9\t1\n", r"test\.tsv line 1 judges .* missing"),
        ("q1\td0\n", r"test\.tsv line 1 must have three columns"),
        ("q1\td0\t0\n", "holds no question"),
        ("query-id\tcorpus-id\tscore\nq1 d0 x\n", "line 2 must have three columns"),
    ],
)
def test_broken_judgements_are_named(tmp_path: Path, qrels: str, message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        read_qa(beir(tmp_path, qrels), "test")


@pytest.mark.parametrize(
    ("file", "record", "message"),
    [
        ("corpus", {"_id": "d3", "text": "again"}, "line 5: the id 'd3' stands twice"),
        ("corpus", {"_id": "d4", "text": "\ud800"}, "line 5 holds half a character"),
        ("queries", {"_id": "q4", "text": " "}, "query 'q4' of .*: the question is empty"),
    ],
)
def test_broken_records_are_named(tmp_path: Path, file: str, record: dict[str, str], message: str) -> None:
    folder = beir(tmp_path, "q4\td1\t1\n" if file == "queries" else "q1\td1\t1\n")
    with (folder / f"{file}.jsonl").open("a") as lines:
        lines.write(f"\n{json.dumps(record)}")
    with pytest.raises(BadRequest, match=message):
        read_qa(folder, "test")
