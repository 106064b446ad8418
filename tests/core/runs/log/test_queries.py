"""Searching the log: every filter, what a row says of a labelled question, and Q along runs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from core.base.config import EpisodeConfig
from core.base.errors import BadRequest, LogError
from core.base.events import Stopped
from core.runs.log import ExperimentLog
from core.runs.log.records import moment
from core.runs.log.sql import EXAMPLES, query_log
from tests.core.runs.log.recording import DOCUMENT, log_run, make_record, step_taken

A = "a" * 64


def chosen(run_id: str) -> list[int]:
    return [step_taken(run_id, step).chunk_id for step in (1, 2, 3)]


def log_labelled(log: ExperimentLog, support: Callable[[list[int]], Any], **changes: Any) -> str:
    """A run whose label is made of the chunks that it will choose."""
    run_id = make_record().run_id
    return log_run(
        log, make_record(run_id=run_id, label={"support": support(chosen(run_id))}, **changes)
    ).run_id


def test_hits_misses_and_labels_that_say_nothing(log: ExperimentLog) -> None:
    hit = log_labelled(log, lambda ids: ids[:2] + ids[:1])
    miss = log_labelled(log, lambda ids: [ids[0], next(i for i in range(50) if i not in ids)])
    odd = [log_labelled(log, lambda _, label=label: label) for label in ("text", [], ["x"], {"a": 1}, None)]  # type: ignore[misc]
    plain = log_run(log, make_record()).run_id
    assert [row.run_id for row in log.search(owner=None, hit=True).rows] == [hit]
    assert [row.run_id for row in log.search(owner=None, hit=False).rows] == [miss]
    rows = {row.run_id: row for row in log.search(owner=None).rows}
    assert (rows[hit].n_support, rows[hit].n_found, rows[hit].hit) == (
        len(set(chosen(hit)[:2])),
        len(set(chosen(hit)[:2])),
        True,
    )
    assert (rows[miss].n_support, rows[miss].n_found, rows[miss].hit) == (2, 1, False)
    assert {rows[run_id].hit for run_id in (*odd, plain)} == {None}
    assert (rows[plain].stop_reason, rows[plain].seed) == ("threshold", 7)
    assert rows[plain].to_json()["n_support"] is None


def test_a_preview_is_told_from_a_run_over_everything(log: ExperimentLog) -> None:
    whole = log_run(log, make_record()).run_id
    part = log_run(log, make_record(config=EpisodeConfig(searched=((0, 20),)).to_json())).run_id
    assert {row.run_id: row.preview for row in log.search(owner=None).rows} == {whole: False, part: True}


def test_support_that_the_review_took_back_is_not_found(log: ExperimentLog) -> None:
    run_id = make_record().run_id
    first = chosen(run_id)[0]
    log.start(make_record(run_id=run_id, label={"support": [first]}), [DOCUMENT])
    log.record(run_id, step_taken(run_id, 1))
    log.record(run_id, Stopped("budget", 1, review=(0.0,), taken_back=(first,)))
    log.finish(run_id, "complete")
    [row] = log.search(owner=None, hit=False).rows
    assert (row.n_found, row.n_support) == (0, 1)
    assert log.search(owner=None, hit=True).total == 0
    assert query_log(log, next(iter(EXAMPLES.values()))).rows[0][-1] == "0"


@pytest.mark.parametrize("offset", [-1, 10**30])
def test_an_offset_out_of_bounds_is_named(log: ExperimentLog, offset: int) -> None:
    with pytest.raises(LogError, match=r"^offset=-?\d+ must be between 0 and 9,007,199,254,740,991; choose"):
        log.search(owner=None, offset=offset)


def test_a_run_without_a_step_is_a_miss(log: ExperimentLog) -> None:
    record = make_record(label={"support": [3]})
    log.start(record, [DOCUMENT])
    log.finish(record.run_id, "cancelled")
    [row] = log.search(owner=None, hit=False).rows
    assert (row.n_found, row.n_support, row.stop_reason) == (0, 1, None)


def test_dates_bound_the_beginning(log: ExperimentLog) -> None:
    log_run(log, make_record())
    [row] = log.search(owner=None).rows
    at, second = row.created_at, timedelta(seconds=1)
    assert log.search(owner=None, since=at, until=at + second).total == 1
    assert log.search(owner=None, until=at).total == 0
    assert log.search(owner=None, since=at + second).total == 0
    elsewhere = at.astimezone(tz=None)
    assert log.search(owner=None, since=elsewhere, until=elsewhere + second).total == 1


def test_filters_narrow_each_other_and_stay_with_the_owner(log: ExperimentLog) -> None:
    mine = log_labelled(log, lambda ids: ids, method="topk", query="Who has the milk?")
    log_labelled(log, lambda ids: ids, method="topk", query="Who has the milk?", owner=A)
    log_run(log, make_record(method="topk", query="Who has the milk?"))
    found = log.search(
        owner=None,
        text="MILK",
        method="topk",
        checkpoint="base",
        document="hand",
        status="complete",
        hit=True,
    )
    assert ([row.run_id for row in found.rows], found.total) == ([mine], 1)
    assert log.search(owner=None, text="milk'; DROP TABLE runs; --").total == 0


def test_facets_are_the_readers_own(log: ExperimentLog) -> None:
    for method, checkpoint, owner in (
        ("topk", "base", None),
        ("qrag", "tiny", None),
        ("qrag", "base", None),
        ("bm25", "secret", A),
    ):
        log_run(log, make_record(method=method, checkpoint=checkpoint, owner=owner))
    facets = log.facets()
    assert (facets.methods, facets.checkpoints) == (("qrag", "topk"), ("base", "tiny"))
    assert log.facets(A).checkpoints == ("secret",)


def test_curves_hold_q_of_each_choice_and_of_the_refusal(log: ExperimentLog) -> None:
    run, other = log_run(log, make_record()), log_run(log, make_record(owner=A))
    bare = make_record()
    log.start(bare, [DOCUMENT])
    log.record(bare.run_id, step_taken(bare.run_id, 1))
    curves = log.curves([run.run_id, other.run_id, bare.run_id, "f" * 32])
    assert set(curves) == {run.run_id, bare.run_id}
    trace = log.get(run.run_id).trace
    assert curves[run.run_id].chosen == pytest.approx([step.q_value for step in trace.steps])
    assert curves[run.run_id].refused == pytest.approx(trace.stopped.q_value)
    assert (len(curves[bare.run_id].chosen), curves[bare.run_id].refused) == (1, None)
    log.share(other.run_id, A)
    assert set(log.curves([other.run_id])) == {other.run_id}


def test_a_day_has_a_beginning_and_an_end() -> None:
    begins, ends = moment("2026-03-31"), moment(" 2026-03-31 ", end=True)
    assert ends - begins == timedelta(days=1)
    assert begins.astimezone().strftime("%Y-%m-%d %H:%M") == "2026-03-31 00:00"
    assert moment("2026-03-31T14:30:00+02:00", end=True) == datetime(2026, 3, 31, 12, 30, tzinfo=UTC)


@pytest.mark.parametrize("text", ["", "soon", "2026-02-30", "31.3.2026", "9999-12-31"])
def test_what_is_no_date_is_one_sentence(text: str) -> None:
    with pytest.raises(BadRequest, match="write it as 2026-03-31"):
        moment(text, end=True)
