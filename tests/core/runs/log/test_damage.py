"""Damaged files and full disks: one sentence, nothing lost, and the next run is logged again."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from core.base.errors import LogError
from core.runs.log import ExperimentLog, RunRecord, open_log, open_reader
from core.runs.log.database import CATALOG, CHECKPOINT_BYTES
from core.runs.log.undo import HEADER_BYTES, keep_blocks, undo_of
from tests.conftest import few
from tests.core.runs.log.disk_full import N_CHUNKS, full_disk
from tests.core.runs.log.recording import DOCUMENT, log_run, make_record, q_values, step_taken

ROOT = Path(__file__).resolve().parents[4]
BLOCK_BYTES = 262_144
"""Of a DuckDB file."""
N_FOLDED = 30


def log_large(log: ExperimentLog) -> list[RunRecord]:
    """Twelve runs of a step and many chunks each."""
    records = [make_record(n_chunks=N_CHUNKS) for _ in range(12)]
    for record in records:
        log.start(record, [DOCUMENT])
        log.record(record.run_id, step_taken(record.run_id, 1, N_CHUNKS))
        log.finish(record.run_id, "complete")
        log.flush()
    return records


@pytest.mark.parametrize("content", [b"", b"short", b"garbage " * 4000], ids=["empty", "short", "garbage"])
def test_what_is_no_database_is_refused_and_left_alone(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    for attempt in (ExperimentLog.open, open_log, open_reader):
        with pytest.raises(LogError, match="move it aside or pass another file") as caught:
            attempt(path)
        assert "\n" not in str(caught.value)
        assert path.read_bytes() == content
    path.rename(path.with_suffix(".damaged"))
    with ExperimentLog.open(path) as log:
        log_run(log, make_record())


@pytest.mark.parametrize("offset", [100, 4096 + 20, 8192 + 900])
def test_damaged_headers_are_refused_and_left_alone(path: Path, offset: int) -> None:
    with ExperimentLog.open(path) as log:
        log_run(log, make_record())
    damage(path, offset)
    damaged = path.read_bytes()
    for attempt in (ExperimentLog.open, open_reader):
        with pytest.raises(LogError, match="is damaged and was left as it is"):
            attempt(path)
        assert path.read_bytes() == damaged


def test_damage_inside_the_file_costs_its_neighbourhood_and_not_the_log(path: Path) -> None:
    with ExperimentLog.open(path) as log:
        records = log_large(log)
    damage(path, path.stat().st_size // 2)
    with ExperimentLog.open(path) as log:
        unreadable = [record.run_id for record in records if not readable(log, record.run_id)]
        assert 0 < len(unreadable) < 9  # a row group of 8 MB goes together
        assert log.search(owner=None).total == 12
        new = log_run(log, make_record())
        assert log.get(new.run_id).n_steps == 3


def test_a_checkpoint_cut_off_inside_of_a_write_is_undone(path: Path, tmp_path: Path) -> None:
    """As a killed process leaves it: of a block that DuckDB writes anew, the first page is there."""
    torn = tmp_path / "torn.duckdb"
    with ExperimentLog.open(path) as log:
        records = [log_run(log, make_record()) for _ in range(3)]
        log.snapshot()  # which folds them
        records.append(log_run(log, make_record()))
        with path.open("rb", buffering=0) as file:
            log.read(lambda con: keep_blocks(con, CATALOG, file, undo_of(torn)))
        for end in ("", ".wal"):
            shutil.copy(f"{path}{end}", f"{torn}{end}")
    damage(torn, HEADER_BYTES)
    for attempt in (open_reader, ExperimentLog.open):  # what the first put back, the second finds whole
        with attempt(torn) as log:
            assert all(log.get(record.run_id).n_steps == 3 for record in records)
        assert not undo_of(torn).exists()


def test_a_log_is_not_begun_beside_what_is_left_of_another(path: Path, tmp_path: Path) -> None:
    """DuckDB deletes a write-ahead log without its file, and with it steps of the log that was moved aside."""
    with ExperimentLog.open(path) as log:
        record = log_run(log, make_record())
        parts = {end: Path(f"{path}{end}").read_bytes() for end in ("", ".wal")}
    Path(f"{path}.wal").write_bytes(parts[".wal"])
    path.rename(tmp_path / "aside.duckdb")
    with pytest.raises(
        LogError,
        match=r"there is no log .*, but its folder has log.duckdb.wal with steps of one; move what is left",
    ):
        ExperimentLog.open(path)
    (tmp_path / "aside.duckdb").write_bytes(parts[""])
    Path(f"{path}.wal").rename(tmp_path / "aside.duckdb.wal")
    with ExperimentLog.open(path), ExperimentLog.open(tmp_path / "aside.duckdb") as log:
        assert log.get(record.run_id).n_steps == 3


def test_a_log_that_could_not_be_opened_again_is_with_the_next_run(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExperimentLog.open(path) as log:
        log_run(log, make_record())
        monkeypatch.setattr(os, "replace", full_disk)
        path.rename(tmp_path / "away")
        with pytest.raises(LogError):
            log.snapshot()
        (tmp_path / "away").rename(path)
        monkeypatch.undo()
        log_run(log, make_record())
        assert log.search(owner=None).total == 2
        log.snapshot()


@pytest.mark.parametrize("n_blocks", few([1, 13, 2, 4, 8]), ids="{} blocks missing".format)
@pytest.mark.parametrize("n_waiting", [0, 3], ids="{} runs not folded yet".format)
def test_a_file_cut_short_is_told_on_opening_and_left_alone(
    path: Path, logs: dict[int, tuple[bytes, bytes]], n_blocks: int, n_waiting: int
) -> None:
    whole, beside = logs[n_waiting]
    path.write_bytes(whole[: -n_blocks * BLOCK_BYTES])
    waiting = Path(f"{path}.wal")
    if beside:
        waiting.write_bytes(beside)
    for attempt in (ExperimentLog.open, open_log, open_reader):
        with pytest.raises(
            LogError, match=r"was cut short and left as it is .* copy the whole file here again"
        ) as caught:
            attempt(path)
        assert "\n" not in str(caught.value)
        assert path.read_bytes() == whole[: -n_blocks * BLOCK_BYTES]
        assert not beside or waiting.read_bytes() == beside
    if n_blocks == 1:
        path.write_bytes(whole)
        with ExperimentLog.open(path) as log:
            assert log.search(owner=None).total == N_FOLDED + n_waiting
            assert all(log.get(row.run_id).n_steps == 3 for row in log.search(owner=None, limit=100).rows)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[int, tuple[bytes, bytes]]:
    """(file, write-ahead log) by the number of runs in the second, as a killed process leaves them; N_FOLDED
    are in the first.
    """
    path = tmp_path_factory.mktemp("logs") / "log.duckdb"
    with ExperimentLog.open(path) as log:
        for _ in range(N_FOLDED):
            log_run(log, make_record())
        log.snapshot()
        folded = path.read_bytes()
        for _ in range(3):
            log_run(log, make_record())
        return {0: (folded, b""), 3: (path.read_bytes(), Path(f"{path}.wal").read_bytes())}


@pytest.mark.campaign
def test_a_log_whose_last_blocks_are_not_in_use_opens(path: Path, tmp_path: Path) -> None:
    """DuckDB leaves such blocks away, and its header counts them all the same."""
    copy = tmp_path / "copy.duckdb"
    with ExperimentLog.open(path) as log:
        records = log_large(log)
        log.snapshot()
        for record in records[1:]:
            log.delete(record.run_id, None)
        log.snapshot()
        for _ in range(2):  # DuckDB 2.0 writes the first one behind what is free, and the second one within
            small = log_run(log, make_record())
            log.snapshot()
        log.snapshot().replace(copy)
    with ExperimentLog.open(copy) as log:
        [(counted,)] = log.read(
            lambda con: con.execute(
                "SELECT total_blocks FROM pragma_database_size() WHERE database_name = 'log'"
            ).fetchall()
        )
        assert copy.stat().st_size < counted * BLOCK_BYTES
        assert log.get(small.run_id).n_steps == 3
        assert log.get(records[0].run_id).n_steps == 1


def damage(path: Path, offset: int) -> None:
    content = bytearray(path.read_bytes())
    content[offset : offset + 64] = bytes(byte ^ 0xFF for byte in content[offset : offset + 64])
    path.write_bytes(content)


def readable(log: ExperimentLog, run_id: str) -> bool:
    try:
        return log.get(run_id).n_steps == 1
    except LogError as error:
        return "damaged" not in str(error)


def test_a_folder_that_can_not_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(LogError, match="pass a file in a folder"):
        ExperimentLog.open(tmp_path / "file" / "log.duckdb")


def fill_disk(path: Path, n_steps: int, n_bytes: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.core.runs.log.disk_full", str(path), str(n_steps), str(n_bytes)]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    outcome: dict[str, Any] = json.loads(process.stdout)
    return outcome


@pytest.mark.campaign
def test_a_full_disk_costs_the_run_that_met_it_and_no_other(path: Path) -> None:
    outcome = fill_disk(path, n_steps=6, n_bytes=8_000_000)
    assert outcome["reading"] == 2
    before, full, after = (outcome["runs"][name] for name in ("before", "full", "after"))
    assert before[1:] == [None, "complete", 2]
    assert "disk is full" in full[1]
    assert after[1:] == [None, "complete", 2]
    with ExperimentLog.open(path) as log:
        for name in ("before", "after"):
            run = log.get(outcome["runs"][name][0])
            assert (run.status, run.n_steps) == ("complete", 2)
            assert run.trace.steps[1].scores is not None
            assert (
                run.trace.steps[1].scores.q_values.tobytes()
                == q_values(run.record.run_id, 2, N_CHUNKS).tobytes()
            )
        assert log.get(full[0]).status == "failed"
        assert "disk is full" in (log.get(full[0]).message or "")


@pytest.mark.campaign
def test_a_checkpoint_that_finds_no_room_loses_nothing(path: Path) -> None:
    outcome = fill_disk(path, n_steps=22, n_bytes=28_000_000)
    assert outcome["runs"]["full"][1:] == [None, "complete", 22]
    assert outcome["write_ahead_bytes"] > CHECKPOINT_BYTES  # or the checkpoint would have found room
    with ExperimentLog.open(path) as log:
        assert [log.get(run_id).n_steps for run_id, *_ in outcome["runs"].values()] == [2, 22, 2]
