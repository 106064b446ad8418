"""SPARC beside other methods."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial

import pytest

from core.base.config import EpisodeConfig
from core.base.errors import LogError
from core.base.events import StepTaken, Stopped, fold
from core.corpus.index import Corpus
from core.methods.sparc.build import build_agents
from core.methods.sparc.events import Merged, NoteUpdated, Retrieved, SparcConfig
from core.methods.sparc.retrievals import Retrievals
from core.methods.sparc.retriever import SparcRetriever, evidence_steps
from core.methods.sparc.run import run_sparc
from core.methods.sparc.trace import SparcTrace, fold_sparc
from core.runs.again.records import sparc_answer, sparc_detail
from core.runs.log.records import MAX_DETAIL_BYTES, detail_json
from tests.core.methods.sparc.conftest import QUESTION, KnowingReader

CONFIG = SparcConfig(width=2, depth=2, k=3, strategies=("bm25",), first_round="rewrite")


@pytest.fixture
def trace(story: Corpus) -> SparcTrace:
    agents = build_agents(None, KnowingReader({"Quillmarsh": 0.9}), CONFIG)
    return fold_sparc(run_sparc(QUESTION, story, agents, Retrievals(story), CONFIG))


def test_evidence_stands_in_order_of_retrieval_with_the_scores_of_it(trace: SparcTrace) -> None:
    *taken, stopped = evidence_steps(trace)
    assert [step.step for step in taken] == list(range(1, len(taken) + 1))
    kept = trace.stopped.evidence
    assert [step.chunk_id for step in taken] == [chunk_id for chunk_id in trace.pool if chunk_id in kept]
    found = [one for event in trace.events if isinstance(event, Retrieved) for one in event.found]
    first = next(one for one in found if one.chunk_id == taken[0].chunk_id)
    assert (taken[0].q_value, taken[0].text) == (first.score, first.text)
    assert (type(stopped), stopped.n_steps) == (Stopped, len(taken))
    alone = [step.chunk_id for step in evidence_steps(trace, 1) if isinstance(step, StepTaken)]
    assert alone == [trace.stopped.evidence[0]]


def test_a_run_that_was_cut_short_has_the_evidence_of_its_last_merged_note(trace: SparcTrace) -> None:
    merged = next(i for i, event in enumerate(trace.events) if isinstance(event, Merged))
    for n_events, ids in ((merged, set()), (merged + 1, {*trace.events[merged].note.chunk_ids})):
        steps = evidence_steps(fold_sparc(trace.events[:n_events]))
        assert {step.chunk_id for step in steps if isinstance(step, StepTaken)} == ids
        assert not any(isinstance(step, Stopped) for step in steps)


def test_as_a_method_it_takes_no_more_than_the_others(story: Corpus) -> None:
    agents = partial(build_agents, None, KnowingReader({"Quillmarsh": 0.9}))
    retriever = SparcRetriever(agents, lambda: Retrievals(story), "relative20", CONFIG)
    heard: list[SparcTrace] = []
    retriever.hear = heard.append
    retriever.prepare()
    for budget in (1, 4):
        folded = fold(retriever.retrieve(f" {QUESTION} ", story, EpisodeConfig(step_budget=budget)))
        started = folded.started
        assert (started.method, started.query, started.checkpoint) == ("sparc", QUESTION, "relative20")
        assert 0 < len(folded.chosen) <= budget
        assert folded.stopped
        assert retriever.trace is heard[-1]
        assert retriever.trace.started.config.k == budget
        [*_, merged] = (event for event in retriever.trace.events if isinstance(event, Merged))
        assert len(merged.note.chunk_ids) == min(budget, len({*heard[-1].pool})), "rules remember as many"
        assert {*folded.chosen} <= {*heard[-1].pool}


def test_the_answer_names_who_gave_it_and_on_what(trace: SparcTrace) -> None:
    told = sparc_answer(trace)
    assert (told["text"], told["by"]) == (trace.answer, "rules and knowing")
    assert {*told["citations"]} <= {*trace.pool}


def lengthened(trace: SparcTrace, text: int, note: int) -> SparcTrace:
    """The trace with texts of some length."""

    def longer(event: object) -> object:
        if isinstance(event, Retrieved):
            return replace(event, found=tuple(replace(one, text="x" * text) for one in event.found))
        if isinstance(event, NoteUpdated):
            return replace(event, after=replace(event.after, text="y" * note))
        return event

    return replace(trace, events=tuple(longer(event) for event in trace.events))


def test_a_trace_that_is_too_long_for_the_log_keeps_the_beginnings_of_its_texts(trace: SparcTrace) -> None:
    assert sparc_detail(trace) == trace.to_json()
    told = sparc_detail(lengthened(trace, 300_000, 10))
    assert len(json.dumps(told)) <= MAX_DETAIL_BYTES
    back = SparcTrace.from_json(told)
    assert back.pool == trace.pool
    assert back.texts[back.pool[0]] == "x" * 2_000
    with pytest.raises(LogError, match="more than 1,000,000"):
        detail_json("sparc", sparc_detail(lengthened(trace, 10, 900_000)))
