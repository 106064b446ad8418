"""Rows say what the agent does when it runs alone, question by question, with whatever threshold."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.base.config import EpisodeConfig
from core.base.errors import BadRequest
from core.base.events import Trace, fold
from core.base.rows import EpisodeRow
from core.base.types import workspace_of_chunks
from core.corpus.index import Corpus
from core.corpus.opening import index_of
from core.encode.cache import VectorStore
from core.encode.encoder import DualEncoder
from core.lab.evaluate.outcomes import own_evidence, steps_taken
from core.lab.evaluate.review import choices_of, reviewed_under
from core.lab.evaluate.run import Setting, evaluate
from core.lab.tasks.example import Example
from core.methods.qrag.agent import Agent
from core.methods.qrag.episode import Episode
from core.methods.registry import BY_ENCODER, build_retriever
from tests.reranker import add_reranker


def rows_of(
    agent: Agent,
    examples: Sequence[Example],
    store: VectorStore,
    method: str = "qrag",
    batch: int = 32,
    **config: Any,
) -> list[EpisodeRow]:
    retriever, encoder = build_retriever(method, agent.encoder, agent.encoder)
    how, setting = EpisodeConfig(**config), Setting(split="test")
    return list(evaluate(examples, setting, retriever, encoder, how, batch=batch, store=store))


@cache
def opened(agent: Agent, example: Example) -> Corpus:
    """The example as a workspace of its own."""
    texts = list(example.chunks)
    workspace = workspace_of_chunks(texts, agent.encoder.tokenizer.count(texts))
    return Corpus(workspace, index_of(agent.encoder, agent.encoder.encode_chunks(texts)))


def alone(agent: Agent, example: Example, config: EpisodeConfig) -> Trace:
    """Through the agent as the app runs it."""
    episode = Episode(example.question, opened(agent, example), config, id=example.id)
    return fold(event for _, event in agent.run_batch([episode]))


def test_a_row_answers_for_every_threshold(
    agents: dict[str, Agent], examples: list[Example], store: VectorStore
) -> None:
    agent, config = agents["relative10"], EpisodeConfig(step_budget=3, temperature=0.5, seed=5)
    rows = rows_of(agent, examples, store, step_budget=3, temperature=0.5, seed=5)
    thresholds = sorted({q for row in rows for q in row.best_q})
    for example, row in zip(examples, rows, strict=True):
        for threshold in [
            None,
            thresholds[0] - 1,
            *[q + 1e-3 for q in thresholds[:: len(thresholds) // 4]],
            thresholds[-1] + 1,
        ]:
            trace = alone(agent, example, config.with_(stop_threshold=threshold))
            assert row.chosen[: steps_taken(row, threshold)] == trace.chosen
        free = alone(agent, example, config)
        assert row.q_values == pytest.approx([step.q_value for step in free.steps], abs=1e-6)


@pytest.mark.parametrize("beam_width", [1, 2])
def test_a_row_keeps_what_the_agents_review_keeps(
    agents: dict[str, Agent], examples: list[Example], store: VectorStore, beam_width: int
) -> None:
    agent = agents["relative10"]
    sizes = set()
    for review in (-10.0, -0.01, 0.01, 10.0):
        config = {"step_budget": 3, "stop_threshold": -10.0, "review_threshold": review}
        for example, row in zip(
            examples, rows_of(agent, examples, store, beam_width=beam_width, **config), strict=True
        ):
            assert row.kept is not None
            assert set(row.kept) <= set(row.chosen)
            sizes.add(len(row.kept))
            if beam_width == 1:
                assert tuple(sorted(row.kept)) == alone(agent, example, EpisodeConfig(**config)).evidence
    assert sizes >= {1, 3}
    assert {row.kept for row in rows_of(agent, examples, store, step_budget=3)} == {None}


@pytest.mark.campaign
def test_rows_are_reviewed_again_without_their_haystacks(
    agents: dict[str, Agent],
    examples: list[Example],
    store: VectorStore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """From the chosen chunks alone, at any pair of thresholds, as an evaluation with that pair has it."""
    monkeypatch.setenv("QRAG_HOME", str(tmp_path))
    agent = agents["relative10"]
    rows = rows_of(agent, examples, store, step_budget=3, stop_threshold=0.1)
    choices = choices_of(rows, examples, agent)
    stops, reviews = (-10.0, 0.0, 0.01, 10.0), np.linspace(-0.03, 0.03, 13).tolist()
    pairs = dict(reviewed_under(rows, choices, agent, stops, reviews))
    assert set(pairs) == {(stop, review) for stop in stops for review in (None, *reviews)}
    sizes = set()
    for (stop, review), under in pairs.items():
        then = rows_of(agent, examples, store, step_budget=3, stop_threshold=stop, review_threshold=review)
        assert [(row.stop_threshold, row.kept) for row in under] == [
            (row.stop_threshold, row.kept) for row in then
        ]
        sizes |= {len(own_evidence(row)) for row in under}
    assert sizes == {0, 1, 2, 3}
    with pytest.raises(ValueError, match="was not made from"):
        choices_of(rows, examples[::-1], agent)


def test_a_review_under_a_reranker_sees_all_chunks(
    tiny_checkpoints: dict[str, Path],
    examples: list[Example],
    store: VectorStore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("QRAG_HOME", str(tmp_path / "home"))
    folder = Path(shutil.copytree(tiny_checkpoints["none"], tmp_path / "agent"))
    add_reranker(folder)
    agent, some = Agent(DualEncoder(folder, "cpu")), examples[:2]
    rows = rows_of(agent, some, store, step_budget=2)
    for corpus, example in zip(choices_of(rows, some, agent), some, strict=True):
        of_all = agent.encoder.encode_chunks(list(example.chunks))
        np.testing.assert_allclose(corpus.index.vectors[corpus.index.rows], of_all, atol=1e-3)


def test_a_row_s_time_ends_with_the_agent_s_own_stop(
    agents: dict[str, Agent], examples: list[Example], store: VectorStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, look = agents["relative10"], Agent.look
    monkeypatch.setattr(Agent, "look", lambda *args: [replace(one, milliseconds=1.0) for one in look(*args)])
    for threshold, n_looks in ((None, 3), (-1e6, 3), (1e6, 1)):
        [row] = rows_of(agent, examples[:1], store, step_budget=3, stop_threshold=threshold)
        assert (len(row.chosen), row.milliseconds) == (3, n_looks)


def test_what_a_row_says_of_its_episode(
    agents: dict[str, Agent], examples: list[Example], store: VectorStore
) -> None:
    agent = agents["relative10"]
    for example, row in zip(
        examples, rows_of(agent, examples, store, step_budget=5, stop_threshold=0.3), strict=True
    ):
        n = len(example.chunks)
        assert (row.id, row.task, row.support, row.n_chunks) == (example.id, example.task, example.support, n)
        assert row.step_budget == len(row.chosen) == min(5, n)
        assert (row.stop_threshold, row.method, row.checkpoint) == (0.3, "qrag", agent.spec.name)
        assert row.fingerprint == agent.encoder.fingerprint
        assert row.trained_on == "not stated"
        assert row.tokens == tuple(agent.encoder.tokenizer.count([example.chunks[i] for i in row.chosen]))
        assert len(row.best_q) == min(n, len(row.chosen) + 1)
        assert row.best_q[: len(row.chosen)] == row.q_values
        assert row.milliseconds > 0


@pytest.mark.parametrize("method", BY_ENCODER)
def test_batching_changes_nothing(
    agents: dict[str, Agent], examples: list[Example], store: VectorStore, method: str
) -> None:
    one, many = (
        rows_of(agents["relative10"], examples, store, method, batch, step_budget=3) for batch in (1, 32)
    )
    assert [replace(row, milliseconds=0, q_values=(), best_q=()) for row in one] == [
        replace(row, milliseconds=0, q_values=(), best_q=()) for row in many
    ]
    np.testing.assert_allclose(
        [q for row in one for q in row.q_values], [q for row in many for q in row.q_values], atol=1e-5
    )


def test_baselines_have_no_threshold(
    agents: dict[str, Agent], examples: list[Example], store: VectorStore
) -> None:
    for row in rows_of(agents["relative10"], examples, store, "bm25", step_budget=3, stop_threshold=1e6):
        assert (row.method, row.stop_threshold, row.best_q, row.trained_on) == ("bm25", None, (), None)
        assert len(row.chosen) == len(row.q_values)
        assert steps_taken(row, 1e9) == len(row.chosen)


def test_a_beam_plans_with_its_threshold(
    agents: dict[str, Agent], examples: list[Example], store: VectorStore
) -> None:
    agent = agents["relative10"]
    middle = float(
        np.median([q for row in rows_of(agent, examples, store, step_budget=3) for q in row.best_q])
    )
    rows = rows_of(agent, examples, store, step_budget=3, beam_width=3, stop_threshold=middle)
    assert any(len(row.chosen) < row.step_budget for row in rows)
    assert all(steps_taken(row, middle) == len(row.chosen) for row in rows)
    assert {row.beam_width for row in rows} == {3}


def test_what_can_not_be_scored_is_refused(
    agents: dict[str, Agent], examples: list[Example], store: VectorStore
) -> None:
    with pytest.raises(ValueError, match="'l0' has no support"):
        rows_of(agents["relative10"], [replace(examples[1], support=())], store)
    long = replace(examples[1], chunks=tuple(f"night {i} ." for i in range(400)))
    with pytest.raises(BadRequest, match="above"):
        rows_of(agents["relative10"], [long], store, step_budget=300)
