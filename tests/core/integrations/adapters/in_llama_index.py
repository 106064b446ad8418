"""The LlamaIndex adapter against llama-index-core; run by test_adapters.py in an environment that has it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import get_response_synthesizer
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine

from core.integrations.adapters.llama_index import QragRetriever
from core.integrations.adapters.search import Search
from tests.core.integrations.adapters.conftest import QUESTION
from tests.core.integrations.adapters.environments import ROOT, example


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
    whole = (ROOT / "sample_docs" / "river-chronicle.txt").read_text(encoding="utf-8")
    (tmp_path / "sample_docs").mkdir()
    (tmp_path / "sample_docs" / "river-chronicle.txt").write_text(whole[:1_500], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(example("LangChain, LlamaIndex, Haystack"), names)
    exec(example("LlamaIndex"), names)
    assert capsys.readouterr().out == "".join(
        f"{passage.metadata['step']} {passage.score} {passage.text}\n"
        for passage in names["search"].passages(names["question"], 4)
    )
