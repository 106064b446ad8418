"""The authors' four tiny checkpoints, imported once, and corpora over them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from core.base.events import Event, RunStarted
from core.base.types import workspace_of_chunks
from core.corpus.index import Corpus
from core.corpus.opening import index_of
from core.encode.cache import VectorStore
from core.encode.encoder import DualEncoder, load_encoder
from core.encode.reference import import_checkpoint
from core.lab.train.sitting import TrainEvent
from core.methods.qrag.agent import Agent
from core.runs.log import ExperimentLog
from tests.core.lab.train.set_data import write_sets

REFERENCE = Path(__file__).resolve().parents[1] / "data" / "reference"
CorpusOf = Callable[[DualEncoder, Sequence[str]], Corpus]


@pytest.fixture(scope="session")
def reference() -> Path:
    """Golden episodes, checkpoints in the authors' format, and their base encoder."""
    return REFERENCE


@pytest.fixture(scope="session")
def tiny_checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of the imported checkpoints, by position setting. Not to be written to."""
    folders = {}
    for source in sorted((REFERENCE / "checkpoints").iterdir()):
        folders[source.name] = tmp_path_factory.mktemp("checkpoints") / source.name
        import_checkpoint(str(source), folders[source.name], base=str(REFERENCE / "tiny-bert"))
    return folders


@pytest.fixture(scope="session")
def agents(tiny_checkpoints: dict[str, Path]) -> dict[str, Agent]:
    return {name: Agent(load_encoder(str(folder), "cpu")) for name, folder in tiny_checkpoints.items()}


@pytest.fixture(scope="session")
def agent(agents: dict[str, Agent]) -> Agent:
    """One that reads positions."""
    return agents["relative10"]


@pytest.fixture(scope="session")
def encoder(agents: dict[str, Agent]) -> DualEncoder:
    """Of one that reads none."""
    return agents["none"].encoder


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Caches and log of this test alone."""
    monkeypatch.setenv("QRAG_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def log(tmp_path: Path) -> Iterator[ExperimentLog]:
    with ExperimentLog.open(tmp_path / "log.duckdb") as log:
        yield log


@pytest.fixture
def store(agents: dict[str, Agent], tmp_path: Path) -> VectorStore:
    """For vectors of the agent `relative10`; empty."""
    encoder = agents["relative10"].encoder
    return VectorStore(tmp_path / "vectors.bin", encoder.dim, np.dtype(encoder.spec.vectors))


@pytest.fixture(scope="module")
def set_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write_sets(folder)
    return folder


def timeless(events: Sequence[Event]) -> list[Event]:
    """Events without wall-clock times, which no seed repeats."""
    return [event if isinstance(event, RunStarted) else replace(event, milliseconds=0.0) for event in events]


def without_seconds(events: Sequence[TrainEvent]) -> list[TrainEvent]:
    """Of a training, as a file has them."""
    return [
        {name: value for name, value in event.items() if not name.startswith("seconds")}
        for event in json.loads(json.dumps(events))
    ]


@pytest.fixture(scope="session")
def minilm() -> DualEncoder:
    return load_encoder("base", "cpu")


@pytest.fixture(scope="session")
def corpus_of() -> CorpusOf:
    """`corpus_of(encoder, chunks)`: a corpus without any cache."""

    def build(encoder: DualEncoder, chunks: Sequence[str]) -> Corpus:
        return Corpus(
            workspace_of_chunks(chunks, encoder.tokenizer.count(chunks)),
            index_of(encoder, encoder.encode_chunks(chunks)),
        )

    return build
