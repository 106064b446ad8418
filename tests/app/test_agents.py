"""Agents are ready before the first question."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from app.services.agents import Agents
from app.services.settings import Settings
from core.encode.encoder import load_encoder
from core.encode.packaged import READER_VARIABLE


@pytest.mark.parametrize(
    ("public", "reader"), [(False, "small"), pytest.param(True, "", marks=pytest.mark.campaign)]
)
def test_a_loaded_agent_warms_up_beside(public: bool, reader: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(READER_VARIABLE, reader)
    encoder = Agents(Settings(public=public)).load("general").encoder
    for thread in threading.enumerate():
        if thread.name == "warm-up of general":
            thread.join()
    assert "_pass" in vars(encoder._states)
    reranker = vars(encoder)["reranker"]
    assert (reranker is not None) == bool(encoder.spec.rerank_weight)
    assert reranker is None or "_pass" in vars(reranker._engine)


def test_an_agent_has_the_encoder_that_is_in_use(tiny: Path) -> None:
    in_use = load_encoder(str(tiny))
    assert Agents(Settings(checkpoint=str(tiny))).load("tiny").encoder is in_use
