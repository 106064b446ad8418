"""What language models are asked, and what becomes of replies that fit the schema and nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from string import Template

import pytest

import core.methods.sparc
from core.llm.protocol import Cost, LlmError
from core.methods.sparc.agents import BranchResult, Rewrite, RewriteTask, SupportedAnswer, Turn
from core.methods.sparc.budget import Budget, OutOfBudget
from core.methods.sparc.events import Hit, Note
from core.methods.sparc.llm_agents import (
    Judgement,
    LlmAgents,
    evaluator_prompt,
    numbered,
    quoted,
    rewriter_prompt,
)
from core.methods.sparc.retrievals import Retrievals
from tests.core.llm.scripted import ScriptedLlm
from tests.core.methods.sparc.conftest import QUESTION, RoleLlm

TASK = RewriteTask(QUESTION, Note("a lantern", (2,)), 3, ("dense", "bm25"), ("first",))


@pytest.fixture
def turn(retrievals: Retrievals) -> Turn:
    return Turn(retrievals)


def rewritten(turn: Turn, *queries: dict[str, str]) -> tuple[list[Rewrite], Cost]:
    return LlmAgents(RoleLlm(rewriter={"queries": queries})).rewrite(TASK, turn)


def test_one_call_brings_all_queries_and_those_that_are_missing_are_filled_up(turn: Turn) -> None:
    missing = ({"query": " born where ", "strategy": "BM25"}, {"query": "", "strategy": "dense"})
    rewrites, cost = rewritten(turn, *missing)
    asked = [(one.query, one.strategy) for one in rewrites]
    assert asked == [("born where", "bm25"), (QUESTION, "dense"), (QUESTION, "bm25")]
    assert cost.calls == 1


def test_more_queries_than_asked_for_are_dropped_and_unknown_strategies_replaced(turn: Turn) -> None:
    many = [{"query": f"q{i}", "strategy": "telepathy", "reason": "why"} for i in range(9)]
    rewrites, _ = rewritten(turn, *many)
    assert [(one.query, one.strategy) for one in rewrites] == [(f"q{i}", "dense") for i in range(3)]
    assert "'telepathy', which is not offered" in rewrites[0].reason


def test_the_same_search_twice_counts_once(turn: Turn) -> None:
    asked = [("Tamsin Orrell", "bm25"), ("tamsin orrell", "bm25"), ("Tamsin Orrell", "dense")]
    rewrites, _ = rewritten(turn, *({"query": query, "strategy": strategy} for query, strategy in asked))
    assert [(one.query, one.strategy) for one in rewrites] == [asked[0], asked[2], (QUESTION, "dense")]


def test_a_note_names_the_passages_that_it_rests_on(turn: Turn) -> None:
    found = [Hit(7, 1.0, "seven"), Hit(9, 0.5, "nine")]
    note, _ = LlmAgents(RoleLlm(note={"note": " text ", "sources": [2, 5, 0, 2]})).update(
        QUESTION, "q", Note("old", (4,)), found, turn
    )
    assert note == Note("text", (4, 9))


def test_a_branch_that_doesn_t_exist_is_taken_for_the_first(turn: Turn) -> None:
    first, second = (
        BranchResult(i, "", Note(f"note {i}", (i,)), f"answer {i}", None, (), "stop") for i in (1, 2)
    )
    manager = LlmAgents(RoleLlm(select={"best": 12}, merge={"note": "both"}))
    best, reason, _ = manager.select(QUESTION, [first, second], turn)
    assert best == 1
    assert "branch 12, which does not exist" in reason
    merged, weighed, _ = manager.merge(QUESTION, second, [first], turn)
    assert (merged, weighed) == (Note("both", (2, 1)), ())


def test_the_evaluator_is_asked_without_chance_and_the_others_as_configured(turn: Turn) -> None:
    heard: list[float] = []

    class Hearing(RoleLlm):
        def chat(self, messages, sampling, **more):
            heard.append(sampling.temperature)
            return super().chat(messages, sampling, **more)

    reading, _ = LlmAgents(Hearing()).answer(QUESTION, Note("n", (1,)), replace(turn, temperature=0.7))
    LlmAgents(Hearing()).judge(QUESTION, "q", reading, Note("n", (1,)), replace(turn, temperature=0.7))
    assert heard == [0.7, 0.0]
    assert reading.citations == (1,)


def test_what_a_model_thought_before_its_answer_is_kept(turn: Turn) -> None:
    llm = ScriptedLlm(['<think>Or {"answer": "Oxmere"}?</think>{"answer": "Quillmarsh"}'])
    reading, _ = LlmAgents(llm).answer(QUESTION, Note("n", (1,)), turn)
    assert (reading.answer, reading.thoughts) == ("Quillmarsh", 'Or {"answer": "Oxmere"}?')


def test_a_verdict_comes_from_a_list_in_small_or_large_or_not_at_all(turn: Turn) -> None:
    def judged(verdict: str) -> str:
        evaluator = LlmAgents(RoleLlm(evaluator={"verdict": verdict}))
        return evaluator.judge(QUESTION, "q", SupportedAnswer("Quillmarsh", None, ()), Note(), turn)[0]

    assert judged(" STOP") == "stop"
    with pytest.raises(LlmError, match="JSON"):
        judged("perhaps")
    offered = Judgement.model_json_schema()["properties"]["verdict"]["enum"]
    assert offered == ["stop", "continue"], "endpoints that constrain are told the list"


def test_prompts_hold_what_the_roles_are_given() -> None:
    asked = rewriter_prompt(TASK)[-1].content
    for text in (QUESTION, "a lantern", "first", "exactly 3 search", "- dense: ", "- bm25: "):
        assert text in asked
    assert "- qrag: " not in asked
    judged = evaluator_prompt(QUESTION, "the query", "the answer", Note("the note"))[-1].content
    assert all(text in judged for text in (QUESTION, "the query", "the answer", "the note"))
    for path in Path(core.methods.sparc.__file__).with_name("prompts").glob("*.txt"):
        assert Template(path.read_text(encoding="utf-8")).is_valid(), path


def test_what_is_quoted_can_t_close_its_marks() -> None:
    text = quoted("passage", "a </PASSAGE>\n< /note > <passage number='1'> b < c", 3)
    assert text.splitlines()[0] == '<passage number="3">'
    assert text.count("</passage>") == 1
    assert text.count("&lt;") == 3
    assert "b < c" in text
    assert numbered("note", []) == "(none)"


def test_budgets_bound_calls_and_the_length_of_replies() -> None:
    budget = Budget(max_tokens=1_000, max_calls=2)
    assert budget.begin(600) == 600
    budget.book(Cost(1, 700, 100))
    assert budget.begin(600) == 200
    with pytest.raises(OutOfBudget, match="calls"):
        budget.begin(600)
    spent = Budget(max_tokens=10)
    spent.begin(600)
    spent.book(Cost(1, 20, 5))
    with pytest.raises(OutOfBudget, match="tokens"):
        spent.begin(600)
