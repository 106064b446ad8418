"""A reranker is trained in the middle of episodes."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
import torch
from safetensors.torch import load_file, save_file

from core.base.config import EpisodeConfig
from core.base.errors import BadCheckpoint, BadRequest
from core.base.events import fold
from core.cli import main
from core.encode.checkpoint import read_spec, write_spec
from core.encode.encoder import DualEncoder
from core.encode.reranker import HEAD_FILE, RERANKER_FOLDER
from core.lab.train.contests import COMPETE, WEIGHTS, Contests
from core.lab.train.mixtures import OwnMixture
from core.lab.train.reranking import RerankConfig, RerankTrainer
from core.methods.qrag.agent import Agent
from tests.core.cli.conftest import argv
from tests.core.conftest import CorpusOf
from tests.reranker import add_reranker

TEXTS = ["Mary got the milk.", "Mary went to the garden.", "John went to the office.", "The rain was cold."]
SMALL = RerankConfig(updates=4, questions=4, others=2, rank=2, validate_every=2, n_validation=4, warmup=1)


@pytest.fixture
def reading(tiny_checkpoints: dict[str, Path], reference: Path, tmp_path: Path) -> Path:
    folder = Path(shutil.copytree(tiny_checkpoints["none"], tmp_path / "reading"))
    shutil.copy(reference / "tiny-bert" / "model.safetensors", folder / "base")
    return folder


@pytest.fixture
def agent(reading: Path, tmp_path: Path) -> Path:
    folder = Path(shutil.copytree(reading, tmp_path / "agent"))
    write_spec(folder, read_spec(folder).model_copy(update={"reads_choices": False, "word_weight": 0.2}))
    return folder


def trainer(agent: Path, out: Path, questions: Path, config: RerankConfig = SMALL) -> RerankTrainer:
    return RerankTrainer(config, agent, OwnMixture(questions), out, "cpu")


@pytest.mark.campaign
def test_a_training_goes_on_and_its_agent_reranks(
    agent: Path, questions: Path, tmp_path: Path, corpus_of: CorpusOf
) -> None:
    through = list(trainer(agent, tmp_path / "through", questions).run())
    told = " ".join(event["event"] for event in through)
    assert told == "started validated update update validated update update validated finished"
    assert through[1]["by_weight"].keys() == {str(weight) for weight in WEIGHTS}
    cut = trainer(agent, tmp_path / "cut", questions).run()
    while next(cut)["event"] != "validated" or not (tmp_path / "cut" / "resume.safetensors").exists():
        pass
    cut.close()
    rest = list(trainer(agent, tmp_path / "cut", questions).run())
    updates = [[event["loss"] for event in told if event["event"] == "update"] for told in (through, rest)]
    assert updates[0][-len(updates[1]) :] == updates[1]
    assert 0 < len(updates[1]) < 4

    spec = read_spec(tmp_path / "through")
    assert spec.rerank_weight in WEIGHTS[1:]
    assert (spec.reranked.training or {})["questions"] == 102
    assert read_spec(agent).rerank_weight == 0, "the agent itself stays as it is"
    encoder = DualEncoder(tmp_path / "through", "cpu")
    corpus = corpus_of(encoder, TEXTS)
    trace = fold(Agent(encoder).run("Where is the milk?", corpus, EpisodeConfig(step_budget=2)))
    assert all(step.reranked_q is not None for step in trace.steps)
    further = trainer(tmp_path / "through", tmp_path / "further", questions)
    own, begins = (
        load_file(tmp_path / "through" / RERANKER_FOLDER / HEAD_FILE),
        further.network.head.state_dict(),
    )
    assert all(torch.equal(own[name], begins[name]) for name in own), "its own reranker goes on"


def test_the_command_trains(
    agent: Path,
    reading: Path,
    questions: Path,
    tmp_path: Path,
    tiny_checkpoints: dict[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("core.lab.train.contests.WEIGHTS", (0.0, 0.3))  # each reads all anew
    numbers = {"updates": 1, "questions": 2, "others": 2, "rank": 2, "n_validation": 2}
    flags = argv(device="cpu", **numbers)
    own = ["--own-questions", str(questions)]
    assert main(["train-reranker", str(agent), "--out", str(tmp_path / "made"), *flags, *own, "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["updates"] == 1
    assert "validation after 1 updates: weight " in said.err
    assert (tmp_path / "made" / RERANKER_FOLDER / "head.safetensors").exists()
    command = ["train-reranker", str(reading), "--out"]
    for both in ([], [*own, "--data", "multi-hop"]):
        assert main([*command, str(tmp_path / "no"), *flags, *both]) == 2
        assert "either --data NAME or --own-questions" in capsys.readouterr().err
    assert main([*command, str(tmp_path / "rereading"), *flags, *own]) == 0
    assert "Fact F1" in capsys.readouterr().out
    assert main(["train-reranker", str(tiny_checkpoints["absolute"]), "--out", "no", *flags, *own]) == 2
    assert "reads positions" in capsys.readouterr().err
    assert torch.is_grad_enabled()


@pytest.mark.parametrize("order", ["document", "choice"])
def test_readings_of_episodes_begin_in_their_middle(
    questions: Path, tiny_checkpoints: dict[str, Path], tmp_path: Path, order: str
) -> None:
    """Chosen chunks are some of the support, seldom another; one that is left competes with others."""
    told_apart = tmp_path / "told apart.jsonl"
    lines = enumerate(map(json.loads, questions.read_text().splitlines()))
    told_apart.write_text(
        "".join(json.dumps(one | {"question": f"{one['question']} {number}"}) + "\n" for number, one in lines)
    )
    mixture = OwnMixture(told_apart)
    spec = read_spec(tiny_checkpoints["none"]).model_copy(update={"state_order": order})
    lesson = Contests(mixture, spec, others=2, n_validation=4)
    assert lesson.n_questions == mixture.describe()["questions"]
    examples = {example.question: example for example in mixture.draw(Random(5), 2000)}
    begun = wrong = 0
    readings = lesson.draw(Random(1), 200)
    assert readings == lesson.draw(Random(1), 200)
    for reading in readings:
        example = examples[reading.question]
        support = {example.chunks[row] for row in example.support}
        right, *others = reading.texts
        assert right in support - {*reading.chosen}
        assert len(others) == 2
        assert not support & {*others}
        assert not {*reading.chosen} & {*reading.texts}
        begun, wrong = begun + bool(support & {*reading.chosen}), wrong + bool({*reading.chosen} - support)
        rows = [example.chunks.index(text) for text in reading.chosen]
        assert order == "choice" or rows == sorted(rows)
    assert begun > 50
    assert 10 < wrong < 60
    alone = Contests(mixture, spec.model_copy(update={"reads_choices": False}), others=2, n_validation=4)
    assert not any(reading.chosen for reading in alone.draw(Random(1), 50))
    with pytest.raises(BadRequest, match="has 99 chunks beside its support"):
        Contests(mixture, spec, others=99, n_validation=4)


def test_more_may_compete_than_the_likeliest(tiny_checkpoints: dict[str, Path], tmp_path: Path) -> None:
    chunks = [f"Mary went to room {i}." for i in range(COMPETE + 10)]
    questions = [{"question": f"Where is {i}?", "chunks": chunks, "support": [i]} for i in range(20)]
    (tmp_path / "long.jsonl").write_text("".join(json.dumps(one) + "\n" for one in questions))
    mixture, spec = OwnMixture(tmp_path / "long.jsonl"), read_spec(tiny_checkpoints["none"])
    for contest in Contests(mixture, spec, others=COMPETE + 5, n_validation=1).draw(Random(1), 5):
        assert len({*contest.texts}) == COMPETE + 6


@pytest.fixture
def larger(agent: Path, tmp_path: Path) -> Path:
    """A tiny MPNet, which reads no segments and is wider than the agent's base."""
    from transformers import MPNetConfig, MPNetModel

    folder = tmp_path / "larger"
    config = MPNetConfig(
        vocab_size=read_vocabulary_size(agent / "base"),
        hidden_size=48,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        pad_token_id=1,
    )
    MPNetModel(config, add_pooling_layer=False).save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(agent / "base" / name, folder)
    return folder


def read_vocabulary_size(base: Path) -> int:
    return int(json.loads((base / "config.json").read_text())["vocab_size"])


def test_on_another_base_a_training_begins_anew(agent: Path, questions: Path, tmp_path: Path) -> None:
    add_reranker(agent)
    base = shutil.copytree(agent / "base", tmp_path / "other")
    its_own = trainer(agent, tmp_path / "further", questions)
    anew = trainer(agent, tmp_path / "anew", questions, replace(SMALL, base=str(base)))
    assert its_own.network.head.weight.any()
    assert not anew.network.head.weight.any()
    assert anew.spec.rerank_base == str(base)


@pytest.mark.campaign
def test_a_reranker_may_stand_on_another_base(
    agent: Path, questions: Path, larger: Path, tmp_path: Path, corpus_of: CorpusOf
) -> None:
    made = tmp_path / "made"
    list(trainer(agent, made, questions, replace(SMALL, base=str(larger))).run())
    spec = read_spec(made)
    assert spec.rerank_base == str(larger)
    encoder = DualEncoder(made, "cpu")
    assert encoder.vector_fingerprint == DualEncoder(agent, "cpu").vector_fingerprint, (
        "no vector is made anew"
    )
    config = EpisodeConfig(step_budget=2)
    corpus = corpus_of(encoder, TEXTS)
    trace = fold(Agent(encoder).run("Where is the milk?", corpus, config))
    assert all(step.reranked_q is not None for step in trace.steps)
    further = trainer(made, tmp_path / "further", questions)
    assert further.spec.rerank_base == str(larger), "its own reranker goes on"

    weights = load_file(larger / "model.safetensors")
    save_file({name: tensor + 1 for name, tensor in weights.items()}, larger / "model.safetensors")
    with pytest.raises(BadCheckpoint, match="trained on other weights"):
        fold(Agent(DualEncoder(made, "cpu")).run("Where is the milk?", corpus, config))
