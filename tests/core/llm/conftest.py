"""An endpoint on loopback for each test, and a client that loses patience quickly."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pydantic import SecretStr

from core.llm.endpoint import EndpointLlm, connect
from core.llm.wire import Patience
from tests.llm_server import KEY, LlmServer, serve_llm

QUICK = Patience(connect=2.0, silence=0.5, whole=5.0, attempts=3, first_wait=0.01, longest_wait=1.0)


@pytest.fixture(scope="session", autouse=True)
def client_imported() -> None:
    """That takes more than a second, which would count in the first call."""
    import openai  # noqa: F401


@pytest.fixture
def server() -> Iterator[LlmServer]:
    with serve_llm() as server:
        yield server


@pytest.fixture
def llm(server: LlmServer) -> EndpointLlm:
    return connect(server.url, "tiny", SecretStr(KEY), patience=QUICK)
