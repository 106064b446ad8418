"""The flags that name a language model, and what is said of settings."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from core.base.config import EpisodeConfig, help_of, setting_help
from core.base.errors import BadCheckpoint, BadRequest
from core.cli.flags import add_llm_flags, add_settings, llm_of
from core.lab.train.config import TrainConfig
from core.llm.endpoint import EndpointLlm
from core.llm.protocol import Llm, Message
from core.methods.sparc.config import MAX_DEPTH, MAX_K, MAX_WIDTH
from core.methods.sparc.events import SparcConfig
from tests.llm_server import KEY, serve_llm


def named(*flags: str) -> Llm | None:
    parser = argparse.ArgumentParser()
    add_llm_flags(parser)
    return llm_of(parser.parse_args(flags), {"QRAG_LLM_KEY": KEY})


def test_no_flag_is_no_model_whatever_the_environment_holds() -> None:
    assert named() is None


def test_the_key_comes_from_the_environment() -> None:
    with serve_llm() as server:
        llm = named("--llm-url", server.url, "--llm-model", "tiny", "--llm-reply-tokens", "4000")
        assert isinstance(llm, EndpointLlm)
        assert (llm.chat([Message("user", "Is it so?")]).text, llm.reply_tokens) == ("Yes.", 4000)
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_a_model_of_this_machine(tiny_causal: Path) -> None:
    llm = named("--llm-local", str(tiny_causal))
    assert llm.name == "tiny-causal"
    with pytest.raises(BadCheckpoint, match=r"no/such is no language model|'no/such' is no local folder"):
        named("--llm-local", "no/such")


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--llm-url", "http://localhost:1"], "--llm-url and --llm-model belong together"),
        (["--llm-model", "tiny"], "--llm-url and --llm-model belong together"),
        (["--llm-local", "x", "--llm-model", "tiny"], "--llm-local excludes"),
        (["--llm-reply-tokens", "9"], "--llm-reply-tokens asks no language model"),
        (["--llm-url", "localhost", "--llm-model", "tiny"], "must be http:// or https://"),
        (
            ["--llm-url", "hub", "--llm-model", "tiny", "--llm-reply-tokens", "0"],
            "a reply of 0 tokens can't be asked for; give 1 to 50,000",
        ),
    ],
)
def test_flags_that_do_not_fit_together_are_refused(flags: list[str], words: str) -> None:
    with pytest.raises(BadRequest, match=words):
        named(*flags)


def test_a_hint_is_the_first_sentence_about_a_setting_with_the_control_s_words() -> None:
    assert help_of(EpisodeConfig, "temperature") == "Boltzmann temperature in units of Q; 0 chooses the best"
    assert help_of(EpisodeConfig, "top_k_actions") == "Sample among this many best chunks; empty: among all"
    assert help_of(SparcConfig, "max_calls", none="0") == "Most calls of a language model; 0: no bound"
    assert help_of(TrainConfig, "soft_values").startswith("Off: the value of a state")
    assert help_of(TrainConfig, "position_kind").startswith("Whether Q knows where a chunk stands")


def test_every_number_and_choice_of_a_config_is_a_flag_that_says_what_the_setting_says() -> None:
    parser = argparse.ArgumentParser()
    add_settings(parser, SparcConfig, without=("k",))
    assert vars(parser.parse_args(["--max-tokens", "none", "--max-calls", "9", "--width", "3"])) == {
        "width": 3,
        "depth": 4,
        "first_round": "question",
        "max_tokens": None,
        "max_calls": 9,
        "temperature": 0.5,
        "seed": 42,
    }
    said = " ".join(parser.format_help().split())
    assert "--max-calls N|none Most calls of a language model; none: no bound (default: none)" in said


def test_what_sparc_settings_say_of_their_bounds_is_so() -> None:
    helps = setting_help(SparcConfig)
    for name, most in (("width", MAX_WIDTH), ("depth", MAX_DEPTH), ("k", MAX_K)):
        assert f"1 and {most}" in helps[name]
