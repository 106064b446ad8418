"""Paragraphs as documents and their sentences as chunks, and which of these inherit the support."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from core.base.errors import BadRequest
from core.lab.studies.frontier_rows import frontier_questions
from core.lab.tasks.example import Example
from core.lab.train.set_questions import (
    COUNTS,
    SETS,
    SetQuestion,
    course_questions,
    document_questions,
    in_sentences,
    indexed,
    set_questions,
)
from core.methods.qrag.agent import Agent
from tests.core.lab.train.set_data import CHUNKS, QUESTION

EXAMPLE = Example("1", "made", QUESTION, CHUNKS, (0, 2), ("Turku",), "bridge")


def chunks_of(question: SetQuestion) -> list[list[str]]:
    workspace = question.workspace
    return [
        [workspace[row].text for row in range(first, last)]
        for first, last in zip(workspace.borders, workspace.borders[1:], strict=False)
    ]


def test_paragraphs_become_documents_of_sentences(agents: dict[str, Agent]) -> None:
    tokenizer = agents["none"].encoder.tokenizer
    question = in_sentences(EXAMPLE, "made", tokenizer, cut=True)
    assert chunks_of(question)[1:] == [
        ["Rain: It rained.", "It went on raining."],
        ["Carl Dahl (poet): Carl Dahl was a poet.", "He lived in Turku.", "He wrote."],
    ]
    supporting = [question.workspace[row].text for row in question.support]
    assert supporting == ["She knew Carl Dahl.", "He lived in Turku."], "the bridge, and the answer"
    titles = [document.title for document in question.workspace.documents]
    assert titles == ["Anna Bell", "Rain", "Carl Dahl (poet)"]
    assert question.workspace[0].n_tokens == tokenizer.count([question.workspace[0].text])[0]


def test_chunks_of_one_title_are_one_document_where_nothing_is_cut(agents: dict[str, Agent]) -> None:
    chunks = (
        "Rent: You must pay. On time.",
        "Tax: You may claim.",
        "Rent: Ask the council.",
        "no title",
        "none either",
    )
    example = Example("1", "made", "Whom to ask?", chunks, (2, 3), ("the council",))
    question = in_sentences(example, "made", agents["none"].encoder.tokenizer, cut=False)
    assert chunks_of(question) == [[chunks[0], chunks[2]], [chunks[1]], [chunks[3]], [chunks[4]]]
    assert [question.workspace[row].text for row in question.support] == [chunks[2], chunks[3]], (
        "a chunk keeps its own support"
    )


def test_every_text_is_embedded_once_and_belongs_to_its_chunk(
    agents: dict[str, Agent], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QRAG_HOME", str(tmp_path))
    encoder = agents["none"].encoder
    other = Example("2", "made", "Who wrote?", CHUNKS[::-1], (0,), ("Carl Dahl",))
    asked = [in_sentences(example, "made", encoder.tokenizer, cut=True) for example in (EXAMPLE, other)]
    pairs = list(indexed(asked, encoder))
    assert {len(corpus.index.vectors) for _, corpus in pairs} == {8}
    for question, corpus in pairs:
        assert corpus.workspace is question.workspace
        rows = corpus.index.rows
        assert rows is not None
        expected = encoder.encode_chunks(corpus.texts())
        assert np.abs(corpus.index.vectors[rows].numpy() - expected).max() < 2e-2


def test_questions_about_documents_are_asked_over_all_of_their_group(
    agents: dict[str, Agent], set_data: Path
) -> None:
    path = set_data / "natural" / "validation.jsonl.gz"
    questions = document_questions(
        path, [["b.html", "a.html"], ["essay-x.txt"]], agents["none"].encoder.tokenizer, set_data
    )
    assert [question.id for question in questions] == ["b.html", "a.html", "essay-x.txt"], (
        "the one whose quote isn't there is left out"
    )
    assert questions[0].workspace is questions[1].workspace
    assert len(questions[1].workspace.documents) == 2
    assert all("Bergen" in questions[1].workspace[row].text for row in questions[1].support)


def test_validation_and_test_share_no_question_with_training(
    agents: dict[str, Agent], set_data: Path
) -> None:
    tokenizer = agents["none"].encoder.tokenizer
    learned, held_out = course_questions(tokenizer, set_data)
    tested = [
        question
        for name, source in SETS.items()
        if source.test
        for question in frontier_questions(name, 99, tokenizer, set_data)
    ]
    asked = [{question.question for question in part} for part in (learned, held_out, tested)]
    assert not asked[0] & asked[1]
    assert not asked[2] & (asked[0] | asked[1])
    assert all(asked)
    assert len(learned) + len(held_out) == sum(min(n, 14) for n in COUNTS.values()) + 5
    assert {question.task for question in learned} >= {*COUNTS}


def test_unknown_sets(agents: dict[str, Agent], set_data: Path) -> None:
    tokenizer = agents["none"].encoder.tokenizer
    with pytest.raises(BadRequest, match="'clapnq' has no part train; choose among hotpotqa"):
        set_questions("clapnq", "train", 1, tokenizer, set_data)
    with pytest.raises(BadRequest, match="'hotpotqa-sentences' has no part test"):
        frontier_questions("hotpotqa-sentences", 1, tokenizer, set_data)
