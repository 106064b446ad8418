"""Traces: there and back, replayed without agents, cut at a smaller depth, and refused when damaged."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from core.base.errors import BadRequest
from core.corpus.index import Corpus
from core.methods.sparc.agents import RewriteTask
from core.methods.sparc.events import Note
from core.methods.sparc.trace import SparcTrace, end_of, fold_sparc
from tests.core.methods.sparc.conftest import QUESTION, KnowingReader
from tests.core.methods.sparc.test_run import LEXICAL, run, without_times


@pytest.fixture
def trace(story: Corpus) -> SparcTrace:
    return run(None, story, LEXICAL, KnowingReader({"Quillmarsh": 0.3}))


def test_a_trace_comes_back_from_json_and_is_replayed_from_it(trace: SparcTrace) -> None:
    back = SparcTrace.from_json(json.loads(json.dumps(trace.to_json())))
    assert back == trace
    assert fold_sparc(back.events) == trace
    assert back.texts == trace.texts != {}
    so_far = fold_sparc(trace.events[:-1])
    assert (so_far.stopped, so_far.answer, so_far.note) == (None, trace.answer, trace.note)


def test_a_run_cut_at_a_depth_is_the_run_of_that_depth(story: Corpus, trace: SparcTrace) -> None:
    for depth in (1, 2):
        alone = run(None, story, replace(LEXICAL, depth=depth), KnowingReader({"Quillmarsh": 0.3}))
        assert without_times(trace.at_depth(depth)) == without_times(alone)
    deeper = trace.at_depth(8)
    assert (deeper.stopped, deeper.started.config.depth) == (trace.stopped, 3), "only the bound changes"


def test_what_the_rewriter_was_given_can_be_rebuilt(trace: SparcTrace) -> None:
    assert trace.rewriter_task(1) == RewriteTask(QUESTION, Note(), 2, ("bm25",))
    second = trace.rewriter_task(2)
    assert second.note == trace.rounds[0].merged.note
    assert second.queries == tuple(one.query.query for one in trace.rounds[0].branches)


def test_a_damaged_trace_is_refused_in_a_sentence(trace: SparcTrace) -> None:
    values = trace.to_json()
    first, second, *_, last = events = values["events"]
    judged = next(one for one in events if one["event"] == "judged")
    for damaged in (
        values | {"format": 2},
        values | {"events": events[1:]},
        values | {"events": [*events, second]},
        values | {"events": [first, first | {"event": "judged"}]},
        values | {"events": [first, last, last]},
        values | {"events": [first, judged | {"round": 0}]},
        events,
    ):
        with pytest.raises(BadRequest, match=r"trace of a SPARC run"):
            SparcTrace.from_json(damaged)


def test_a_run_cut_short_ends_with_the_first_branch_that_answered(trace: SparcTrace) -> None:
    """However much surer another is."""
    n_branches = next(i for i, one in enumerate(trace.events) if one.event == "merged")
    surer = [
        replace(one, confidence=0.9 if one.branch == 2 else 0.2, answer="Quillmarsh")
        if one.event == "answered"
        else one
        for one in trace.events[:n_branches]
    ]
    end = end_of(fold_sparc(surer), "calls")
    assert (end.branch, end.answer) == (1, "Quillmarsh")
