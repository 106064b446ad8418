"""The mixture over whole documents."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

import numpy as np
import pytest

from core.base.errors import BadRequest
from core.encode.encoder import DualEncoder
from core.lab.tasks import natural
from core.lab.train.general import DISTRACTORS, TASK, GeneralMixture
from tests.core.lab.train.whole_documents import PLACES, sentence, write_whole_documents


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_whole_documents(tmp_path)


@pytest.fixture
def mixture(
    data: Path, minilm: DualEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> GeneralMixture:
    monkeypatch.setattr(natural, "OWN_QUESTIONS", tmp_path / "none")
    return GeneralMixture(data, minilm.tokenizer)


def test_support_holds_the_quotes_among_passages_of_the_document(mixture: GeneralMixture) -> None:
    drawn = [example for seed in range(8) for example in mixture.draw(Random(seed), 4)]
    assert {example.question for example in drawn} == {f"Who took the {place} lantern?" for place in PLACES}
    for example in drawn:
        (name,) = example.answers
        wanted = [sentence(name, place) for place in PLACES if place in example.question]
        support = [example.chunks[chunk_id] for chunk_id in example.support]
        assert all(any(quote in text for text in support) for quote in wanted)
        assert len(example.support) <= 2
        assert len(set(example.chunks)) == len(example.chunks) >= len(support) + DISTRACTORS
        assert example.task == TASK
        assert len(example.word_shares) == len(example.chunks)
        best = example.chunks[int(np.argmax(example.word_shares))]
        assert any(place in example.question and f"the {place} " in best for place in PLACES)


def test_what_validates_is_never_trained_on(mixture: GeneralMixture) -> None:
    validating = mixture.validation(100)
    assert len(validating) == len(PLACES), "the unanswerable one has no support to learn from"
    assert {answer for example in validating for answer in example.answers} == {"clara"}
    assert {
        answer for seed in range(8) for example in mixture.draw(Random(seed), 4) for answer in example.answers
    } == {"anna", "boris"}
    assert [example.chunks for example in mixture.validation(100)] == [
        example.chunks for example in validating
    ]
    assert mixture.describe()["documents"] == 2
    with pytest.raises(BadRequest, match="13 questions are drawn for an update, and general has 12"):
        mixture.draw(Random(0), 13)


def test_a_document_on_both_sides_is_refused(data: Path, minilm: DualEncoder) -> None:
    shutil.copy(data / "natural" / "validation.jsonl.gz", data / "natural" / "train.jsonl.gz")
    with pytest.raises(BadRequest, match=r"clara\.txt is among the documents to train on and those"):
        GeneralMixture(data, minilm.tokenizer)
