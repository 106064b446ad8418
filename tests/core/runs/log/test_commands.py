"""`runs list|show|export|import|delete`, with and without another process that owns the log."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pytest

from core.cli import main
from core.runs.log import ExperimentLog, default_log_path, open_reader
from tests.core.cli.conftest import argv
from tests.core.runs.log.conftest import Owner
from tests.core.runs.log.recording import DOCUMENT, log_run, make_record, step_taken, stopped


class Outcome(NamedTuple):
    """What a command did."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def runs(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """`runs ARGUMENTS`."""

    def run(*arguments: object) -> Outcome:
        capsys.readouterr()
        return Outcome(main(argv("runs", *arguments)), *capsys.readouterr())

    return run


@pytest.fixture
def result(runs: Callable[..., Outcome]) -> Callable[..., Any]:
    """The JSON that a command prints."""

    def run(*arguments: object) -> Any:
        outcome = runs(*arguments, "--json")
        assert outcome.returncode == 0, outcome.stderr
        return json.loads(outcome.stdout)

    return run


def test_lists_are_filtered_by_date_and_outcome(
    runs: Callable[..., Outcome], result: Callable[..., Any], path: Path
) -> None:
    with ExperimentLog.open(path) as log:
        record = make_record()
        hit = log_run(
            log, make_record(run_id=record.run_id, label={"support": [step_taken(record.run_id, 1).chunk_id]})
        )
        miss = log_run(log, make_record(label={"support": list(range(50))}))
    day = f"{datetime.now():%Y-%m-%d}"
    found = {
        words: [row["run_id"] for row in result("list", "--log", path, *words)["runs"]]
        for words in (("--outcome", "hit"), ("--outcome", "miss"))
    }
    assert found == {("--outcome", "hit"): [hit.run_id], ("--outcome", "miss"): [miss.run_id]}
    assert result("list", "--log", path, "--since", day, "--until", day)["total"] == 2
    assert result("list", "--log", path, "--since", "2999-01-01")["total"] == 0
    refused = runs("list", "--log", path, "--until", "tomorrow")
    assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (2, "", 1)


def test_a_page_has_texts_only_when_told_to(runs: Callable[..., Outcome], path: Path, tmp_path: Path) -> None:
    with ExperimentLog.open(path) as log:
        record = log_run(log, make_record(), text="SECRET CHUNK")
    page = tmp_path / "run.html"
    assert (
        runs("export", record.run_id, "--format", "html", "--log", path, "--to", page).stdout == f"{page}\n"
    )
    assert "SECRET CHUNK" not in page.read_text()
    runs("export", record.run_id, "--format", "html", "--text", "--log", path, "--to", page)
    assert "SECRET CHUNK" in page.read_text()
    lines = tmp_path / "run.jsonl"
    runs("export", record.run_id, "--log", path, "--to", lines)
    assert "SECRET CHUNK" in lines.read_text()
    runs("export", record.run_id, "--no-text", "--log", path, "--to", lines)
    assert "SECRET CHUNK" not in lines.read_text()


def test_text_for_people_keeps_to_its_line(
    runs: Callable[..., Outcome], path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExperimentLog.open(path) as log:
        record = make_record(query="line\nbreak \x1b[2J", method="imported:\x1b[2J")
        log.start(record, [DOCUMENT])
        log.record(record.run_id, step_taken(record.run_id, 1, text="\x1b]0;title\x07"))
        log.record(record.run_id, stopped(record.run_id, 1))
        log.finish(record.run_id, "failed", "out\nof memory")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    listed, shown = runs("list", "--log", path), runs("show", record.run_id, "--log", path)
    monkeypatch.undo()
    time.tzset()
    with ExperimentLog.open(path) as log:
        made = log.get(record.run_id).created_at.astimezone(ZoneInfo("Asia/Tokyo"))
    for text in (listed.stdout, shown.stdout):
        assert f"  {made:%Y-%m-%d %H:%M:%S}  " in text
    assert listed.stdout.startswith(record.run_id)
    assert listed.stdout.count("\n") == 1
    assert listed.stderr == "1 of 1 runs\n"
    assert "\x1b" not in listed.stdout + shown.stdout
    assert "out of memory" in shown.stdout


def test_while_another_process_owns_the_log(
    runs: Callable[..., Outcome], path: Path, tmp_path: Path, owner: Owner
) -> None:
    with ExperimentLog.open(tmp_path / "other.duckdb") as log:
        foreign = log_run(log, make_record())
    runs("export", "--log", tmp_path / "other.duckdb", "--to", tmp_path / "out.jsonl")
    run_id = owner.ask("run")
    assert runs("list", "--log", path).returncode == 2
    owner.ask("snapshot")
    listed = runs("list", "--log", path, "--json")
    assert json.loads(listed.stdout)["runs"][0]["run_id"] == run_id
    assert "snapshot" in listed.stderr
    refused = runs("delete", run_id, "--log", path)
    assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (2, "", 1)
    assert "was not deleted" in refused.stderr
    (tmp_path / "bad.jsonl").write_text("{}")
    assert runs("import", tmp_path / "bad.jsonl", "--log", path).returncode == 2
    inbox = Path(f"{path}.inbox")
    inbox.write_text("in the way")
    assert "could not be left" in runs("import", tmp_path / "out.jsonl", "--log", path).stderr
    inbox.unlink()
    imported = runs("import", tmp_path / "out.jsonl", "--log", path, "--json")
    assert json.loads(imported.stdout) == {"imported": None}
    assert "inbox" in imported.stderr
    assert owner.ask("import") == "1"
    owner.ask("close")
    with open_reader(path) as reader:
        assert {row.run_id for row in reader.search(owner=None).rows} == {run_id, foreign.run_id}


@pytest.mark.parametrize(
    "arguments",
    [
        ("list",),
        ("show", "f" * 32),
        ("export", "--to", "out"),
        ("delete", "f" * 32),
        ("list", "--limit", "0"),
        ("import", "nowhere.jsonl"),
    ],
)
def test_what_can_not_be_done_is_one_line(
    runs: Callable[..., Outcome], arguments: tuple[str, ...], path: Path
) -> None:
    if arguments[0] == "list" and len(arguments) > 1:
        ExperimentLog.open(path).close()
    process = runs(*arguments, "--log", path)
    assert (process.returncode, process.stdout, process.stderr.count("\n")) == (2, "", 1)


def test_the_default_log_is_the_persons_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("QRAG_HOME", str(tmp_path))
    assert default_log_path() == tmp_path / "log.duckdb"
    monkeypatch.delenv("QRAG_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_log_path() == tmp_path / ".local" / "share" / "qrag-explorer" / "log.duckdb"
