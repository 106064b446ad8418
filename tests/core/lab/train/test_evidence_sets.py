"""Training of the light RES-RAG policy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from safetensors.torch import load_file

from core.answer.protocol import Answer
from core.base.types import join_workspaces, workspace_of_chunks
from core.encode.encoder import DualEncoder
from core.lab.train.evidence_sets import (
    AnswerScores,
    SeenQuestion,
    SetsRecord,
    SetTrainConfig,
    SetTrainer,
    see,
)
from core.lab.train.set_questions import SetQuestion
from core.lab.train.sitting import RESUME_FILE
from core.methods.qrag.agent import Agent
from core.methods.resrag.card import read_card
from core.methods.resrag.policy import load_policy
from core.methods.resrag.sets import most_probable_set

PLACES = ("kitchen", "garden", "office", "hallway", "bedroom")
ABOUT = SetsRecord(name="tiny", encoder="none", reader="last word", questions={"where": 24})
SHORT: dict[str, Any] = {"updates": 6, "warmup_updates": 2, "questions": 4, "hidden": 8, "validate_every": 3}


class LastWord:
    """A reader that answers with the last word of the last passage about the milk, else with nothing; counts
    what it is asked.
    """

    name = "last word"

    def __init__(self) -> None:
        self.n_read = 0

    def read(self, question: str, passages: Sequence[str]) -> Answer:
        return self.read_many([question], [passages])[0]

    def read_many(
        self,
        questions: Sequence[str],
        passages: Sequence[Sequence[str]],
        ranks: Sequence[Sequence[int]] = (),  # noqa: ARG002
    ) -> list[Answer]:
        self.n_read += len(questions)
        about = [[passage for passage in own if "milk" in passage] for own in passages]
        return [Answer(own[-1].split()[-2], 1.0) if own else Answer("", 1.0) for own in about]

    def support(self, statement: str, passage: str) -> float:
        return float(statement == passage)


def where_is_the_milk(n: int, encoder: DualEncoder) -> list[SeenQuestion]:
    """Three documents of four moves; one move in all is that of the milk."""
    rng = Random(0)
    asked = []
    for number in range(n):
        moves = [f"mary went to the {rng.choice(PLACES)} ." for _ in range(12)]
        place, row = rng.choice(PLACES), rng.randrange(12)
        moves[row] = f"the milk is in the {place} ."
        documents = [
            workspace_of_chunks(moves[first : first + 4], encoder.tokenizer.count(moves[first : first + 4]))
            for first in (0, 4, 8)
        ]
        workspace = join_workspaces(documents)
        asked.append(SetQuestion(f"{number}", "where", "where is the milk ?", workspace, (row,), (place,)))
    return see(asked, encoder)


@pytest.fixture(scope="module")
def seen(agents: dict[str, Agent], tmp_path_factory: pytest.TempPathFactory) -> list[SeenQuestion]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QRAG_HOME", str(tmp_path_factory.mktemp("home")))
        return where_is_the_milk(32, agents["none"].encoder)


def trainer(folder: Path, seen: Sequence[SeenQuestion], **settings: Any) -> SetTrainer:
    return SetTrainer(SetTrainConfig(**(SHORT | settings)), seen[:24], seen[24:], LastWord(), folder, ABOUT)


def test_it_learns_the_smallest_set_that_answers(seen: list[SeenQuestion], tmp_path: Path) -> None:
    """From the paper's labels, which are useless here: the cosines of an untrained encoder are all above the
    threshold.
    """
    settings = {"labels": "similarity", "updates": 60, "warmup_updates": 10, "questions": 12}
    settings |= {"validate_every": 30, "learning_rate": 1e-2}
    events = list(trainer(tmp_path, seen, **settings).run())
    warm, *_, last = [event["scores"] for event in events if event["event"] == "validated"]
    assert last["answer_f1"] > 0.9
    assert last["chunks"] < 1.5
    assert last["reward"] > warm["reward"] + 0.5
    policy, card = load_policy(tmp_path), read_card(tmp_path)
    assert card.scores["validation"]["reward"] == last["reward"], "the last one was kept"
    right = [
        most_probable_set(policy.chances(one.look.with_budget(8)), 8) == list(one.asked.support)
        for one in seen[24:]
    ]
    assert sum(right) > len(right) / 2


def test_going_on_gives_the_same_policy(seen: list[SeenQuestion], tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    list(trainer(whole, seen).run())
    for event in trainer(parts, seen).run():
        if event.get("update") == 3 and event["event"] == "update":
            break  # before the validation of update 3 was saved
    for event in trainer(parts, seen).run():
        if event.get("update") == 5:
            break
    list(trainer(parts, seen).run())
    expected, gone_on = load_file(whole / RESUME_FILE), load_file(parts / RESUME_FILE)
    assert expected.keys() == gone_on.keys()
    assert all((expected[name] == gone_on[name]).all() for name in expected)


def test_a_set_is_read_once(seen: list[SeenQuestion]) -> None:
    reader = LastWord()
    scores = AnswerScores(reader)
    asked = seen[0].asked
    nothing = next(row for row in range(12) if row not in asked.support)
    asked_for = [(asked, asked.support), (asked, (nothing,)), (asked, asked.support)]
    assert scores.of(asked_for) == [1.0, None, 1.0]
    assert scores.of([(asked, asked.support), (asked, (*asked.support, nothing))])[0] == 1.0
    assert reader.n_read == 3


def test_the_warm_up_is_a_fixed_reference(seen: list[SeenQuestion], tmp_path: Path) -> None:
    """The divergence is 0 where the policy leaves the warm-up, and is held down by beta."""
    settings: dict[str, Any] = {"updates": 30, "warmup_updates": 5, "validate_every": 30, "passes": 1}
    settings |= {"learning_rate": 1e-2}
    apart = []
    for beta in (0.0, 50.0):
        events = list(trainer(tmp_path / f"{beta}", seen, beta=beta, **settings).run())
        measured = [event["divergence"] for event in events if event.get("phase") == "grpo"]
        assert measured[0] == 0
        apart.append(max(measured))
    free, held = apart
    assert held < free / 4
