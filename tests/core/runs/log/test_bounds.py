"""Numbers and dates from outside: what would fail later is refused at once, the rest leaves again."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from core.base.config import MAX_SEED
from core.runs.export.runs import export_runs
from core.runs.log import (
    ExperimentLog,
    InboxLog,
    MalformedRuns,
    import_runs,
    list_evaluations,
    new_evaluation,
    new_run_id,
    read_evaluation,
)
from core.runs.log.bounds import BEFORE, EARLIEST, MAX_MILLISECONDS
from core.runs.log.inbox import inbox_of
from core.runs.log.measurements import Training
from core.runs.log.otlp import json_line
from core.runs.log.transfer import finished_run
from core.runs.log.wire import MAX_EVENTS, read_runs
from tests.conftest import few
from tests.core.lab.evaluate.rows import make_row
from tests.core.runs.log.recording import log_run, make_record

Lines = list[dict[str, Any]]
EXTREMES = few([2**63 - 1, float("nan"), 1e308, -1, 2**31, 10**400])
DATES = (
    "9999-12-31T23:59:59.999999-14:00",
    "0001-01-01T00:00:00+14:00",
    "2262-01-01T00:00:00Z",
    "1969-12-31T23:59:59Z",
    "9999-12-31T23:59:59Z",
    "0001-01-01T00:00:00Z",
)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A run that has forked, with a label and a detail."""
    folder = tmp_path_factory.mktemp("exported")
    with ExperimentLog.open(folder / "log.duckdb") as log:
        parent = log_run(log, make_record())
        record = make_record(
            parent_run_id=parent.run_id, fork_step=1, label={"support": [3], "confidence": 0.5}
        )
        log_run(log, record, first_step=2, n_steps=2)
        log.attach(record.run_id, "answer", {"text": "x", "cost": {"calls": 1, "milliseconds": 2.5}}, None)
        return export_runs(log, [record.run_id], "json", folder / "run.jsonl").read_text()


@pytest.fixture
def lines(exported: str) -> Lines:
    return [json.loads(line) for line in exported.splitlines()]


def write(path: Path, lines: Lines) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def numbers(value: Any) -> Iterator[tuple[Any, Any]]:
    """(container, key) of every number inside."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(inner, dict | list):
            yield from numbers(inner)
        elif isinstance(inner, int | float):
            yield value, key


def leaves_again(log: ExperimentLog, run_id: str, folder: Path) -> None:
    export_runs(log, [run_id], "csv", folder)
    json_line(finished_run(log, run_id, None))
    json.dumps(log.get(run_id).to_json(), allow_nan=False)


@pytest.mark.parametrize("extreme", EXTREMES, ids=lambda value: f"{value!s:.24}")
def test_any_number_of_a_run_is_refused_or_leaves_again(
    log: ExperimentLog, lines: Lines, tmp_path: Path, extreme: float
) -> None:
    n_refused = 0
    for which in range(len(list(numbers(lines)))):
        changed = copy.deepcopy(lines)
        container, key = list(numbers(changed))[which]
        container[key] = extreme
        changed[0]["record"]["run_id"] = run_id = new_run_id()
        try:
            import_runs(log, write(tmp_path / "run.jsonl", changed))
        except MalformedRuns:
            n_refused += 1
        else:
            leaves_again(log, run_id, tmp_path)
    assert n_refused > 5


@pytest.mark.parametrize("date", DATES)
@pytest.mark.parametrize(("which", "name"), [(0, "created_at"), (-1, "finished_at")])
def test_a_date_that_nothing_is_made_at_is_refused(
    lines: Lines, tmp_path: Path, which: int, name: str, date: str
) -> None:
    lines[which][name] = date
    with pytest.raises(MalformedRuns, match=f"line .*{name}.* must be in the years 1970 to 2261"):
        list(read_runs(write(tmp_path / "run.jsonl", lines)))


def test_the_most_there_may_be_goes_through(log: ExperimentLog, lines: Lines, tmp_path: Path) -> None:
    run_id, last = lines[0]["record"]["run_id"], BEFORE - timedelta(microseconds=1)
    lines[0]["created_at"], lines[-1]["finished_at"] = EARLIEST.isoformat(), last.isoformat()
    lines[0]["record"]["seed"] = lines[0]["record"]["config"]["seed"] = MAX_SEED
    lines[2]["event"]["milliseconds"] = float(MAX_MILLISECONDS)
    assert import_runs(log, write(tmp_path / "run.jsonl", lines)) == 1
    leaves_again(log, run_id, tmp_path)
    run = log.get(run_id)
    assert (run.created_at, run.finished_at, run.record.seed) == (EARLIEST, last, MAX_SEED)


def test_the_longest_run_ends_before_the_clock_of_traces() -> None:
    nanoseconds = (BEFORE.timestamp() * 1_000 + MAX_EVENTS * MAX_MILLISECONDS) * 1_000_000
    assert nanoseconds < 2**64


@pytest.mark.parametrize("extreme", EXTREMES, ids=lambda value: f"{value!s:.24}")
def test_any_number_of_an_evaluation_or_training_is_refused_or_read_back(
    log: ExperimentLog, extreme: float
) -> None:
    """And what waits behind it in the inbox comes in."""
    inbox = InboxLog(log.path)
    inbox.keep(new_evaluation([make_row(top_k_actions=5, chunk_tokens=96)], {"n": 3}))
    inbox.keep(
        Training(training_id=new_run_id(), created_at=EARLIEST, folder="a", config={}, events=({"q": [0.5]},))
    )
    kept = {path: json.loads(path.read_text()) for path in inbox_of(log.path).iterdir()}
    n_left = 0
    for path, values in kept.items():
        path.unlink()
        for which in range(len(list(numbers(values)))):
            changed = copy.deepcopy(values)
            changed[f"{changed['kind']}_id"] = f"{which:032x}"
            container, key = list(numbers(changed))[which]
            container[key] = extreme
            path.with_stem(f"{which:032x}").write_text(json.dumps(changed))
            n_left += 1
    log_run(inbox, last := make_record(run_id="f" * 32))
    n_in = log.import_inbox()
    rejected = list(inbox_of(log.path).iterdir())
    assert {path.suffix for path in rejected} == {".rejected"}
    assert (len(rejected) + n_in, log.get(last.run_id).n_steps) == (n_left + 1, 3)
    for entry in list_evaluations(log):
        read_evaluation(log, entry.evaluation_id)


@pytest.mark.parametrize("date", DATES)
def test_measurements_of_no_time_are_set_aside(log: ExperimentLog, date: str) -> None:
    inbox = InboxLog(log.path)
    inbox.keep(new_evaluation([make_row()], {}))
    inbox.keep(Training(training_id=new_run_id(), created_at=EARLIEST, folder="a", config={}, events=()))
    for path in inbox_of(log.path).iterdir():
        path.write_text(json.dumps(json.loads(path.read_text()) | {"created_at": date}))
    assert log.import_inbox() == 0
    assert {path.suffix for path in inbox_of(log.path).iterdir()} == {".rejected"}
