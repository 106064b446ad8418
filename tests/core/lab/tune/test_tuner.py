"""Tuning a tiny model to its end: what DPO raises, what lambda buys, and going on after a stop."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from core.base.errors import BadCheckpoint, BadRequest
from core.lab.tune.pairs import Preference, TuneConfig
from core.llm.protocol import Message, Sampling
from tests.conftest import few
from tests.core.lab.tune.conftest import LEVELS, TOY, clear_pairs, margins
from tests.tiny_causal import NO_SYSTEM


def run(pairs: Sequence[Preference], model: Path, out: Path, config: TuneConfig) -> list[dict[str, Any]]:
    """All events of a tuning."""
    from core.lab.tune.tuner import tune  # takes seconds: not for every worker that collects

    events: list[dict[str, Any]] = []
    tune(pairs, str(model), out, config, device="cpu", tell=events.append)
    return events


def stop_margins(folder: Path) -> list[float]:
    """log p(stop) - log p(continue) at each level of evidence, of a tuned model."""
    from core.llm.local import load_causal

    tokenizer, model = load_causal(folder)
    return margins(model, tokenizer, LEVELS, "stop", "continue")


@pytest.mark.parametrize("reference", few([True, False], 1))
def test_the_preferred_reply_gains(tiny_model: Path, tmp_path: Path, reference: bool) -> None:
    from core.lab.tune.folder import PLAIN_TEMPLATE
    from core.llm.local import load_causal

    tokenizer, base = load_causal(tiny_model)
    tokenizer.chat_template = PLAIN_TEMPLATE
    before = margins(base, tokenizer, LEVELS, "stop", "continue")
    events = run(clear_pairs(20), tiny_model, tmp_path / "tuned", replace(TOY, reference=reference))
    after = stop_margins(tmp_path / "tuned")
    assert all(after[level] < before[level] for level in (0, 1, 2))
    assert all(after[level] > before[level] for level in (-1, -2, -3))
    assert max(after[:3]) < 0 < min(after[-3:])
    held_out = events[-1]["held_out"]
    assert held_out["before"]["margin"] < held_out["after"]["margin"]
    assert held_out["after"]["loss"] < held_out["before"]["loss"]


def test_the_loss_is_the_formula(tiny_model: Path, tmp_path: Path) -> None:
    """w * -log sigmoid(beta * margin), the margin relative to the untuned model or not; nothing has changed
    before the first step.
    """
    pair = Preference("continue_over_stop", "", (Message("user", LEVELS[3]),), "continue", "stop stop")
    config = replace(TOY, accumulate=1, weight_lambda=3.0, beta=0.5)
    first = run([pair], tiny_model, tmp_path / "reference", config)[1]
    assert first["loss"] == pytest.approx(3 * math.log(2), abs=1e-4)
    first = run([pair], tiny_model, tmp_path / "none", replace(config, reference=False))[1]
    assert first["loss"] == pytest.approx(3 * math.log1p(math.exp(-0.5 * first["margin"])), abs=1e-3)
    assert abs(first["margin"]) > 0.1


@pytest.mark.campaign
def test_a_stopped_tuning_goes_on_to_the_same_adapters(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from core.lab.tune import tuner

    def tell(event: dict[str, Any]) -> None:
        if event["event"] == "step" and event["step"] == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("core.lab.tune.folder.SAVE_EVERY", 2)
    pairs = clear_pairs(15)
    whole = run(pairs, tiny_model, tmp_path / "whole", TOY)
    with pytest.raises(KeyboardInterrupt):
        tuner.tune(pairs, str(tiny_model), tmp_path / "parts", TOY, device="cpu", tell=tell)
    with (tmp_path / "parts" / "progress.jsonl").open("a") as file:
        file.write('{"event": "st')  # cut off: what is told next begins a line of its own
    rest = run(pairs, tiny_model, tmp_path / "parts", TOY)
    figures = [(event["event"], event["step"], event.get("margin")) for event in rest]
    assert figures == [(event["event"], event["step"], event.get("margin")) for event in whole[-len(rest) :]]
    assert (figures[0][:2], rest[-1]["held_out"]) == (("step", 3), whole[-1]["held_out"])
    adapters = [load_file(tmp_path / name / "adapter_model.safetensors") for name in ("whole", "parts")]
    assert adapters[0].keys() == adapters[1].keys()
    assert all(adapters[0][name].equal(adapters[1][name]) for name in adapters[0])


@pytest.mark.campaign
def test_the_folder_is_a_local_model_of_safetensors(tiny_model: Path, tmp_path: Path) -> None:
    from core.llm.local import LocalLlm

    out = tmp_path / "tuned"
    run(clear_pairs(30), tiny_model, out, TOY)
    llm = LocalLlm(str(out), "cpu")
    assert [
        llm.chat([Message("user", level)], Sampling(max_tokens=1)).text for level in (LEVELS[0], LEVELS[-1])
    ] == ["continue", "stop"]
    assert {path.suffix for path in out.iterdir()} <= {".safetensors", ".json", ".jsonl", ".jinja"}
    assert run(clear_pairs(30), tiny_model, out, TOY) == [], "finished long ago"


def test_what_can_not_be_tuned_is_refused(tiny_model: Path, tmp_path: Path) -> None:
    pairs, out = clear_pairs(4), tmp_path / "out"
    long = [replace(pair, prompt=(Message("user", " ".join(LEVELS)),)) for pair in pairs]
    with pytest.raises(BadRequest, match="none of the 8 pairs is within 16 tokens; raise --max-tokens"):
        run(long, tiny_model, out, replace(TOY, max_tokens=16))
    assert not out.exists()
    adapters = tmp_path / "adapters"
    adapters.mkdir()
    (adapters / "adapter_config.json").write_text("{}")
    with pytest.raises(BadCheckpoint, match="adapters holds adapters; name the model that they belong to"):
        run(pairs, adapters, out, TOY)
    with pytest.raises(BadCheckpoint, match="is no local folder"):
        run(pairs, Path("no/such-model"), out, TOY)
    with pytest.raises(BadRequest, match="is not empty and holds no tuning; name a new folder"):
        run(pairs, tiny_model, tmp_path, TOY)
    run(pairs, tiny_model, out, replace(TOY, accumulate=8))
    with pytest.raises(
        BadRequest, match="holds a tuning of another model, on other data or with other settings"
    ):
        run(pairs, tiny_model, out, replace(TOY, accumulate=8, beta=0.2))


def test_all_pairs_of_a_question_are_held_out_together() -> None:
    from core.lab.tune.tuner import split_by_question

    training, held_out = split_by_question(clear_pairs(100))
    assert {pair.question for pair in training}.isdisjoint(pair.question for pair in held_out)
    assert 4 <= len(held_out) / 2 <= 20
    alone = next(pair for pair in held_out)
    assert split_by_question([alone]) == ([alone], [])


def test_a_template_without_system_gets_its_words_in_the_first_turn(tiny_model: Path) -> None:
    from transformers import AutoTokenizer

    from core.lab.tune.folder import PLAIN_TEMPLATE, served_prompt

    tokenizer = AutoTokenizer.from_pretrained(tiny_model)
    prompt = (Message("system", "Be brief."), Message("user", "Search."))
    tokenizer.chat_template = PLAIN_TEMPLATE
    assert served_prompt(prompt, tokenizer) == prompt
    tokenizer.chat_template = NO_SYSTEM
    assert served_prompt(prompt, tokenizer) == (Message("user", "Be brief.\n\nSearch."),)
