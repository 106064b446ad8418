"""Traces: there and back, replayed without agents, cut at a smaller depth, and refused when damaged."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from core.base.errors import BadRequest
from core.corpus.index import Corpus
from core.llm.protocol import LlmError
from core.methods.sparc.agents import RewriteTask
from core.methods.sparc.build import build_agents
from core.methods.sparc.events import Note, SparcConfig
from core.methods.sparc.retrievals import Retrievals
from core.methods.sparc.run import run_sparc
from core.methods.sparc.trace import SparcTrace, fold_sparc
from tests.core.methods.sparc.conftest import QUESTION, KnowingReader, RoleLlm
from tests.core.methods.sparc.test_run import without_times

CONFIG = SparcConfig(width=2, depth=3, k=2, strategies=("bm25",), first_round="rewrite")


@pytest.fixture
def trace(story: Corpus) -> SparcTrace:
    return traced(story, CONFIG)


def traced(story: Corpus, config: SparcConfig) -> SparcTrace:
    agents = build_agents(None, KnowingReader({"Quillmarsh": 0.3}), config)
    return fold_sparc(run_sparc(QUESTION, story, agents, Retrievals(story), config))


def test_a_trace_comes_back_from_json_and_is_replayed_from_it(trace: SparcTrace) -> None:
    back = SparcTrace.from_json(json.loads(json.dumps(trace.to_json())))
    assert back == trace
    assert fold_sparc(back.events) == trace
    assert back.text(back.pool[0]) == trace.text(back.pool[0]) != ""


@pytest.mark.parametrize("depth", [1, 2])
def test_a_run_cut_at_a_depth_is_the_run_of_that_depth(story: Corpus, trace: SparcTrace, depth: int) -> None:
    assert without_times(trace.at_depth(depth)) == without_times(traced(story, replace(CONFIG, depth=depth)))


def test_cutting_deeper_than_the_run_went_changes_only_the_bound(trace: SparcTrace) -> None:
    assert trace.at_depth(8).stopped == trace.stopped
    assert trace.at_depth(8).started.config.depth == 3


def test_a_run_that_failed_deeper_is_whole_at_the_depth_before(story: Corpus) -> None:
    fails = [
        {"queries": [{"query": "lantern", "strategy": "bm25"}, {"query": "tavern", "strategy": "bm25"}]},
        LlmError("too many requests; wait"),
    ]
    trace = fold_sparc(
        run_sparc(
            QUESTION,
            story,
            build_agents(RoleLlm(rewriter=fails), KnowingReader({}), CONFIG),
            Retrievals(story),
            CONFIG,
        )
    )
    assert trace.stopped is not None
    assert (trace.stopped.reason, len(trace.rounds)) == ("failed", 1)
    cut = trace.at_depth(1)
    assert cut.stopped is not None
    assert (cut.stopped.reason, cut.stopped.answer, cut.stopped.cost.calls) == (
        "depth",
        "Quillmarsh",
        trace.stopped.cost.calls - 1,
    )
    assert trace.at_depth(2).stopped == trace.stopped


def test_what_the_rewriter_was_given_can_be_rebuilt(trace: SparcTrace) -> None:
    assert trace.rewriter_task(1) == RewriteTask(QUESTION, Note(), 2, ("bm25",))
    second = trace.rewriter_task(2)
    assert second is not None
    assert second.note == trace.rounds[0].merged.note  # type: ignore[union-attr]
    assert second.queries == tuple(one.query.query for one in trace.rounds[0].branches)


@pytest.mark.parametrize(
    "damage",
    [
        lambda values: values | {"format": 2},
        lambda values: values | {"events": values["events"][1:]},
        lambda values: values | {"events": [*values["events"], values["events"][1]]},
        lambda values: values | {"events": [values["events"][0], values["events"][0] | {"event": "judged"}]},
        lambda values: values | {"events": [values["events"][0], values["events"][-1], values["events"][-1]]},
        lambda values: (
            values
            | {
                "events": [
                    values["events"][0],
                    next(one for one in values["events"] if one["event"] == "judged") | {"round": 0},
                ]
            }
        ),
        lambda values: values["events"],
    ],
)
def test_a_damaged_trace_is_refused_in_a_sentence(trace: SparcTrace, damage) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(BadRequest, match=r"trace of a SPARC run"):
        SparcTrace.from_json(damage(trace.to_json()))


def test_a_run_under_way_has_its_best_answer_so_far(trace: SparcTrace) -> None:
    so_far = fold_sparc(trace.events[:-1])
    assert so_far.stopped is None
    assert so_far.answer == trace.answer
    assert so_far.note == trace.note
