"""How a logged run is made again.

A command line and a Python program, as text to copy; `app.services.http_call` has the HTTP call. A run's
documents and their cuts come out of the log, or, for whoever has only the run's JSON export, from that file.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, fields
from pathlib import Path

from core.base.config import EpisodeConfig
from core.runs.again.replay import config_again
from core.runs.log import LoggedRun


@dataclass(frozen=True)
class Source:
    """Where the run is for whoever makes it again."""

    log: Path | None = None
    """The log; None is the default one."""
    exported: Path | None = None
    """The run's JSON export: it is taken into `log` first."""
    checkpoint: str | None = None
    """The agent's name or folder; None: the name that the run gives it."""


def of_export(run_id: str) -> Source:
    """For somebody elsewhere, beside the file of the run's JSON export: a log of its own."""
    return Source(Path(f"run-{run_id[:8]}.duckdb"), Path(f"run-{run_id[:8]}.jsonl"))


def command_of(run: LoggedRun, source: Source) -> str:
    """Shell commands that make the run again and say whether its choices and Q came out the same."""
    log = ["--log", str(source.log)] if source.log else []
    checkpoint = ["--checkpoint", source.checkpoint] if source.checkpoint else []
    commands = [["import", str(source.exported), *log]] if source.exported else []
    commands.append(["replay", run.record.run_id, *log, *checkpoint])
    runs = ["python", "-m", "core", "runs"]
    return "\n".join(shlex.join([*runs, *words]) for words in commands)


def python_of(run: LoggedRun, source: Source) -> str:
    """A Python program that makes the run again, every setting spelled out; `trace` is what it made."""
    record, config = run.record, config_again(run)
    usual = EpisodeConfig()
    changed = [
        f"{field.name}={value!r}"
        for field in fields(config)
        if (value := getattr(config, field.name)) != getattr(usual, field.name)
    ]
    log = f"Path({str(source.log)!r})" if source.log else "default_log_path()"
    names = ["default_log_path"] * (source.log is None) + (
        ["ExperimentLog", "import_runs"] if source.exported else ["open_reader"]
    )
    opened = f"ExperimentLog.open({log})" if source.exported else f"open_reader({log})"
    taken_in = [f"    import_runs(log, Path({str(source.exported)!r}))"] if source.exported else []
    lines = [
        *(["from pathlib import Path", ""] if source.log or source.exported else []),
        "from core.base.config import EpisodeConfig",
        "from core.encode.encoder import load_encoder",
        "from core.base.events import fold",
        "from core.base.progress import finish",
        f"from core.runs.log import {', '.join(sorted(names, key=str.lower))}",
        "from core.corpus.opening import index_workspace",
        "from core.methods.registry import build_retriever",
        "from core.runs.again.replay import workspace_of_run",
        "",
        f"with {opened} as log:",
        *taken_in,
        f"    run, documents = log.get({record.run_id!r}), log.documents({record.run_id!r})",
        f"encoder = load_encoder({(source.checkpoint or record.checkpoint)!r})",
        "corpus = finish(index_workspace(workspace_of_run(run, documents), encoder)).corpus",
        f"retriever, _ = build_retriever({record.method!r}, encoder, encoder)",
        f"config = EpisodeConfig({', '.join(changed)})",
        f"trace = fold(retriever.retrieve({record.query!r}, corpus, config))",
        "for step in trace.steps:",
        "    print(step.step, step.chunk_id, round(step.q_value, 4), step.text)",
    ]
    return "\n".join(lines) + "\n"
