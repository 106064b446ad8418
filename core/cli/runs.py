"""`python -m core runs`.

The log from the command line. This is local mode: it sees the runs without an owner.
"""

from __future__ import annotations

import argparse
import json
import os
from collections import deque
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, get_args

from core.answer.evidence import EvidenceAnswer
from core.base.errors import BadCheckpoint, BadRequest, LogError
from core.cli.common import check_targets, log_reader, progress_printer, say
from core.cli.flags import COUNT, DEVICE, LOG_FILE, path_flag
from core.methods.registry import facts_of
from core.runs.export.logged import why_ended
from core.runs.export.runs import FORMATS, export_runs
from core.runs.hub.client import check_repository, connect
from core.runs.hub.export import LogCopy
from core.runs.log.inbox import InboxLog
from core.runs.log.lock import LogOwned
from core.runs.log.otlp import HEADERS_VARIABLE, Receiver
from core.runs.log.records import RunRow, Status, moment, new_run_id
from core.runs.log.store import ExperimentLog, default_log_path
from core.runs.log.transfer import import_runs, send_runs
from core.runs.log.wire import read_runs
from core.views.draw.words import shorten
from core.views.ending import review_sentence
from core.views.story import state_words


def add_flags(runs: argparse.ArgumentParser) -> None:
    """The commands of `runs`."""
    commands = runs.add_subparsers(dest="runs_command", required=True, metavar="COMMAND")

    def command(name: str, run: Callable[[argparse.Namespace], int], summary: str) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = commands.add_parser(name, help=summary)
        parser.set_defaults(func=run)
        return parser

    listed = command("list", list_command, "print the runs, newest first")
    _add_list_flags(listed)
    show = command("show", show_command, "print one run")
    export = command("export", export_command, "write runs to files, or send them on as traces")
    _add_export_flags(export)
    import_ = command("import", import_command, "read a file written by export --format json")
    import_.add_argument("file", type=path_flag, metavar="FILE")
    delete = command("delete", delete_command, "remove a run for good")
    for parser in (show, delete):
        parser.add_argument("run_id", metavar="RUN_ID")
    bring = "bring a data set on the hub up to this log, with owners and all"
    push = command("push", push_command, bring)
    made = "the data set; it is made, and private, if it is missing"
    push.add_argument("--to", required=True, metavar="OWNER/NAME", help=made)
    pull = command("pull", pull_command, "take in the runs that push put into a data set")
    pull.add_argument("--from", required=True, dest="source", metavar="OWNER/NAME", help="the data set")
    for parser in (listed, show, export, import_, delete, push, pull):
        parser.add_argument("--json", action="store_true", help="print JSON")
        parser.add_argument("--log", **LOG_FILE)
    replay = command("replay", replay_command, "make a logged run again and compare")
    replay.add_argument("run_id")
    replay.add_argument("--log", **LOG_FILE)
    replay.add_argument("--checkpoint", metavar="NAME_OR_DIR", help="default: the one that the run names")
    replay.add_argument("--device", **DEVICE)


def _add_export_flags(export: argparse.ArgumentParser) -> None:
    export.add_argument("run_ids", nargs="*", metavar="RUN_ID", help="default: all runs that have ended")
    export.add_argument("--format", choices=FORMATS, default="json")
    where = export.add_mutually_exclusive_group(required=True)
    where.add_argument(
        "--to",
        type=path_flag,
        metavar="PATH",
        help="a folder, or for json, openinference and the page of one run also a file; an .html"
        " file takes several runs of one question, side by side",
    )
    where.add_argument(
        "--send-to",
        metavar="URL",
        help="with --format openinference: a receiver of traces (OTLP over HTTP), for example Phoenix at"
        " http://127.0.0.1:6006",
    )
    texts = export.add_mutually_exclusive_group()
    without = "leave out the texts of documents and chunks, and known answers (default for html)"
    texts.add_argument("--no-text", dest="text", action="store_false", default=None, help=without)
    along = "take them along (default for the other formats)"
    texts.add_argument("--text", action="store_true", default=None, help=along)


def _add_list_flags(parser: argparse.ArgumentParser) -> None:
    for name, meaning in (
        ("text", "part of the question"),
        ("method", "qrag, topk, ...; of import-run imported:NAME, without scores imported-ranks:NAME"),
        ("checkpoint", "its name"),
        ("document", "a hash, or part of a title"),
    ):
        parser.add_argument(f"--{name}", help=meaning)
    parser.add_argument("--status", choices=get_args(Status))
    later = "made on that day or later: 2026-03-31, or with a time"
    parser.add_argument("--since", metavar="DATE", help=later)
    parser.add_argument("--until", metavar="DATE", help="made on that day or earlier")
    outcome = "labelled runs that kept all support, or that did not"
    parser.add_argument("--outcome", choices=("hit", "miss"), help=outcome)
    parser.add_argument("--limit", **COUNT, default=50)
    parser.add_argument("--offset", **COUNT, default=0)


def list_command(arguments: argparse.Namespace) -> int:
    """A line a run, or with --json {"total", "runs"}."""
    names = ("text", "method", "checkpoint", "document", "status")
    filters = {name: getattr(arguments, name) for name in names}
    filters["since"] = moment(arguments.since) if arguments.since else None
    filters["until"] = moment(arguments.until, end=True) if arguments.until else None
    filters["hit"] = arguments.outcome and arguments.outcome == "hit"
    with log_reader(arguments.log) as reader:
        page = reader.search(owner=None, **filters, limit=arguments.limit, offset=arguments.offset)
    if arguments.json:
        _print_json(page.to_json())
        return 0
    for row in page.rows:
        print(_line(row))
    say(f"{len(page.rows)} of {page.total} runs")
    return 0


def show_command(arguments: argparse.Namespace) -> int:
    """The run with its steps; with --json everything but the arrays."""
    with log_reader(arguments.log) as reader:
        run = reader.get(arguments.run_id)
    if arguments.json:
        _print_json(run.to_json())
        return 0
    record = run.record
    made = f"{record.run_id}  {run.status}  {_local(run.created_at)}"
    print(f"{made}  {_printable(record.method)}  {_printable(record.checkpoint)}")
    print(_printable(record.query))
    score = facts_of(record.method).score_name
    for step in run.trace.steps:
        text = _printable(step.text) or "(text not kept)"
        print(f"{step.step:>4}  chunk {step.chunk_id}  {score} {step.q_value:.4f}  {text}")
    if run.trace.stopped is not None:
        print(_one_line(f"{why_ended(run)} {review_sentence(run.trace)}".rstrip()))
    texts = {step.chunk_id: step.text for step in run.trace.steps}
    if answer := EvidenceAnswer.from_json(run.details.get("answer", {}), texts):
        said = state_words(answer.state, answer.confidence, answer.asks)
        print(_printable(f"{said}: {answer.told_text}" if answer.told_text else said))
    if run.message is not None:
        print(_printable(run.message))
    return 0


def export_command(arguments: argparse.Namespace) -> int:
    """Prints the path written, or how many runs were sent."""
    include_text = arguments.format != "html" if arguments.text is None else arguments.text
    if arguments.send_to is not None:
        if arguments.format != "openinference":
            raise BadRequest(
                f"--send-to sends traces, not --format {arguments.format}; pass --format openinference"
            )
        receiver = Receiver.at(arguments.send_to, os.environ.get(HEADERS_VARIABLE, ""))
        with log_reader(arguments.log) as reader:
            n = send_runs(reader, arguments.run_ids or None, receiver, include_text=include_text)
        _tell(arguments, {"sent": n}, n)
        return 0
    check_targets([arguments.to], log=arguments.log)
    asked = (arguments.run_ids or None, arguments.format, arguments.to)
    with log_reader(arguments.log) as reader:
        path = export_runs(reader, *asked, include_text=include_text)
    _tell(arguments, {"path": str(path)}, path)
    return 0


def import_command(arguments: argparse.Namespace) -> int:
    """Prints how many runs were new; no number through the inbox, when another process owns the log."""
    path, file = _log_path(arguments), arguments.file
    if not path.exists():
        _check_runs(file)  # so that a damaged file leaves no log behind
    try:
        with ExperimentLog.open(path) as log:
            count: int | None = import_runs(log, file)
    except LogOwned:
        count = None
        _leave_in_inbox(file, path)
        say(f"another process owns the log {path}: the runs wait in its inbox and will be taken in by it")
    if arguments.json or count is not None:
        _tell(arguments, {"imported": count}, count)
    return 0


def delete_command(arguments: argparse.Namespace) -> int:
    """Prints the id deleted."""
    path = _log_path(arguments)
    if not path.exists():
        raise LogError(f"there is no log at {path}; pass another file with --log")
    try:
        with ExperimentLog.open(path) as log:
            log.import_inbox()
            log.delete(arguments.run_id, None)
    except LogOwned as error:
        raise LogOwned(f"run {arguments.run_id[:64]!r} was not deleted: {error}") from error
    _tell(arguments, {"deleted": arguments.run_id}, arguments.run_id)
    return 0


def push_command(arguments: argparse.Namespace) -> int:
    """Prints how many runs were new there."""
    copy = LogCopy(connect(), check_repository(arguments.to))
    with ExperimentLog.open(arguments.log or default_log_path()) as log:
        log.import_inbox()
        pushed = copy.push(log)
    if pushed.n_removed:
        say(f"{pushed.n_removed} runs that were deleted here are gone from {arguments.to}")
    _tell(arguments, {"pushed": pushed.n_new, "removed": pushed.n_removed}, pushed.n_new)
    return 0


def pull_command(arguments: argparse.Namespace) -> int:
    """Prints how many runs were new to the log. Exit status 1 when a file could not be taken in."""
    copy = LogCopy(connect(), check_repository(arguments.source))
    with ExperimentLog.open(arguments.log or default_log_path()) as log:
        pulled = copy.pull(log)
    for sentence in pulled.damaged:
        say(sentence)
    if pulled.n_visitors:
        say(
            f"{pulled.n_visitors} of them belong to visitors, who see them in public mode; 'runs list' shows"
            " those without an owner"
        )
    _tell(arguments, {"pulled": pulled.n_new, "visitors": pulled.n_visitors}, pulled.n_new)
    return 1 if pulled.damaged else 0


def replay_command(arguments: argparse.Namespace) -> int:
    """Makes a logged run again. Exit status 1 when the choices differ or Q moved by more than 1e-4."""
    with log_reader(arguments.log) as reader:
        run, documents = reader.get(arguments.run_id), reader.documents(arguments.run_id)
    if any(document.text is None for document in documents):
        raise LogError(f"run {run.record.run_id} was exported without texts; export it again with --text")
    from core.answer.reader import reader_named  # takes seconds, with the next: the other commands do without
    from core.encode.checkpoint import find_checkpoint
    from core.encode.encoder import load_encoder
    from core.runs.again.replay import replay_run

    if arguments.checkpoint is None:
        try:
            find_checkpoint(run.record.checkpoint)
        except BadCheckpoint as error:
            raise BadCheckpoint(
                f"run {run.record.run_id} was made by {run.record.checkpoint!r}, which does not ship; name"
                " its folder with --checkpoint"
            ) from error
    encoder = load_encoder(arguments.checkpoint or run.record.checkpoint, arguments.device)
    plain = partial(load_encoder, "base", arguments.device) if encoder.spec.trained else None
    reading = partial(reader_named, device=arguments.device)
    replay = replay_run(run, documents, encoder, progress_printer(), plain=plain, reader_named=reading)
    _print_json(replay.to_json())
    return 0 if replay.report.holds else 1


def _log_path(arguments: argparse.Namespace) -> Path:
    path: Path = arguments.log or default_log_path()
    return path.absolute()


def _check_runs(file: Path) -> None:
    """Raises LogError where a file can't be taken in."""
    deque(read_runs(file), maxlen=0)


def _leave_in_inbox(file: Path, log: Path) -> None:
    _check_runs(file)  # whoever wrote the file hears now what is wrong with it
    with file.open(encoding="utf-8", newline="") as lines:
        InboxLog(log).leave(f"import-{new_run_id()}.jsonl", lines)


def _local(moment: datetime) -> str:
    """In the machine's time zone, as --since and --until take it."""
    return f"{moment.astimezone():%Y-%m-%d %H:%M:%S}"


def _line(row: RunRow) -> str:
    titles = _printable(", ".join(row.titles))
    return (
        f"{row.run_id}  {_local(row.created_at)}  {row.status:<9}  {_printable(row.method):<9} "
        f" {row.n_steps:>3} steps  {_printable(row.query)}  [{titles}]"
    )


def _printable(text: str) -> str:
    """One line, and no long one."""
    return shorten(_one_line(text), 160)


def _one_line(text: str) -> str:
    """Without control characters, so that neither a document nor an imported run can steer the terminal."""
    return "".join(character if character.isprintable() else " " for character in text)


def _tell(arguments: argparse.Namespace, told: dict[str, Any], plain: object) -> None:
    _print_json(told) if arguments.json else print(plain)


def _print_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=True))
