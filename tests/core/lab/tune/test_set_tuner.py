"""A tiny language model learns to write evidence sets: first what the labels say, then what is rewarded."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from core.base.config import EpisodeConfig
from core.base.errors import BadRequest
from core.base.events import fold
from core.base.types import workspace_of_chunks
from core.cli import main
from core.encode.encoder import DualEncoder
from core.lab.train.set_questions import SetQuestion, indexed
from core.lab.tune.set_tasks import SetJudge, SetTask, SetTuneConfig, set_tasks
from core.methods.protocol import query_cosines
from core.methods.resrag.llm.policy import LlmEvidenceSet
from core.methods.resrag.reward import RewardConfig
from tests.core.lab.train.set_data import write_sets
from tests.core.lab.train.test_evidence_sets import PLACES, LastWord
from tests.core.lab.tune.conftest import word_model

KEY, NONSENSE = '{"Document_1":', "Maybe"
LISTS = ["[1]}", "[]}", "[2]}", "[3]}", "[4]}"]
WORDS = ["<pad>", "<end>", "<unknown>", "assistant:", KEY, NONSENSE, *LISTS]
TOY = SetTuneConfig(
    updates=40,
    warmup_updates=10,
    questions=2,
    learning_rate=0.02,
    warmup_learning_rate=0.003,
    nucleus=1.0,
    beta=0.01,
    rank=4,
    seed=1,
)


def save_undecided(folder: Path, *, window: int = 4096) -> Path:
    """A model that writes one of five actions over a document of four chunks, whatever it reads, or a little
    likelier nonsense. Its parts are set by hand: attention passes on the word itself, and the next word
    depends on nothing else.
    """
    sizes = {"hidden_size": 32, "intermediate_size": 8, "num_attention_heads": 1}
    model = word_model(folder, WORDS, max_position_embeddings=window, **sizes)
    after = {
        "assistant:": {KEY: 6.0, NONSENSE: 7.0},
        KEY: {"[1]}": 6.5} | dict.fromkeys(LISTS[1:], 6.0),
        **{word: {"<end>": 9.0} for word in (NONSENSE, *LISTS)},
    }
    with torch.no_grad():
        layer, into, out = model.model.layers[0], model.model.embed_tokens.weight, model.lm_head.weight
        for part in (layer.self_attn.v_proj, layer.self_attn.o_proj):
            part.weight.copy_(torch.eye(32))
        for part in (layer.self_attn.q_proj, layer.self_attn.k_proj):
            part.weight.copy_(3 * torch.eye(32))
        for weight in (layer.mlp.down_proj.weight, into, out):
            weight.zero_()
        for place in range(len(WORDS)):
            out[place, 16 + place] = 1.0  # where adapters can raise one word alone
        for place, (word, following) in enumerate(after.items()):
            into[WORDS.index(word), place] = 1.0
            for next_word, logit in following.items():
                out[WORDS.index(next_word), place] = logit / 32**0.5
        model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_undecided(tmp_path_factory.mktemp("undecided") / "model")


@pytest.fixture(scope="module")
def asked(encoder: DualEncoder) -> list[SetQuestion]:
    """The second of four moves answers, in every question."""
    rng, questions = Random(0), []
    for number in range(12):
        moves = [f"mary went to the {rng.choice(PLACES)} ." for _ in range(4)]
        place = rng.choice(PLACES)
        moves[1] = f"the milk is in the {place} ."
        workspace = workspace_of_chunks(moves, encoder.tokenizer.count(moves))
        questions.append(SetQuestion(f"{number}", "where", "where is the milk ?", workspace, (1,), (place,)))
    return questions


@pytest.fixture(scope="module")
def tasks(
    asked: list[SetQuestion], encoder: DualEncoder, tmp_path_factory: pytest.TempPathFactory
) -> list[SetTask]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QRAG_HOME", str(tmp_path_factory.mktemp("home")))
        return set_tasks(indexed(asked, encoder), encoder, TOY)


def run(
    tasks: Sequence[SetTask], model: Path, out: Path, config: SetTuneConfig, **more: Any
) -> list[dict[str, Any]]:
    from core.lab.tune.set_tuner import tune_sets  # takes seconds: not for every worker that collects

    events: list[dict[str, Any]] = []
    told = {"device": "cpu", "tell": events.append} | more
    tune_sets(tasks[:8], tasks[8:], LastWord(), str(model), out, config, **told)
    return events


@pytest.mark.campaign
def test_it_learns_the_action_and_then_what_is_rewarded(
    tasks: list[SetTask], asked: list[SetQuestion], encoder: DualEncoder, model: Path, tmp_path: Path
) -> None:
    """Nonsense before; an action after the warm-up; the smallest set that answers at the end."""
    from core.llm.local import LocalLlm

    out = tmp_path / "tuned"
    events = run(tasks, model, out, TOY)
    before, warm, after = [event for event in events if event["event"] == "held_out"]
    assert (before["step"], warm["step"], after["step"]) == (0, 10, 40)
    assert (before["valid"], before["reward"], before["tokens"]) == (0.0, -5.0, None)
    assert (after["valid"], after["answer_f1"], after["support_f1"], after["chunks"]) == (1.0, 1.0, 1.0, 1.0)
    assert after["reward"] == pytest.approx(3.0)
    steps = {
        phase: [event for event in events if event.get("phase") == phase] for phase in ("warm-up", "grpo")
    }
    assert [event["step"] for event in steps["warm-up"]] == list(range(1, 11))
    assert [event["step"] for event in steps["grpo"]] == list(range(11, 41))
    assert steps["warm-up"][-1]["loss"] < steps["warm-up"][0]["loss"]
    first, last = steps["grpo"][:5], steps["grpo"][-5:]
    assert sum(one["reward"] for one in last) > sum(one["reward"] for one in first) + 5
    assert all(event["kl"] >= 0 for event in steps["grpo"])
    assert max(event["clip_ratio/region_mean"] for event in steps["grpo"]) > 0, "the second pass is clipped"
    assert all(-5 <= event["reward"] <= 5 and 0 <= event["valid"] <= 1 for event in steps["grpo"])
    suffixes = {path.suffix for path in out.rglob("*") if path.is_file()}
    assert suffixes <= {".safetensors", ".json", ".jsonl", ".jinja"}
    served = LlmEvidenceSet(LocalLlm(str(out), "cpu"), encoder, context_tokens=TOY.context_tokens)
    question, corpus = next(indexed(asked[8:], encoder))
    trace = fold(served.retrieve(question.question, corpus, EpisodeConfig(step_budget=4)))
    assert trace.chosen == (1,)
    assert run(tasks, model, out, TOY) == [], "finished long ago"
    with pytest.raises(BadRequest, match="on other data or with other settings"):
        run(tasks, model, out, replace(TOY, beta=0.2))


@pytest.mark.campaign
def test_a_stopped_tuning_goes_on_to_the_same_adapters(
    tasks: list[SetTask], model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped in the warm-up, and in GRPO."""
    monkeypatch.setattr("core.lab.tune.folder.SAVE_EVERY", 1)
    short = replace(TOY, updates=8, warmup_updates=3)
    run(tasks, model, tmp_path / "whole", short)
    for at in (2, 6):

        def tell(event: dict[str, Any], at: int = at) -> None:
            if event["event"] == "step" and event["step"] == at:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            run(tasks, model, tmp_path / "parts", short, tell=tell)
        assert (tmp_path / "parts" / "warm-up").exists() == (at > 3)
    events: list[dict[str, Any]] = []
    run(tasks, model, tmp_path / "parts", short, tell=events.append)
    assert events[0]["step"] == 6
    adapters = [load_file(tmp_path / name / "adapter_model.safetensors") for name in ("whole", "parts")]
    assert adapters[0].keys() == adapters[1].keys()
    assert all(adapters[0][name].equal(adapters[1][name]) for name in adapters[0])


def test_what_a_reply_is_worth(tasks: list[SetTask]) -> None:
    """Right: 2 for the answer, 1 for agreeing with the label. Two of four chunks are free, three cost half of
    eta. A set that answers nothing: `bad_answer`.
    """
    judge = SetJudge(LastWord(), TOY)
    replies = {
        '{"Document_1": [2]}': 3.0,
        '{"Document_1": [1]}': -0.5,
        '{"Document_1": []}': -0.5,
        '{"Document_1": [2, 1, 3]}': 2.0 + 0.5 - 1.0,
    }
    nonsense = ["", "Maybe", 'So: {"Document_1": [2]}', '{"Document_1": [5]}', '{"Document_1": [2, 2]}', "{}"]
    worth = judge.rewards([tasks[0]] * 10, [*replies, *nonsense])
    assert [judge.total(one) for one in worth] == [*replies.values(), *[RewardConfig().least] * 6]
    assert worth[4:] == [None] * 6


def test_labels_as_targets(asked: list[SetQuestion], encoder: DualEncoder) -> None:
    """The support, or the chunks above the threshold, the most similar first and no more than the budget."""
    asked = [replace(one, question=f"{one.workspace[row].text} {row}") for one in asked for row in (0, 1)]
    config = replace(TOY, budget=2, labels="similarity", threshold=0.0)
    sizes = set()
    for (_, corpus), task in zip(
        indexed(asked, encoder), set_tasks(indexed(asked, encoder), encoder, config), strict=True
    ):
        cosines = query_cosines(encoder, task.question.question, corpus)
        above = [int(row) + 1 for row in np.argsort(-cosines, kind="stable") if cosines[row] > 0]
        assert task.labels == (tuple(above),)
        assert json.loads(task.target) == {"Document_1": above[:2]}
        sizes.add(len(above))
    assert max(sizes) > 2, "the budget cuts"
    assert len(sizes) > 1
    (task, *_) = set_tasks(indexed(asked[:1], encoder), encoder, replace(TOY, budget=2))
    assert (task.target, task.labels) == ('{"Document_1": [2]}', ((2,),))


def test_questions_that_do_not_fit_are_refused(tasks: list[SetTask], tmp_path: Path) -> None:
    small = save_undecided(tmp_path / "small", window=64)
    with pytest.raises(BadRequest, match="0 questions to train on and 0 to validate with fit the model"):
        run(tasks, small, tmp_path / "out", TOY)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--group", "1"], "group 1 is below 2"),
        (["--warmup-updates", "300"], "warmup updates 300 are more than all 200 updates"),
        (["--nucleus", "0"], "nucleus 0.0 and temperature 1.0 must be above 0"),
        (["--n", "0"], "n=0 must be at least 1"),
    ],
)
def test_flags_out_of_range(
    flags: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main(["tune-resrag", "--model", str(tmp_path), "--out", str(out), *flags]) == 2
    assert said in capsys.readouterr().err
    assert not out.exists()


def test_the_command(
    model: Path,
    tiny_checkpoints: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("QRAG_HOME", str(tmp_path / "home"))
    write_sets(tmp_path / "data")
    command = ["tune-resrag", "--model", model, "--out", tmp_path / "tuned", "--n", 14, "--updates", 2]
    command += ["--data-folder", tmp_path / "data", "--warmup-updates", 1, "--device", "cpu", "--json"]
    command += ["--encoder", tiny_checkpoints["none"]]
    assert main([str(part) for part in command]) == 0
    said, told = capsys.readouterr()
    result = json.loads(said)
    assert (result["updates"], result["held_out"]["step"]) == (2, 2)
    assert [line for line in told.splitlines() if line.startswith("update 2: loss ") and "reward" in line]
