"""The mixture over paragraphs: who trains, who validates, and whose paragraphs a question is asked among."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from core.lab.tasks.data import VARIABLE
from core.lab.tasks.example import Example
from core.lab.tasks.qa_sets import FOLDERS
from core.lab.train.multihop import FOREIGN, SHARES, VALIDATED, MultiHopMixture, mixed_up
from tests.core.lab.tasks.conftest import qa_record, write_lines

N_RECORDS = 40


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The training and evaluation parts of all sets, generated, in the common schema."""
    folder, rng = tmp_path_factory.mktemp("data"), Random(2)
    parts = [(FOLDERS[name], part) for name in SHARES if name in FOLDERS for part in ("train", "eval")] + [
        ("hotpotqa", "train_sentences")
    ]
    for number, (name, part) in enumerate(parts):
        records = [qa_record(rng, 100 * number + i) for i in range(N_RECORDS)]
        write_lines(folder / name / f"{part}.jsonl.gz", *records)
    return folder


@pytest.mark.campaign
def test_validation_and_training_share_no_question(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(data))
    mixture, rng = MultiHopMixture(), Random(0)
    validating = {example.question for example in mixture.validation(1000)}
    drawn = [example for _ in range(130) for example in mixture.draw(rng, 64)]
    training = {example.question for example in drawn}
    assert len(validating) == len(VALIDATED) * round(0.08 * N_RECORDS)
    assert {example.task for example in mixture.validation(1000)} == set(VALIDATED)
    assert not training & validating
    # sentences of HotpotQA go by its name
    assert {example.task for example in drawn} == {"hotpotqa", "2wiki", "musique", "nq", "squad"}
    assert len(training | validating) == len(SHARES) * N_RECORDS
    assert not {text for example in mixture.validation(1000) for text in example.chunks} & {
        text for example in drawn for text in example.chunks
    }


def test_validation_is_the_same_at_every_call(data: Path) -> None:
    mixture = MultiHopMixture(data)
    before = [(e.question, e.chunks, e.support) for e in mixture.validation(6)]
    mixture.draw(Random(0), 30)
    assert [(e.question, e.chunks, e.support) for e in mixture.validation(6)] == before
    assert [(e.question, e.chunks, e.support) for e in MultiHopMixture(data).validation(6)] == before


def test_a_set_left_out_is_neither_trained_on_nor_validated(data: Path) -> None:
    mixture, rng = MultiHopMixture(data, without=("musique",)), Random(0)
    assert mixture.name == "multi-hop-without-musique"
    assert "musique" not in {
        example.task
        for example in [*mixture.validation(1000), *(e for _ in range(30) for e in mixture.draw(rng, 16))]
    }
    assert "musique" not in mixture.describe()["questions"]


def test_mixing_keeps_support_and_adds_no_text_twice() -> None:
    """Several questions share paragraphs here, and one is drawn twice."""
    rng = Random(4)
    shared = [f"shared paragraph {i}" for i in range(5)]
    examples = [
        Example(
            f"e{i}",
            "made",
            f"question {i}",
            tuple(rng.sample([*shared, *(f"paragraph {i}-{row}" for row in range(9))], 10)),
            tuple(sorted(rng.sample(range(10), 3))),
        )
        for i in range(8)
    ]
    examples.append(examples[0])
    mixed = mixed_up(examples, Random(1))
    everything = {text for example in examples for text in example.chunks}
    for before, after in zip(examples, mixed, strict=True):
        assert len(set(after.chunks)) == len(after.chunks) == len(before.chunks) + FOREIGN
        assert set(before.chunks) < set(after.chunks) <= everything
        assert {after.chunks[row] for row in after.support} == {before.chunks[row] for row in before.support}
        assert after.support == tuple(sorted(after.support))
        assert replace(after, chunks=(), support=()).question == before.question
