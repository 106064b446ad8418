"""A model that has learned nothing replies as the schema says: token by token, and as an action of RES-RAG."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from pydantic import BaseModel

from core.base.config import EpisodeConfig
from core.base.events import fold
from core.base.types import join_workspaces, workspace_of_chunks
from core.corpus.opening import index_workspace
from core.llm.constrained import BLOCK
from core.llm.probe import Greeting, probe
from core.llm.protocol import Message, Sampling
from core.methods.qrag.agent import Agent
from core.methods.resrag.action import parse_action
from core.methods.resrag.llm.policy import LlmEvidenceSet, action_schema
from core.methods.sparc import llm_agents
from core.methods.sparc.agents import RewriteTask
from core.methods.sparc.events import Note
from tests.conftest import CAMPAIGN
from tests.tiny_causal import save_tiny_causal

if TYPE_CHECKING:
    from core.llm.local import LocalLlm

ASKED = [Message("user", "Which?")]


@pytest.fixture(scope="module", params=range(3 if CAMPAIGN else 1))
def llm(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> LocalLlm:
    from core.llm.local import LocalLlm  # takes seconds: not for every worker that collects

    folder = tmp_path_factory.mktemp("causal") / "random"
    return LocalLlm(str(save_tiny_causal(folder, window=8192, seed=request.param)), "cpu")


@pytest.mark.parametrize(
    "shown", [{0: [1, 2, 3]}, {0: [2], 2: [1, 4, 11, 12]}, {place: [1, 2] for place in range(8)}]
)
def test_random_weights_write_valid_actions(llm: LocalLlm, shown: Mapping[int, Sequence[int]]) -> None:
    schema = action_schema(shown)
    for seed in range(3):
        sampling = Sampling(temperature=float(seed), max_tokens=400, seed=seed)
        reply = llm.chat(ASKED, sampling, schema=schema)
        assert (reply.structure, reply.n_attempts, reply.cut) == ("grammar", 1, False)
        assert reply.value == schema.model_validate_json(reply.text)


def test_random_weights_choose_sets(llm: LocalLlm, agents: dict[str, Agent]) -> None:
    """What RES-RAG asks end to end; without the library the same model writes no action at all."""
    encoder = agents["none"].encoder
    texts = ["mary went to the kitchen .", "john got the milk there .", "the river was cold ."]
    parts = [workspace_of_chunks(texts[:n], np.ones(n)) for n in (3, 1, 2)]
    corpus = index_workspace(join_workspaces(parts), encoder).corpus
    chooser = LlmEvidenceSet(llm, encoder, context_tokens=4000)
    for query in ("where is the milk ?", "who went to the kitchen ?"):
        trace = fold(chooser.retrieve(query, corpus, EpisodeConfig(step_budget=4)))
        assert chooser.reply is not None
        taken = parse_action(chooser.reply.text, (3, 1, 2))
        assert len(trace.chosen) == min(4, sum(map(len, taken)))


def test_without_the_library_it_is_told_in_words(llm: LocalLlm, monkeypatch: pytest.MonkeyPatch) -> None:
    assert probe(llm).structure == "grammar"
    monkeypatch.setitem(sys.modules, "llguidance", None)  # as where it isn't installed
    assert probe(llm).structure is None


def n_accepted(llm: LocalLlm, schema: type[BaseModel], text: str) -> int:
    """How many of a text's characters, each a token, and of its end may follow one another."""
    constraint, tokenizer = llm._constraints.of(schema), llm._tokenizer
    tokens = [*tokenizer(text)["input_ids"], tokenizer.eos_token_id]
    for n, token in enumerate(tokens):
        if constraint.masked(torch.zeros(1, len(tokenizer)), left=1_000)[0, token] != 0:
            return n
        constraint.take(token)
    return len(tokens)


ACTION = action_schema({0: [1, 2, 12], 3: range(1, BLOCK + 11)})


@pytest.mark.parametrize(
    "text",
    [
        '{"Document_1":[],"Document_4":[]}',
        '{"Document_1": [12, 1,2], "Document_4": [74,73]}',
        '{"Document_1": [2, 12, 1], "Document_4": [64, 1, 74, 65]}',
    ],
)
def test_every_action_can_be_written(llm: LocalLlm, text: str) -> None:
    assert n_accepted(llm, ACTION, text) == len(text) + 1


@pytest.mark.parametrize(
    "text",
    [
        " ",
        '{"Document_2',
        '{"Document_1":[3',
        '{"Document_1":[1.',
        '{"Document_1":[2,2',
        '{"Document_1":[1,12,1',
        '{"Document_1":[]}',
        '{"Document_1":[],"Document_4":[75',
        '{"Document_1":[],"Document_4":[74,5',
        '{"Document_1":[],"Document_4":[]} ',
    ],
)
def test_what_no_action_holds_is_stopped_at_its_first_character(llm: LocalLlm, text: str) -> None:
    """The last one of each text: unknown documents and numbers, repetitions, a document left out, words."""
    assert n_accepted(llm, ACTION, text) == len(text) - 1


QUERIES = llm_agents.queries_schema(RewriteTask("Which?", Note(), 2, ("bm25", "dense")))


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (Greeting, '{"ready": true}'),
        (QUERIES, '{"analysis":"a","queries":[{"query":"b","strategy":"dense","reason":""}]}'),
        (llm_agents._note_schema(2), '{"note": "a \\"b\\"", "sources": [1, 2]}'),
        (llm_agents._note_schema(0), '{"note": "a", "sources": []}'),
        (llm_agents.Judgement, '{"reason":"","verdict":"stop"}'),
        (llm_agents._branch_schema(2), '{"reason":"","best":2}'),
    ],
)
def test_replies_of_other_kinds(llm: LocalLlm, schema: type[BaseModel], text: str) -> None:
    assert n_accepted(llm, schema, text) == len(text) + 1
    assert n_accepted(llm, schema, text.replace('"', "'")) == 1


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (QUERIES, '{"analysis":"","queries":[{"query":"","strategy":"q'),
        (llm_agents._note_schema(2), '{"note": "", "sources": [3'),
        (llm_agents._note_schema(2), '{"note": "", "sources": [1, 2,'),
        (llm_agents._branch_schema(2), '{"reason":"","best":3'),
    ],
)
def test_what_does_not_exist_can_t_be_named(llm: LocalLlm, schema: type[BaseModel], text: str) -> None:
    """A strategy that isn't offered, a passage that isn't there, one too many, a branch that isn't there."""
    assert n_accepted(llm, schema, text) == len(text) - 1


@pytest.mark.parametrize(
    "schema",
    [
        QUERIES,
        ACTION,
        *(
            pytest.param(schema, marks=pytest.mark.campaign)
            for schema in (
                llm_agents._note_schema(6),
                llm_agents.GivenAnswer,
                llm_agents.Judgement,
                llm_agents._branch_schema(4),
            )
        ),
    ],
)
def test_a_reply_that_never_ends_is_ended_in_time(llm: LocalLlm, schema: type[BaseModel]) -> None:
    """Random weights write texts and lists without end; each reply is whole within its tokens."""
    longest = 0
    for seed in range(3):
        sampling = Sampling(temperature=1.0, max_tokens=250, seed=seed)
        reply = llm.chat(ASKED, sampling, schema=schema)
        assert (reply.structure, reply.n_attempts, reply.cut) == ("grammar", 1, False)
        assert reply.value == schema.model_validate_json(reply.text)
        longest = max(longest, reply.completion_tokens)
    assert longest > 20
