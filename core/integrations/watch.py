"""Retrievers of other frameworks, each call of which is logged.

LangChain, LlamaIndex and Haystack each have a method that all calls pass. It is wrapped on the object that is
watched, which stays what it was; none of the frameworks is imported.
"""

from __future__ import annotations

import functools
import inspect
import json
import logging
import re
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Protocol, TypeVar

from core.base.config import check_query
from core.base.errors import BadRequest
from core.base.home import home
from core.runs.foreign.files import MAX_RETURNED, ForeignCall, ForeignPassage, ForeignRun
from core.runs.log.bounds import MAX_FLOAT

R = TypeVar("R")
_logger = logging.getLogger(__name__)
_METHODS = {
    "langchain_core.retrievers": ("_get_relevant_documents", "_aget_relevant_documents"),
    "llama_index.core.base.base_retriever": ("_retrieve", "_aretrieve"),
}
"""By the module of a framework's base class, what all calls pass: the second where it is not just the first
in another thread."""
_COMPONENT = ("run", "run_async")
_QUESTIONS = ("query", "query_bundle", "question", "queries")
_BEGINS = ("start_index", "split_idx_start")
"""Where LangChain and Haystack say at which character a passage begins."""
_INSIDE: ContextVar[frozenset[int]] = ContextVar("inside", default=frozenset())
"""Watched retrievers at work: where one's own two methods call each other, that is one call."""


class TakesRuns(Protocol):
    """What a book of `core.open` does with runs."""

    def bring(self, source: Sequence[ForeignRun]) -> object: ...


def watch(retriever: R, book: TakesRuns | None = None, name: str = "") -> R:
    """The retriever itself, each call of which is logged from now on, and answered as before.

    book: documents in which what was returned is found again; each call is a run of the log. None: calls are
    lines of `watched_file(name)`, which `import-run` takes. name: of the retriever; empty: its class's.
    Raises BadRequest for what is no retriever, or no book.
    """
    if book is not None and not hasattr(book, "bring"):
        raise BadRequest(f"{type(book).__name__} is no book; give core.open(...) of the documents")
    name = name or type(retriever).__name__
    bases = {base.__module__ for base in type(retriever).__mro__}
    methods = next((names for module, names in _METHODS.items() if module in bases), None)
    if methods is None and hasattr(retriever, "__haystack_input__"):
        methods = _COMPONENT
    if methods is None:
        raise BadRequest(
            f"{name} is no retriever of LangChain, LlamaIndex or Haystack; write its calls as lines of JSON"
            " and import them"
        )
    own = {
        method for base in type(retriever).__mro__ if base.__module__ not in _METHODS for method in vars(base)
    }
    for method in own.intersection(methods):
        # past the checks of pydantic, which LangChain's retrievers are made of
        object.__setattr__(retriever, method, _watched(getattr(retriever, method), name, retriever, book))
    return retriever


def watched_file(name: str) -> Path:
    """Where calls wait that no book takes."""
    return home() / "watched" / f"{re.sub(r'[^A-Za-z0-9_.-]', '_', name)[:80]}.jsonl"


def _watched(
    call: Callable[..., Any], name: str, retriever: object, book: TakesRuns | None
) -> Callable[..., Any]:
    @contextmanager
    def kept(arguments: tuple[Any, ...], named: dict[str, Any]) -> Iterator[list[Any]]:
        """Takes what the call inside gives; an error of it passes, and is no call to keep."""
        returned: list[Any] = []
        inside, began = _INSIDE.get(), time.perf_counter()
        token = _INSIDE.set(inside | {id(retriever)})
        try:
            yield returned
        finally:
            _INSIDE.reset(token)
        if id(retriever) in inside:
            return
        try:
            took = 1000 * (time.perf_counter() - began)
            query, found = _question_of(arguments, named), _documents_of(returned[0])
            if not query.strip():
                _tell_once(name, f"have no question in words as {', '.join(_QUESTIONS)} or first argument")
            elif found is None:
                _tell_once(name, "return no list of documents")
            else:
                passages = tuple(_passage(document) for document in list(found)[:MAX_RETURNED])
                asked = ForeignCall(check_query(query), passages, took)
                _keep(ForeignRun(asked.query, (asked,), name), book)
        except Exception:  # whoever asked gets their answer all the same
            _logger.warning("a call of %s was not logged", name, exc_info=True)

    if inspect.iscoroutinefunction(call):

        @functools.wraps(call)
        async def answer_later(*arguments: Any, **named: Any) -> Any:
            with kept(arguments, named) as returned:
                returned.append(await call(*arguments, **named))
            return returned[0]

        return answer_later

    @functools.wraps(call)
    def answer(*arguments: Any, **named: Any) -> Any:
        with kept(arguments, named) as returned:
            returned.append(call(*arguments, **named))
        return returned[0]

    return answer


@functools.cache
def _tell_once(name: str, why: str) -> None:
    _logger.warning("calls of %s are not logged where they %s", name, why)


def _question_of(arguments: tuple[Any, ...], named: dict[str, Any]) -> str:
    """In words, several as one; empty where there is none."""
    given = (*map(named.get, _QUESTIONS), *arguments[:1])
    asked = next((one for one in given if one is not None), None)
    parts: list[Any] = asked if isinstance(asked, list) else [getattr(asked, "query_str", asked)]
    return "; ".join(parts) if all(isinstance(part, str) for part in parts) else ""


def _documents_of(returned: Any) -> Collection[Any] | None:
    """None for what is no list of them: a generator would be used up. A component without an output called
    documents has them in the longest that holds nothing else.
    """
    if isinstance(returned, dict):
        lists = (one for one in returned.values() if isinstance(one, list))
        others = (one for one in lists if all(hasattr(document, "content") for document in one))
        returned = returned["documents"] if "documents" in returned else max(others, key=len, default=None)
    return returned if isinstance(returned, Collection) else None


def _passage(document: Any) -> ForeignPassage:
    """A LangChain or Haystack document, or a LlamaIndex node with its score."""
    node = getattr(document, "node", document)
    texts = (getattr(node, attribute, None) for attribute in ("page_content", "content", "text"))
    metadata = getattr(node, "metadata", None) or getattr(node, "meta", None) or {}
    score = getattr(document, "score", None)
    score = metadata.get("score", metadata.get("relevance_score")) if score is None else score
    identity = getattr(node, "node_id", None) or getattr(node, "id", None) or ""
    begins = getattr(node, "start_char_idx", None)
    return ForeignPassage.model_validate(
        {
            "text": next((text for text in texts if isinstance(text, str)), ""),
            "id": str(identity),
            "score": _number(score),
            "start_char_idx": next(
                (at for at in (begins, *map(metadata.get, _BEGINS)) if type(at) is int), None
            ),
            "metadata": {key: part for key, part in metadata.items() if isinstance(part, str)},
        }
    )


def _number(score: Any) -> float | None:
    """None for what is no finite number, such as a rating in words: the passages then count by rank."""
    try:
        return number if abs(number := float(score)) <= MAX_FLOAT else None
    except (TypeError, ValueError, OverflowError):
        return None


def _keep(run: ForeignRun, book: TakesRuns | None) -> None:
    if book is not None:
        book.bring([run])
        return
    [call] = run.calls
    line = {
        "query": run.query,
        "method": run.method,
        "milliseconds": round(call.milliseconds, 3),
        "retrieved": [
            {"text": passage.text, "id": passage.name, "score": passage.score}
            | ({"title": passage.title} if passage.title else {})
            | ({} if passage.start is None else {"start": passage.start, "end": passage.end})
            for passage in call.passages
        ],
    }
    path = watched_file(run.method)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, ensure_ascii=False) + "\n")
