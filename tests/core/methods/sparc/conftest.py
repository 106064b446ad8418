"""A small story in two hops, a language model that speaks by role, and a reader that knows some answers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from core.answer.protocol import Answer, Span
from core.base.types import workspace_of_chunks
from core.corpus.index import ChunkIndex, Corpus
from core.llm.client import Ask
from core.llm.protocol import Message, Reply
from core.methods.sparc.retrievals import Retrievals
from tests.core.llm.scripted import ScriptedLlm
from tests.plain_reader import PlainReader

QUESTION = "In which town was the founder of the Blue Lantern tavern born?"
FIRST_HOP, SECOND_HOP = 2, 6
STORY = (
    "Harbour Gate: The Harbour Gate is a stone gate of the old town.",
    "Red Lantern: The Red Lantern is a lantern shop.",
    "Blue Lantern: The Blue Lantern is a tavern founded by Tamsin Orrell.",
    "Olive Penn: Olive Penn was born in Sallowfield and sold lanterns.",
    "Town Museum: The museum of the town shows old signs.",
    "Jory Hale: Jory Hale kept bees in the hills.",
    "Tamsin Orrell: Tamsin Orrell was born in Quillmarsh, a place by the sea.",
    "Hill Road: The road leads over the hills.",
)

ROLES = {
    "rewriter": "Task: decide what to search for next",
    "note": "Task: keep the note",
    "answer": "Task: answer the question from the note",
    "evaluator": "Task: decide whether the work can stop",
    "select": "Task: several branches",
    "merge": "Task: make one note",
    "thought": "Task: think one step further",
    "confidence": "Task: say how sure",
    "direct": "Task: answer the question from what you know",
    "reasoned": "Task: reason from passages",
    "relevant": "Task: decide which passages help",
    "critique": "Task: check an answer",
    "again": "Task: search again",
    "move": "Task: take the next step",
    "set": "<document",
}


def role_of(messages: Sequence[Message]) -> str:
    asked = next(message.content for message in messages if message.role == "user")
    return next(role for role, opening in ROLES.items() if asked.startswith(opening))


def corpus_of_texts(texts: Iterable[str]) -> Corpus:
    """A corpus that only bm25 can search: its vectors say nothing."""
    chunks = list(texts)
    return Corpus(
        workspace_of_chunks(chunks, np.ones(len(chunks), int)),
        ChunkIndex(np.zeros((len(chunks), 2), np.float32)),
    )


class KnowingReader(PlainReader):
    """Finds answers that it was told, the first that a passage holds; else it says that there is none."""

    name = "knowing"

    def __init__(self, answers: Mapping[str, float]) -> None:
        self.answers = answers

    def read(self, question: str, passages: Sequence[str]) -> Answer:  # noqa: ARG002 - it knows beforehand
        for text, confidence in self.answers.items():
            for i, passage in enumerate(passages):
                if (at := passage.find(text)) >= 0:
                    return Answer(text, confidence, Span(i, at, at + len(text)))
        return Answer("", 0.9)

    def support(self, statement: str, passage: str) -> float:
        return float(statement in passage)


class RoleLlm(ScriptedLlm):
    """Replies by role: a list is used up, the last reply stays; an error is raised; a function gets the
    conversation.
    """

    def __init__(self, **replies: Any) -> None:
        usual: dict[str, Any] = {
            "rewriter": {"queries": [{"query": f"search {i} lantern", "strategy": "bm25"} for i in range(4)]},
            "note": {"note": "a note", "sources": [1]},
            "answer": {"answer": "Quillmarsh"},
            "evaluator": {"verdict": "continue", "reason": "not sure"},
            "select": {"best": 1, "reason": "the first"},
            "merge": {"note": "a merged note"},
        }
        self.replies = usual | replies
        super().__init__(self._reply, "role model")

    def _complete(self, ask: Ask) -> Reply:
        """A server that is bound to a schema writes its fields in their order: it has to be the prompt's."""
        if ask.schema is not None and role_of(ask.messages) != "set":
            told = ask.messages[1].content.rpartition("Reply with a JSON object")[2]
            places = [told.index(f'"{name}"') for name in ask.schema.model_fields]
            assert places == sorted(places), told
        return super()._complete(ask)

    def _reply(self, messages: Sequence[Message]) -> str:
        role = role_of(messages)
        reply = self.replies[role]
        if isinstance(reply, list):
            with self._lock:
                reply = reply.pop(0) if len(reply) > 1 else reply[0]
        if callable(reply):
            reply = reply(messages)
        if isinstance(reply, Exception):
            raise reply
        return json.dumps(reply)

    def asked(self, role: str) -> list[str]:
        return [messages[-1].content for messages in self.calls if role_of(messages) == role]


@pytest.fixture
def story() -> Corpus:
    return corpus_of_texts(STORY)


@pytest.fixture
def retrievals(story: Corpus) -> Retrievals:
    return Retrievals(story)


@pytest.fixture
def reader() -> KnowingReader:
    return KnowingReader({"Quillmarsh": 0.9})
