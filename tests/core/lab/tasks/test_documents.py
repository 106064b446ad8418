"""Questions about whole documents."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.base.errors import BadDocument, BadRequest
from core.lab.tasks.documents import DocumentFolder, QuoteFinder, places_of, read_document_questions
from tests.core.lab.tasks.conftest import write_lines

TEXT = "Ann said: “It’s 5 *o'clock*.”\n\nBen, who\nheard it, left. Ben heard İt twice. SS and ß."
RECORD = {
    "id": "a",
    "document": "d",
    "kind": "single",
    "question": "When did Ann speak?",
    "answer": ["5", "five"],
    "support": ["It's 5 o'clock."],
}


@pytest.mark.parametrize(
    ("quote", "text"),
    [
        ("IT'S 5 o clock", "It’s 5 *o'clock"),
        ("Ben, who heard it", "Ben, who\nheard it"),
        ("heard İt twice!", "heard İt twice"),
        ("ß.", "ß"),
    ],
)
def test_quotes_are_found_by_letters_and_digits(quote: str, text: str) -> None:
    start, end = QuoteFinder(TEXT, "d").find(quote)
    assert TEXT[start:end] == text


@given(st.text(max_size=40), st.data())
def test_a_quote_that_stands_once_is_found_where_it_stands(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    quote = text[start : data.draw(st.integers(start, len(text)))]
    letters = ["".join(c.lower() for c in part if c.isalnum()) for part in (text, quote)]
    finder = QuoteFinder(text, "d")
    if letters[1] and letters[0].count(letters[1]) == 1:
        first, end = finder.find(quote)
        assert "".join(c.lower() for c in text[first:end] if c.isalnum()) == letters[1]
        assert text[first].isalnum()
        assert text[end - 1].isalnum()
    else:
        with pytest.raises(BadRequest, match="stand"):
            finder.find(quote)


@pytest.mark.parametrize(
    ("quote", "words"),
    [("Carl left", "'Carl left' does not stand in d"), ("Ben", "'Ben' stands more than once in d")],
)
def test_other_quotes_are_named(tmp_path: Path, quote: str, words: str) -> None:
    (question,) = read_document_questions(write_lines(tmp_path / "q.jsonl", RECORD | {"support": [quote]}))
    with pytest.raises(BadRequest, match=f"question a: the quote {words}"):
        places_of(question, QuoteFinder(TEXT, "d"))


def test_questions_are_read_plain_or_packed(tmp_path: Path) -> None:
    unanswerable = RECORD | {"id": "b", "kind": "unanswerable", "answer": "", "support": []}
    for name in ("q.jsonl", "q.jsonl.gz"):
        first, second = read_document_questions(write_lines(tmp_path / name, RECORD, unanswerable))
        assert (first.id, first.kind, first.answers) == ("a", "single", ("5", "five"))
        assert first.quotes == ("It's 5 o'clock.",)
        assert (second.kind, second.answers, second.quotes) == ("unanswerable", (), ())


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"id": 3}, 'line 1 has no "id" with a text'),
        ({"kind": "guess"}, "'guess'; choose among single, bridge"),
        ({"kind": "unanswerable"}, '1 quotes in "support", and a question of kind unanswerable has none'),
        ({"support": ["--"]}, "quotes with letters or digits"),
        ({"answer": [5]}, "a text or a list of texts"),
        ({"question": "why " * 5_000}, "line 1"),
    ],
)
def test_lines_that_are_no_questions_are_refused(
    tmp_path: Path, changes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(BadRequest, match=sentence):
        read_document_questions(write_lines(tmp_path / "q.jsonl", RECORD | changes))


def test_files_of_nothing_and_ids_that_stand_twice_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="has no questions"):
        read_document_questions(write_lines(tmp_path / "q.jsonl"))
    with pytest.raises(BadRequest, match="line 2: the id 'a' stands twice"):
        read_document_questions(write_lines(tmp_path / "q.jsonl", RECORD, RECORD))


def test_documents_are_found_by_name_or_table(tmp_path: Path) -> None:
    folder = tmp_path / "documents"
    (folder / "sub").mkdir(parents=True)
    (folder / "plain").write_text("One.")
    (folder / "page.html.gz").write_bytes(gzip.compress(b"<h1>Two</h1><p>three</p>"))
    (folder / "sub" / "road.md").write_text("# Four\n\nfive\n")
    (folder / "sub" / "many.jsonl.gz").write_bytes(
        gzip.compress(b'{"id": "x", "text": "six"}\n{"id": "y", "text": "seven"}\n')
    )
    (tmp_path / "documents.tsv").write_text(
        "document\tpath\nfour.md\tsub/road.md\nlast.txt\tsub/many.jsonl.gz#y\nlost\tsub/many.jsonl.gz#z\n"
    )
    documents = DocumentFolder(folder, tmp_path / "q.jsonl")
    read = {name: documents.read(name) for name in ("plain", "page", "page.html", "four.md", "last.txt")}
    assert [(one.kind, "".join(one.text.split())) for one in read.values()] == [
        ("text", "One."),
        ("html", "#Twothree"),
        ("html", "#Twothree"),
        ("markdown", "#Fourfive"),
        ("text", "seven"),
    ]
    with pytest.raises(BadRequest, match=r"document 'none' is not in .*; put it there as none"):
        documents.read("none")
    with pytest.raises(BadRequest, match="document 'xxx"):
        documents.read("x" * 300)
    with pytest.raises(BadRequest, match="lies outside"):
        documents.read("../q.jsonl")
    with pytest.raises(BadDocument, match="no text with the id 'z'"):
        documents.read("lost")
    with pytest.raises(BadRequest, match="is no folder"):
        DocumentFolder(tmp_path / "none", tmp_path / "q.jsonl")
