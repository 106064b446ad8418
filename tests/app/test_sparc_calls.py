"""run_sparc for callers without a page, by a language model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from app.calls.operations import Operations
from app.services.comparisons import Comparisons
from app.services.language_models import new_token
from app.services.session import Session
from app.services.settings import Settings
from app.services.shared import Services
from app.services.sparc_runs import SparcRuns
from app.services.visitors import owner_of
from core.base.errors import BadRequest
from tests.app.sparc_story import WordReader
from tests.app.test_api import ANN, BOB, QUERY, TEXT
from tests.app.test_sparc_tab import speaking
from tests.llm_server import KEY, Answers, LlmServer, Says, serve_llm

SMALL: dict[str, Any] = {"query": QUERY, "width": 1, "depth": 1, "strategies": ["bm25"]}
"""A run of three calls."""


@pytest.fixture
def server() -> Iterator[LlmServer]:
    with serve_llm(speaking) as server:
        yield server


@pytest.fixture
def operations(server: LlmServer, tiny: Path, tmp_path: Path) -> Iterator[Operations]:
    """Of a public app with a model for everyone, whose visitors may give their own at the same host."""
    model: dict[str, Any] = {
        "llm_url": server.url,
        "llm_model": "house",
        "llm_key": SecretStr(KEY),
        "llm_allow": server.url,
    }
    services = Services(Settings(checkpoint=str(tiny), log=tmp_path / "log.duckdb", public=True, **model))
    vars(services)["reader"] = WordReader()
    yield Operations(services, Comparisons(services), SparcRuns(services))
    services.close()


def opened(operations: Operations, visitor: str) -> str:
    return operations.open_document(text=TEXT, chunker="sentences", max_tokens=12, visitor=visitor)[
        "document_id"
    ]


def test_the_key_of_the_app_is_in_its_requests_alone(
    operations: Operations, server: LlmServer, tmp_path: Path
) -> None:
    document = opened(operations, ANN)
    reply = operations.run_sparc(document, visitor=ANN, **SMALL)
    assert (reply["by"], reply["text"], reply["cost"]["calls"]) == ("house", "the mill", 3)
    assert [request.headers["authorization"] for request in server.requests] == [f"Bearer {KEY}"] * 3
    server.answer(Answers(401, json.dumps({"error": {"message": f"{KEY} is wrong"}})))
    refused = operations.run_sparc(document, visitor=ANN, **SMALL)
    assert "refused the key (401); check it" in refused["trace"]["message"]
    with pytest.raises(BadRequest, match="llm names no language model that is there now") as pasted:
        operations.run_sparc(document, llm=KEY, visitor=ANN, **SMALL)
    assert KEY not in json.dumps([reply, refused, str(pasted.value)])
    operations.services.log.flush()
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]


def test_the_model_for_all_writes_a_set_in_a_comparison(operations: Operations, server: LlmServer) -> None:
    document = opened(operations, ANN)
    server.answer('{"Document_1": [2]}')
    asked: dict[str, Any] = {"methods": ["resrag-llm"], "k": 2, "visitor": ANN}
    reply = operations.compare(document, QUERY, **asked)
    (told,) = reply["methods"].values()
    assert (told["evidence"], told["action"]) == ([1], {"Document_1": [2]})
    n_requests = len(server.requests)
    refused = operations.compare(document, QUERY, llm="none", **asked)["refused"]
    assert "no language model is connected" in "".join(refused.values())
    assert len(server.requests) == n_requests
    with pytest.raises(BadRequest, match="llm names no language model"):
        operations.compare(document, QUERY, llm=new_token(), **asked)


def test_a_visitor_s_model_is_nobody_else_s(operations: Operations, server: LlmServer) -> None:
    token = new_token()
    operations.services.language_models.give(
        Session(owner=owner_of(operations.services.settings, ANN), llm=token),
        server.url,
        "hers",
        SecretStr(""),
    )
    reply = operations.run_sparc(opened(operations, ANN), llm=token, visitor=ANN, **SMALL)
    assert (reply["by"], reply["status"]) == ("hers", "failed"), "it is listed, and leads inside"
    assert "leads into a private network" in reply["trace"]["message"]
    with pytest.raises(BadRequest, match="llm names no language model") as refused:
        operations.run_sparc(opened(operations, BOB), llm=token, visitor=BOB, **SMALL)
    assert token not in str(refused.value)


def test_a_visitor_takes_no_more_of_the_app_s_model_than_an_hour_has(
    operations: Operations, server: LlmServer
) -> None:
    server.answer(
        Says(
            json.dumps({"note": "Ruth went to the mill.", "sources": [1]}),
            usage={"prompt_tokens": 290_000, "completion_tokens": 9_500},
        )
    )
    mine, theirs = opened(operations, ANN), opened(operations, BOB)
    reply = operations.run_sparc(mine, visitor=ANN, **SMALL)
    assert (reply["status"], reply["cost"]["calls"]) == ("failed", 1)
    message = reply["trace"]["message"]
    assert "and 500 of the 300,000 that a visitor has for an hour are left; come back after" in message
    again = operations.run_sparc(mine, visitor=ANN, **SMALL)
    assert (again["status"], again["cost"]["calls"], len(server.requests)) == ("failed", 0, 1), (
        "nobody is asked any more"
    )
    assert operations.run_sparc(theirs, visitor=BOB, **SMALL)["status"] == "complete"
    assert operations.run_sparc(mine, llm="none", visitor=ANN, **SMALL)["by"] == "rules and words"
