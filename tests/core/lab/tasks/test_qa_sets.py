"""Question sets in our schema and in the public formats, hostile ones included."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.base.errors import BadRequest
from core.lab.tasks import qa_sets
from core.lab.tasks.example import Example
from core.lab.tasks.qa_sets import DistractorPool, read_own_questions, read_qa
from tests.core.lab.tasks.conftest import write_lines

COMMON = {
    "id": "a",
    "question": "Who made the lamp?",
    "answer": "Ada",
    "chunks": [
        {"title": "Lamp", "text": "Made by Ada."},
        {"title": "", "text": "Rain fell."},
        {"title": "Ada", "text": "A smith."},
    ],
    "support": [2, 0],
    "type": "bridge",
}
MUSIQUE = {
    "id": "3hop1__1_2_3",
    "question": "Who made the lamp?",
    "answer": "Ada",
    "answer_aliases": ["Ada the smith"],
    "answerable": True,
    "paragraphs": [
        {"idx": 0, "title": "Lamp", "paragraph_text": "Made by Ada.", "is_supporting": True},
        {"idx": 1, "title": "Rain", "paragraph_text": "It fell.", "is_supporting": False},
    ],
}
HOTPOTQA = {
    "_id": "h1",
    "question": "Who made the lamp?",
    "answer": "Ada",
    "type": "comparison",
    "supporting_facts": [["Lamp", 0], ["Ada", 1], ["Lamp", 1]],
    "context": [["Rain", ["It fell."]], ["Ada", ["A smith.", " Born early."]], ["Lamp", ["Made by Ada."]]],
}


def test_common_schema(tmp_path: Path):
    (example,) = read_qa(write_lines(tmp_path / "mine.jsonl", COMMON))
    assert example.chunks == ("Lamp: Made by Ada.", "Rain fell.", "Ada: A smith.")
    assert (example.support, example.answers, example.kind) == ((0, 2), ("Ada",), "bridge")
    assert (example.task, example.id) == ("mine", "a")


def test_musique(tmp_path: Path):
    (example,) = read_qa(write_lines(tmp_path / "musique.jsonl", MUSIQUE, {**MUSIQUE, "answerable": False}))
    assert example.chunks == ("Lamp: Made by Ada.", "Rain: It fell.")
    assert (example.support, example.answers, example.kind) == ((0,), ("Ada", "Ada the smith"), "3 hops")


def test_hotpotqa(tmp_path: Path):
    path = tmp_path / "dev.json.gz"
    path.write_bytes(gzip.compress(json.dumps([HOTPOTQA]).encode()))
    (example,) = read_qa(path)
    assert example.chunks == ("Rain: It fell.", "Ada: A smith. Born early.", "Lamp: Made by Ada.")
    assert (example.support, example.kind, example.id) == ((1, 2), "comparison", "h1")


def test_repeated_paragraphs_are_kept_once_and_support_follows(tmp_path: Path):
    twice = {
        **COMMON,
        "chunks": [COMMON["chunks"][1], *COMMON["chunks"][1:], COMMON["chunks"][2], COMMON["chunks"][0]],
        "support": [3, 4],
    }
    (example,) = read_qa(write_lines(tmp_path / "twice.jsonl", twice))
    assert example.chunks == ("Rain fell.", "Ada: A smith.", "Lamp: Made by Ada.")
    assert example.support == (1, 2)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({**COMMON, "question": 3}, 'has no "question"'),
        ({**COMMON, "question": " "}, "line 2: the question is empty"),
        ({**COMMON, "question": "\udfff"}, "half a character"),
        ({**COMMON, "id": "\udfff"}, "an id or a chunk that holds half a character"),
        ({**COMMON, "chunks": []}, 'needs "chunks"'),
        ({**COMMON, "chunks": ["a", ""]}, "or is empty"),
        ({**COMMON, "chunks": [{"title": "a"}]}, "no text, or object with one"),
        ({**COMMON, "chunks": [{"title": 1, "text": "a"}]}, "no text, or object with one"),
        ({**COMMON, "chunks": ["\ud800"]}, "half a character"),
        ({**COMMON, "support": [True]}, "a list of whole numbers"),
        ({**COMMON, "support": [3]}, "support 3 is no chunk; its numbers must be between 0 and 2"),
        ({**COMMON, "support": []}, "0 support chunks, there must be between 1 and 32"),
        ({**MUSIQUE, "paragraphs": "x"}, 'needs "paragraphs"'),
        ({**MUSIQUE, "paragraphs": ["x"]}, "0 support chunks"),
    ],
)
def test_a_hostile_record_is_named(tmp_path: Path, record: dict[str, Any], message: str):
    with pytest.raises(BadRequest, match=message) as refusal:
        read_qa(write_lines(tmp_path / "bad.jsonl", COMMON, record))
    assert "bad.jsonl line 2" in str(refusal.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[" * 100_000, "bad.json is no JSON"),
        ("{}", "bad.json holds no list"),
        ("[1]", "bad.json question 1 must be an object"),
        (json.dumps([{**HOTPOTQA, "context": [["Rain", [1]]]}]), "question 1 .* context are pairs"),
        (json.dumps([{**HOTPOTQA, "context": HOTPOTQA["context"][:2]}]), "question 1 lacks a paragraph"),
        (json.dumps([{**HOTPOTQA, "supporting_facts": [[[], 1]]}]), "question 1 .* supporting_facts pairs"),
        ("[]", "holds no question"),
    ],
)
def test_a_hostile_list_is_named(tmp_path: Path, content: str, message: str):
    (tmp_path / "bad.json").write_text(content, encoding="utf-8")
    with pytest.raises(BadRequest, match=message):
        read_qa(tmp_path / "bad.json")


def test_an_id_that_stands_twice_is_named(tmp_path: Path):
    with pytest.raises(BadRequest, match=r"mine\.jsonl has the id 'a' 2 times"):
        read_qa(write_lines(tmp_path / "mine.jsonl", COMMON, COMMON | {"question": "Who?"}))


def test_a_damaged_file_is_named(tmp_path: Path):
    packed = gzip.compress(b"{}\n" * 9)[:10] + b"\xff" * 40  # a block of no kind, which is no OSError
    for name, read in (("a.jsonl.gz", read_qa), ("a.json.gz", read_qa), ("b.jsonl.gz", read_own_questions)):
        (tmp_path / name).write_bytes(packed)
        with pytest.raises(BadRequest, match=rf"{name} can't be read .*; check its name and fetch it again"):
            read(tmp_path / name)


def test_a_person_s_own_questions_and_their_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path, own = tmp_path / "mine.jsonl", {"question": " Who made the lamp? ", "support": [1, 0, 1]}
    own["chunks"] = ["A lamp.", "Ada made it.", "Rain."]
    first, second = read_own_questions(write_lines(path, own, own | {"id": "x", "answer": ["Ada", "her"]}))
    assert (first.id, first.question, first.task) == ("mine.jsonl line 1", "Who made the lamp?", "own")
    assert (first.chunks, first.support) == (tuple(own["chunks"]), (0, 1))
    assert (second.id, second.answers) == ("x", ("Ada", "her"))
    for name, bound, sentence in (
        ("MAX_OWN_QUESTIONS", 1, "more than 1 questions; split it"),
        ("MAX_CHUNKS", 2, "line 1 has 3 chunks, more than 2"),
        ("MAX_OWN_LINE_BYTES", 50, "line 1 has more than 50 bytes"),
    ):
        monkeypatch.setattr(qa_sets, name, bound)
        with pytest.raises(BadRequest, match=sentence):
            read_own_questions(write_lines(path, own, own))
    with pytest.raises(BadRequest, match=r"mine\.jsonl has no questions; write lines"):
        read_own_questions(write_lines(path))


def test_what_is_no_set(tmp_path: Path):
    with pytest.raises(BadRequest, match="neither a file, a BEIR folder nor one of hotpotqa"):
        read_qa("triviaqa")
    (tmp_path / "a.csv").write_text("a", encoding="utf-8")
    with pytest.raises(BadRequest, match=r"ends in \.csv"):
        read_qa(tmp_path / "a.csv")


def example_of(number: int, n: int = 5) -> Example:
    chunks = tuple(
        f"Title {number}-{row}: The river of paper {number} reached town {row}." for row in range(n)
    )
    question = f"Which town did paper {number} reach by the river?"
    return Example(f"e{number}", "t", question, chunks, (1, 3), (f"answer {number}",))


POOL = [example_of(number) for number in range(12)]


@given(number=st.integers(0, 11), n=st.integers(0, 60), seed=st.integers(0, 100))
def test_borrowed_paragraphs_never_support(number: int, n: int, seed: int):
    example = POOL[number]
    gold = [example.chunks[chunk_id] for chunk_id in example.support]
    alike = {f"Title {number}-1: Another text on it.", f"Elsewhere: It says Answer {number} there."}
    pool = DistractorPool([Example("x", "t", "?", (gold[0], *sorted(alike)), (0,)), *POOL])
    extended = pool.extend(example, n, Random(seed))
    assert [extended.chunks[chunk_id] for chunk_id in extended.support] == sorted(
        gold, key=extended.chunks.index
    )
    assert len(set(extended.chunks)) == len(extended.chunks) == 5 + min(n, 55)
    assert set(example.chunks) <= set(extended.chunks)
    assert not alike & set(extended.chunks)


def test_borrowing_is_seeded_and_prefers_what_looks_alike():
    odd = Example(
        "o", "t", "?", tuple(f"Odd {row}: nothing in common, number {row}" for row in range(200)), (0,)
    )
    pool = DistractorPool([*POOL, odd])
    extended = pool.extend(POOL[0], 10, Random(1))
    assert (
        extended.chunks
        == pool.extend(POOL[0], 10, Random(1)).chunks
        != pool.extend(POOL[0], 10, Random(2)).chunks
    )
    assert sum("river" in text for text in set(extended.chunks) - set(POOL[0].chunks)) >= 5
