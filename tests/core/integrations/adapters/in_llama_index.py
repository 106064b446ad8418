"""The LlamaIndex adapter against llama-index-core; run by test_adapters.py in an environment that has it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import get_response_synthesizer
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.tools import FunctionTool

from core.integrations.adapters.llama_index import QragRetriever
from core.integrations.adapters.search import Search
from core.integrations.watch import watch, watched_file
from tests.core.integrations.adapters.conftest import QUESTION
from tests.core.integrations.adapters.environments import beside_an_excerpt, example


def test_nodes_are_what_the_method_kept(search: Search) -> None:
    expected = search.passages(QUESTION, 3)
    retriever = QragRetriever(search, similarity_top_k=3)
    for nodes in (retriever.retrieve(QUESTION), asyncio.run(retriever.aretrieve(QUESTION))):
        assert [(one.node_id, one.node.text, one.score, one.node.metadata) for one in nodes] == [
            (passage.id, passage.text, passage.score, passage.metadata) for passage in expected
        ]
    engine = RetrieverQueryEngine(retriever, get_response_synthesizer(llm=MockLLM()))
    answer = engine.query(QUESTION)
    assert [node.node_id for node in answer.source_nodes] == [passage.id for passage in expected]
    assert expected[0].text in str(answer)


def test_the_example_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    beside_an_excerpt(tmp_path, monkeypatch)
    names: dict[str, Any] = {}
    exec(example("LangChain, LlamaIndex, Haystack"), names)
    exec(example("LlamaIndex"), names)
    assert capsys.readouterr().out == "".join(
        f"{passage.metadata['step']} {passage.score} {passage.text}\n"
        for passage in names["search"].passages(names["question"], 4)
    )


def test_a_watched_retriever_answers_as_before_and_its_calls_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class FirstOnes(BaseRetriever):
        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            return [NodeWithScore(node=TextNode(id_="n1", text=query_bundle.query_str.upper()), score=0.5)]

    monkeypatch.setenv("QRAG_HOME", str(tmp_path))
    plain = FirstOnes()
    retriever = watch(plain)
    assert retriever is plain
    engine = RetrieverQueryEngine(retriever, get_response_synthesizer(llm=MockLLM()))
    for nodes in (retriever.retrieve("who?"), asyncio.run(retriever.aretrieve("who?"))):
        assert [(one.node_id, one.score) for one in nodes] == [("n1", 0.5)]
    assert engine.query("who?").source_nodes[0].node.text == "WHO?"
    lines = watched_file("FirstOnes").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["retrieved"] for line in lines] == [
        [{"text": "WHO?", "id": "n1", "score": 0.5}]
    ] * 3, "a call each, once"


def test_a_function_that_calls_the_app_is_a_tool() -> None:
    """As docs/interfaces.md says it, beside LangChain's and Haystack's."""

    def look_up(question: str) -> str:
        """Passages that bear on a question."""
        return question.upper()

    assert str(FunctionTool.from_defaults(look_up).call(question="who?")) == "WHO?"
