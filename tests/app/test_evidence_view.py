"""What Evidence sets draws, without a page: every panel is a pure function of a set."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from bs4 import Tag

from app.pages.evidence import documents as documents_view
from app.pages.evidence import frontier as frontier_view
from app.pages.evidence import reward as reward_view
from app.pages.evidence import view
from app.pages.evidence.documents import COLUMNS, Shown
from app.services.evidence_sets import SetInView
from app.services.in_view import Labelled, RunInView
from core.answer.evidence import EvidenceAnswer
from core.base.config import EpisodeConfig
from core.base.events import RunStarted, Trace
from core.base.types import ChunkTable, Document, Workspace, join_workspaces, workspace_of_chunks
from core.lab.studies.frontier import Curve
from core.methods.resrag.sets import Rival, document_sets, token_counts
from tests.app.markup import markup, words

HOSTILE = "<script>alert(1)</script> ${1} {{2}}"
SIZES = (9, 0, 4)
QUERY = "who cooks ?"


def workspace_of(sizes: tuple[int, ...]) -> Workspace:
    empty = ChunkTable(*(np.zeros(0, np.int64) for _ in range(5)), heading_paths=((),))
    parts = [
        workspace_of_chunks([f"{HOSTILE} {i}" for i in range(size)], np.full(size, 10), f"page {number}")
        if size
        else Workspace((Document(f"page {number}", "", "html"),), (empty,))
        for number, size in enumerate(sizes)
    ]
    return join_workspaces(parts)


def set_of(
    taken: tuple[int, ...],
    *,
    sizes: tuple[int, ...] = SIZES,
    gold: tuple[int, ...] = (),
    known: str = "",
    said: str | None = None,
    budget: int = 8,
    json_ld: tuple[str, ...] = ("", "", ""),
    method: str = "resrag",
) -> SetInView:
    """A set that a policy might have taken: the chances fall in the order of `taken`."""
    workspace = workspace_of(sizes)
    n_tokens = token_counts(workspace)
    chances = np.full(len(workspace), 0.001, np.float32)
    chances[list(taken)] = np.linspace(0.95, 0.6, len(taken)) if taken else []
    config = EpisodeConfig(step_budget=min(8, len(workspace)), stop_threshold=0.5)
    documents = SimpleNamespace(workspace=workspace, corpus=range(len(workspace)), questions=("who ?",))
    run = RunInView(
        "token",
        "a" * 32,
        cast(Any, documents),
        Trace(RunStarted(QUERY, method, "base", len(workspace), config), ()),
        Labelled(QUERY, known, 0, gold) if gold or known else None,
    )
    return SetInView(
        run,
        budget,
        chances,
        taken,
        tuple(document_sets(taken, workspace.borders, n_tokens)),
        n_tokens,
        (Rival("top-k, same size", 2, 20), Rival("everything", 13, 130)),
        None if said is None else EvidenceAnswer(said, 0.9, "reader", taken[:1]),
        json_ld,
        ((),) * len(sizes),
    )


def paths(part: Tag, kind: str) -> list[str]:
    return [str(path["d"]) for path in part.select(f"path.{kind}")]


def test_the_sentence_says_what_was_taken_and_what_it_answers() -> None:
    told = words(view.sentence(set_of((3, 10), gold=(3, 5), known="Bo", said="Bo")))
    assert (
        "2 of 13 chunks from 2 of 3 documents, 20 tokens, hold 1 of 2 support. Answer: Bo, 90 % sure, right."
        in told
    )
    assert "wrong: the known answer is Bo." in words(
        view.sentence(set_of((3,), gold=(3,), known="Bo", said="Ada"))
    )
    assert "Reading it…" in words(view.sentence(set_of((3,))))
    assert "from" not in words(view.sentence(set_of((1,), sizes=(4,), json_ld=("",), said="Bo")))
    nothing = words(view.sentence(set_of((), said="")))
    assert "No chunk of 13 has a chance above one half." in nothing
    assert "The best chunk has a chance of below 1 %" in nothing
    assert f"Try: {view.EXAMPLE}" in nothing
    for other in (set_of((3,), said=""), set_of((), said="", method="resrag-llm")):
        assert view.EXAMPLE not in words(view.sentence(other))
    assert view.EMPTY in words(view.sentence(None))


@pytest.mark.parametrize(
    ("taken", "budget", "sentence"),
    [
        ((3, 4), 8, "takes 2: no other is above one half."),
        ((3, 4), 2, "takes 2, all that the budget allows."),
        (tuple(range(13)), 24, "takes 13, as many as there are chunks."),
    ],
)
def test_what_the_budget_did(taken: tuple[int, ...], budget: int, sentence: str) -> None:
    told = words(view.budget_words(set_of(taken, budget=budget)))
    assert sentence in told
    assert "The log has the set at a budget of 8" in told


def test_tokens_stand_on_a_log_scale() -> None:
    told = view.tokens(set_of((3, 10)))
    widths = [float(str(bar["data-x"])[:-1]) for bar in markup(told).select("[data-x]")]
    assert widths[2] == 100
    assert widths[0] == widths[1] == pytest.approx(100 * np.log1p(20) / np.log1p(130), abs=0.1)
    assert "log scale" in words(told)


def test_more_than_the_root_is_marked() -> None:
    """Four of nine are beyond the root of three; two of four are not."""
    rows = markup(documents_view.documents(set_of((0, 1, 2, 3, 9, 10)), Shown())).find_all("section")
    assert [("qx-beyond" in row["class"]) for row in rows] == [True, False, False]
    [[beyond], *others] = [paths(row, "qx-bar-beyond") for row in rows]
    assert beyond.count("Z") == 1
    assert others == [[], []]
    assert "√9 = 3.0" in rows[0].get_text()
    assert "no chunks" in rows[1].get_text()


def test_an_opened_row_lists_what_is_taken_and_what_would_come_next() -> None:
    view_of = set_of((3, 10), gold=(3,), json_ld=('{"name": "Inn"}', "", ""))
    told = markup(documents_view.documents(view_of, Shown(opened=(0,))))
    first, second, third = (line.get_text() for line in told.find_all("li"))
    assert "chunk 3" in first
    assert "chunk 0" in second
    assert "chunk 1" in third
    assert "support" in first
    assert "95 %" in first
    assert "not taken" in second
    assert '{"name": "Inn"}' in told.get_text()
    assert HOSTILE.split(" $")[0] in first
    closed = words(documents_view.documents(view_of, Shown()))
    assert '{"name": "Inn"}' not in closed
    assert "JSON-LD" in closed


def test_only_documents_that_something_is_taken_of() -> None:
    told = markup(documents_view.documents(set_of((10,)), Shown(only_taken=True)))
    [row] = told.find_all("section")
    assert "page 2" in row.get_text()
    assert "Nothing is taken" in words(documents_view.documents(set_of(()), Shown(only_taken=True)))


def test_a_long_document_is_as_many_bytes_as_a_short_one() -> None:
    n = 40_000
    long = set_of(tuple(range(0, n, n // 12))[:12], sizes=(n,), json_ld=("",))
    long = replace(long, chances=np.maximum(long.chances, np.linspace(0.01, 0.4, n, dtype=np.float32)))
    told = documents_view.documents(long, Shown(opened=(0,)))
    assert len(json.dumps(told)) < 20_000
    along, ranked = paths(markup(told), "qx-bar-taken")
    assert along.count("Z") + ranked.count("Z") <= COLUMNS
    taken = [float(x) for x in re.findall(r"M([\d.]+) ", along)]
    assert len(taken) == 12
    assert taken[6] == pytest.approx(1000 * 6 * (n // 12) / n, abs=1000 / COLUMNS)


def test_many_documents_are_turned_page_by_page() -> None:
    many = set_of((7,), sizes=(2,) * 45, json_ld=("",) * 45)
    first, last = (documents_view.documents(many, Shown(page=page)) for page in (0, 99))
    assert [len(markup(page).find_all("section")) for page in (first, last)] == [20, 5]
    assert "41 to 45 of 45" in words(last)


def test_the_reward_adds_up() -> None:
    """2 * 1 for the answer; F1 of 2/3, 1, 1 for the support; no document beyond."""
    told = markup(reward_view.reward(set_of((3, 10), gold=(3, 5, 10), known="Bo", said="Bo")))
    rows = [[cell.get_text() for cell in row(["th", "td"])] for row in told("tr")]
    assert [row[-1] for row in rows] == ["+2.00", "+0.89", "0.00", "2.89"]
    assert rows[0][:2] == ["Answer, F1 1.00", "2 × F1 with the known answer"]
    ends = [paths(told, f"qx-step-{kind}")[0] for kind in ("answer", "consistency")]
    assert ends[0].startswith("M0.0 0H666.7")
    assert ends[1].startswith("M666.7 18H963.0")
    assert not paths(told, "qx-step-penalty")
    assert paths(told, "qx-total")[0].startswith("M963.0")


def test_a_penalty_and_a_bad_answer_go_down() -> None:
    told = markup(reward_view.reward(set_of((0, 1, 2, 3), gold=(5,), known="Bo", said="")))
    values = [row("td")[-1].get_text() for row in told("tr")]
    assert values == ["−0.50", "+0.67", "−0.33", "−0.17"]
    assert "1 document above √N, mean 0.17" in told.get_text()
    assert paths(told, "qx-step-penalty")
    assert paths(told, "qx-falls") == [*paths(told, "qx-step-answer"), *paths(told, "qx-step-penalty")]
    unlabelled = set_of((3,), said="Bo")
    assert "choose one of the known questions" in words(reward_view.reward(unlabelled))
    cast(Any, unlabelled.run.documents).questions = ()
    assert "mark the passages of this one in Explore" in words(reward_view.reward(unlabelled))


def test_the_action_is_that_of_the_paper() -> None:
    told = markup(reward_view.action(set_of((3, 10, 0))))
    assert json.loads(told.pre.get_text()) == {
        "Document_1": [4, 1],
        "Document_2": [],
        "Document_3": [2],
    }
    many = reward_view.action(set_of((7,), sizes=(1,) * 2_000, json_ld=("",) * 2_000))
    assert len(json.dumps(many)) < 10_000


CURVES = [
    Curve("hotpotqa", "topk", "", "reader", 96, (1.0, 2.0), (30.0, 60.0), (0.1, 0.2), (0.2, 0.3)),
    Curve(
        "hotpotqa",
        "resrag",
        "light",
        "reader",
        96,
        (1.0, 4.0, 8.0),
        (30.0, 50.0, 40.0),
        (0.2, 0.3, 0.3),
        (0.2, 0.4, 0.4),
    ),
    Curve("hotpotqa", "qrag", "multi-hop", "reader", 96, (0.9,), (40.0,), (0.2,), (0.3,)),
    Curve("hotpotqa", "sparc", "W2", "reader", 96, (3.0,), (90.0,), (0.3,), (0.5,)),
    Curve("nq", "resrag", "light", "reader-large", 90, (1.0,), (30.0,), (0.2,), (0.5,)),
]


@pytest.mark.parametrize(
    ("budget", "setting"), [(1, "budget 1"), (3, "budget 1"), (7, "budget 4"), (24, "budget 8")]
)
def test_the_ring_is_the_budget_that_is_set(budget: int, setting: str) -> None:
    told = markup(frontier_view.frontier(CURVES, "", "f1", budget))
    dots = told.select("button[data-act=runs]")
    assert len(dots) == 7
    names = [name.get_text() for name in told.select("span.qx-front-name")]
    assert names == ["RES-RAG light", "top-k", "Q-RAG multi-hop", "SPARC-RAG, width 2"], (
        "in a row above the lines"
    )
    [ring] = told.select(".qx-ring")
    assert setting in ring["title"]
    lefts = {str(dot["title"]): float(str(dot["data-x"])[:-1]) for dot in dots}
    assert {
        "Q-RAG multi-hop, Q 0.9: 40 tokens, Answer F1 0.20 [0.20, 0.20]",
        "SPARC-RAG, width 2, depth 3: 90 tokens, Answer F1 0.30 [0.30, 0.30]",
    } < lefts.keys()
    assert (
        lefts["top-k, k 1: 30 tokens, Answer F1 0.10 [0.10, 0.10]"]
        < lefts["top-k, k 2: 60 tokens, Answer F1 0.20 [0.20, 0.20]"]
    )


def test_the_frontier_of_other_questions_and_of_none() -> None:
    told = words(frontier_view.frontier(CURVES, "nq", "recall", 8))
    assert "means of 90 questions with 95 % intervals, answered by reader-large" in told
    assert "likelier than not" in told, "where there is no agent"
    assert "likelier than not" not in words(frontier_view.frontier(CURVES, "hotpotqa", "recall", 8))
    assert "top-k" not in told
    assert frontier_view.frontier([], "", "f1", 8) == []
    assert "Wikipedia, two facts" in words(frontier_view.frontier(CURVES, "<b>", "no such", 8))


def test_the_reading_pane_marks_what_is_taken() -> None:
    told = view.reading(set_of((3, 10), gold=(3,)), 3, None, True)
    assert "Chance 95 %, taken at a budget of 8." in words(told)
    acts = {button["data-act"] for button in markup(told).select("[data-act]")}
    assert {"explore", "close", "open", "page"} <= acts
    assert not markup(view.reading(set_of((3,)), 4, None, False)).select("[data-act=explore]")
    assert view.reading(set_of((3,)), None, None, True) == []


def test_what_is_asked_now_and_what_is_shown() -> None:
    shown = set_of((3,))
    assert view.changes(shown, f" {QUERY} ", True, False) == []
    assert "Changed since this set was chosen: document, question, policy" in words(
        view.changes(shown, "else", False, True)
    )
    assert view.changes(None, "else", False, False) == []


def test_a_language_model_says_taken_and_no_chance() -> None:
    shown = set_of((3, 10), method="resrag-llm", said="Bo")
    shown = replace(shown, chances=np.where(np.isin(np.arange(13), (3, 10)), 1.0, 0.0).astype(np.float32))
    shown.chances[0] = -1.0
    rows = documents_view.documents(shown, Shown((0, 2)))
    told = words(rows)
    assert "What the model took" in told
    assert "%" not in told
    assert "not taken" not in told
    assert paths(markup(rows), "qx-bar-left") == []
    assert [view.chance_of(shown, chunk_id) for chunk_id in (3, 1, 0)] == [
        "taken",
        "read and left",
        "not read",
    ]
    assert "By the language model: read and left." in words(view.reading(shown, 1, None, True))
    said = words(view.sentence(set_of((), method="resrag-llm", said="")))
    assert "No chunk of 13 was taken by the language model" in said
    assert "Who" not in words(view.policy_line(False, ""))
    assert "no language model is connected" in words(view.policy_line(True, ""))
    assert "tiny" in words(view.policy_line(True, "tiny"))
