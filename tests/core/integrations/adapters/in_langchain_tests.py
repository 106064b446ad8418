"""The LangChain adapter against LangChain's own conformance tests."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_tests.integration_tests import RetrieversIntegrationTests

from core.integrations.adapters.langchain import QragRetriever
from core.integrations.adapters.search import Search
from tests.core.integrations.adapters.conftest import QUESTION


class TestQragRetriever(RetrieversIntegrationTests):
    @pytest.fixture(autouse=True)
    def _open(self, search: Search) -> None:
        self.search = search

    @property
    def retriever_constructor(self) -> type[QragRetriever]:
        return QragRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"search": self.search}

    @property
    def retriever_query_example(self) -> str:
        return QUESTION
