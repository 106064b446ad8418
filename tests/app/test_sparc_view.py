"""What the SPARC tab shows of a run, from events alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.components.tree import Node
from app.pages.sparc import view
from app.pages.sparc.actions import SparcRun
from core.sparc.events import (
    Answered,
    BranchQuery,
    BrokenOff,
    Cost,
    Merged,
    Note,
    Retrieved,
    RoundStarted,
    SparcEvent,
    SparcStopped,
)
from core.sparc.trace import fold_sparc
from core.types import workspace_of_chunks
from tests.app.sparc_story import N_CHUNKS, RULES, story, text

HOSTILE = """<script>alert(1)</script><img src=x onerror=alert(2)> ${7*7} {{7*7}}"""


def run_of(events: list[SparcEvent], **changes: Any) -> SparcRun:
    status = "complete" if isinstance(events[-1], SparcStopped) else "running"
    return SparcRun(
        **{"run_id": "a" * 32, "trace": fold_sparc(events), "status": status, "gold": (17, 31), **changes}
    )


def nodes(tree: Any) -> Iterator[tuple[str, dict[str, Any], list[Node]]]:
    """Every element, parents first."""
    for node in tree:
        if isinstance(node, list):
            tag, attributes, children = node
            yield tag, attributes, children
            yield from nodes(children)


def words(tree: Any) -> str:
    """All text, as it reads."""
    return " ".join(words(node[2]) if isinstance(node, list) else node for node in tree)


def having(tree: Any, name: str) -> list[tuple[str, dict[str, Any], list[Node]]]:
    """Elements with a class."""
    return [node for node in nodes(tree) if name in str(node[1].get("class", "")).split()]


def classes(tree: Any, name: str) -> list[str]:
    return [str(attributes["class"]) for _, attributes, _ in having(tree, name)]


def everything(run: SparcRun) -> list[Node]:
    """Every panel."""
    return [
        *view.heading(run),
        *view.where(run),
        *view.rounds(run, 17),
        *view.final(run),
        *view.reading(run, 17, None, in_explore=True),
    ]


def test_lanes_run_from_the_winner_of_a_round_into_the_next() -> None:
    shown = view.rounds(run_of(story()))
    assert len(having(shown, "qx-round")) == 2
    assert [attributes["aria-label"] for _, attributes, _ in having(shown, "qx-branch")] == [
        "Round 1, branch 1, BM25",
        "Round 1, branch 2, Q-RAG, best",
        "Round 2, branch 1, dense, best",
        "Round 2, branch 2, BM25",
    ]
    assert classes(shown, "qx-join") == [
        "qx-join qx-from-above",
        "qx-join qx-straight qx-meet-above",
        "qx-join qx-straight qx-meet-below",
        "qx-join qx-from-below",
    ]
    assert classes(shown, "qx-fan") == [
        "qx-fan ",
        "qx-fan ",
        "qx-fan qx-from-above",
        "qx-fan qx-straight qx-meet-above",
    ]
    assert "overlap 0.25" in words(shown)
    assert "Branch 2 goes on" in words(shown)


def test_with_four_lanes_the_outer_ones_pass_through_those_between() -> None:
    queries = tuple(BranchQuery(i, f"query {i}", "bm25") for i in range(1, 5))
    events = [
        story()[0],
        RoundStarted(1, queries, Cost()),
        *(Retrieved(1, i, (), 1.0) for i in range(1, 5)),
        Merged(1, 3, Note(), None, Cost()),
    ]
    assert classes(view.rounds(run_of(events)), "qx-join") == [
        "qx-join qx-from-above",
        "qx-join qx-from-above qx-meet-above",
        "qx-join qx-straight qx-meet-above qx-meet-below",
        "qx-join qx-from-below",
    ]


def test_a_card_tells_chunks_note_answer_verdict_and_cost() -> None:
    shown = view.rounds(run_of(story()), opened=30)
    card = having(shown, "qx-branch")[2][2]
    told = words(card)
    for part in (
        "mill hiding place",
        "where she went",
        "under the mill stone",
        "83 % sure",
        "stop",
        "because of chunk 17",
    ):
        assert part in told
    assert "added:  She went to the mill." in told
    assert "removed:  She feared Peter." in told
    assert "3 calls · 750 tokens · 912 ms" in told
    chips = having(card, "qx-set-chip")
    assert [
        (attributes["data-arg"], "qx-again" in attributes["class"], attributes["aria-pressed"])
        for _, attributes, _ in chips
    ] == [
        ("17", True, "false"),
        ("30", False, "true"),
    ]
    assert chips[0][1]["aria-label"] == "chunk 17, support, found before by 1.2"


def test_who_could_not_go_on_is_named_where_it_happened_with_what_it_took() -> None:
    spent = Cost(2, 300, 40, 900.0)
    before, why = story()[:5], "tiny twice gave no usable JSON object"
    failed = BrokenOff(1, 1, "answer evaluator", "failed", why, spent)
    run = run_of([*before, failed, SparcStopped("failed", "", 0, 0, (), spent, why)], status="failed")
    card = having(view.rounds(run), "qx-branch")[0][2]
    assert f"ended answer evaluator {why}" in " ".join(words(card).split())
    assert "answer evaluator 2 300 + 40 900 none" in " ".join(words(card).split())
    assert run.trace.rounds[0].branches[0].cost.calls == 2 + 2
    merging = BrokenOff(1, 0, "context manager", "calls", "", spent)
    merge = having(view.rounds(run_of([*before, merging])), "qx-merge")[0][2]
    assert words(merge).split("  ")[0].strip() == "context manager the budget of calls is used up"


def test_totals_stand_against_their_budgets() -> None:
    run = run_of(story(max_calls=20))
    told = [words([["div", {}, children]]) for _, _, children in having(view.heading(run), "qx-number")]
    assert [one.split("  ")[0].strip() for one in told] == [
        "2 of 3 rounds",
        "15 of 20 calls",
        "3,750 of 5,000 tokens",
        "4,548 ms of work",
    ]
    bars = [
        (attributes["value"], attributes["max"])
        for tag, attributes, _ in nodes(view.heading(run))
        if tag == "progress"
    ]
    assert bars == [("2", "3"), ("15", "20"), ("3750", "5000")]


def test_who_decides_is_said() -> None:
    assert "scripted rewrites, answers and judges" in words(view.heading(run_of(story())))
    assert f"No language model acts here: {RULES} rewrite" in words(view.heading(run_of(story(agents=RULES))))
    assert "No language model is set: rules and the reader" in words(view.deciders(""))


@pytest.mark.parametrize(
    ("n_events", "status", "doing"),
    [
        (1, "Looking for what to ask first.", ""),
        (2, "Round 1: 0 of 2 branches judged.", "retrieving…"),
        (3, "Round 1: 0 of 2 branches judged.", "updating its note…"),
        (4, "Round 1: 0 of 2 branches judged.", "answering…"),
        (5, "Round 1: 0 of 2 branches judged.", "being judged…"),
        (10, "Round 1: choosing the best branch and merging the notes.", ""),
        (11, "Round 1 is merged.", ""),
    ],
)
def test_a_run_that_goes_on_says_what_it_is_doing(n_events: int, status: str, doing: str) -> None:
    run = run_of(story()[:n_events])
    [said] = [
        words(children)
        for _, attributes, children in nodes(view.heading(run))
        if attributes.get("role") == "status"
    ]
    assert said == status
    live = [words(children) for _, _, children in having(view.rounds(run), "qx-live")]
    assert (live[:1] or [""]) == [doing]
    assert view.final(run) == []


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("accepted", "the evaluator accepted the answer of branch 2.1"),
        ("depth", "the depth of 3 is used up"),
        ("tokens", "the budget of 5,000 tokens is used up; this is the best answer by then"),
        ("calls", "the budget of 9 calls is used up"),
        ("failed", "an agent could not go on; this is the best answer by then. the endpoint did not answer"),
    ],
)
def test_every_end_has_its_sentence(reason: Any, told: str) -> None:
    *events, stopped = story(max_calls=9)
    assert isinstance(stopped, SparcStopped)
    end = replace(stopped, reason=reason, message="the endpoint did not answer" if reason == "failed" else "")
    run = run_of([*events, end], status="failed" if reason == "failed" else "complete")
    assert told in words(view.final(run))
    assert told in words(view.heading(run))


def test_states_before_and_after() -> None:
    assert "Press Run" in words(view.rounds(None))
    assert view.where(None) == view.final(None) == view.reading(None, 3, None) == []
    cancelled = run_of(story()[:7], status="cancelled")
    assert "Cancelled; the rounds so far are kept." in words(view.heading(cancelled))
    assert "ended here" in words(view.rounds(cancelled))
    *events, stopped = story()
    assert isinstance(stopped, SparcStopped)
    none = run_of([*events[:2], replace(stopped, answer="", round=0, branch=0, evidence=(), reason="calls")])
    assert "There is no answer in the evidence." in words(view.final(none))
    assert "no branch had an answer by then" in words(view.final(none))


def test_the_strip_has_a_row_a_branch_and_one_of_the_evidence() -> None:
    shown = view.where(run_of(story()))
    drawn = [attributes["aria-label"] for tag, attributes, _ in nodes(shown) if tag == "svg"]
    assert drawn == [
        "1.1 BM25: chunks 3, 9, 12",
        "1.2 Q-RAG: chunks 3, 17",
        "2.1 dense: chunks 17, 30",
        "2.2 BM25: chunks 9, 31",
        "evidence: chunks 3, 17, 30",
    ]
    assert len(having(shown, "qx-gold-ring")) == 2


def test_the_answer_shows_its_evidence() -> None:
    shown = view.final(run_of(story()))
    assert "under the mill stone" in words(shown)
    assert "1 of 2 support chunks found" in words(shown)
    items = having(shown, "qx-evidence")[0][2]
    assert [words([item]).split(" Chunk")[0].strip() for item in items] == [
        "chunk 3",
        "chunk 17 cited support",
        "chunk 30",
    ]


def test_answers_are_compared_with_the_known_one() -> None:
    for known, told in (
        ("under the mill stone", "✓ right"),
        ("in the barn", "✗ wrong · known answer: in the barn"),
    ):
        run = run_of(story(), known_answer=known)
        assert told in words(view.final(run))
        assert any(told in words(children) for _, _, children in having(view.rounds(run), "qx-branch"))
    assert "right" not in words(view.final(run_of(story())))


def test_reading_without_the_documents_shows_what_the_trace_quotes() -> None:
    run = run_of(story())
    assert text(30) in words(view.reading(run, 30, None))
    assert "only the chunk can be shown" in words(view.reading(run, 39, None))
    workspace = workspace_of_chunks([f"sentence {i}" for i in range(N_CHUNKS)], n_tokens=[2] * N_CHUNKS)  # type: ignore[arg-type]
    shown = view.reading(replace(run, workspace=workspace), 30, None, in_explore=True)
    assert "Found by branch 2.1." in words(shown)
    assert "Show in Explore" in words(shown)


def test_whatever_is_hostile_stays_text_and_short() -> None:
    long = HOSTILE + "x" * 50_000
    events = story(question=HOSTILE, agents=HOSTILE)
    events = [
        replace(event, answer=long)
        if isinstance(event, Answered | SparcStopped)
        else replace(event, reason=long)
        if isinstance(event, Merged)
        else event
        for event in events
    ]
    shown = everything(run_of(events))
    assert HOSTILE in words(shown)
    assert (
        max(
            len(str(child)) for _, _, children in nodes(shown) for child in children if isinstance(child, str)
        )
        < 51_000
    )
    cards = having(shown, "qx-branch")
    assert max(len(words([[tag, attributes, children]])) for tag, attributes, children in cards) < 5_000


def test_the_page_knows_every_tag_and_attribute() -> None:
    """The browser drops what it doesn't know, without a word."""
    script = (Path(__file__).resolve().parents[2] / "app" / "components" / "tree.js").read_text()
    known = set(re.findall(r"[\w-]+", " ".join(re.findall(r'"([^"]*)"', script.split("const root")[0]))))
    for tag, attributes, _ in nodes(everything(run_of(story()))):
        assert tag in known, tag
        assert all(
            name in known or re.fullmatch(r"(aria|data)-[a-z-]+|--[cx]", name) for name in attributes
        ), attributes


def test_a_change_after_a_run_is_said() -> None:
    run = run_of(story())
    config = run.trace.started.config
    assert view.changes(run, run.trace.started.question, config, same_documents=True) == []
    assert "another settings" in words(
        view.changes(run, run.trace.started.question, replace(config, width=3), same_documents=True)
    )
    assert "another document and question" in words(view.changes(run, "Who?", config, same_documents=False))
    assert view.changes(run_of(story()[:4]), "Who?", config, same_documents=False) == []
