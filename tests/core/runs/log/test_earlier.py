"""A log and an export of an earlier version (November 2026, migrations up to 9) are read."""

from __future__ import annotations

import base64
import json
import lzma
import shutil
from pathlib import Path

import pytest

from core.encode.checkpoint import find_checkpoint, read_spec, write_spec
from core.encode.encoder import load_encoder
from core.methods.sparc.trace import SparcTrace
from core.runs.again.replay import replay_run
from core.runs.export.runs import export_runs
from core.runs.log import ExperimentLog, import_runs
from core.runs.log.blobs import decode_table, encode_table

EARLIER = Path(__file__).parent / "earlier"
METHODS = ["sparc", "qrag", "qrag"]


@pytest.fixture
def earlier(path: Path) -> Path:
    path.write_bytes(lzma.decompress((EARLIER / "log.duckdb.xz").read_bytes()))
    return path


def test_its_runs_are_listed_and_read(earlier: Path) -> None:
    with ExperimentLog.open(earlier) as log:
        rows = log.search(owner=None).rows
        runs = [log.get(row.run_id) for row in rows]
        sentences = log.documents(rows[2].run_id)[0].table
        version = log.read(lambda con: con.execute("SELECT max(version) FROM migrations").fetchone())
    assert version[0] > 9
    assert [row.method for row in rows] == METHODS
    assert [run.trace.chosen for run in runs[1:]] == [(4, 2), (5, 2)]
    assert all(step.scores is not None for run in runs[1:] for step in run.trace.steps)
    assert [run.details["answer"]["text"] for run in runs[::2]] == ["garden", "garden"]
    branches = SparcTrace.from_json(runs[0].details["sparc"])
    assert (len(branches.rounds), branches.answer) == (1, "garden")
    assert sentences is not None
    assert len(sentences) == 8


def as_of_today(line: str) -> str:
    """A line of an export without what tables of chunks no longer tell."""
    values = json.loads(line)
    for document in values.get("documents", ()):
        document["table"] = encode_table(decode_table(base64.b64decode(document["table"]))).hex()
    return json.dumps(values)


def test_its_export_is_what_today_s_would_be_and_comes_in(earlier: Path, tmp_path: Path) -> None:
    export = EARLIER / "runs.jsonl"
    with ExperimentLog.open(earlier) as log:
        ids = [row.run_id for row in log.search(owner=None).rows]
        pages = export_runs(log, ids, "html", tmp_path / "pages")
        assert len(list(pages.iterdir())) == 3
        again = export_runs(log, ids, "json", tmp_path / "again")
        lines = [path.read_text("utf-8").splitlines() for path in (again, export)]
        assert sorted(map(as_of_today, lines[0])) == sorted(map(as_of_today, lines[1]))
    with ExperimentLog.open(tmp_path / "new.duckdb") as log:
        assert import_runs(log, export) == 3
        assert [row.method for row in log.search(owner=None).rows] == METHODS


def test_its_run_is_made_again(earlier: Path, tmp_path: Path) -> None:
    """By the agent as it was, and by today's, which counts codes too."""
    with ExperimentLog.open(earlier) as log:
        row = log.search(owner=None).rows[2]
        run, documents = log.get(row.run_id), log.documents(row.run_id)
    was = tmp_path / "was"
    shutil.copytree(find_checkpoint(run.record.checkpoint), was)
    write_spec(was, read_spec(was).model_copy(update={"identifier_weight": 0.0}))
    for agent, is_the_same in ((str(was), True), (run.record.checkpoint, False)):
        replay = replay_run(run, documents, load_encoder(agent, "cpu"))
        assert replay.same_weights is is_the_same
        assert replay.report.same_choices
