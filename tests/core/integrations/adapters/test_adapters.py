"""The adapters against the real frameworks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import haystack
import pytest
from haystack.components.builders import PromptBuilder
from langchain_core.documents import Document as LangChainDocument
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import RunnableLambda

from core.base.config import EpisodeConfig
from core.base.errors import BadDocument, BadRequest
from core.base.events import fold
from core.integrations.adapters import haystack as adapted
from core.integrations.adapters.langchain import QragRetriever
from core.integrations.adapters.search import Passage, Search, open_search
from tests.conftest import CAMPAIGN
from tests.core.integrations.adapters.conftest import DOCUMENTS, QUESTION
from tests.core.integrations.adapters.environments import beside_an_excerpt, example, run_elsewhere
from tests.coroutines import run


def test_passages_are_what_the_run_kept(search: Search) -> None:
    trace = fold(search.retriever.retrieve(QUESTION, search.corpus, search.config.with_(step_budget=3)))
    passages = search.passages(QUESTION, 3)
    assert [passage.metadata["chunk_id"] for passage in passages] == list(trace.picks)
    for step, passage in zip(trace.steps, passages, strict=True):
        document = DOCUMENTS[search.corpus.workspace[step.chunk_id].document]
        start, end = passage.metadata["start"], passage.metadata["end"]
        assert passage.text == document.text[start:end] == step.text
        assert passage.id == f"{document.sha256[:16]}-{start}-{end}"
        assert (passage.score, passage.metadata["title"]) == (step.q_value, document.title)
    assert len(search.passages(QUESTION)) == EpisodeConfig().step_budget
    assert len(search.passages(QUESTION, 1_000)) == len(search.corpus), "more than there are is all there are"


def test_what_can_not_be_asked_is_one_sentence(search: Search) -> None:
    with pytest.raises(BadRequest, match="step budget"):
        search.passages(QUESTION, 0)
    with pytest.raises(BadDocument, match="no documents were given"):
        open_search([])
    with pytest.raises(BadDocument, match="are no documents; read each file"):
        open_search("book.txt")  # type: ignore[arg-type]


def test_a_notebook_does_not_print_the_documents(search: Search) -> None:
    assert str(search) == "<Search: Hill, Mill; 10 chunks; qrag>"
    assert "up the hill" not in repr(QragRetriever(search=search))


def same(document: LangChainDocument, passage: Passage) -> bool:
    return (
        document.id == passage.id
        and document.page_content == passage.text
        and document.metadata == {**passage.metadata, "score": passage.score}
    )


def test_langchain(search: Search) -> None:
    expected = search.passages(QUESTION, 3)
    retriever = QragRetriever(search=search, k=3)
    ways: list[list[LangChainDocument]] = [
        retriever.invoke(QUESTION),
        run(retriever.ainvoke(QUESTION)),
        QragRetriever(search=search).invoke(QUESTION, None, k=3),
        retriever.batch([QUESTION, "Who went up the hill?"])[0],
    ]
    for documents in ways:
        assert all(map(same, documents, expected))
        assert len(documents) == 3
    joined = RunnableLambda(lambda documents: " ".join(one.page_content for one in documents))
    chain = retriever | joined | StrOutputParser()
    assert chain.invoke(QUESTION) == " ".join(passage.text for passage in expected)


def test_haystack(search: Search) -> None:
    expected = search.passages(QUESTION, 2)
    pipeline = haystack.Pipeline()
    pipeline.add_component("retriever", adapted.QragRetriever(search))
    pipeline.add_component(
        "prompt",
        PromptBuilder("{% for d in documents %}{{ d.content }}|{% endfor %}"),
    )
    pipeline.connect("retriever.documents", "prompt.documents")
    made: Any = pipeline.run(
        {"retriever": {"query": QUESTION, "top_k": 2}}, include_outputs_from={"retriever"}
    )
    documents = made["retriever"]["documents"]
    assert [(one.id, one.content, one.score, one.meta) for one in documents] == [
        (passage.id, passage.text, passage.score, passage.metadata) for passage in expected
    ]
    assert made["prompt"]["prompt"] == "".join(f"{passage.text}|" for passage in expected)
    again = haystack.Document.from_dict(documents[0].to_dict())
    assert again == documents[0]


def test_the_examples_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    beside_an_excerpt(tmp_path, monkeypatch)
    names: dict[str, Any] = {}
    exec(example("LangChain, LlamaIndex, Haystack"), names)
    expected = [
        f"{passage.metadata['step']} {passage.score} {passage.text}\n"
        for passage in names["search"].passages(names["question"], 4)
    ]
    assert expected
    for heading in ("LangChain", "Haystack"):
        exec(example(heading), names)
        assert capsys.readouterr().out == "".join(expected), heading


if CAMPAIGN:  # each takes minutes to install

    @pytest.mark.parametrize(
        ("package", "file"),
        [("llama-index-core", "in_llama_index.py"), ("langchain-tests", "in_langchain_tests.py")],
    )
    def test_conformance_in_an_environment_of_its_own(package: str, file: str, tmp_path: Path) -> None:
        run_elsewhere(package, file, tmp_path)
