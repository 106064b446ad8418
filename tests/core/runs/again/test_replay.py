"""Between agent and log: what a record says, and that a logged run can be made again from the log alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from core.base.config import EpisodeConfig
from core.base.errors import BadRequest, LogError
from core.base.events import StepTaken, Stopped, Trace, fold
from core.corpus.index import Corpus
from core.corpus.opening import vector_store
from core.encode.encoder import DualEncoder
from core.llm.protocol import Llm
from core.methods.qrag.agent import Agent
from core.methods.registry import BY_ENCODER, build_retriever
from core.methods.sparc.build import build_agents, build_retrievals
from core.methods.sparc.events import SparcConfig
from core.methods.sparc.run import run_sparc
from core.methods.sparc.trace import SparcTrace, fold_sparc
from core.runs.again.records import log_sparc, log_trace, run_record
from core.runs.again.replay import replay_run, workspace_of_run
from core.runs.log import ExperimentLog
from tests.core.methods.sparc.conftest import KnowingReader, RoleLlm
from tests.core.runs.again.conftest import NOTES, STORY, log_child

pytestmark = pytest.mark.usefixtures("home")

QUERY = "where was the apple before the garden ?"


def run(encoder: DualEncoder, corpus: Corpus, method: str = "qrag", **config: Any) -> Trace:
    return fold(build_retriever(method, encoder, encoder)[0].retrieve(QUERY, corpus, EpisodeConfig(**config)))


def test_a_record_names_everything_that_made_the_run(encoder: DualEncoder, corpus: Corpus) -> None:
    trace = run(encoder, corpus, step_budget=3, seed=9)
    record = run_record(trace.started, corpus.workspace, encoder, label={"support": [1]})
    assert (record.method, record.query, record.seed, record.n_chunks) == ("qrag", QUERY, 9, len(corpus))
    assert (record.checkpoint, record.checkpoint_fingerprint) == ("relative20", encoder.fingerprint)
    assert record.vectors == encoder.vector_fingerprint
    assert record.document_hashes == (STORY.sha256, NOTES.sha256)
    cut = [(way["chunker"], way["max_tokens"], way["one_sentence"]) for way in record.chunking]
    assert cut == [("sentences", 8, False), ("structure", 16, False)]
    assert EpisodeConfig.from_json(record.config) == trace.started.config
    assert record.label == {"support": [1]}
    assert len({run_record(trace.started, corpus.workspace, encoder).run_id for _ in range(20)}) == 20


@pytest.mark.parametrize("method", BY_ENCODER)
def test_every_method_replays_from_the_log(
    log: ExperimentLog, encoder: DualEncoder, corpus: Corpus, method: str
) -> None:
    run_id = log_trace(log, run(encoder, corpus, method, step_budget=3), corpus.workspace, encoder)
    replay = replay_run(log.get(run_id), log.documents(run_id), encoder)
    assert replay.report.holds, replay.report.summary
    assert replay.report.largest_difference == 0
    assert (replay.n_embedded_again, replay.same_weights) == (0, True)
    assert replay.used_vectors == replay.logged_vectors
    assert replay.to_json()["holds"] is True


CONFIGS: list[dict[str, Any]] = [
    {"step_budget": 4, "temperature": 2.0, "seed": 5, "top_k_actions": 4},
    {"step_budget": 3, "forced": ((2, 5),), "forbidden": (0, 1)},
    {"step_budget": 3, "beam_width": 4},
    {"step_budget": 2, "use_positions": False},
    {"step_budget": 3, "beam_width": 2, "review_threshold": 10.0},
]


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_every_kind_of_run_replays(
    log: ExperimentLog, encoder: DualEncoder, corpus: Corpus, config: dict[str, Any]
) -> None:
    trace = run(encoder, corpus, **config)
    run_id = log_trace(log, trace, corpus.workspace, encoder)
    logged = log.get(run_id)
    assert (logged.trace.chosen, logged.trace.stopped) == (trace.chosen, trace.stopped)
    assert logged.trace.evidence == trace.evidence
    for step, expected in zip(logged.trace.steps, trace.steps, strict=True):
        np.testing.assert_array_equal(step.scores.q_values, expected.scores.q_values)
    assert replay_run(logged, log.documents(run_id), encoder).report.holds


@pytest.mark.parametrize("review", [None, 10.0])
def test_child_runs_replay_with_the_steps_they_kept(
    log: ExperimentLog, encoder: DualEncoder, corpus: Corpus, review: float | None
) -> None:
    """The person goes back, forces another chunk, and forbids one that the kept steps hold."""
    parent = run(encoder, corpus, step_budget=3, temperature=1.0, seed=2)
    other = next(i for i in range(len(corpus)) if i not in parent.chosen)
    changes = {"step_budget": 4, "forced": ((3, other),), "forbidden": parent.chosen[:1]}
    config = parent.started.config.with_(review_threshold=review, **changes)
    run_id = log_child(log, encoder, corpus, parent, config)
    logged = log.get(run_id)
    assert logged.trace.chosen[:3] == (*parent.chosen[:2], other)
    assert len(logged.trace.steps) == 4
    assert len(logged.trace.taken_back) == (0 if review is None else 3)
    replay = replay_run(logged, log.documents(run_id), encoder)
    assert replay.report.holds, replay.report.summary


def test_a_replay_embeds_again_what_the_cache_lost_and_says_of_other_weights(
    log: ExperimentLog, encoder: DualEncoder, corpus: Corpus, agents: dict[str, Agent]
) -> None:
    run_id = log_trace(log, run(encoder, corpus, step_budget=2), corpus.workspace, encoder)
    other = replay_run(log.get(run_id), log.documents(run_id), agents["none"].encoder)
    assert (other.same_weights, other.report.holds) == (False, False)
    assert other.report.first_difference
    vector_store(encoder).path.unlink()
    replay = replay_run(log.get(run_id), log.documents(run_id), encoder)
    assert replay.n_embedded_again == len(set(corpus.workspace.texts()))
    assert replay.report.holds


def test_the_logged_workspace_is_the_one_that_was_searched(
    log: ExperimentLog, encoder: DualEncoder, corpus: Corpus
) -> None:
    run_id = log_trace(log, run(encoder, corpus, step_budget=1), corpus.workspace, encoder)
    workspace = workspace_of_run(log.get(run_id), log.documents(run_id))
    assert list(workspace) == list(corpus.workspace)
    assert workspace.configs == corpus.workspace.configs
    assert [(one.title, one.text) for one in workspace.documents] == [
        (one.title, one.text) for one in (STORY, NOTES)
    ]
    bare = [replace(document, table=None) for document in log.documents(run_id)]
    with pytest.raises(LogError, match="without its chunk borders"):
        workspace_of_run(log.get(run_id), bare)


def test_a_cancelled_run_is_logged_as_such(log: ExperimentLog, encoder: DualEncoder, corpus: Corpus) -> None:
    """Compared as far as it went."""
    whole = run(encoder, corpus, step_budget=3)
    part = fold([whole.started, *whole.steps[:1]])
    run_id = log_trace(log, part, corpus.workspace, encoder)
    logged = log.get(run_id)
    assert (logged.status, logged.n_steps) == ("cancelled", 1)
    assert all(isinstance(event, StepTaken | Stopped) for event in logged.events)
    assert replay_run(logged, log.documents(run_id), encoder).report.holds


def run_branches(
    encoder: DualEncoder, corpus: Corpus, reader: KnowingReader, llm: Llm | None = None
) -> SparcTrace:
    config = SparcConfig(depth=2, k=2)
    retrievals = build_retrievals(config, encoder, encoder, lambda _: corpus)
    return fold_sparc(run_sparc(QUERY, corpus, build_agents(llm, reader, config), retrievals, config))


def test_a_sparc_run_replays_from_the_log_with_rules_and_reader(
    log: ExperimentLog, encoder: DualEncoder, corpus: Corpus
) -> None:
    reader = KnowingReader({"city": 0.4})
    run_id = log_sparc(log, run_branches(encoder, corpus, reader), corpus.workspace, encoder)
    logged, documents = log.get(run_id), log.documents(run_id)
    replay = replay_run(logged, documents, encoder, reader_named={reader.name: reader}.__getitem__)
    assert replay.report.holds, replay.report.summary
    assert replay.report.n_compared > 0
    other = replay_run(logged, documents, encoder, reader_named=lambda _: KnowingReader({"hill": 0.4}))
    assert not other.report.holds
    assert "answered 'hill' instead of 'city'" in other.report.summary
    with pytest.raises(BadRequest, match="needs a reader to be made again"):
        replay_run(logged, documents, encoder)


def test_of_a_sparc_run_with_a_language_model_the_searches_are_made_again(
    log: ExperimentLog, encoder: DualEncoder, corpus: Corpus
) -> None:
    llm = RoleLlm(answer={"answer": "city"})
    trace = run_branches(encoder, corpus, KnowingReader({}), llm)
    run_id, asked = log_sparc(log, trace, corpus.workspace, encoder), len(llm.calls)
    silent = lambda _: KnowingReader({})  # noqa: E731
    replay = replay_run(log.get(run_id), log.documents(run_id), encoder, reader_named=silent)
    assert replay.report.holds, replay.report.summary
    branches = [branch for one in trace.rounds for branch in one.branches if branch.retrieved]
    assert replay.report.n_compared == sum(len(branch.retrieved.found) for branch in branches)
    assert len(llm.calls) == asked
