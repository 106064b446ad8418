"""The documents that ship with the app: sidecars, quotes, and the chunks that hold them."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from core.base.errors import BadRequest
from core.base.types import Workspace, workspace_of_chunks
from core.ingest import read_document
from core.lab.tasks.narrative import generate_narrative
from core.lab.tasks.samples import SAMPLE_FOLDER, Sample, find_quote, list_samples, span_chunks

SAMPLES = {sample.key: sample for sample in list_samples()}


def quoted_chunks(workspace: Workspace, document: int, quotes: Sequence[str]) -> tuple[int, ...]:
    return span_chunks(
        workspace, document, [find_quote(workspace.documents[document].text, quote) for quote in quotes]
    )


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    return {key: read_document(sample.path.read_bytes(), key).text for key, sample in SAMPLES.items()}


@pytest.fixture
def workspace() -> Workspace:
    """Text "ab\\n\\ncd\\n\\nef" in chunks of two letters."""
    return workspace_of_chunks(["ab", "cd", "ef"], [1, 1, 1])


def test_every_document_is_listed_and_has_a_sidecar():
    documents = {path.name for path in SAMPLE_FOLDER.iterdir() if not path.name.endswith(".questions.json")}
    assert documents == set(SAMPLES)
    assert {path.name for path in SAMPLE_FOLDER.glob("*.questions.json")} == {
        f"{name.rpartition('.')[0]}.questions.json" for name in documents
    }


@pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)
def test_sidecar_has_the_agreed_fields(sample: Sample):
    values = json.loads(sample.path.with_suffix(".questions.json").read_text(encoding="utf-8"))
    assert values.keys() == {"title", "description", "licence", "questions"}
    assert values["licence"] == "Apache-2.0"
    assert all(
        question.keys() == {"id", "question", "answer", "hops", "support"} for question in values["questions"]
    )
    assert 6 <= len(sample.questions) <= 10
    assert len({question.id for question in sample.questions}) == len(sample.questions)
    assert {question.hops for question in sample.questions} == {1, 2, 3}
    for question in sample.questions:
        assert question.hops == len(question.support)
        assert question.question.endswith("?")
        assert question.answer


@pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)
def test_each_quote_stands_once_in_the_text_that_is_read(sample: Sample, texts: dict[str, str]):
    quotes = [quote for question in sample.questions for quote in question.support]
    assert {quote: texts[sample.key].count(quote) for quote in quotes} == dict.fromkeys(quotes, 1)


def test_the_chronicle_is_what_the_generator_writes():
    chronicle = SAMPLES["river-chronicle.txt"]
    narrative = generate_narrative(20_000, seed=12, n_questions=10)
    assert chronicle.path.read_bytes() == narrative.text.encode()
    for asked, known in zip(narrative.questions, chronicle.questions, strict=True):
        quotes = tuple(narrative.text[start:end] for start, end in asked.support)
        assert (asked.question, asked.answer, quotes) == (known.question, known.answer, known.support)
    assert "20,000 tokens, seed 12, 10 questions" in chronicle.description


def test_chunks_of_quotes_and_spans(workspace: Workspace):
    assert quoted_chunks(workspace, 0, ["d"]) == (1,)
    assert quoted_chunks(workspace, 0, ["f", "a"]) == (0, 2)
    assert quoted_chunks(workspace, 0, ["b\n\nc"]) == (0, 1)  # across a border
    assert quoted_chunks(workspace, 0, []) == ()
    assert span_chunks(workspace, 0, [(2, 4)]) == ()  # only the blank lines between two chunks
    with pytest.raises(BadRequest, match="'xyz' is not in the document"):
        quoted_chunks(workspace, 0, ["xyz"])
