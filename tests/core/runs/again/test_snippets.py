"""What is offered for copying makes the logged run again: run as it stands, by a shell and by Python."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.base.config import EpisodeConfig
from core.base.events import Trace, fold
from core.base.types import Document
from core.cli import main
from core.corpus.index import Corpus
from core.corpus.opening import open_corpus
from core.encode.encoder import DualEncoder
from core.methods.qrag.agent import Agent
from core.methods.registry import build_retriever
from core.runs.again.records import log_trace, run_record
from core.runs.again.snippets import Source, command_of, of_export, python_of
from core.runs.export.runs import export_runs
from core.runs.log import ExperimentLog

QUERY = 'where\'s the "apple" before the garden ; rm -rf $HOME ?'
STORY = Document(
    "Story",
    " ".join(
        f"Mary went to the {a}. John left the {b} there."
        for a in ("garden", "city", "hill")
        for b in ("apple", "letter")
    ),
    "text",
)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Caches of this test alone."""
    monkeypatch.setenv("QRAG_HOME", str(tmp_path / "home"))


@pytest.fixture
def log_path(tmp_path: Path) -> Path:
    return tmp_path / "it's a log.duckdb"


@pytest.fixture
def log(log_path: Path) -> Iterator[ExperimentLog]:
    with ExperimentLog.open(log_path) as log:
        yield log


@pytest.fixture
def encoder(agents: dict[str, Agent]) -> DualEncoder:
    return agents["relative20"].encoder


@pytest.fixture
def corpus(encoder: DualEncoder) -> Corpus:
    return open_corpus([STORY], encoder, [encoder.spec.chunk_config("sentences", 8)]).corpus


def executed(program: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Trace:
    """The `trace` of a program, run in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(compile(program, "snippet", "exec"), names)
    trace: Trace = names["trace"]
    return trace


def run_shell(commands: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """What the last of the commands prints; they are words of a shell for `python -m core`."""
    for line in commands.splitlines():
        capsys.readouterr()
        python, dash_m, core, *words = shlex.split(line)
        assert (python, dash_m, core) == ("python", "-m", "core")
        assert main(words) == 0, capsys.readouterr().err
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    return told


CONFIGS: list[tuple[str, dict[str, Any]]] = [
    ("qrag", {"step_budget": 3, "temperature": 2.0, "seed": 5, "top_k_actions": 4}),
    ("qrag", {"step_budget": 3, "forced": ((2, 5),), "forbidden": (0, 1)}),
    ("qrag", {"step_budget": 4, "stop_threshold": 1e6, "use_positions": False}),
    ("topk", {"step_budget": 2}),
]


@pytest.mark.parametrize(("method", "config"), CONFIGS, ids=str)
def test_command_and_program_make_the_run_again(
    log: ExperimentLog,
    log_path: Path,
    encoder: DualEncoder,
    corpus: Corpus,
    tiny_checkpoints: dict[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    method: str,
    config: dict[str, Any],
) -> None:
    trace = fold(
        build_retriever(method, encoder, encoder)[0].retrieve(QUERY, corpus, EpisodeConfig(**config))
    )
    run_id = log_trace(log, trace, corpus.workspace, encoder)
    run = log.get(run_id)
    log.close()
    source = Source(log=log_path, checkpoint=str(tiny_checkpoints["relative20"]))
    assert executed(python_of(run, source), monkeypatch, tmp_path).chosen == trace.chosen
    told = run_shell(command_of(run, source), capsys)
    assert (told["run_id"], told["holds"]) == (run_id, True)


def test_a_child_run_is_made_again_with_what_it_kept(
    log: ExperimentLog,
    log_path: Path,
    encoder: DualEncoder,
    corpus: Corpus,
    tiny_checkpoints: dict[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    parent = fold(Agent(encoder).run(QUERY, corpus, EpisodeConfig(step_budget=3, temperature=1.0, seed=2)))
    parent_id = log_trace(log, parent, corpus.workspace, encoder)
    started, *events = Agent(encoder).run(
        QUERY, corpus, parent.started.config.with_(step_budget=4, temperature=0.0), parent.chosen[:2]
    )
    record = run_record(started, corpus.workspace, encoder, parent_run_id=parent_id, fork_step=2)
    log.start(record, corpus.workspace.documents, corpus.workspace.tables)
    for event in events:
        log.record(record.run_id, event)
    log.finish(record.run_id, "complete")
    run = log.get(record.run_id)
    log.close()
    program = python_of(run, Source(log=log_path, checkpoint=str(tiny_checkpoints["relative20"])))
    assert executed(program, monkeypatch, tmp_path).chosen == run.trace.chosen


def test_somebody_with_the_export_alone_can_make_it_again(
    log: ExperimentLog,
    encoder: DualEncoder,
    corpus: Corpus,
    tiny_checkpoints: dict[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    trace = fold(Agent(encoder).run(QUERY, corpus, EpisodeConfig(step_budget=3)))
    run_id = log_trace(log, trace, corpus.workspace, encoder)
    elsewhere = tmp_path / "elsewhere"
    source = of_export(run_id)
    assert source.exported is not None
    export_runs(log, [run_id], "json", elsewhere / source.exported)
    monkeypatch.chdir(elsewhere)
    command, program = command_of(log.get(run_id), source), python_of(log.get(run_id), source)
    assert command.count("\n") == 1
    folder = str(tiny_checkpoints["relative20"])
    assert (
        executed(
            program.replace("load_encoder('relative20')", f"load_encoder({folder!r})"), monkeypatch, elsewhere
        ).chosen
        == trace.chosen
    )
    assert run_shell(f"{command} --checkpoint {shlex.quote(folder)}", capsys)["holds"] is True
