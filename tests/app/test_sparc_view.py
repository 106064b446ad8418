"""What the SPARC tab shows of a run, from events alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bs4 import Tag

from app.pages.sparc import view
from app.services.sparc_runs import SparcRun
from core.base.types import workspace_of_chunks
from core.llm.protocol import Cost
from core.methods.sparc.events import (
    Answered,
    BrokenOff,
    Merged,
    SparcConfig,
    SparcEvent,
    SparcStopped,
    Weighed,
)
from core.methods.sparc.trace import fold_sparc
from core.views.draw import sparc as drawn
from core.views.draw import sparc_line
from core.views.draw.nodes import Node
from core.views.sparc_story import fates, sparc_story
from tests.app.markup import markup
from tests.app.markup import words as words_of
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


def words(tree: list[Node]) -> str:
    """Parts of a node apart, too."""
    return words_of(tree, " ")


def text_of(part: Tag) -> str:
    return " ".join(part.get_text(" ").split())


def everything(run: SparcRun) -> list[Node]:
    return [
        *view.settings_line(run.trace.started.config, ""),
        *view.standing_at(run),
        *sparc_line.story(run),
        *drawn.rounds(run, 17),
        *drawn.final(run),
        *drawn.costs(run),
        *view.reading(run, 17, None, in_explore=True),
    ]


def test_branches_stand_side_by_side_and_lines_lead_from_the_best_into_the_next_round() -> None:
    shown = markup(drawn.rounds(run_of(story())))
    assert len(shown.select(".qx-round")) == 2
    assert [branch["aria-label"] for branch in shown.select(".qx-branch")] == [
        "Round 1, branch 1, BM25",
        "Round 1, branch 2, Q-RAG, leads",
        "Round 2, branch 1, dense, leads",
        "Round 2, branch 2, BM25",
    ]
    assert [lanes["class"] for lanes in shown.select(".qx-lanes")] == [["qx-lanes", "qx-w2"]] * 2
    assert [" ".join(wire["class"]) for wire in shown.select("path[class^=qx-wire]")] == [
        *("qx-wire-on", "qx-wire-lead qx-c2"),
        *("qx-wire-out", "qx-wire-out"),
        *("qx-wire-lead qx-c1", "qx-wire-on"),
    ]
    told = text_of(shown)
    assert "overlap 0.25" in told
    assert "Branch 1.2 leads" in told
    assert "Branch 2.1 wins" in told
    assert "asked on, from the note of 1.2" in told


def test_a_merge_tells_what_it_kept_and_dropped_and_why() -> None:
    events = story()
    [at] = [i for i, event in enumerate(events) if isinstance(event, Merged) and event.round == 1]
    merged = events[at]
    weighed = (Weighed(3, 2.5, needed=True), Weighed(17, 0.5, needed=False))
    events[at] = replace(merged, weighed=weighed)
    bands = [text_of(band) for band in markup(drawn.rounds(run_of(events))).select(".qx-merge")]
    assert "Kept in the note: 1 Chunk 3 tells of Anna. 3 the answer rests on it" in bands[0]
    assert (
        "Left out of the note: 3 Chunk 17 tells of Anna. 17 support 2nd of 2 by worth, the note holds 1"
        in bands[0]
    )
    assert "Chunk 9 tells of Anna. 9 left out of its branch’s own note" in bands[0]
    assert "Kept in the note: 3" in bands[1]
    assert "in the note before" in bands[1]
    for number, different in ((1, {3, 9, 12, 17}), (2, {3, 9, 17, 30, 31})):
        told = fates(fold_sparc(events), number)
        assert {fate.chunk_id for fate in told} == different
        assert len(told) == len(different)


def test_a_card_tells_chunks_note_answer_verdict_and_cost() -> None:
    events = [replace(one, thoughts="Or the barn?") if isinstance(one, Answered) else one for one in story()]
    shown = drawn.rounds(run_of(events), opened=30)
    card = markup(shown).select(".qx-branch")[2]
    told = text_of(card)
    for part in (
        "mill hiding place",
        "where she went",
        "under the mill stone",
        "83 % sure",
        "accepted",
        "because of chunk 17",
        "cites chunk",
        "What it thought Or the barn?",
    ):
        assert part in told
    assert "added: She went to the mill." in told
    assert "removed: She feared Peter." in told
    assert "3 calls · 750 tokens · 912 ms" in told
    found, opened = card.select(".qx-chunk-row")
    assert (found["data-arg"], "qx-again" in found["class"], found["aria-pressed"]) == ("17", True, "false")
    assert (opened["data-arg"], "qx-again" in opened["class"], opened["aria-pressed"]) == (
        "30",
        False,
        "true",
    )
    assert found["aria-label"] == "chunk 17, support, new in its note, found before by 1.2"
    assert opened["aria-label"] == "chunk 30, not taken into its note"
    assert [marked.get_text() for marked in card.select(".qx-sparc-query em")] == ["mill hiding place"]


def test_who_could_not_go_on_is_named_where_it_happened_with_what_it_took() -> None:
    spent = Cost(2, 300, 40, 900.0)
    before, why = story()[:5], "tiny twice gave no usable JSON object"
    failed = BrokenOff(1, 1, "answer evaluator", "failed", why, spent)
    run = run_of([*before, failed, SparcStopped("failed", "", 0, 0, (), spent, why)], status="failed")
    card = text_of(markup(drawn.rounds(run)).select(".qx-branch")[0])
    assert f"answer evaluator {why}" in card
    assert "answer evaluator 2 300 + 40 900 none" in card
    assert run.trace.rounds[0].branches[0].cost.calls == 2 + 2
    merging = BrokenOff(1, 0, "context manager", "calls", "", spent)
    [merge, *_] = markup(drawn.rounds(run_of([*before, merging]))).select(".qx-merge")
    assert text_of(merge) == "context manager the budget of calls is used up"


def test_totals_stand_against_their_budgets() -> None:
    run = run_of(story(max_calls=20))
    [totals] = markup(drawn.rounds(run)).select(".qx-totals")
    assert text_of(totals) == (
        "2 of 3 rounds 15 of 20 calls 3,750 of 5,000 tokens 6 chunks read 3 used found support"
        " + new in its note, = there before, · not taken"
    )
    assert "4.5 s · 6 chunks read, 3 used · BM25, Q-RAG, dense · 15 calls" in words(view.standing_at(run))


def test_who_decides_is_said() -> None:
    assert "scripted rewrites, answers and judges" in words(drawn.costs(run_of(story())))
    assert f"No language model: {RULES} rewrite" in words(drawn.costs(run_of(story(agents=RULES))))
    assert "rules and reader decide" in words(view.settings_line(SparcConfig(), ""))
    assert "some-llm decides" in words(view.settings_line(SparcConfig(), "some-llm"))
    assert "a setting is empty" in words(view.settings_line(None, ""))


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
    [said] = markup(sparc_line.story(run)).select("[role=status]")
    assert text_of(said) == status
    live = map(text_of, markup(drawn.rounds(run)).select(".qx-live"))
    assert next(live, "") == doing
    assert drawn.final(run) == []


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("accepted", "The evaluator accepted the answer of branch 2.1"),
        ("depth", "The depth of 3 is used up"),
        ("tokens", "The budget of 5,000 tokens is used up; this is the best answer by then"),
        ("calls", "The budget of 9 calls is used up"),
        ("failed", "An agent could not go on; this is the best answer by then. the endpoint did not answer"),
    ],
)
def test_every_end_has_its_sentence(reason: Any, told: str) -> None:
    *events, stopped = story(max_calls=9)
    end = replace(stopped, reason=reason, message="the endpoint did not answer" if reason == "failed" else "")
    run = run_of([*events, end], status="failed" if reason == "failed" else "complete")
    assert told[1:] in words(sparc_line.story(run))


def test_a_budget_of_one_call_is_one() -> None:
    *events, stopped = story(max_calls=1)
    run = run_of([*events, replace(stopped, reason="calls")])
    assert "The budget of 1 call is used up" in words(sparc_line.story(run))
    assert "of 1 call" in words(drawn.rounds(run))


def test_states_before_and_after() -> None:
    assert "Ask a question" in words(sparc_line.story(None))
    assert drawn.final(None) == drawn.costs(None) == view.reading(run_of(story()), None, None) == []
    cancelled = run_of(story()[:7], status="cancelled")
    assert "Cancelled; the rounds so far are kept." in words(sparc_line.story(cancelled))
    assert "ended here" in words(drawn.rounds(cancelled))
    *events, stopped = story()
    none = run_of([*events[:2], replace(stopped, answer="", round=0, branch=0, evidence=(), reason="calls")])
    assert "No answer in the evidence" in words(sparc_line.story(none))
    assert "no branch had an answer by then" in words(sparc_line.story(none))


def test_each_card_shows_where_its_branch_looked() -> None:
    shown = markup(drawn.rounds(run_of(story())))
    assert [look["aria-label"] for look in shown.select("[role=img]")] == [
        f"Found along the document: chunks {found}" for found in ("3, 9, 12", "3, 17", "17, 30", "9, 31")
    ]
    assert len(shown.select(".qx-look-gold")) == 2 * 4


def test_the_answer_shows_its_evidence() -> None:
    shown = drawn.final(run_of(story()))
    assert "1 of 2 support chunks among them" in words(shown)
    assert [text_of(item) for item in markup(shown).select(".qx-rests-on > *")] == [
        "chunk 3 Chunk 3 tells of Anna. found by 1.1, 1.2",
        "chunk 17 Chunk 17 tells of Anna. cited support found by 1.2, 2.1",
        "chunk 30 Chunk 30 tells of Anna. found by 2.1",
    ]


def test_answers_are_compared_with_the_known_one() -> None:
    for known, line, card in (
        ("under the mill stone", "83 % sure · right", "✓ right"),
        ("in the barn", "83 % sure · wrong known: in the barn", "✗ wrong · known answer: in the barn"),
    ):
        run = run_of(story(), known_answer=known)
        assert line in words(sparc_line.story(run))
        shown = markup(drawn.rounds(run))
        assert any(card in text_of(branch) for branch in shown.select(".qx-branch"))
        nothing = text_of(shown.select(".qx-said")[0])
        assert nothing.count("no answer") == 1
        assert f"known answer: {known}" in nothing
    assert "no answer in the evidence" in words(drawn.rounds(run_of(story())))
    assert "right" not in words(sparc_line.story(run_of(story())))


def test_the_story_is_one_line_and_one_sentence() -> None:
    run = run_of(story(), known_answer="under the mill stone")
    shown = markup(sparc_line.story(run))
    assert [text_of(part) for part in shown.select(".qx-story > *")] == [
        "Asked Where did Anna hide the letter?",
        "1.2 round 1 · 2 branches Q-RAG’s branch led: Chunk 3 tells of Anna."
        " found 1 of 2 support; one of two says the mill",
        "⋏ merge Kept 1 chunk, dropped 3 of 4 chunks read so far",
        "2.1 round 2 · 2 branches Asked on: mill hiding place"
        " found 2 of 2 support; one of two says under the mill stone",
        "✓ Answer under the mill stone 83 % sure · right",
        "Stopped The evaluator accepted the answer of branch 2.1. round 2 of 3",
    ]
    [aloud] = map(text_of, shown.select(".qx-unseen"))
    assert aloud.startswith(
        "Asked: Where did Anna hide the letter? Round 1, two branches: Q-RAG’s branch led and found Chunk 3 tells"
    )
    assert "branch led and asked" in aloud
    assert "one of two says the mill; 1 chunk kept, 3 dropped." in aloud
    assert aloud.endswith(
        "Answer: under the mill stone, 83 % sure, right. The evaluator accepted the answer of branch 2.1."
    )
    second = sparc_story(run.trace, (), "").rounds[1]
    assert (second.n_kept, second.n_dropped, second.n_read) == (3, 2, 6), "round 1 dropped one for good"
    targets = [part["data-arg"] for part in shown.select("[data-act=goto]")]
    there = {part["id"] for part in markup(drawn.rounds(run)).select("[id]")}
    assert targets == ["qx-round-1", "qx-merge-1", "qx-round-2"]
    assert {*targets} <= there


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
    texts = [child for _, _, children in nodes(shown) for child in children if isinstance(child, str)]
    assert max(map(len, texts)) < 51_000
    assert max(map(len, map(text_of, markup(shown).select(".qx-branch")))) < 5_000


def test_the_page_knows_every_tag_and_attribute() -> None:
    """The browser drops what it doesn't know, without a word."""
    script = (Path(__file__).resolve().parents[2] / "assets" / "scripts" / "tree.js").read_text()
    known = set(re.findall(r"[\w-]+", " ".join(re.findall(r'"([^"]*)"', script.split("function build")[0]))))
    for tag, attributes, _ in nodes(everything(run_of(story()))):
        assert tag in known, tag
        assert all(
            name in known or re.fullmatch(r"(aria|data)-[a-z-]+|--[cx]", name) for name in attributes
        ), attributes


def test_a_change_after_a_run_is_said() -> None:
    run = run_of(story())
    config = run.trace.started.config
    assert view.changes(run, run.trace.started.question, config, same_documents=True) == []
    assert "were made: settings" in words(
        view.changes(run, run.trace.started.question, replace(config, width=3), same_documents=True)
    )
    assert "were made: document and question" in words(
        view.changes(run, "Who?", config, same_documents=False)
    )
    assert view.changes(run_of(story()[:4]), "Who?", config, same_documents=False) == []
