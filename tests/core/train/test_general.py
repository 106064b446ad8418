"""The mixture over whole documents: what supports a question, what it is asked among, and that what validates is never trained on."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import numpy as np
import pytest

from core.encode.encoder import DualEncoder
from core.errors import BadRequest
from core.train import general
from core.train.general import DISTRACTORS, TASK, GeneralMixture
from tests.core.tasks.conftest import write_gzip

PLACES = ("harbour", "mill", "chapel", "orchard", "quarry", "lighthouse")


def sentence(name: str, place: str) -> str:
    return f"On the last evening {name} carried the {place} lantern over to the {place} gate."


def filler(place: str) -> str:
    return " ".join(f"Nobody at the {place} spoke of the {i}th lantern, for the {place} had many of them and little oil." for i in range(12))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two documents to train on and one that validates; every place has a paragraph longer than a chunk and a sentence that answers."""
    lines: dict[str, list[str]] = {"train": [], "validation": []}
    for name, part in (("anna", "train"), ("boris", "train"), ("clara", "validation")):
        (tmp_path / f"{name}.txt").write_text("\n\n".join(f"{filler(place)}\n\n{sentence(name, place)}" for place in PLACES))
        for i, place in enumerate(PLACES):
            quotes = [sentence(name, place)] if i % 2 else [sentence(name, place), sentence(name, PLACES[i - 1])]
            kind, question = "single" if i % 2 else "bridge", f"Who took the {place} lantern?"
            record = {
                "id": f"{name}-{i}",
                "document": f"{name}.txt",
                "kind": kind,
                "question": question,
                "answer": name,
                "support": quotes,
            }
            lines[part].append(json.dumps(record))
        nobody = {"id": f"{name}-none", "document": f"{name}.txt", "kind": "unanswerable", "question": "Who sank the boat?", "answer": "", "support": []}
        lines[part].append(json.dumps(nobody))
    for part, records in lines.items():
        write_gzip(tmp_path / "natural" / f"{part}.jsonl.gz", "\n".join(records))
    return tmp_path


@pytest.fixture
def mixture(data: Path, minilm: DualEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GeneralMixture:
    monkeypatch.setattr(general, "OWN_QUESTIONS", tmp_path / "none")
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
    assert {answer for seed in range(8) for example in mixture.draw(Random(seed), 4) for answer in example.answers} == {"anna", "boris"}
    assert [example.chunks for example in mixture.validation(100)] == [example.chunks for example in validating]
    assert mixture.describe()["documents"] == 2


def test_a_document_on_both_sides_is_refused(data: Path, minilm: DualEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "own"
    monkeypatch.setattr(general, "OWN_QUESTIONS", own)
    record = {"id": "x", "document": "clara.txt", "kind": "single", "question": "Who?", "answer": "clara", "support": [sentence("clara", "mill")]}
    write_gzip(own / "more.jsonl.gz", json.dumps(record))
    with pytest.raises(BadRequest, match=r"clara\.txt is among the documents to train on and those that validate"):
        GeneralMixture(data, minilm.tokenizer)
