"""A person's own SQL: answers of the log's snapshot, and everything else refused or ended."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from core.base.errors import BadRequest
from core.runs.log import ExperimentLog
from core.runs.log.database import snapshot_of
from core.runs.log.sql import EXAMPLES, query_log
from core.runs.sql_worker import MAX_CELL, MAX_COLUMNS, MAX_ROWS
from tests.conftest import few
from tests.core.runs.log.recording import log_run, make_record


def test_the_examples_answer(log: ExperimentLog) -> None:
    record = make_record()
    log_run(log, record)
    log_run(log, make_record(method="topk", label={"support": [1]}))
    answers = {title: query_log(log, sql) for title, sql in EXAMPLES.items()}
    found, chosen, stops = answers.values()
    assert found.columns == ("method", "checkpoint", "runs", "chunks", "found_all")
    assert query_log(
        log, "SELECT 1.795980123456789e9, [1.5e0, NULL], {'when': DATE '2026-01-02', 'of': 'é'}"
    ).rows == (("1795980123.456789", "[1.5, null]", '{"when": "2026-01-02", "of": "é"}'),)
    assert sorted(row[:4] for row in found.rows) == [("qrag", "base", "1", "3"), ("topk", "base", "1", "3")]
    assert {row[0] for row in chosen.rows} == {"Handbook"}
    assert stops.rows[0][:2] == ("threshold", "2")


def test_an_answer_is_bounded_and_says_so(log: ExperimentLog) -> None:
    log_run(log, make_record())
    result = query_log(
        log,
        f"SELECT range AS n, repeat('x', 5000) AS long, NULL AS none FROM range({MAX_ROWS + 1}) ORDER BY n",
    )
    assert (len(result.rows), result.more) == (MAX_ROWS, True)
    assert result.rows[7][0] == "7"
    assert result.rows[7][2] is None
    assert len(result.rows[0][1] or "") == MAX_CELL
    wide = query_log(log, "SELECT " + ", ".join(f"{i} AS c{i}" for i in range(200)))
    assert (len(wide.columns), len(wide.rows[0])) == (MAX_COLUMNS, MAX_COLUMNS)
    exact = query_log(log, f"FROM range({MAX_ROWS})")
    assert (len(exact.rows), exact.more) == (MAX_ROWS, False)


def test_answers_are_of_the_latest_snapshot(log: ExperimentLog, path: Path) -> None:
    log_run(log, make_record())
    assert query_log(log, "SELECT count(*) FROM log.runs").rows == (("1",),)
    log_run(log, make_record())
    assert query_log(log, "SELECT count(*) FROM runs").rows == (("1",),)
    log.snapshot()
    assert query_log(log, "SELECT count(*) FROM runs").rows == (("2",),)
    snapshot_of(path).unlink()
    assert query_log(log, "SELECT count(*) FROM runs").rows == (("2",),)


@pytest.mark.parametrize(
    ("sql", "words"),
    few(
        [
            ("", "is empty"),
            ("SELECT 1 " + "+ 1 " * 10_000, "characters"),
            ("SELECT 1; SELECT 2", "only one SELECT statement"),
            ("DELETE FROM runs", "only one SELECT statement"),
            ("SELECT * FROM read_text('/etc/passwd')", "can't be answered"),
            ("COPY runs TO '/tmp/stolen.csv'", "only one SELECT statement"),
            ("ATTACH '/tmp/other.duckdb'", "only one SELECT statement"),
            ("INSTALL httpfs", "only one SELECT statement"),
            ("SET lock_configuration = false", "only one SELECT statement"),
            ("PRAGMA database_list", "only one SELECT statement"),
            ("SELEC 1", "can't be answered"),
            ("SELECT * FROM nothing", "can't be answered"),
            ("SELECT * FROM '/etc/passwd'", "can't be answered"),
            ("SELECT * FROM read_csv('https://example.org/x.csv')", "can't be answered"),
            ("SELECT * FROM glob('/*')", "can't be answered"),
        ],
        5,
    ),
)
def test_what_is_no_single_select_over_the_log_is_refused(log: ExperimentLog, sql: str, words: str) -> None:
    log_run(log, make_record())
    with pytest.raises(BadRequest, match=words):
        query_log(log, sql)
    assert log.search(owner=None).total == 1


def test_an_endless_query_is_ended(log: ExperimentLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.runs.log.sql.MAX_SECONDS", 1)
    began = time.monotonic()
    with pytest.raises(BadRequest, match="took longer than"):
        query_log(
            log, "SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range * b.range % 7 = 3"
        )
    assert time.monotonic() - began < 1 + 5


def test_memory_is_bounded(log: ExperimentLog) -> None:
    with pytest.raises(BadRequest, match="more memory than there is"):
        query_log(log, "SELECT length(repeat('x', 3000000000) || repeat('y', 3000000000))")


def test_the_child_has_nothing_of_the_environment(
    log: ExperimentLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "canary")
    settings = dict(query_log(log, "SELECT name, value FROM duckdb_settings()").rows)
    assert "canary" not in json.dumps(settings)
    assert [
        settings[name]
        for name in ("enable_external_access", "python_enable_replacements", "lock_configuration")
    ] == ["false", "false", "true"]
