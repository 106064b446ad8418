"""Old logs are brought up to date, newer and foreign files are refused."""

from __future__ import annotations

import contextlib
from pathlib import Path

import duckdb
import pytest

from core.base.errors import LogError
from core.runs.log import ExperimentLog, open_reader
from core.runs.log.migrations import SCHEMA, VERSION, migrate
from tests.core.runs.log.recording import DOCUMENT, log_run, make_record, step_taken

RUN_ID = "0123456789abcdef" * 2


@pytest.fixture
def version_1(path: Path) -> Path:
    """A log as version 1 wrote it, with one finished run."""
    with contextlib.closing(duckdb.connect(str(path))) as connection:
        migrate(connection, path)
        connection.execute(
            """DROP TABLE copied_runs; DROP TABLE marked_questions; DROP TABLE run_details; DROP TABLE chunk_tables;
               ALTER TABLE run_documents DROP COLUMN table_sha256; ALTER TABLE run_documents DROP COLUMN withheld;
               ALTER TABLE episode_rows DROP COLUMN kept; UPDATE migrations SET version = 1"""
        )
        connection.execute(
            """INSERT INTO runs (run_id, shared, status, created_at, finished_at, method, query, config, chunking, checkpoint, checkpoint_fingerprint,
               vectors, n_chunks, seed) VALUES (?, false, 'complete', '2026-01-02', '2026-01-03', 'qrag', 'old', '{}', '[]', 'base', 'f', 'v', 5, 1)""",
            [RUN_ID],
        )
        connection.execute("INSERT INTO documents VALUES (?, 'text', NULL)", [DOCUMENT.sha256])
        connection.execute(
            "INSERT INTO run_documents VALUES (?, 0, ?, 'Old title')", [RUN_ID, DOCUMENT.sha256]
        )
    return path


def test_version_1_is_brought_up_to_date_with_its_runs(version_1: Path) -> None:
    with ExperimentLog.open(version_1) as log:
        assert log.get(RUN_ID).record.query == "old"
        assert [(document.title, document.table) for document in log.documents(RUN_ID)] == [
            ("Old title", None)
        ]
        new = log_run(log, make_record())
        assert log.documents(new.run_id)[0].table is not None
        assert log.documents(RUN_ID)[0].text == DOCUMENT.text
        versions = log.read(lambda con: con.execute("SELECT version FROM migrations ORDER BY 1").fetchall())
    assert versions == [(1,), (VERSION,)]


def test_a_reader_brings_an_unowned_log_up_to_date(version_1: Path) -> None:
    with open_reader(version_1) as reader:
        assert [document.title for document in reader.documents(RUN_ID)] == ["Old title"]


def test_a_migration_that_fails_leaves_no_trace(version_1: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fails = "CREATE TABLE half_done (x INTEGER); SELECT error('power cut')"
    with contextlib.closing(duckdb.connect(str(version_1))) as connection:
        with monkeypatch.context() as patch:
            patch.setattr("core.runs.log.migrations.SCHEMA", SCHEMA + fails)
            with pytest.raises(duckdb.Error, match="power cut"):
                migrate(connection, version_1)
        assert connection.execute("SELECT max(version) FROM migrations").fetchall() == [(1,)]
        assert connection.execute(
            "SELECT count(*) FROM duckdb_tables() WHERE table_name = 'half_done'"
        ).fetchall() == [(0,)]
    with ExperimentLog.open(version_1) as log:
        assert log.search(owner=None).total == 1


def test_a_newer_log_is_refused_and_left_alone(path: Path) -> None:
    with ExperimentLog.open(path) as log:
        record = log_run(log, make_record())
    with contextlib.closing(duckdb.connect(str(path))) as connection:
        connection.execute("INSERT INTO migrations VALUES (999, 'm999_future', now()::TIMESTAMP)")
    before = path.read_bytes()
    for attempt in (ExperimentLog.open, open_reader):
        with pytest.raises(LogError, match="version 999"):
            attempt(path)
    assert path.read_bytes() == before
    with contextlib.closing(duckdb.connect(str(path))) as connection:
        connection.execute("DELETE FROM migrations WHERE version = 999")
    with ExperimentLog.open(path) as log:
        assert log.get(record.run_id).trace.steps[0] == step_taken(record.run_id, 1)


def test_another_programs_database_is_refused(path: Path) -> None:
    with contextlib.closing(duckdb.connect(str(path))) as connection:
        connection.execute("CREATE TABLE customers (name VARCHAR)")
    for attempt in (ExperimentLog.open, open_reader):
        with pytest.raises(LogError, match="no log of this program"):
            attempt(path)
