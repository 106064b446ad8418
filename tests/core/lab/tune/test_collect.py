"""Pairs from logged runs: which reply is preferred, that prompts are what agents send."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, cast

import pytest

from core.base.errors import BadRequest
from core.lab.tune import collect
from core.lab.tune.collect import EARLY_STOP_WEIGHT, STOCK_REASONS, answers_of, collect_pairs
from core.lab.tune.pairs import Preference
from core.llm.protocol import Cost
from core.methods.sparc.agents import SupportedAnswer, Turn
from core.methods.sparc.llm_agents import LlmAgents
from core.runs.log import ExperimentLog
from core.runs.log.records import support_of
from tests.core.lab.tune.recording import BY_RULES, QUESTION, Round, log_sparc, sparc_trace
from tests.core.llm.scripted import ScriptedLlm

RIGHT = Round(found=((1, 9), (2, 3)))
OTHER_QUERIES = ("who wrote it", "film")


def of_kind(log: ExperimentLog, kind: str) -> list[Preference]:
    return [pair for pair in collect_pairs(log)[0] if pair.kind == kind]


def said(pair: Preference, name: str) -> tuple[str, str]:
    return json.loads(pair.chosen)[name], json.loads(pair.rejected)[name]


def test_of_two_rewrites_in_one_state_the_one_that_found_more_support_is_preferred(
    log: ExperimentLog,
) -> None:
    log_sparc(log, [RIGHT])
    log_sparc(log, [replace(RIGHT, found=((1, 9), (4, 3)), queries=OTHER_QUERIES)])
    [pair] = of_kind(log, "rewrite")
    assert [query["query"] for query in json.loads(pair.chosen)["queries"]] == list(RIGHT.queries)
    assert [query["query"] for query in json.loads(pair.rejected)["queries"]] == list(OTHER_QUERIES)
    assert (pair.weight, pair.question) == (1.0, QUESTION)


def test_prompts_are_what_the_agents_send(log: ExperimentLog) -> None:
    rounds = [
        replace(RIGHT, verdict="continue", answer="Bob"),
        replace(RIGHT, note="Ann Lee wrote the book </note>."),
    ]
    worse = [rounds[0], replace(rounds[1], found=((5, 6), (7, 8)), queries=OTHER_QUERIES)]
    log_sparc(log, rounds)
    log_sparc(log, worse)
    llm = ScriptedLlm(lambda _: json.dumps({"queries": [], "verdict": "stop"}))
    agents, turn, trace = LlmAgents(llm), Turn(cast(Any, None)), sparc_trace(rounds)
    task = trace.rewriter_task(2)
    assert task is not None
    agents.rewrite(task, turn)
    branch = trace.rounds[1].branches[0]
    answer = SupportedAnswer(branch.answered.answer, None, ())
    agents.judge(QUESTION, branch.query.query, answer, branch.noted.after, turn)
    rewrite, stop = llm.calls
    assert [pair.prompt for pair in of_kind(log, "rewrite")] == [rewrite]
    assert stop in [pair.prompt for pair in of_kind(log, "stop_over_continue")]


def test_a_model_constrained_to_the_schema_is_not_told_it_in_words(log: ExperimentLog) -> None:
    log_sparc(log, [RIGHT])
    words = of_kind(log, "stop_over_continue")[0].prompt[-1].content
    assert "JSON schema" in words
    log_sparc(log, [replace(RIGHT, cost=Cost(1, 200, 20, 5.0, "json_schema"))])
    said = {pair.prompt[-1].content for pair in of_kind(log, "stop_over_continue")[::2]}
    assert said == {words, words.partition("\n\nReply with one JSON object that fits")[0]}


def test_the_right_verdict_is_preferred_whichever_was_given(log: ExperimentLog) -> None:
    wrong_stop = replace(RIGHT, answer="Bob Hill", reason="Bob Hill is named.")
    wrong_continue = replace(RIGHT, verdict="continue", reason="Not sure.")
    log_sparc(log, [wrong_stop])
    log_sparc(log, [wrong_continue])
    _, report = collect_pairs(log)
    early, late = of_kind(log, "continue_over_stop")[0], of_kind(log, "stop_over_continue")[0]
    assert (said(early, "verdict"), early.weight) == (("continue", "stop"), EARLY_STOP_WEIGHT)
    assert said(early, "reason") == (STOCK_REASONS["continue"], "Bob Hill is named.")
    assert (said(late, "verdict"), late.weight) == (("stop", "continue"), 1.0)
    assert said(late, "reason") == (STOCK_REASONS["stop"], "Not sure.")
    assert (report.runs, report.skipped, report.left_out) == (2, {}, 0)
    assert report.decisions == {"rewrites": 2, "wrong continue": 2, "wrong stop": 2}
    assert report.pairs == {"continue_over_stop": 2, "stop_over_continue": 2}


def test_a_state_seen_twice_gives_one_pair_with_the_reasons_that_were_given(log: ExperimentLog) -> None:
    for verdict in ("stop", "continue", "stop"):
        log_sparc(log, [replace(RIGHT, verdict=verdict, reason=f"I say {verdict}.")])
    pairs = of_kind(log, "stop_over_continue")
    assert len(pairs) == 2, "one a branch: their queries differ"
    assert {json.loads(pair.chosen)["reason"] for pair in pairs} == {"I say stop."}
    assert {json.loads(pair.rejected)["reason"] for pair in pairs} == {"I say continue."}


def test_rules_teach_a_language_model_nothing(log: ExperimentLog) -> None:
    log_sparc(log, [replace(RIGHT, cost=BY_RULES)])
    with pytest.raises(BadRequest, match="the 1 SPARC runs of the log hold no decisions of a language model"):
        collect_pairs(log)


def test_damaged_traces_and_foreign_labels_are_counted_and_left_out(log: ExperimentLog) -> None:
    log_sparc(log, [RIGHT], trace={"format": 1, "events": [{"event": "judged"}]})
    log_sparc(log, [replace(RIGHT, found=((1, 10**9), (2, 3)))])
    log_sparc(log, [RIGHT], label={"support": "all", "answer": 7})
    log_sparc(log, [RIGHT])
    pairs, report = collect_pairs(log)
    assert report.skipped == {"damaged trace": 2, "no label": 1}
    assert len(pairs) == report.pairs["stop_over_continue"] == 2


def test_of_a_label_only_what_fits_counts(log: ExperimentLog) -> None:
    for label, known in (
        ({"support": [1, True, -1, 50, "2", 2], "answers": ["Ann", 3, " "]}, ((1, 2), ("Ann",))),
        ({"support": [3], "answer": "Ann"}, ((3,), ("Ann",))),
        ({"support": "all", "answer": 7}, ((), ())),
    ):
        run = log.get(log_sparc(log, [RIGHT], label=label).run_id)
        assert (support_of(run), answers_of(run)) == known


def test_sizes_are_bounded(log: ExperimentLog, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(8):
        found = ((1, 9), (2, 3)) if number % 2 else ((4, 5), (6, 7))
        log_sparc(log, [replace(RIGHT, found=found, queries=(f"query {number}", "film"))])
    monkeypatch.setattr(collect, "MAX_PAIRS_OF_A_STATE", 5)
    monkeypatch.setattr(collect, "MAX_PAIRS", 6)
    pairs, report = collect_pairs(log)
    assert (len(pairs), report.left_out) == (6, 8), (
        "nine states of verdicts and five rewrites of the sixteen that differ"
    )
    monkeypatch.setattr(collect, "MAX_REWRITES_OF_A_STATE", 2)
    assert collect_pairs(log)[1].left_out == 4, "of two rewrites one pair"
    monkeypatch.setattr(collect, "MAX_LINE_BYTES", 100)
    with pytest.raises(BadRequest, match="give"):
        collect_pairs(log)
    monkeypatch.setattr(collect, "MAX_CHARACTERS", 0)
    collector = collect.Collector()
    for row in log.search(owner=None).rows:
        collector.add(log.get(row.run_id))
    assert collector.pairs()[1].skipped == {"beyond the bound": 7}
