"""What is offered for copying makes the logged run again: run as it stands, by a shell and by Python."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from core.base.config import EpisodeConfig
from core.base.events import Trace, fold
from core.cli import main
from core.corpus.index import Corpus
from core.encode.encoder import DualEncoder
from core.methods.qrag.agent import Agent
from core.runs.again.records import log_trace
from core.runs.again.snippets import Source, command_of, of_export, python_of
from core.runs.export.runs import export_runs
from core.runs.log import ExperimentLog
from tests.core.runs.again.conftest import log_child

pytestmark = pytest.mark.usefixtures("home")
QUERY = 'where\'s the "apple" before the garden ; rm -rf $HOME ?'


@pytest.fixture
def log_path(tmp_path: Path) -> Path:
    return tmp_path / "it's a log.duckdb"


@pytest.fixture
def log(log_path: Path) -> Iterator[ExperimentLog]:
    with ExperimentLog.open(log_path) as log:
        yield log


@pytest.fixture
def source(log_path: Path, tiny_checkpoints: dict[str, Path]) -> Source:
    return Source(log=log_path, checkpoint=str(tiny_checkpoints["relative20"]))


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], Trace]:
    """`executed(program)`: its `trace`, run in a folder of its own."""

    def run(program: str) -> Trace:
        names: dict[str, Any] = {}
        exec(compile(program, "snippet", "exec"), names)
        return names["trace"]

    monkeypatch.chdir(tmp_path)
    return run


def run_shell(commands: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """What the last of the commands prints; they are words of a shell for `python -m core`."""
    for line in commands.splitlines():
        capsys.readouterr()
        python, dash_m, core, *words = shlex.split(line)
        assert (python, dash_m, core) == ("python", "-m", "core")
        assert main(words) == 0, capsys.readouterr().err
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    return told


CONFIGS: list[dict[str, Any]] = [
    {"step_budget": 3, "temperature": 2.0, "seed": 5, "top_k_actions": 4},
    {"step_budget": 3, "forced": ((2, 5),), "forbidden": (0, 1)},
    {"step_budget": 4, "stop_threshold": 1e6, "use_positions": False},
]


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_command_and_program_make_the_run_again(
    log: ExperimentLog,
    encoder: DualEncoder,
    corpus: Corpus,
    source: Source,
    executed: Callable[[str], Trace],
    capsys: pytest.CaptureFixture[str],
    config: dict[str, Any],
) -> None:
    trace = fold(Agent(encoder).run(QUERY, corpus, EpisodeConfig(**config)))
    run_id = log_trace(log, trace, corpus.workspace, encoder)
    run = log.get(run_id)
    log.close()
    assert executed(python_of(run, source)).chosen == trace.chosen
    told = run_shell(command_of(run, source), capsys)
    assert (told["run_id"], told["holds"]) == (run_id, True)


def test_a_child_run_is_made_again_with_what_it_kept(
    log: ExperimentLog,
    encoder: DualEncoder,
    corpus: Corpus,
    source: Source,
    executed: Callable[[str], Trace],
) -> None:
    parent = fold(Agent(encoder).run(QUERY, corpus, EpisodeConfig(step_budget=3, temperature=1.0, seed=2)))
    config = parent.started.config.with_(step_budget=4, temperature=0.0)
    run = log.get(log_child(log, encoder, corpus, parent, config))
    log.close()
    assert executed(python_of(run, source)).chosen == run.trace.chosen


def test_somebody_with_the_export_alone_can_make_it_again(
    log: ExperimentLog,
    encoder: DualEncoder,
    corpus: Corpus,
    source: Source,
    executed: Callable[[str], Trace],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    trace = fold(Agent(encoder).run(QUERY, corpus, EpisodeConfig(step_budget=3)))
    run_id = log_trace(log, trace, corpus.workspace, encoder)
    exported = of_export(run_id)
    export_runs(log, [run_id], "json", tmp_path / exported.exported)
    command, program = command_of(log.get(run_id), exported), python_of(log.get(run_id), exported)
    assert command.count("\n") == 1
    program = program.replace("load_encoder('relative20')", f"load_encoder({source.checkpoint!r})")
    assert executed(program).chosen == trace.chosen
    assert run_shell(f"{command} --checkpoint {shlex.quote(source.checkpoint)}", capsys)["holds"] is True
