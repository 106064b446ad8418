"""A story and notes, opened by a tiny agent, and a run of it that goes on from another."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from core.base.config import EpisodeConfig
from core.base.events import Trace
from core.base.progress import finish
from core.base.types import Document
from core.corpus.index import Corpus
from core.corpus.opening import open_corpus
from core.encode.encoder import DualEncoder
from core.methods.qrag.agent import Agent
from core.runs.again.records import log_trace, run_record
from core.runs.log import ExperimentLog

PAIRS = [(a, b) for a in ("garden", "city", "hill") for b in ("apple", "letter")]

STORY = Document(
    "Story", " ".join(f"Mary went to the {a}. John left the {b} there." for a, b in PAIRS), "text"
)

NOTES = Document("Notes", "# House\n\nThe old house said nothing.\n\n- ship\n- letter\n", "markdown")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExperimentLog]:
    """One for all tests of a file, which ask for their runs by id."""
    with ExperimentLog.open(tmp_path_factory.mktemp("log") / "log.duckdb") as log:
        yield log


@pytest.fixture
def encoder(agents: dict[str, Agent]) -> DualEncoder:
    return agents["relative20"].encoder


@pytest.fixture
def corpus(encoder: DualEncoder) -> Corpus:
    ways = [encoder.spec.chunk_config("sentences", 8), encoder.spec.chunk_config("structure", 16)]
    return finish(open_corpus([STORY, NOTES], encoder, ways)).corpus


def log_child(
    log: ExperimentLog, encoder: DualEncoder, corpus: Corpus, parent: Trace, config: EpisodeConfig
) -> str:
    """A child run that keeps two steps of its parent, logged as the app does it: event by event."""
    parent_id = log_trace(log, parent, corpus.workspace, encoder)
    started, *events = Agent(encoder).run(parent.started.query, corpus, config, parent.chosen[:2])
    record = run_record(started, corpus.workspace, encoder, parent_run_id=parent_id, fork_step=2)
    log.start(record, corpus.workspace.documents, corpus.workspace.tables)
    for event in events:
        log.record(record.run_id, event)
    log.finish(record.run_id, "complete")
    return record.run_id
