"""A person's own questions, split for training."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from core.base.errors import BadRequest
from core.lab.tasks.qa_sets import read_own_questions
from core.lab.train.mixtures import FEWEST, OwnMixture
from tests.core.lab.train.conftest import where_questions


def test_every_question_trains_or_validates_and_none_does_both(questions: Path) -> None:
    mixture, rng = OwnMixture(questions), Random(1)
    validating = {example.id for example in mixture.validation(1000)}
    training = {example.id for _ in range(100) for example in mixture.draw(rng, 32)}
    assert not training & validating
    assert training | validating == {example.id for example in read_own_questions(questions)}
    told = mixture.describe()
    assert (told["questions"], told["validation"]) == (len(training), len(validating)) == (102, 18)


def test_what_can_not_be_split_is_refused(tmp_path: Path) -> None:
    lines = [json.dumps(question) + "\n" for question in where_questions(FEWEST)]
    path = tmp_path / "few.jsonl"
    path.write_text("".join(lines[1:]))
    with pytest.raises(
        BadRequest, match=rf"^few\.jsonl has {FEWEST - 1} questions, below {FEWEST}; add more$"
    ):
        OwnMixture(path)
    path.write_text("".join([*lines[1:], lines[1]]))
    with pytest.raises(BadRequest, match=f"has {FEWEST - 1} questions"):  # twice would train and validate
        OwnMixture(path)
    path.write_text("".join(lines))
    assert len(OwnMixture(path).validation(9)) == 2
    with pytest.raises(BadRequest, match="name it with --questions"):
        OwnMixture(None)
