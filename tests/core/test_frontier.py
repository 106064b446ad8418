"""The rows of the quality-cost frontier are made of what each method serves."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from core.config import EpisodeConfig
from core.events import fold
from core.frontier import SIZES, Methods, frontier_rows, plain_methods
from core.metrics import fact_recall
from core.qrag.agent import Agent
from core.resrag.policy import EvidencePolicy
from core.resrag.retriever import EvidenceSet
from core.train.set_questions import indexed
from tests.core.train.test_evidence_sets import LastWord, where_is_the_milk


def test_rows_hold_what_each_policy_serves(
    agents: dict[str, Agent], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QRAG_HOME", str(tmp_path))
    encoder, reader = agents["none"].encoder, LastWord()
    questions = [seen.asked for seen in where_is_the_milk(4, encoder)]
    torch.manual_seed(0)
    least = {"joint-0": 0.5, "joint-1": 0.45}
    sets = {
        name: EvidenceSet(encoder, EvidencePolicy(8, least_chance=chance)) for name, chance in least.items()
    }
    methods: Methods = [*plain_methods(encoder), *sets.items()]
    rows = {(row.method, row.policy, row.id): row for row in frontier_rows(questions, reader, methods, print)}
    assert len(rows) == len(questions) * 5
    served: dict[str, list[tuple[int, ...]]] = {}
    for asked, corpus in indexed(questions, encoder):
        for name, method in sets.items():
            own = [
                fold(method.retrieve(asked.question, corpus, EpisodeConfig(step_budget=size))).picks
                for size in SIZES
            ]
            row = rows[method.name, name, asked.id]
            assert row.chunks == tuple(map(len, own))
            assert row.recall == tuple(fact_recall(ids, asked.support) for ids in own)
            assert row.f1 == row.recall, "the reader answers from the one chunk about the milk"
            served.setdefault(name, []).extend(own)
    assert served["joint-0"] != served["joint-1"]
