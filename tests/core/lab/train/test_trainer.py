"""A training from scratch to a served agent, through a kill and past everything that may lie in its folder."""

from __future__ import annotations

import json
import shutil
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from core.base.errors import BadCheckpoint, BadRequest
from core.base.events import fold
from core.encode.encoder import load_encoder
from core.lab.evaluate.summary import summarise
from core.lab.train.contests import validation_rows
from core.lab.train.recipes import plan_training
from core.lab.train.sitting import CONFIG_FILE, PROGRESS_FILE, RESUME_FILE, TrainingFolder, read_progress
from core.lab.train.trainer import Trainer
from core.methods.qrag.agent import Agent
from tests.conftest import few
from tests.core.conftest import CorpusOf, without_seconds
from tests.core.lab.train.conftest import NAMES, PLACES, SHORT, TINY, PlanOf, Trained

UNTRAINED, FLOOR = 0.3, 0.6
"""Fact F1 with an oracle stop that the tiny task is below before, and above after the training of TINY."""


def test_a_tiny_task_is_learned_from_scratch(trained: Trained) -> None:
    scores = [event["score"] for event in trained.validated()]
    assert scores[0] < UNTRAINED
    assert max(scores) > FLOOR


def test_progress_tells_everything_in_order(trained: Trained) -> None:
    assert read_progress(trained.folder) == json.loads(json.dumps(trained.events))
    names = [event["event"] for event in trained.events]
    assert (names[0], names[1], names[-1]) == ("started", "validated", "finished")
    updates = [event for event in trained.events if event["event"] == "update"]
    assert [event["update"] for event in updates] == list(range(1, TINY["updates"] + 1))
    assert [event["update"] for event in trained.validated()] == [0, 8, 16]
    assert updates[-1]["seconds_left"] == 0
    for event in updates:
        lengths = {len(event[name]) for name in ("q", "v", "returns", "reward", "entropy")}
        assert lengths == {TINY["steps"]}
        assert 0 <= event["success"] <= 1
        assert event["gradient_norm"] > 0
        assert event["tokens"] > 0


def test_the_folder_is_a_checkpoint_that_acts(trained: Trained, corpus_of: CorpusOf) -> None:
    encoder = load_encoder(str(trained.folder), "cpu")
    assert (encoder.spec.name, encoder.spec.trained, encoder.spec.position_kind) == ("tiny", True, "none")
    agent = Agent(encoder)
    for example in trained.plan.mixture.validation(3):
        trace = fold(
            agent.run(example.question, corpus_of(encoder, example.chunks), encoder.spec.episode_config())
        )
        assert len(trace.chosen) == encoder.spec.step_budget


def test_an_agent_is_kept_and_its_score_is_what_evaluation_measures(trained: Trained, tmp_path: Path) -> None:
    best = next(event for event in reversed(trained.validated()) if event.get("kept"))
    encoder = load_encoder(str(trained.folder), "cpu")
    training = encoder.spec.training
    assert (training["data"], training["updates"]) == ("own", best["update"])
    assert training["config"] == trained.plan.config.to_json()
    assert trained.events[-1]["best"] == best["score"]
    examples = trained.plan.mixture.validation(TINY["n_validation"])
    config = encoder.spec.episode_config(step_budget=TINY["steps"])
    rows = validation_rows(examples, encoder, config, tmp_path)
    assert summarise(rows).metrics["fact_f1_oracle_stop"] == pytest.approx(best["score"], abs=1e-5)


def test_an_agent_that_unlearns_is_kept_as_it_was_at_its_best(base: Path, tmp_path: Path) -> None:
    """The untrained encoder finds what is said in the question's own words; a far too high rate makes it
    forget that.
    """
    told = [f"{name} went to the {place}." for name in NAMES for place in PLACES]
    rng, lines = Random(0), []
    for _ in range(60):
        chunks = rng.sample(told, 10)
        support = rng.randrange(10)
        lines.append(json.dumps({"question": chunks[support], "chunks": chunks, "support": [support]}))
    (tmp_path / "echo.jsonl").write_text("\n".join(lines))
    settings = SHORT | {"updates": 3, "steps": 1, "learning_rate": 1.0, "warmup": 0, "n_validation": 9}
    plan = plan_training("own", agent="echo", source=tmp_path / "echo.jsonl", base=str(base), **settings)
    events = list(Trainer(plan, tmp_path / "run", "cpu").run())
    validated = [event for event in events if event["event"] == "validated"]
    scores = [event["score"] for event in validated]
    assert scores[0] > max(scores[1:])
    assert [event.get("kept", False) for event in validated] == [True, False, False, False]
    assert events[-1]["best"] == scores[0]
    training = load_encoder(str(tmp_path / "run"), "cpu").spec.training
    assert training["updates"] == 0


@pytest.mark.parametrize(
    "settings",
    [{"validate_every": 1}, {"validate_every": 9}, {"validate_every": 9, "objective": "supervised"}],
    ids=str,
)
def test_a_training_that_diverges_ends_in_a_sentence(
    plan_of: PlanOf, tmp_path: Path, settings: dict[str, Any]
) -> None:
    trainer = Trainer(plan_of(**settings, learning_rate=1e30, warmup=0, updates=4), tmp_path / "run", "cpu")
    with pytest.raises(BadRequest, match="the training has diverged; begin in another folder with a smaller"):
        list(trainer.run())


def test_an_agent_is_trained_further(trained: Trained, plan_of: PlanOf, tmp_path: Path) -> None:
    """Begins with the agent's own score, targets included: at a rate of almost 0 it stays the same agent."""
    same = {"rank": TINY["rank"], "steps": TINY["steps"], "n_validation": TINY["n_validation"]}
    plan = plan_of(**same, start_from=str(trained.folder), updates=2, learning_rate=1e-12)
    trainer = Trainer(plan, tmp_path / "further", "cpu")
    state = trainer.towers.state_dict()
    for key in (key for key in state if key.startswith("online.")):
        assert torch.equal(state[key], state[key.replace("online.", "target.", 1)])
    best = trained.events[-1]["best"]
    assert [event["score"] for event in trainer.run() if event["event"] == "validated"] == [
        pytest.approx(best, abs=1e-5)
    ] * 3


def test_what_can_not_be_trained_further(trained: Trained, plan_of: PlanOf, tmp_path: Path) -> None:
    for start, rank, sentence in (
        (str(trained.folder), 4, "has no change of rank 4 for .*; start from another agent, or choose"),
        ("base", 8, "base has no adapters of "),
        ("narrative", 8, "narrative has no adapters of "),
        (str(tmp_path / "nobody"), 8, "not found"),
    ):
        with pytest.raises(BadCheckpoint, match=sentence):
            Trainer(plan_of(start_from=start, rank=rank), tmp_path / f"{rank}{len(sentence)}", "cpu")
    with pytest.raises(
        BadRequest, match=r"rank 100000 is above (\d+), the width of the model; choose \1 or less"
    ):
        Trainer(plan_of(rank=100_000), tmp_path / "wide", "cpu")
    assert not (tmp_path / "wide").exists()


@pytest.mark.campaign
def test_a_training_stopped_between_two_updates_goes_on(plan_of: PlanOf, tmp_path: Path) -> None:
    plan = plan_of(updates=3, dropout=0.2)
    whole = list(Trainer(plan, tmp_path / "whole", "cpu").run())
    stopped = Trainer(plan, tmp_path / "stopped", "cpu").run()
    told = " ".join(event["event"] for event in islice(stopped, 5))
    assert told == "started validated update validated update"
    stopped.close()
    torch.manual_seed(11)  # what dropout draws from is not what it was
    rest = list(Trainer(plan, tmp_path / "stopped", "cpu").run())
    assert rest[0]["update"] == 2
    assert without_seconds(read_progress(tmp_path / "stopped")) == without_seconds(
        json.loads(json.dumps(whole))
    )


def test_a_finished_training_started_again_only_says_so(trained: Trained, tmp_path: Path) -> None:
    """Also one of an older version, which knew a setting more, and one with a line that a crash cut off."""
    folder = shutil.copytree(trained.folder, tmp_path / "again")
    held = json.loads((folder / CONFIG_FILE).read_text())
    held["config"]["token_cost"] = 0.02
    (folder / CONFIG_FILE).write_text(json.dumps(held))
    with (folder / PROGRESS_FILE).open("a") as file:
        file.write('\0\0{"event": "upd\n{"event": "upd')
    assert list(Trainer(trained.plan, folder, "cpu").run()) == [trained.events[-1]]
    assert read_progress(folder) == read_progress(trained.folder)


@pytest.mark.parametrize(
    "settings",
    few(
        [
            {"objective": "supervised"},
            {"target_towers": False, "bootstrap_at_cap": True},
            {"position_kind": "relative", "ranking_weight": 0.0},
        ]
    ),
    ids=str,
)
def test_every_kind_of_training_runs_is_saved_and_serves(
    plan_of: PlanOf, tmp_path: Path, settings: dict[str, Any]
) -> None:
    plan = plan_of(**settings)
    events = list(Trainer(plan, tmp_path / "run", "cpu").run())
    assert events[-1]["event"] == "finished"
    assert list(Trainer(plan, tmp_path / "run", "cpu").run()) == [events[-1]]  # from the resume file
    spec = load_encoder(str(tmp_path / "run"), "cpu").spec
    assert (spec.weights, spec.position_kind) == ("adapters", plan.config.position_kind)


def damaged(trained: Trained, folder: Path, name: str, content: bytes | None = None) -> Path:
    """A copy of the training with one file cut to half, or of other content."""
    copy = shutil.copytree(trained.folder, folder / "copy")
    whole = (copy / name).read_bytes()
    (copy / name).write_bytes(whole[: len(whole) // 2] if content is None else content)
    return copy


def test_other_settings_in_the_folder_are_refused(trained: Trained, plan_of: PlanOf) -> None:
    with pytest.raises(
        BadRequest,
        match=(
            r"holds a training with other settings; name a new folder, or give the settings in its"
            rf" {CONFIG_FILE}$"
        ),
    ):
        Trainer(plan_of(**TINY | {"seed": 1}), trained.folder, "cpu")


def test_a_folder_of_something_else_is_left_alone(plan_of: PlanOf, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(BadRequest, match=r"is not empty and holds no training; name a new folder$"):
        Trainer(plan_of(), tmp_path, "cpu")
    with pytest.raises(
        BadRequest, match=r"can't be written \(Not a directory\); name another folder with --out"
    ):
        TrainingFolder(tmp_path / "thesis.txt" / "x", {}).claim()
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize("kind", ["cut", "foreign", "empty"])
def test_a_resume_file_that_can_not_be_used(trained: Trained, tmp_path: Path, kind: str) -> None:
    folder = damaged(trained, tmp_path, RESUME_FILE, b"" if kind == "empty" else None)
    if kind == "foreign":
        save_file(
            {"weight": torch.zeros(2)}, folder / RESUME_FILE, {"update": "8", "best": "", "seconds": "1.0"}
        )
    with pytest.raises(
        BadRequest,
        match=rf"{RESUME_FILE} can't be read, .*; delete that file to begin again, or name a new folder$",
    ) as caught:
        Trainer(trained.plan, folder, "cpu")
    assert "\n" not in str(caught.value)
