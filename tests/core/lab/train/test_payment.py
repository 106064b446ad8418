"""What choices are paid by answers alone, and a training that reads no labelled support."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from core.answer.protocol import Answer
from core.base.errors import BadRequest
from core.lab.tasks.example import Example
from core.lab.train.payment import PaidByAnswers, paid_by_support
from core.lab.train.recipes import Plan, plan_training
from core.lab.train.trainer import Trainer
from tests.core.lab.train.conftest import NAMES, PLACES, SHORT, TINY

LEARNS: dict[str, Any] = {
    "updates": 40,
    "episodes": 12,
    "steps": 1,
    "validate_every": 40,
    "learning_rate": 1e-2,
    "n_validation": 6,
    "top_k_actions": None,
    "alpha": 0.3,
}
EXAMPLE = Example(
    "e",
    "where",
    "Where is the milk?",
    ("It rained.", "Mary went home.", "The milk is in bed."),
    (1, 2),
    ("bed",),
)


class SandraOrPlace:
    """Answers Sandra if she is read of, else with the place of the milk, if that is read."""

    name = "Sandra or place"

    def __init__(self) -> None:
        self.n_read = 0

    def read(self, question: str, passages: Sequence[str]) -> Answer:
        """See `Reader`."""
        return self.read_many([question], [passages])[0]

    def read_many(
        self,
        questions: Sequence[str],
        passages: Sequence[Sequence[str]],
        ranks: Sequence[Sequence[int]] = (),  # noqa: ARG002
    ) -> list[Answer]:
        """See `Reader`."""
        self.n_read += len(questions)
        return [Answer(_answer(" ".join(own)), 1.0) for own in passages]

    def support(self, statement: str, passage: str) -> float:
        """See `Reader`."""
        return float(statement == passage)


def _answer(read: str) -> str:
    if "Sandra" in read:
        return "Sandra"
    return read.rpartition(" ")[2].rstrip(".") if "milk is in" in read else ""


def words(texts: Any) -> int:
    return sum(len(text.split()) for text in texts)


def test_a_choice_is_paid_what_it_adds_less_its_tokens() -> None:
    reader = SandraOrPlace()
    pay = PaidByAnswers(reader, words, token_cost=1.0)
    [paid] = pay([EXAMPLE], [[1, 2, 0]])
    assert paid == pytest.approx([-0.03, 1 - 0.05, -0.02])
    assert reader.n_read == 3
    [again] = pay([EXAMPLE], [[1, 2]])
    assert again == pytest.approx(paid[:2])
    assert reader.n_read == 3, "what was read is remembered"
    [other_way] = pay([EXAMPLE], [[2, 1]])
    assert sum(other_way) == pytest.approx(sum(paid[:2])), "the sum is that of the last state"


def test_what_is_remembered_is_a_question_with_its_own_answers() -> None:
    pay = PaidByAnswers(SandraOrPlace(), words, token_cost=0.0)
    twin = Example("f", "where", EXAMPLE.question, EXAMPLE.chunks, (1, 2), ("garden",))
    assert pay([EXAMPLE, twin], [[1, 2], [1, 2]]) == [[0.0, 1.0], [0.0, 0.0]]


def test_support_pays_as_before() -> None:
    assert paid_by_support(penalize_extra_steps=True)([EXAMPLE], [[0, 1, 2]]) == [
        [0.0, 0.0, pytest.approx(0.5 + 1 / 3)]
    ]


def test_a_question_without_an_answer_says_so() -> None:
    silent = Example("s", "where", "Where?", ("Here.",), (0,))
    with pytest.raises(BadRequest, match="question s has no answer to learn from; give it one, or train by"):
        PaidByAnswers(SandraOrPlace(), words, 0.0)([silent], [[0]])


@pytest.fixture(scope="module")
def unlabelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Own questions that Sandra answers. An untrained encoder takes the one chunk that is no question, which
    is what the labels name.
    """
    rng = Random(0)
    lines = []
    for _ in range(40):
        told = [f"Where is the milk, {name}?" for name in NAMES]
        row = rng.randrange(5)
        told.insert(row, f"The milk is in the {rng.choice(PLACES)}.")
        lines.append({"question": "Where is the milk?", "chunks": told, "support": [row], "answer": "Sandra"})
    path = tmp_path_factory.mktemp("answers") / "where.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def _plan(file: Path, base: Path, **settings: Any) -> Plan:
    return plan_training("own", agent="tiny", source=file, base=str(base), objective="answers", **settings)


def test_answers_alone_teach_a_tiny_task(unlabelled: Path, base: Path, tmp_path: Path) -> None:
    plan = _plan(
        unlabelled,
        base,
        **(TINY | LEARNS),
    )
    events = list(Trainer(plan, tmp_path / "agent", "cpu", SandraOrPlace()).run())
    untrained, learned = [event["answer_f1"] for event in events if event["event"] == "validated"]
    assert (untrained, learned, events[-1]["best"]) == (0.0, 1.0, 1.0)


def test_labels_are_refused_where_answers_teach(unlabelled: Path, base: Path) -> None:
    with pytest.raises(BadRequest, match=r"ranking weight 0.1 needs labelled support"):
        _plan(unlabelled, base, **(SHORT | {"ranking_weight": 0.1}))
    assert _plan(unlabelled, base, **SHORT).config.ranking_weight == 0
