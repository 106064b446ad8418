"""The flags that name a language model."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from core.cli.flags import add_llm_flags, llm_of
from core.errors import BadCheckpoint, BadRequest
from core.llm.endpoint import EndpointLlm
from core.llm.protocol import Llm, Message
from tests.llm_server import KEY, serve_llm


def named(*flags: str) -> Llm | None:
    parser = argparse.ArgumentParser()
    add_llm_flags(parser)
    return llm_of(parser.parse_args(flags), {"QRAG_LLM_KEY": KEY})


def test_no_flag_is_no_model_whatever_the_environment_holds() -> None:
    assert named() is None


def test_the_key_comes_from_the_environment() -> None:
    with serve_llm() as server:
        llm = named("--llm-url", server.url, "--llm-model", "tiny")
        assert isinstance(llm, EndpointLlm)
        assert llm.chat([Message("user", "Is it so?")]).text == "Yes."
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_a_model_of_this_machine(tiny_causal: Path) -> None:
    llm = named("--llm-local", str(tiny_causal))
    assert llm is not None
    assert llm.name == "tiny-causal"
    with pytest.raises(BadCheckpoint, match=r"no/such is no language model|'no/such' is no local folder"):
        named("--llm-local", "no/such")


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--llm-url", "http://localhost:1"], "--llm-url and --llm-model belong together"),
        (["--llm-model", "tiny"], "--llm-url and --llm-model belong together"),
        (["--llm-local", "x", "--llm-model", "tiny"], "--llm-local excludes"),
        (["--llm-url", "localhost", "--llm-model", "tiny"], "must be http:// or https://"),
    ],
)
def test_flags_that_do_not_fit_together_are_refused(flags: list[str], words: str) -> None:
    with pytest.raises(BadRequest, match=words):
        named(*flags)
