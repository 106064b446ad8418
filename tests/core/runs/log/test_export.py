"""Exports come back the same, and nothing else comes in."""

from __future__ import annotations

import base64
import contextlib
import csv
import json
import pickle
import zlib
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.base.errors import LogError, RunNotFound
from core.base.types import ChunkTable, Document
from core.runs.export.runs import export_runs
from core.runs.log import ExperimentLog, MalformedRuns, import_runs
from core.runs.log.blobs import encode_table
from core.runs.log.wire import read_runs
from tests.core.runs.log.recording import (
    DOCUMENT,
    N_CHUNKS,
    chunk_table,
    log_run,
    make_record,
    q_values,
    step_taken,
)


@pytest.fixture
def other(tmp_path: Path) -> Any:
    with ExperimentLog.open(tmp_path / "other.duckdb") as log:
        yield log


def test_json_is_lossless(log: ExperimentLog, other: ExperimentLog, tmp_path: Path) -> None:
    parent = log_run(log, make_record(label={"support": [3], "answer": "語"}, query='quotes " and \n lines'))
    child = log_run(log, make_record(parent_run_id=parent.run_id, fork_step=1), first_step=2)
    cancelled = make_record()
    log.start(cancelled, [DOCUMENT])
    log.finish(cancelled.run_id, "cancelled", "by the person")
    file = export_runs(log, None, "json", tmp_path / "exports")
    assert file == tmp_path / "exports" / "runs.jsonl"
    assert file.read_text().count(json.dumps(DOCUMENT.text)) == 1
    assert import_runs(other, file) == 3
    for record in (parent, child, cancelled):
        before, after = log.get(record.run_id), other.get(record.run_id)
        assert after == before
        for look in range(1, before.trace.n_looks + 1):
            np.testing.assert_array_equal(
                after.trace.scores_at(look).q_values, before.trace.scores_at(look).q_values
            )  # type: ignore[union-attr]
        [document] = other.documents(record.run_id)
        assert document.document() == DOCUMENT
    assert other.documents(parent.run_id)[0].table is not None
    np.testing.assert_array_equal(other.documents(parent.run_id)[0].table.start, chunk_table().start)  # type: ignore[union-attr]


def test_a_line_is_a_line_for_every_reader(log: ExperimentLog, other: ExperimentLog, tmp_path: Path) -> None:
    """Some end it at other characters than a line feed, JavaScript's at U+2028; they come back
    as they were.
    """
    text = "one\ntwo\rthree\x0bfour\x0cfive\x1csix\x85seven\u2028eight\u2029nine"
    record = log_run(log, make_record(query=text), text=text)
    file = export_runs(log, [record.run_id], "json", tmp_path / "one.jsonl")
    assert file.read_text().splitlines() == file.read_text().split("\n")[:-1]
    assert import_runs(other, file) == 1
    run = other.get(record.run_id)
    assert {run.record.query, *(step.text for step in run.trace.steps)} == {text}


def test_an_id_that_is_taken_is_never_overwritten(log: ExperimentLog, tmp_path: Path) -> None:
    record = log_run(log, make_record())
    file = export_runs(log, [record.run_id], "json", tmp_path / "one.jsonl")
    file.write_text(file.read_text().replace("Where is the milk?", "Where is the bread?"))
    assert import_runs(log, file) == 0
    assert log.get(record.run_id).record.query == "Where is the milk?"


def test_without_text_no_text_leaves(log: ExperimentLog, other: ExperimentLog, tmp_path: Path) -> None:
    known = {"support": [3, 5], "answer": "SECRET ANSWER", "answers": ["SECRET ANSWER"], "marked": True}
    record = log_run(log, make_record(label=known), text="SECRET CHUNK")
    for format in ("json", "csv", "parquet", "openinference"):
        export_runs(log, None, format, tmp_path / "out", include_text=False)
    with (tmp_path / "out" / "runs.csv").open(newline="") as file:
        [row] = csv.DictReader(file)
    assert json.loads(row["label"]) == {"support": [3, 5], "marked": True}
    assert datetime.fromisoformat(row["created_at"]) == log.get(record.run_id).created_at
    written = b"".join(file.read_bytes() for file in (tmp_path / "out").iterdir())
    assert b"SECRET" not in written
    assert b"Sentence 1 of" not in written
    assert import_runs(other, tmp_path / "out" / "runs.jsonl") == 1
    assert other.get(record.run_id).record.label == {"support": [3, 5], "marked": True}
    [document] = other.documents(record.run_id)
    assert (document.title, document.text, document.table) == ("Handbook", None, None)
    with pytest.raises(LogError, match="was not kept"):
        document.document()
    assert other.get(record.run_id).trace.chosen == log.get(record.run_id).trace.chosen


def test_csv_is_two_tables_without_formulas(log: ExperimentLog, tmp_path: Path) -> None:
    document = Document("=HYPERLINK(1)", "text", "text")
    record = make_record(
        query="=cmd|' /C calc'!A0",
        method="+1",
        checkpoint="@SUM(A1)",
        vectors="-2+3",
        document_hashes=(document.sha256,),
    )
    log.start(record, [document])
    log.record(
        record.run_id, replace(step_taken(record.run_id, 1), q_value=-0.5, text='\t=1+1, "quoted"\nline')
    )
    log.finish(record.run_id, "failed", "@message")
    export_runs(log, None, "csv", tmp_path / "out")
    with (tmp_path / "out" / "runs.csv").open(newline="") as file:
        [run] = csv.DictReader(file)
    with (tmp_path / "out" / "steps.csv").open(newline="") as file:
        [step] = csv.DictReader(file)
    assert (run["query"], run["method"], run["checkpoint"], run["vectors"], run["message"]) == (
        "'=cmd|' /C calc'!A0",
        "'+1",
        "'@SUM(A1)",
        "'-2+3",
        "'@message",
    )
    assert json.loads(run["titles"]) == ["=HYPERLINK(1)"]
    assert (run["run_id"], run["n_steps"], run["seed"]) == (record.run_id, "1", "7")
    assert (float(step["q_value"]), step["text"]) == (-0.5, '\'\t=1+1, "quoted"\nline')
    for row in (run, step):
        assert not any(cell.startswith(("=", "+", "@", "\t", "\r")) for cell in row.values())


def test_parquet_is_two_tables(log: ExperimentLog, tmp_path: Path) -> None:
    first, second = log_run(log, make_record()), log_run(log, make_record(), n_steps=2)
    folder = export_runs(log, [first.run_id, second.run_id], "parquet", tmp_path / "it's")
    with contextlib.closing(duckdb.connect()) as connection:
        runs = connection.execute(
            "SELECT run_id, n_steps, stop_reason, seed FROM read_parquet(?)", [str(folder / "runs.parquet")]
        ).fetchall()
        steps = connection.execute(
            "SELECT run_id, step, q_value FROM read_parquet(?) ORDER BY step", [str(folder / "steps.parquet")]
        ).fetchall()
    assert set(runs) == {(first.run_id, 3, "threshold", 7), (second.run_id, 2, "threshold", 7)}
    assert [(step, q_value) for run_id, step, q_value in steps if run_id == first.run_id] == [
        (step, pytest.approx(q_values(first.run_id, step).max())) for step in (1, 2, 3)
    ]


def test_what_can_not_be_exported_is_one_sentence(log: ExperimentLog, tmp_path: Path) -> None:
    running = make_record()
    log.start(running, [DOCUMENT])
    with pytest.raises(RunNotFound):
        export_runs(log, ["f" * 32], "json", tmp_path)
    with pytest.raises(LogError, match="still going on"):
        export_runs(log, [running.run_id], "json", tmp_path)
    with pytest.raises(LogError, match="unknown"):
        export_runs(log, None, "xml", tmp_path)  # type: ignore[arg-type]
    (tmp_path / "file").write_text("in the way")
    for format in ("json", "csv", "parquet"):
        with pytest.raises(LogError):
            export_runs(log, None, format, tmp_path / "file" / "out")


def edit(lines: list[dict[str, Any]], which: int, **changes: Any) -> None:
    lines[which] |= changes


def set_table(lines: list[dict[str, Any]], table: ChunkTable) -> None:
    lines[0]["documents"][0]["table"] = base64.b64encode(encode_table(table)).decode()


def set_header(lines: list[dict[str, Any]], n_chunks: str) -> None:
    packed = zlib.decompress(encode_table(chunk_table()))
    packed = packed.replace(b'"n": %d' % N_CHUNKS, f'"n": {n_chunks}'.encode(), 1)
    lines[0]["documents"][0]["table"] = base64.b64encode(zlib.compress(packed)).decode()


HOSTILE_EDITS: dict[str, Callable[[list[dict[str, Any]]], object]] = {
    "unknown field": lambda lines: edit(lines, 0, surprise=1),
    "unknown field in the record": lambda lines: lines[0]["record"].update(surprise=1),
    "owner": lambda lines: edit(lines, 0, owner="a" * 64),
    "owner in the record": lambda lines: lines[0]["record"].update(owner="a" * 64),
    "newer format": lambda lines: edit(lines, 0, format=2),
    "run id is a path": lambda lines: lines[0]["record"].update(run_id="../../etc/passwd"),
    "wrong type": lambda lines: lines[0]["record"].update(seed="7"),
    "huge seed": lambda lines: lines[0]["record"].update(seed=10**30),
    "too many chunks": lambda lines: lines[0]["record"].update(n_chunks=10**15),
    "bad config": lambda lines: lines[0]["record"].update(config={"step_budget": 0}),
    "unknown config": lambda lines: lines[0]["record"].update(config={"api_key": "x"}),
    "other text": lambda lines: edit(lines, 1, text="another text"),
    "other documents": lambda lines: edit(lines, 0, documents=[]),
    "table of garbage": (
        lambda lines: lines[0]["documents"][0].update(table=base64.b64encode(b"garbage").decode())
    ),
    "scores are no base64": lambda lines: edit(lines, 2, q_values="%%%"),
    "scores of another length": lambda lines: edit(
        lines, 2, q_values=base64.b64encode(zlib.compress(bytes(12))).decode()
    ),
    "scores are a bomb": lambda lines: edit(
        lines, 2, q_values=base64.b64encode(zlib.compress(bytes(50_000_000))).decode()
    ),
    "scores are a pickle": lambda lines: edit(
        lines, 2, q_values=base64.b64encode(pickle.dumps(print)).decode()
    ),
    "chunk does not exist": lambda lines: lines[2]["event"].update(chunk_id=50),
    "label names no chunks": lambda lines: lines[0]["record"].update(label={"support": "text"}),
    "label names a chunk that does not exist": (
        lambda lines: lines[0]["record"].update(label={"support": [1, 50]})
    ),
    "forbidden chunk does not exist": lambda lines: lines[0]["record"]["config"].update(forbidden=[50]),
    "chunks of broken tokens": lambda lines: lines[0]["record"]["chunking"][0].update(max_tokens=64.5),
    "chunking is unknown": lambda lines: lines[0]["record"].update(chunking=[{"chunker": "axe"}]),
    "table of another length": lambda lines: set_table(lines, chunk_table(49)),
    "table beyond the text": lambda lines: set_table(
        lines, replace(chunk_table(), end=chunk_table().end + 10_000)
    ),
    "table of one place again and again": lambda lines: set_table(
        lines, replace(chunk_table(), start=chunk_table().start * 0)
    ),
    "table with a heading that does not exist": lambda lines: set_table(
        lines, replace(chunk_table(), heading_paths=())
    ),
    "table with chunks without end": lambda lines: set_header(lines, "1e999"),
    "table with a deep header": lambda lines: set_header(lines, "[" * 20_000 + "]" * 20_000),
    "table with chunks of fewer than no tokens": lambda lines: set_table(
        lines, replace(chunk_table(), n_tokens=-chunk_table().n_tokens)
    ),
    "unknown event": lambda lines: lines[2]["event"].update(event="run_code"),
    "first event inside": lambda lines: lines[2]["event"].update(event="run_started"),
    "step is missing": lambda lines: lines.pop(3),
    "steps swapped": lambda lines: lines.insert(2, lines.pop(3)),
    "end before its time": lambda lines: lines.insert(2, lines.pop(5)),
    "end after fewer steps": lambda lines: lines[5]["event"].update(n_steps=1),
    "review of fewer choices": lambda lines: lines[5]["event"].update(review=[0.5, 0.1]),
    "review of texts": lambda lines: lines[5]["event"].update(review=["0.5", "0.1", "0.2"]),
    "taken back without a review": lambda lines: lines[5]["event"].update(taken_back=[1]),
    "taken back what does not exist": (
        lambda lines: lines[5]["event"].update(review=[0.5, 0.1, 0.2], taken_back=[50])
    ),
    "no end": lambda lines: lines.pop(),
    "no beginning": lambda lines: lines.pop(0),
    "two beginnings": lambda lines: lines.insert(1, lines[0]),
    "wrong count": lambda lines: edit(lines, -1, n_events=1),
    "unknown status": lambda lines: edit(lines, -1, status="running"),
    "no time": lambda lines: edit(lines, -1, finished_at="yesterday"),
}


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("exported")
    with ExperimentLog.open(folder / "log.duckdb") as log:
        ids = [log_run(log, make_record()).run_id for _ in range(2)]
        first, second = (export_runs(log, [run_id], "json", folder / f"{run_id}.jsonl") for run_id in ids)
    return first.read_text(), second.read_text()


@pytest.mark.parametrize("change", HOSTILE_EDITS.values(), ids=HOSTILE_EDITS.keys())
def test_hostile_lines_are_refused_in_one_sentence(
    exported: tuple[str, str], tmp_path: Path, change: Callable[[list[dict[str, Any]]], object]
) -> None:
    lines = [json.loads(line) for line in exported[1].splitlines()]
    change(lines)
    file = tmp_path / "bad.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(MalformedRuns, match=r"bad\.jsonl, line \d+") as caught:
        list(read_runs(file))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600


def test_a_file_with_one_bad_run_is_refused_whole(
    exported: tuple[str, str], log: ExperimentLog, tmp_path: Path
) -> None:
    good, bad = exported
    file = tmp_path / "good.jsonl"
    file.write_text(good + bad.replace("step_taken", "run_code"))
    with pytest.raises(MalformedRuns, match=r"good\.jsonl, line \d+"):
        import_runs(log, file)
    assert log.search(owner=None).total == 0


def test_a_review_comes_along(log: ExperimentLog, other: ExperimentLog, tmp_path: Path) -> None:
    run_id = log_run(log, make_record()).run_id
    file = export_runs(log, [run_id], "json", tmp_path / "run.jsonl")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    least = lines[3]["event"]["chunk_id"]
    lines[5]["event"].update(review=[0.9, 0.01, 0.7], taken_back=[least])
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    import_runs(other, file)
    trace = other.get(run_id, None).trace
    assert (trace.stopped.review, trace.taken_back) == ((0.9, 0.01, 0.7), (least,))
    assert trace.evidence == tuple(sorted({*trace.chosen} - {least}))


def test_what_unpacks_to_too_much_is_refused(
    log: ExperimentLog, other: ExperimentLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = log_run(log, make_record())
    file = export_runs(log, [record.run_id], "json", tmp_path / "run.jsonl")
    # three steps and the look after them, 50 chunks each
    monkeypatch.setattr("core.runs.log.wire.MAX_SCORES", 199)
    with pytest.raises(MalformedRuns, match="200 Q-values, more than 199"):
        import_runs(other, file)
    monkeypatch.setattr("core.runs.log.wire.MAX_SCORES", 200)
    assert import_runs(other, file) == 1


@given(st.binary(max_size=300))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_garbage_is_no_run(other: ExperimentLog, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "garbage.jsonl").write_bytes(content)
    with pytest.raises(MalformedRuns):
        import_runs(other, tmp_path / "garbage.jsonl")


def test_a_missing_file_is_one_sentence(other: ExperimentLog, tmp_path: Path) -> None:
    with pytest.raises(LogError, match="can't be read"):
        import_runs(other, tmp_path / "nowhere.jsonl")
