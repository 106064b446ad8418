"""A model that has learned nothing replies as the schema says, token by token."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pydantic import BaseModel

from core.llm.probe import Greeting, probe
from core.methods.resrag.llm.policy import action_schema
from core.methods.sparc import llm_agents
from core.methods.sparc.agents import RewriteTask
from core.methods.sparc.events import Note

if TYPE_CHECKING:
    from core.llm.local import LocalLlm

QUERIES = llm_agents.queries_schema(RewriteTask("Which?", Note(), 2, ("bm25", "dense")))
ACTION = action_schema({0: [1, 2, 12], 3: range(1, 75)})


@pytest.fixture(scope="module")
def llm(tiny_causal: Path) -> LocalLlm:
    from core.llm.local import LocalLlm  # takes seconds: not for every worker that collects

    return LocalLlm(str(tiny_causal), "cpu")


def test_random_weights_write_what_is_asked_for_if_the_library_is_there(
    llm: LocalLlm, monkeypatch: pytest.MonkeyPatch
) -> None:
    reply = probe(llm)
    assert (reply.structure, reply.n_attempts, reply.cut) == ("grammar", 1, False)
    assert reply.value == Greeting.model_validate_json(reply.text)
    monkeypatch.setitem(sys.modules, "llguidance", None)  # as where it isn't installed
    assert probe(llm) is None


def accepted(llm: LocalLlm, schema: type[BaseModel], text: str) -> tuple[int, bool]:
    """How many of a text's characters, each a token, may follow one another, and whether it may end there."""
    matcher = llm._matcher(schema)
    return matcher.try_consume_tokens(llm._tokenizer(text)["input_ids"]), matcher.is_accepting()


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (Greeting, '{"ready": true}'),
        (QUERIES, '{"analysis":"a","queries":[{"query":"b","strategy":"dense","reason":""}]}'),
        (llm_agents._note_schema(2), '{"note": "a \\"b\\"", "sources": [1, 2]}'),
        (llm_agents._note_schema(0), '{"note": "a", "sources": []}'),
        (llm_agents.Judgement, '{"reason":"","verdict":"stop"}'),
        (llm_agents._branch_schema(2), '{"reason":"","best":2}'),
        (ACTION, '{"Document_1":[],"Document_4":[]}'),
        (ACTION, '{"Document_1": [12, 1,2], "Document_4": [74,73]}'),
    ],
)
def test_what_fits_can_be_written(llm: LocalLlm, schema: type[BaseModel], text: str) -> None:
    assert accepted(llm, schema, text) == (len(text), True)
    assert accepted(llm, schema, text.replace('"', "'")) == (1, False)


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (QUERIES, '{"analysis":"","queries":[{"query":"","strategy":"q'),
        (llm_agents._note_schema(2), '{"note": "", "sources": [3'),
        (llm_agents._note_schema(2), '{"note": "", "sources": [1, 2,'),
        (llm_agents._branch_schema(2), '{"reason":"","best":3'),
        (ACTION, " "),
        (ACTION, '{"Document_2'),
        (ACTION, '{"Document_1":[1.'),
        (ACTION, '{"Document_1":[]}'),
        (ACTION, '{"Document_1":[],"Document_4":[75'),
        (ACTION, '{"Document_1":[],"Document_4":[]} '),
    ],
)
def test_what_does_not_fit_is_stopped_at_its_first_character(
    llm: LocalLlm, schema: type[BaseModel], text: str
) -> None:
    """The last one of each text: names and numbers that don't exist, one too many, one left out, words."""
    n_accepted, _ = accepted(llm, schema, text)
    assert n_accepted == len(text) - 1
