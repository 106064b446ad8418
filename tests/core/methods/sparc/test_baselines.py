"""The baselines, with a reader and with a language model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from core.base.errors import BadRequest
from core.base.progress import finish
from core.base.types import workspace_of_chunks
from core.corpus.opening import index_workspace
from core.lab.sparc.baselines import ATTEMPTS, BASELINES, PROMPTED, SEARCHES, BaselineTrace, run_baseline
from core.llm.protocol import LlmError
from core.methods.qrag.agent import Agent
from core.methods.sparc.build import build_agents
from core.methods.sparc.events import SparcConfig
from core.methods.sparc.retrievals import Retrievals
from tests.core.methods.sparc.conftest import FIRST_HOP, QUESTION, SECOND_HOP, STORY, KnowingReader, RoleLlm

LEXICAL = SparcConfig(width=3, k=2, strategies=("bm25",))


def asked(
    name: str,
    retrievals: Retrievals,
    llm: RoleLlm | None = None,
    reader: KnowingReader | None = None,
    config: SparcConfig = LEXICAL,
) -> BaselineTrace:
    agents = build_agents(llm, reader or KnowingReader({"Quillmarsh": 0.9}), config)
    return run_baseline(name, QUESTION, agents, retrievals, config, llm)


def test_a_single_search_misses_the_second_hop_and_reasoning_sentences_find_it(
    retrievals: Retrievals,
) -> None:
    vanilla, ircot = asked("vanilla", retrievals), asked("ircot", retrievals, config=replace(LEXICAL, k=3))
    assert (vanilla.answer, vanilla.queries[0]) == ("", QUESTION)
    assert FIRST_HOP in vanilla.evidence
    assert SECOND_HOP not in vanilla.evidence
    assert ircot.answer == "Quillmarsh"
    assert {FIRST_HOP, SECOND_HOP} <= set(ircot.evidence)
    assert "Tamsin Orrell" in ircot.queries[1]


def test_the_most_frequent_answer_wins(retrievals: Retrievals) -> None:
    llm = RoleLlm(answer=[{"answer": "Rome"}, {"answer": "The Quillmarsh"}, {"answer": "quillmarsh"}])
    trace = asked("parallel", retrievals, llm)
    assert (trace.answer, len(trace.queries), trace.cost.calls) == ("The Quillmarsh", 3, 3)


def test_attempts_go_on_until_one_is_sure(retrievals: Retrievals) -> None:
    for confidences, n, answer in (
        ((0.2, 0.9), 2, "two"),
        ((0.2, 0.6, 0.1), ATTEMPTS, "two"),
        ((0.7,), 1, "one"),
    ):
        llm = RoleLlm(
            answer=[{"answer": text} for text in ("one", "two", "three")],
            confidence=[{"confidence": value} for value in confidences],
        )
        trace = asked("sequential", retrievals, llm)
        assert (trace.answer, len(trace.queries), trace.cost.calls) == (answer, n, 2 * n)


def test_thoughts_are_searched_with_until_they_are_finished(retrievals: Retrievals) -> None:
    llm = RoleLlm(
        thought=[{"thought": "Tamsin Orrell founded it"}, {"thought": "born in Quillmarsh", "finished": True}]
    )
    trace = asked("ircot", retrievals, llm)
    assert [*trace.queries] == [QUESTION, "Tamsin Orrell founded it", QUESTION]
    assert SECOND_HOP in trace.evidence
    assert "Tamsin Orrell founded it" in llm.asked("thought")[1]


def test_the_last_answer_goes_into_the_next_search(retrievals: Retrievals) -> None:
    trace = asked("iter-retgen", retrievals, reader=KnowingReader({"Tamsin Orrell": 0.5}))
    assert [*trace.queries] == [QUESTION, f"{QUESTION} Tamsin Orrell"]
    assert trace.evidence[0] in (FIRST_HOP, SECOND_HOP)


def test_a_model_alone_and_one_that_reasons_aloud(retrievals: Retrievals) -> None:
    alone = asked("direct", retrievals, RoleLlm(direct={"answer": "Rome"}))
    assert (alone.answer, alone.evidence, alone.queries, alone.cost.calls) == ("Rome", (), (QUESTION,), 1)
    llm = RoleLlm(reasoned={"reasoning": "Orrell was born there.", "answer": "Quillmarsh"})
    reasoned = asked("cot", retrievals, llm)
    assert (reasoned.answer, reasoned.cost.calls, len(reasoned.evidence)) == ("Quillmarsh", 1, 2)
    assert STORY[FIRST_HOP] in llm.asked("reasoned")[0]


def test_passages_that_help_are_kept_and_a_doubted_answer_is_searched_for_again(
    retrievals: Retrievals,
) -> None:
    llm = RoleLlm(
        relevant=[{"relevant": []}, {"relevant": [1, 1, 9]}],
        again=[{"query": "Where was Tamsin Orrell born?"}, {"query": "  "}],
        critique=[{"supported": True, "useful": False}, {"supported": True, "useful": True}],
    )
    trace = asked("self-rag", retrievals, llm)
    assert trace.queries == (QUESTION, "Where was Tamsin Orrell born?", QUESTION)
    assert (trace.answer, len(trace.evidence), len(llm.asked("answer"))) == ("Quillmarsh", 1, 2)
    assert "Where was Tamsin Orrell born?" in llm.asked("again")[1]
    nothing = asked("self-rag", retrievals, RoleLlm(relevant={"relevant": []}, again={"query": "bees"}))
    assert (nothing.answer, nothing.evidence, len(nothing.queries)) == ("", (), ATTEMPTS)


def test_a_model_searches_until_it_answers(retrievals: Retrievals) -> None:
    moves = [
        {"thought": "Who founded it?", "search": "founder of the Blue Lantern", "answer": "guessed unseen"},
        {"search": "founder of the Blue Lantern", "answer": "Quillmarsh"},
    ]
    llm = RoleLlm(move=moves)
    trace = asked("search-r1", retrievals, llm)
    assert (trace.answer, trace.queries) == ("Quillmarsh", ("founder of the Blue Lantern",))
    assert FIRST_HOP in trace.evidence
    assert "Who founded it?" in llm.asked("move")[1]
    assert STORY[FIRST_HOP] in llm.asked("move")[1]
    for move, n, answer in (({"search": "lantern"}, SEARCHES, "Quillmarsh"), ({"thought": "Hm."}, 1, "")):
        endless = asked("search-r1", retrievals, RoleLlm(move=move))
        assert (len(endless.queries), endless.answer) == (n, answer)


def test_an_evidence_set_is_written_and_answered_from(agents: dict[str, Agent]) -> None:
    encoder = agents["none"].encoder
    workspace = workspace_of_chunks(STORY, np.ones(len(STORY), int))
    corpus = finish(index_workspace(workspace, encoder)).corpus
    llm = RoleLlm(set={"Document_1": [SECOND_HOP + 1, FIRST_HOP + 1]})
    agent = build_agents(llm, KnowingReader({}), LEXICAL)
    plain = Retrievals(corpus)
    trace = run_baseline("resrag-llm", QUESTION, agent, plain, LEXICAL, llm, (corpus, encoder))
    assert (trace.evidence, trace.answer) == ((SECOND_HOP, FIRST_HOP), "Quillmarsh")
    assert trace.cost.calls == 2


def test_every_baseline_but_a_models_runs_without_one_and_costs_no_call(retrievals: Retrievals) -> None:
    for name in BASELINES:
        if name in PROMPTED:
            with pytest.raises(BadRequest, match=f"{name} needs a language model; connect one"):
                asked(name, retrievals)
            continue
        trace = asked(name, retrievals)
        assert (trace.cost.calls, trace.agents) == (0, "rules and knowing")
        assert trace.method == name
    with pytest.raises(BadRequest, match="choose among vanilla, parallel, sequential, ircot, iter-retgen"):
        asked("magic", retrievals)


def test_a_failing_model_and_a_spent_budget_leave_a_trace_with_what_it_cost(retrievals: Retrievals) -> None:
    answers = [{"answer": "Quillmarsh"}, LlmError("too many requests; wait")]
    failed = asked("parallel", retrievals, RoleLlm(answer=answers))
    assert (failed.stop_reason, failed.answer, failed.evidence, failed.cost.calls) == ("failed", "", (), 2)
    assert failed.cost.prompt_tokens > 0
    unsure = RoleLlm(confidence={"confidence": 0.1})
    spent = asked("sequential", retrievals, unsure, config=replace(LEXICAL, max_calls=3))
    assert (spent.stop_reason, spent.answer, spent.cost.calls) == ("calls", "", 3)
