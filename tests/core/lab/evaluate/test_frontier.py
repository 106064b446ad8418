"""The rows of the quality-cost frontier are made of what each method serves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch

from core.base.config import EpisodeConfig
from core.base.errors import BadRequest
from core.base.events import fold
from core.base.metrics import fact_recall
from core.lab.studies.frontier_rows import (
    DEPTHS,
    SIZES,
    WIDTHS,
    agent_method,
    answering_model,
    answering_reader,
    frontier_rows,
    plain_methods,
    set_method,
    sparc_methods,
    stop_thresholds,
)
from core.lab.train.set_questions import indexed
from core.llm.protocol import LlmError, Message
from core.methods.qrag.agent import Agent
from core.methods.resrag.policy import EvidencePolicy
from core.methods.resrag.retriever import EvidenceSet
from core.methods.sparc.build import build_agents
from core.methods.sparc.events import SparcConfig
from core.methods.sparc.retrievals import Retrievals
from core.methods.sparc.run import run_sparc
from core.methods.sparc.trace import fold_sparc
from tests.core.lab.train.test_evidence_sets import LastWord, where_is_the_milk
from tests.core.llm.scripted import ScriptedLlm

pytestmark = pytest.mark.usefixtures("home")


def test_rows_hold_what_each_policy_serves(agents: dict[str, Agent]) -> None:
    encoder, reader = agents["none"].encoder, LastWord()
    questions = [seen.asked for seen in where_is_the_milk(4, encoder)]
    torch.manual_seed(0)
    least = {"joint-0": 0.5, "joint-1": 0.45}
    sets = {
        name: EvidenceSet(encoder, EvidencePolicy(8, least_chance=chance)) for name, chance in least.items()
    }
    methods = [*plain_methods(encoder), *(set_method(name, method) for name, method in sets.items())]
    made = frontier_rows(questions, answering_reader(reader), methods, print)
    rows = {(row.method, row.policy, row.id): row for row in made}
    assert len(rows) == len(questions) * 5
    served: dict[str, list[tuple[int, ...]]] = {}
    for asked, corpus in indexed(questions, encoder):
        for name, method in sets.items():
            configs = [EpisodeConfig(step_budget=size) for size in SIZES]
            own = [fold(method.retrieve(asked.question, corpus, config)).picks for config in configs]
            row = rows[method.name, name, asked.id]
            assert row.chunks == tuple(map(len, own))
            assert row.recall == tuple(fact_recall(ids, asked.support) for ids in own)
            assert row.f1 == row.recall, "the reader answers from the one chunk about the milk"
            served.setdefault(name, []).extend(own)
    assert served["joint-0"] != served["joint-1"]


def test_an_agent_is_cut_where_its_stop_rule_ends_it(agents: dict[str, Agent]) -> None:
    """A run with each threshold takes what the one run without any is cut to."""
    agent = agents["none"]
    questions = [seen.asked for seen in where_is_the_milk(6, agent.encoder)]
    thresholds = stop_thresholds(agent.encoder, questions[:3])
    assert thresholds == tuple(sorted(thresholds, reverse=True))
    method = agent_method(agent.encoder, thresholds)
    rows = list(frontier_rows(questions[3:], answering_reader(LastWord()), [method], print))
    lengths = set()
    for (asked, corpus), row in zip(indexed(questions[3:], agent.encoder), rows, strict=True):
        configs = [EpisodeConfig(step_budget=min(8, len(corpus)), stop_threshold=q) for q in thresholds]
        own = [fold(agent.run(asked.question, corpus, config)).picks for config in configs]
        assert (row.method, row.policy, row.settings) == ("qrag", agent.spec.name, thresholds)
        assert row.chunks == tuple(map(len, own))
        assert row.recall == tuple(fact_recall(ids, asked.support) for ids in own)
        lengths |= {*row.chunks}
    assert len(lengths) > 1
    with pytest.raises(BadRequest, match="no question to choose stop thresholds on"):
        stop_thresholds(agent.encoder, [])


def test_sparc_is_cut_at_each_depth(agents: dict[str, Agent]) -> None:
    """A run of each depth ends with the evidence that the one run is cut to."""
    encoder, reader = agents["none"].encoder, LastWord()
    questions = [seen.asked for seen in where_is_the_milk(2, encoder)]
    methods = sparc_methods(encoder, encoder, reader)
    rows = list(frontier_rows(questions, answering_reader(reader), methods, print))
    assert [(row.method, row.policy) for row in rows] == [("sparc", f"W{width}") for width in WIDTHS] * 2
    found = {(row.id, row.policy): row for row in rows}
    for asked, corpus in indexed(questions, encoder):
        for width in WIDTHS:
            own = []
            for depth in DEPTHS:
                config = SparcConfig(width=width, depth=depth)
                retrievals = Retrievals(corpus, agent=encoder, plain=encoder, plain_corpus=corpus)
                roles = build_agents(None, reader, config)
                events = run_sparc(asked.question, corpus, roles, retrievals, config)
                own.append(fold_sparc(events).stopped.evidence)
            row = found[asked.id, f"W{width}"]
            assert row.settings == DEPTHS
            assert row.chunks == tuple(map(len, own))
            assert row.recall == tuple(fact_recall(ids, asked.support) for ids in own)


def test_a_language_model_takes_the_readers_place(agents: dict[str, Agent]) -> None:
    """The same sets, answered by the model; one that writes no answer has said nothing."""
    encoder = agents["none"].encoder
    questions = [seen.asked for seen in where_is_the_milk(3, encoder)]
    methods = plain_methods(encoder)
    by_reader = list(frontier_rows(questions, answering_reader(LastWord()), methods, print))

    def last_word(messages: Sequence[Message]) -> str:
        note = messages[-1].content.partition("<note>")[2].partition("</note>")[0]
        about = [line for line in note.splitlines() if "milk" in line]
        return json.dumps({"answer": about[-1].split()[-2] if about else ""})

    llm = ScriptedLlm(last_word, "small-model")
    by_model = list(frontier_rows(questions, answering_model(llm), methods, print))
    assert any(any(row.f1) for row in by_model)
    assert by_model == [replace(row, reader="small-model") for row in by_reader]
    shown = "".join(call[-1].content for call in llm.calls)
    assert "<note>\n\n</note>" not in shown, "an empty set is not asked"
    unfit = list(frontier_rows(questions, answering_model(ScriptedLlm(lambda _: "no idea")), methods, print))
    assert not any(any(row.f1) for row in unfit)
    with pytest.raises(LlmError, match="no reply left"):
        list(frontier_rows(questions, answering_model(ScriptedLlm([])), methods, print))
