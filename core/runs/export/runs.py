"""Runs out of the log, as files.

JSON (lines, lossless), CSV and Parquet (a table of runs and a table of steps), HTML (a page a run, or one of
several runs of one question), OpenInference (a line a run). Only JSON carries the Q-values of all chunks and
comes back in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, get_args

from core.base.errors import LogError
from core.runs.export.comparison_page import MAX_COLUMNS, comparison_page
from core.runs.export.page import run_page
from core.runs.log.atomic import write_whole
from core.runs.log.otlp import json_line
from core.runs.log.queries import RunReader
from core.runs.log.records import LoggedRun
from core.runs.log.transfer import NAMED, TABLES, ended_ids, is_one_question, whole_runs, write_table
from core.runs.log.wire import run_lines

ExportFormat = Literal["json", "csv", "parquet", "html", "openinference"]
FORMATS: tuple[ExportFormat, ...] = get_args(ExportFormat)
LINES: dict[str, str] = {"json": ".jsonl", "openinference": ".otlp.jsonl"}
"""Formats that are one file for all runs, and how its name ends."""


def export_runs(
    log: RunReader,
    run_ids: Sequence[str] | None,
    format: ExportFormat,
    target: Path,
    *,
    include_text: bool = True,
    owner: str | None = None,
) -> Path:
    """Write runs that have ended, all of `owner`'s if `run_ids` is None, to `target`; returns the file (json,
    openinference) or the folder (csv, parquet, html) written.

    `target` is a folder, which is made, or for lines and for the page of one run also a file; several runs of
    one question over the same chunks become one page where it is a file. Without text, headings stay behind,
    too. Raises RunNotFound for an id that `owner` may not open, LogError for a run that goes on or a full
    disk.
    """
    if format not in FORMATS:
        raise LogError(f"format={format!r} is unknown; choose one of {', '.join(FORMATS)}")
    ids = ended_ids(log, run_ids, owner)
    target = Path(target)
    try:
        if format in LINES:
            file = target if target.suffix and not target.is_dir() else target / f"runs{LINES[format]}"
            file.parent.mkdir(parents=True, exist_ok=True)
            runs = whole_runs(log, ids, include_text, owner)
            write_whole(file, _json_lines(runs) if format == "json" else map(json_line, runs))
            return file
        if format == "html":
            return _write_pages(log, ids, target, include_text, owner)
        target.mkdir(parents=True, exist_ok=True)
        for name in TABLES:
            file = target / f"{name}.{format}"
            write_table(log, name, file, NAMED, {"owner": owner, "ids": ids}, include_text=include_text)
    except OSError as error:
        raise LogError(
            f"the export to {target} could not be written ({error.strerror}); choose a folder with room that"
            " you can write to"
        ) from error
    return target


def is_comparison(log: RunReader, run_ids: Sequence[str], owner: str | None) -> bool:
    """Whether runs fit on one page as columns: several, of one question over the same chunks."""
    return 1 < len(set(run_ids)) <= MAX_COLUMNS and is_one_question(log, run_ids, owner)


def _write_pages(
    log: RunReader, ids: Sequence[str], target: Path, include_text: bool, owner: str | None
) -> Path:
    one_file = target.suffix.lower() in (".html", ".htm") and not target.is_dir()
    together = one_file and is_comparison(log, ids, owner)
    if one_file and len(ids) != 1 and not together:
        raise LogError(
            f"{len(ids)} runs are as many files, and {target} is one file; name a folder, one run, or up to"
            f" {MAX_COLUMNS} runs of one question over the same chunks"
        )
    (target.parent if one_file else target).mkdir(parents=True, exist_ok=True)
    if together:
        runs = [log.get(run_id, owner) for run_id in reversed(ids)]  # oldest first, as they were compared
        page = comparison_page(runs, log.documents(ids[0], owner), with_text=include_text)
        write_whole(target, page.encode())
        return target
    for run_id in ids:
        run, documents = log.get(run_id, owner), log.documents(run_id, owner)
        page = run_page(run, documents, with_text=include_text)
        write_whole(target if one_file else target / f"run-{run_id}.html", page.encode())
    return target


def _json_lines(runs: Iterator[LoggedRun]) -> Iterator[str]:
    texts_written: set[str] = set()
    for run in runs:
        yield from run_lines(run, texts_written)
