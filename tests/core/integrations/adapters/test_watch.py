"""Watched retrievers of LangChain and Haystack: they answer as before, and every call is kept."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import haystack
import pytest
from haystack.components.retrievers import MultiQueryTextRetriever
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever, InMemoryEmbeddingRetriever
from haystack.document_stores.in_memory import InMemoryDocumentStore
from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document as LangChainDocument
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda

import core
from core.base.errors import BadRequest
from core.book.book import Book
from core.integrations.watch import watch, watched_file
from core.runs.foreign.files import ForeignPassage, ForeignRun
from core.runs.log import open_reader
from tests.core.integrations.adapters.conftest import DOCUMENTS, QUESTION
from tests.coroutines import run

TEXTS = ["Dora slept in the mill.", "Anna went up the hill."]


class FirstOnes(BaseRetriever):
    """Gives what it was made with."""

    k: int = 2

    def _get_relevant_documents(
        self,
        query: str,  # noqa: ARG002 - part of the interface
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002 - part of the interface
    ) -> list[LangChainDocument]:
        return [LangChainDocument(page_content=text, id=str(i)) for i, text in enumerate(TEXTS)][: self.k]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[LangChainDocument]:
        return self._get_relevant_documents(query, run_manager=run_manager.get_sync())


@pytest.fixture
def book(tiny_checkpoints: dict[str, Path], home: Path) -> Book:
    return core.open(DOCUMENTS, agent=str(tiny_checkpoints["relative10"]), log=home / "log.duckdb")


def test_each_call_of_a_langchain_retriever_is_a_run(book: Book) -> None:
    plain = FirstOnes()
    with pytest.raises(BadRequest, match=r"^str is no book; give core.open"):
        watch(plain, "manual.pdf")  # type: ignore[arg-type]
    retriever = watch(plain, book)
    assert retriever is plain
    ways = [
        retriever.invoke(QUESTION),
        run(retriever.ainvoke(QUESTION)),
        (retriever | RunnableLambda(lambda found: found)).invoke(QUESTION),
    ]
    assert all([found.page_content for found in way] == TEXTS for way in ways)
    assert retriever.model_dump()["k"] == 2
    rows = open_reader(book.log_path).search(owner=None).rows
    assert [(row.method, row.query, row.n_steps) for row in rows] == [
        ("imported-ranks:FirstOnes", QUESTION, 2)
    ] * 3, "a call each, once"
    logged = open_reader(book.log_path).get(rows[0].run_id)
    assert [step.text.splitlines()[-1] for step in logged.trace.steps] == TEXTS


def test_a_haystack_component_works_on_in_its_pipeline(home: Path) -> None:
    store = InMemoryDocumentStore()
    store.write_documents([haystack.Document(content=text) for text in TEXTS])
    pipeline = haystack.Pipeline()
    retriever = watch(InMemoryBM25Retriever(store, top_k=1), name="own store")
    pipeline.add_component("retriever", retriever)
    made: Any = pipeline.run({"retriever": {"query": "mill"}})
    [found] = made["retriever"]["documents"]
    [line] = map(json.loads, watched_file("own store").read_text(encoding="utf-8").splitlines())
    assert watched_file("own store").is_relative_to(home)
    assert (line["query"], line["method"]) == ("mill", "own store")
    assert line["retrieved"] == [{"text": TEXTS[0], "id": found.id, "score": found.score}]


@pytest.mark.usefixtures("home")
def test_a_call_without_a_question_in_words_is_no_line(caplog: pytest.LogCaptureFixture) -> None:
    """Nor is one whose question no import takes: each would spoil the file."""
    store = InMemoryDocumentStore()
    meta = {"source": "mill.md", "pages": 3}
    store.write_documents([haystack.Document(content=TEXTS[0], embedding=[0.1, 0.2], meta=meta)])
    by_vector = watch(InMemoryEmbeddingRetriever(store), name="both")
    for found in (by_vector.run(query_embedding=[0.1, 0.2]), by_vector.run([0.1, 0.2])):
        assert [one.content for one in found["documents"]] == TEXTS[:1]
    assert caplog.text.count("calls of both are not logged") == 1
    by_words = watch(InMemoryBM25Retriever(store), name="both")
    for question in ("mill", "x" * 10_001):
        by_words.run(query=question)
    [line] = map(json.loads, watched_file("both").read_text(encoding="utf-8").splitlines())
    assert (line["query"], line["retrieved"][0]["title"]) == ("mill", "mill.md")


class Kept(list[ForeignRun]):
    """In place of a book."""

    def bring(self, source: Sequence[ForeignRun]) -> None:
        self.extend(source)


class Fixed(FirstOnes):
    """Gives its documents as they are."""

    found: Any

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> Any:  # noqa: ARG002
        return self.found


def test_a_generator_is_left_to_whoever_asked(caplog: pytest.LogCaptureFixture) -> None:
    kept = Kept()
    found = watch(Fixed(found=iter(FirstOnes().invoke(QUESTION))), kept).invoke(QUESTION)
    assert ([one.page_content for one in found], kept) == (TEXTS, [])
    assert "calls of Fixed are not logged where they return no list" in caplog.text


@pytest.mark.parametrize(
    ("score", "told"), [(math.nan, None), (math.inf, None), ("4/5", None), ([1], None), ("0.4", 0.4)]
)
def test_what_is_no_number_is_no_score(score: Any, told: float | None) -> None:
    kept, document = Kept(), LangChainDocument(page_content=TEXTS[0], metadata={"score": score})
    watch(Fixed(found=[document]), kept).invoke(QUESTION)
    assert [passage.score for passage in kept[0].calls[0].passages] == [told]


@pytest.mark.usefixtures("home")
def test_where_a_passage_begins_is_kept() -> None:
    """It may stand in the document twice."""
    kept = Kept()
    found = [LangChainDocument(page_content=text, metadata={"start_index": 7}) for text in TEXTS]
    watch(Fixed(found=found), kept).invoke(QUESTION)
    watch(Fixed(found=found), name="lines").invoke(QUESTION)
    [line] = map(json.loads, watched_file("lines").read_text(encoding="utf-8").splitlines())
    passages = [*kept[0].calls[0].passages, *map(ForeignPassage.model_validate, line["retrieved"])]
    assert [(one.start, one.end) for one in passages] == [(7, 7 + len(text)) for text in TEXTS] * 2


@haystack.component
class OtherNames:
    """Neither its input nor its output is called as in Haystack's own."""

    @haystack.component.output_types(errors=list, results=list)
    def run(self, question: str) -> dict[str, Any]:
        return {"errors": [], "results": [haystack.Document(content=question)], "meta": {}}


def test_components_name_inputs_and_outputs_as_they_like() -> None:
    store, kept = InMemoryDocumentStore(), Kept()
    store.write_documents([haystack.Document(content=text) for text in TEXTS])
    watch(MultiQueryTextRetriever(retriever=InMemoryBM25Retriever(store)), kept).run(queries=["mill", "hill"])
    watch(OtherNames(), kept).run(question="who?")
    told = [(one.query, {passage.text for passage in one.calls[0].passages}) for one in kept]
    assert told == [("mill; hill", {*TEXTS}), ("who?", {"who?"})]


def test_who_asked_is_answered_whatever_becomes_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        def bring(self, source: object) -> None:
            raise OSError(f"no room for {source}")

    assert len(watch(FirstOnes(), Broken()).invoke(QUESTION)) == 2
    assert "a call of FirstOnes was not logged" in caplog.text
    with pytest.raises(BadRequest, match="list is no retriever of LangChain"):
        watch([1])
