"""SPARC runs as trees of plain data for the page: pure functions, one per panel (see components.tree).

Decides wording; that rounds stand side by side with one lane a branch, the winning lane drawn on into the
next round; that a branch keeps its colour through all rounds; and that a note's difference is told by
sentences. Whatever documents, questions and language models wrote stays text. Knows nothing of Gradio events
and of how runs come about.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from app.components.tree import Node, act, h
from app.pages.sparc.actions import SparcRun
from app.pages.widgets.answers import judged
from app.pages.widgets.notices import notice
from app.pages.widgets.tables import table
from app.pages.widgets.text import crumb, document_page, page_around, turn_pages
from app.pages.widgets.words import counted, duration, shorten, step_class
from core.ingest.sentences import split_sentences
from core.log.branches import STRATEGY_NAMES, branch_name, decided_by_rules, end_sentence
from core.prose import plain
from core.sparc.events import BrokenOff, Cost, Found, Merged, Note, SparcConfig, Strategy
from core.sparc.trace import SparcBranch, SparcRound, SparcTrace
from core.story import sure as sure_words
from core.story import verdict_on

STRATEGY_SENTENCES: dict[Strategy, str] = {
    "bm25": "Chunks that share the rarest words with the query",
    "dense": "Chunks nearest to the query by the untrained encoder",
    "qrag": "Chunks that the agent of the open documents chooses one after another",
}
OVERLAP = (
    "Mean Jaccard index of the chunks of any two branches: 0 when each found its own, 1 when all found the"
    " same (SPARC-RAG appendix B.2)"
)
CONFIDENCE = (
    "How sure whoever answered is; the reader's is calibrated: of the answers given with 0.8, some 80 in a"
    " hundred are right"
)
EMPTY = (
    "Press Run: branches look for different things at once, each with a note, an answer and a verdict of its"
    " own; the best one is kept, the notes are merged, and the next round goes on from there."
)
MOST_SENTENCES = 8
"""Sentences of a note's difference that a card lists."""
_LONGEST = 400
"""Characters of a query, an answer or a reason that a card shows; the whole is in the export."""
_LONGEST_TEXT = 4_000
"""Characters of the final answer and of a whole note."""
_ROW = 18
"""Height of a row of the strip, in pixels."""

Finders = Mapping[int, Sequence[str]]
"""Branches that found a chunk, by its id."""


# What is asked for, and how far it is


def agents_words(trace: SparcTrace) -> str:
    """Who decides, in a sentence."""
    agents = trace.started.agents
    return (
        f"No language model acts here: {agents} rewrite, answer and judge."
        if decided_by_rules(trace)
        else f"{agents} rewrites, answers and judges."
    )


def deciders(llm: str) -> list[Node]:
    """Who will decide in the next run. `llm`: name of the language model that is set, empty without one."""
    words = (
        f"{llm} will rewrite, answer and judge."
        if llm
        else "No language model is set: rules and the reader that ships rewrite, answer and judge."
    )
    return [h("p", {"class": "qx-sm qx-mut qx-agents"}, words)]


def changes(run: SparcRun | None, query: str, config: SparcConfig, same_documents: bool) -> list[Node]:
    """Whether what is shown still fits what is asked for."""
    if run is None or run.status == "running":
        return []
    then = run.trace.started
    differs = {
        "document": not same_documents,
        "question": then.question != query.strip(),
        "settings": then.config != config,
    }
    words = " and ".join(name for name, changed in differs.items() if changed)
    return notice(
        f"The rounds below were made with another {words}." if words else "",
        "outdated",
        act("again", "", "Run again"),
    )


def heading(run: SparcRun | None) -> list[Node]:
    """What was asked, by whom it is answered, and the running totals against the budgets."""
    if run is None:
        return [h("h3", None, "Rounds")]
    trace = run.trace
    buttons: list[Node] = []
    if run.status != "running":
        record = json.dumps({"run_id": run.run_id, **trace.to_json()}, ensure_ascii=False, indent=1)
        name = f"sparc-{run.run_id[:8]}.json"
        buttons.append(
            h(
                "button",
                {"class": "qx-btn", "data-act": "download", "data-arg": record, "data-name": name},
                "Download trace",
            )
        )
    return [
        h(
            "div",
            {"class": "qx-row"},
            h("h3", {"dir": "auto"}, shorten(trace.started.question, _LONGEST)),
            _chip(run),
            h("span", {"class": "qx-grow"}),
            act(
                "copy-link",
                f"?run={run.run_id}",
                "Copy link",
                title="The address of this run, which opens it as it is now, without asking any model again",
            ),
            *buttons,
        ),
        h("p", {"class": "qx-sm qx-mut qx-agents"}, agents_words(trace)),
        h("div", {"class": "qx-numbers"}, *_totals(trace)),
        h("p", {"class": "qx-sm qx-mut", "role": "status"}, _standing(run)),
    ]


def _chip(run: SparcRun) -> Node:
    kind = " qx-chip-live" if run.status == "running" else " qx-chip-bad" if run.status != "complete" else ""
    return h("span", {"class": f"qx-chip{kind}"}, run.status)


def _totals(trace: SparcTrace) -> Iterator[Node]:
    cost, config = trace.cost, trace.started.config
    yield _total("rounds", len(trace.rounds), config.depth, "Rounds begun, of those that the depth allows")
    yield _total(
        "calls", cost.calls, config.max_calls, "Calls of a language model, of those that the budget allows"
    )
    told = f"Tokens in and out of all calls: {cost.prompt_tokens:,} read, {cost.completion_tokens:,} written"
    yield _total("tokens", cost.prompt_tokens + cost.completion_tokens, config.max_tokens, told)
    sentence = (
        "Time of all agents and retrievals added up; branches work side by side, so the clock on the wall"
        " shows less"
    )
    yield _total(
        "of work",
        f"{cost.milliseconds:,.0f} ms" if cost.milliseconds < 10_000 else duration(cost.milliseconds / 1000),
        None,
        sentence,
    )


def _total(name: str, value: int | str, most: int | None, sentence: str) -> Node:
    """A running total; against its budget, where it has one."""
    words = value if isinstance(value, str) else f"{value:,}" if most is None else f"{value:,} of {most:,}"
    bar = None
    if isinstance(value, int) and most is not None:
        bar = h(
            "progress",
            {"value": str(min(value, most)), "max": str(max(most, 1)), "aria-label": f"{name} used"},
        )
    return h(
        "span",
        {"class": "qx-number", "title": sentence, "tabindex": "0"},
        h("strong", None, words),
        h("span", {"class": "qx-mut qx-sm"}, name),
        bar,
    )


def _standing(run: SparcRun) -> str:
    """What is going on, or how it ended."""
    trace = run.trace
    if run.status == "running":
        if not trace.rounds:
            return "Looking for what to ask first."
        now = trace.rounds[-1]
        judged = sum(branch.judged is not None for branch in now.branches)
        if judged == len(now.branches) and judged:
            return (
                f"Round {now.number}: choosing the best branch and merging the notes."
                if now.merged is None
                else f"Round {now.number} is merged."
            )
        return f"Round {now.number}: {judged} of {_branches(len(now.branches))} judged."
    if run.status == "cancelled":
        return "Cancelled; the rounds so far are kept."
    return (
        end_sentence(trace)
        if trace.stopped is not None
        else run.message or "It ended before it had an answer; what was done by then is kept."
    )


def _branches(n: int) -> str:
    return f"{n} branch" if n == 1 else f"{n} branches"


# Where the branches looked


def where(run: SparcRun | None) -> list[Node]:
    """The documents from left to right, a row a branch, a mark where each chunk that it found lies; the
    longer the mark the better its place.
    """
    if run is None or not run.trace.found:
        return []
    n = run.trace.started.n_chunks
    rows = [
        _looked(one, branch, n, run)
        for one in run.trace.rounds
        for branch in one.branches
        if branch.retrieved is not None
    ]
    evidence = run.evidence
    if evidence:
        rows.append(
            _row("evidence", "qx-looked-evidence", [(chunk_id, 1.0) for chunk_id in evidence], n, run)
        )
    gold = [
        h(
            "span",
            {"class": "qx-gold-ring", "--x": f"{_across(i, n):.2f}%", "title": f"chunk {i:,} is support"},
        )
        for i in run.gold
        if i < n
    ]
    return [
        h("h4", None, "Where each branch looked"),
        h("ol", {"class": "qx-looked"}, *rows),
        *([h("div", {"class": "qx-looked-golds"}, h("div", {"class": "qx-golds"}, *gold))] if gold else []),
        h(
            "p",
            {"class": "qx-sm qx-mut"},
            f"{n:,} chunks along the document, a row a branch; the longer a mark, the higher the chunk stood"
            " there.",
        ),
    ]


def _looked(one: SparcRound, branch: SparcBranch, n: int, run: SparcRun) -> Node:
    found = _chunks(branch)
    label = f"{branch_name(one.number, branch.number)} {STRATEGY_NAMES[branch.query.strategy]}"
    best = " qx-won" if one.merged is not None and one.merged.best_branch == branch.number else ""
    return _row(
        label,
        step_class(branch.number) + best,
        [(chunk.chunk_id, 1 - place / max(len(found), 1) / 1.5) for place, chunk in enumerate(found)],
        n,
        run,
    )


def _row(label: str, kind: str, marks: Sequence[tuple[int, float]], n: int, run: SparcRun) -> Node:
    """marks: (chunk, height from 0 to 1)."""
    borders = (
        []
        if run.workspace is None
        else [_stroke(100 * int(first) / n, 0, "qx-border") for first in run.workspace.borders[1:-1]]
    )
    strokes = [
        h(
            "path",
            {
                "class": "qx-stem",
                "data-same": str(i),
                "d": f"M{10 * _across(i, n):.1f} {_ROW}V{_ROW * (1 - share):.1f}",
            },
        )
        for i, share in marks
        if i < n
    ]
    told = f"{label}: chunks {', '.join(f'{i:,}' for i, _ in marks) or 'none'}"
    attributes = {
        "viewBox": f"0 0 1000 {_ROW}",
        "preserveAspectRatio": "none",
        "height": str(_ROW),
        "role": "img",
        "aria-label": told,
    }
    return h(
        "li",
        {"class": f"qx-looked-row {kind}"},
        h("span", {"class": "qx-looked-name qx-sm"}, label),
        h("svg", attributes, *borders, *strokes),
    )


def _stroke(percent: float, top: int, kind: str) -> Node:
    return h("path", {"class": kind, "d": f"M{10 * percent:.1f} {top}V{_ROW}"})


def _across(chunk_id: int, n: int) -> float:
    return 100 * (chunk_id + 0.5) / max(n, 1)


# The rounds


def rounds(run: SparcRun | None, opened: int | None = None) -> list[Node]:
    """Rounds left to right, one lane a branch. `opened`: chunk that is open in the reading place."""
    if run is None:
        return [h("p", {"class": "qx-empty"}, EMPTY)]
    trace = run.trace
    if not trace.rounds:
        words = (
            "The first round is on its way."
            if run.status == "running"
            else "It ended before its first round."
        )
        return [h("p", {"class": "qx-empty"}, words)]
    width = max(len(one.branches) for one in trace.rounds)
    seen: dict[int, list[str]] = {}
    columns = []
    winner: int | None = None
    for one in trace.rounds:
        columns.append(_round(one, run, winner, seen, opened))
        for branch in one.branches:
            for chunk in _chunks(branch):
                seen.setdefault(chunk.chunk_id, []).append(branch_name(one.number, branch.number))
        winner = None if one.merged is None else one.merged.best_branch
    lanes = h("div", {"class": f"qx-rounds qx-w{min(max(width, 1), 8)}"}, *columns)
    return [
        h(
            "div",
            {
                "class": "qx-scroll qx-rounds-scroll",
                "role": "region",
                "aria-label": "Rounds",
                "tabindex": "0",
            },
            lanes,
        )
    ]


def _chunks(branch: SparcBranch) -> tuple[Found, ...]:
    return branch.retrieved.found if branch.retrieved is not None else ()


def _round(one: SparcRound, run: SparcRun, came_from: int | None, seen: Finders, opened: int | None) -> Node:
    """`came_from`: the branch whose lane won the round before."""
    best = None if one.merged is None else one.merged.best_branch
    lanes = [_lane(one, branch, run, came_from, best, seen, opened) for branch in one.branches]
    name = f"qx-round-{one.number}"
    return h(
        "section",
        {"class": "qx-round", "aria-labelledby": name},
        h(
            "header",
            {"class": "qx-round-head"},
            h("h4", {"id": name}, f"Round {one.number}"),
            *_round_facts(one),
        ),
        h("ol", {"class": "qx-lanes", "aria-label": f"Branches of round {one.number}"}, *lanes),
        (
            _merge(
                one.merged,
                len(one.branches),
                run,
                last=run.trace.stopped is not None and one is run.trace.rounds[-1],
            )
            if one.merged is not None
            else h("div", {"class": "qx-merge"}, *(_broken(one.broken) if one.broken is not None else []))
        ),
    )


def _round_facts(one: SparcRound) -> list[Node]:
    facts: list[Node] = []
    if one.merged is not None and one.merged.overlap is not None:
        facts.append(
            h(
                "span",
                {"class": "qx-kv", "title": OVERLAP, "tabindex": "0"},
                f"overlap {one.merged.overlap:.2f}",
            )
        )
    if one.started.cost.calls or one.started.cost.milliseconds:
        facts.append(
            h(
                "span",
                {"class": "qx-kv", "title": "What the query rewriter took", "tabindex": "0"},
                f"rewriter {cost_words(one.started.cost)}",
            )
        )
    return [h("div", {"class": "qx-kvs qx-sm qx-mut"}, *facts)] if facts else []


def _lane(
    one: SparcRound,
    branch: SparcBranch,
    run: SparcRun,
    came_from: int | None,
    best: int | None,
    seen: Finders,
    opened: int | None,
) -> Node:
    won = " qx-won" if branch.number == best else ""
    return h(
        "li",
        {"class": f"qx-lane {step_class(branch.number)}{won}"},
        h("span", {"class": f"qx-fan {_joins(branch.number, came_from, one)}", "aria-hidden": "true"}),
        _card(one, branch, run, branch.number == best, seen, opened),
        h("span", {"class": f"qx-join {_joins(branch.number, best, one)}", "aria-hidden": "true"}),
    )


def _joins(branch: int, winner: int | None, one: SparcRound) -> str:
    """Classes of the line between a lane and the one that won: straight on, or a bend, and where other lanes'
    lines meet it.
    """
    if winner is None:
        return ""
    course = "qx-straight" if branch == winner else "qx-from-above" if branch < winner else "qx-from-below"
    above, below = 1 < branch <= winner, winner <= branch < len(one.branches)
    return course + " qx-meet-above" * above + " qx-meet-below" * below


def _card(
    one: SparcRound, branch: SparcBranch, run: SparcRun, best: bool, seen: Finders, opened: int | None
) -> Node:
    name, sentence = STRATEGY_NAMES[branch.query.strategy], STRATEGY_SENTENCES[branch.query.strategy]
    marks = [
        h("span", {"class": "qx-mark qx-strategy", "title": sentence, "tabindex": "0"}, name),
        h("span", {"class": "qx-grow"}),
    ]
    if best:
        marks.append(
            h(
                "span",
                {
                    "class": "qx-mark qx-best",
                    "title": "The context manager chose this branch: the next round goes on from its note",
                },
                "best",
            )
        )
    parts = [
        *_found(branch, run, seen, opened),
        *_note(branch),
        *_answer(branch, run),
        *_verdict(branch),
        *_waiting(branch, run),
    ]
    return h(
        "div",
        {
            "class": "qx-branch",
            "role": "group",
            "aria-label": f"Round {one.number}, branch {branch.number}, {name}" + ", best" * best,
        },
        h(
            "div",
            {"class": "qx-step-head"},
            h("span", {"class": "qx-pin"}, branch_name(one.number, branch.number)),
            *marks,
        ),
        h("p", {"class": "qx-sparc-query", "dir": "auto"}, shorten(branch.query.query, _LONGEST)),
        (
            h("p", {"class": "qx-sm qx-mut", "dir": "auto"}, shorten(branch.query.reason, _LONGEST))
            if branch.query.reason
            else None
        ),
        h(
            "dl",
            {"class": "qx-parts"},
            *(part for name, *nodes in parts for part in (h("dt", None, name), h("dd", None, *nodes))),
        ),
        _costs(branch),
    )


Part = tuple[Any, ...]
"""A term of a card, and the nodes that say it."""


def _found(branch: SparcBranch, run: SparcRun, seen: Finders, opened: int | None) -> list[Part]:
    if branch.retrieved is None:
        return []
    if not branch.retrieved.found:
        return [("found", h("span", {"class": "qx-mut"}, "nothing"))]
    chips = [
        _chunk(chunk.chunk_id, chunk.text, run, seen.get(chunk.chunk_id, ()), chunk.chunk_id == opened)
        for chunk in branch.retrieved.found
    ]
    return [
        (
            "found",
            h(
                "ol",
                {"class": "qx-chips qx-found-chips", "aria-label": "Chunks found, best first"},
                *(h("li", None, chip) for chip in chips),
            ),
        )
    ]


def _chunk(chunk_id: int, text: str, run: SparcRun, before: Sequence[str], opened: bool) -> Node:
    gold = " qx-gold-chip" if chunk_id in run.gold else ""
    told = (
        f"chunk {chunk_id:,}"
        + (", support" if gold else "")
        + (f", found before by {', '.join(before)}" if before else "")
    )
    attributes = {
        "class": "qx-set-chip" + " qx-again" * bool(before) + gold + " qx-on" * opened,
        "data-act": "open",
        "data-arg": str(chunk_id),
        "data-same": str(chunk_id),
        "aria-label": told,
        "aria-pressed": str(opened).lower(),
        "title": f"{told}: {shorten(plain(text), 240)}",
    }
    return h("button", attributes, f"{chunk_id:,}")


def _note(branch: SparcBranch) -> list[Part]:
    if branch.noted is None:
        return []
    added, removed = note_difference(branch.noted.before, branch.noted.after)
    if not added and not removed:
        return [
            (
                "note",
                h("span", {"class": "qx-mut"}, "unchanged" if branch.noted.after.text.strip() else "empty"),
            )
        ]
    lines = [*_sentences(added, "+", "added", "qx-added"), *_sentences(removed, "−", "removed", "qx-removed")]
    return [("note", h("ul", {"class": "qx-difference"}, *lines))]


def _sentences(sentences: Sequence[str], sign: str, word: str, kind: str) -> Iterator[Node]:
    for sentence in sentences[:MOST_SENTENCES]:
        unseen = h("span", {"class": "qx-unseen"}, f"{word}: ")
        yield h(
            "li",
            {"class": kind},
            h("span", {"class": "qx-sign", "aria-hidden": "true"}, sign),
            unseen,
            h("span", {"dir": "auto"}, shorten(sentence, 280)),
        )
    if len(sentences) > MOST_SENTENCES:
        yield h("li", {"class": f"{kind} qx-mut"}, f"{len(sentences) - MOST_SENTENCES} more {word}")


def note_difference(before: Note, after: Note) -> tuple[list[str], list[str]]:
    """Sentences that a note gained and lost, in their order.

    >>> note_difference(Note("It rained. She left."), Note("It rained. He stayed."))
    (['He stayed.'], ['She left.'])
    """
    old, new = _said(before.text), _said(after.text)
    return [sentence for sentence in new if sentence not in old], [
        sentence for sentence in old if sentence not in new
    ]


def _said(text: str) -> list[str]:
    return list(dict.fromkeys(" ".join(text[start:end].split()) for start, end in split_sentences(text)))


def _answer(branch: SparcBranch, run: SparcRun) -> list[Part]:
    answered = branch.answered
    if answered is None:
        return []
    words: Node = (
        h("strong", {"dir": "auto"}, shorten(answered.answer, _LONGEST))
        if answered.answer.strip()
        else h("span", {"class": "qx-mut"}, NO_ANSWER)
    )
    sure = None if answered.confidence is None else _sure(answered.confidence)
    verdict = judged(verdict_on(answered.answer, run.known_answer), run.known_answer, "span")
    return [("answer", words, sure, verdict, _cited(answered.citations, run))]


NO_ANSWER = "no answer in the evidence"


def _sure(confidence: float) -> Node:
    return h(
        "span",
        {"class": "qx-kv qx-sm qx-mut qx-sure", "title": CONFIDENCE, "tabindex": "0"},
        sure_words(confidence),
    )


def _cited(citations: Sequence[int], run: SparcRun) -> Node | None:
    if not citations:
        return None
    links = [
        h(
            "button",
            {
                "class": "qx-link",
                "data-act": "open",
                "data-arg": str(i),
                "data-same": str(i),
                "aria-label": f"cited: chunk {i:,}",
            },
            f"{i:,}",
        )
        for i in dict.fromkeys(citations)
        if 0 <= i < run.trace.started.n_chunks
    ]
    return (
        h("span", {"class": "qx-cited qx-why-so"}, h("span", {"class": "qx-mut"}, "rests on chunk"), *links)
        if links
        else None
    )


def _verdict(branch: SparcBranch) -> list[Part]:
    judged = branch.judged
    if judged is None:
        return []
    kind = " qx-hit" if judged.verdict == "stop" else ""
    sentence = (
        "The evaluator accepts the answer" if judged.verdict == "stop" else "The evaluator wants to know more"
    )
    reason = (
        h("span", {"class": "qx-why-so", "dir": "auto"}, shorten(judged.reason, _LONGEST))
        if judged.reason
        else None
    )
    return [
        (
            "verdict",
            h("span", {"class": f"qx-mark{kind}", "title": sentence, "tabindex": "0"}, judged.verdict),
            reason,
        )
    ]


def _broken(broken: BrokenOff) -> list[Node]:
    """Who could not go on, and why."""
    why = broken.message or f"the budget of {broken.reason} is used up"
    sentence = "Whose turn it was when the run ended"
    mark = h("span", {"class": "qx-mark qx-warn", "title": sentence, "tabindex": "0"}, broken.agent)
    return [mark, h("span", {"class": "qx-why-so", "dir": "auto"}, shorten(why, _LONGEST))]


def _waiting(branch: SparcBranch, run: SparcRun) -> list[Part]:
    """What a branch is about to do, or never came to."""
    if branch.broken is not None:
        return [("ended", *_broken(branch.broken))]
    steps = (
        (branch.retrieved, "retrieving"),
        (branch.noted, "updating its note"),
        (branch.answered, "answering"),
        (branch.judged, "being judged"),
    )
    doing = next((words for event, words in steps if event is None), None)
    if doing is None:
        return []
    return (
        [("now", h("span", {"class": "qx-live"}, f"{doing}…"))]
        if run.status == "running"
        else [("then", h("span", {"class": "qx-mut"}, "ended here"))]
    )


def cost_words(cost: Cost) -> str:
    """What a turn took, in a few words."""
    calls = (
        f"{counted(cost.calls, 'call')} · {counted(cost.prompt_tokens + cost.completion_tokens, 'token')} · "
        if cost.calls
        else ""
    )
    return f"{calls}{cost.milliseconds:,.0f} ms"


_STRUCTURES = {"json_schema": "by schema", "json_object": "as JSON", "text": "found in text"}


def _costs(branch: SparcBranch) -> Node | None:
    """What each agent of a branch took, folded."""
    if branch.retrieved is None:
        return None
    turns = (
        ("context manager", branch.noted),
        ("answer generator", branch.answered),
        ("answer evaluator", branch.judged),
    )
    costs = {"retriever": Cost(milliseconds=branch.retrieved.milliseconds)} | {
        agent: event.cost for agent, event in turns if event is not None
    }
    if branch.broken is not None:
        costs[branch.broken.agent] = branch.broken.cost
    rows = [
        h(
            "tr",
            None,
            h("th", {"scope": "row"}, agent),
            *(
                h("td", None, cell)
                for cell in (
                    f"{cost.calls}",
                    f"{cost.prompt_tokens:,} + {cost.completion_tokens:,}",
                    f"{cost.milliseconds:,.0f}",
                )
            ),
            h(
                "td",
                None,
                (
                    "none"
                    if branch.broken is not None and agent == branch.broken.agent
                    else _STRUCTURES.get(cost.structure or "", "")
                ),
            ),
        )
        for agent, cost in costs.items()
    ]
    head: list[str | tuple[str, str]] = [
        "agent",
        "calls",
        ("tokens", "Read + written"),
        "ms",
        ("reply", "How the structured reply was got"),
    ]
    whole = cost_words(branch.cost)
    return h(
        "details",
        {"class": "qx-cost qx-sm"},
        h("summary", None, whole),
        table(head, rows, f"What branch {branch.number} took"),
    )


def _merge(merged: Merged, n_branches: int, run: SparcRun, *, last: bool) -> Node:
    """How the round's lanes become one. `last`: no other round came after it."""
    name = (
        f"Branch {merged.best_branch} {'is the best' if last else 'goes on'}"
        if n_branches > 1
        else f"Its note {'is the last' if last else 'goes on'}"
    )
    others = (
        f"; {'the other note is' if n_branches == 2 else 'the other notes are'} merged into its own"
        if n_branches > 1
        else ""
    )
    sentences = _said(merged.note.text)
    text = (
        h("p", {"class": "qx-quote qx-sm", "dir": "auto"}, shorten(merged.note.text, _LONGEST_TEXT))
        if sentences
        else None
    )
    note = h(
        "details",
        {"class": "qx-sm"},
        h("summary", None, f"the note: {counted(len(sentences), 'sentence')}"),
        text,
        _cited(merged.note.chunk_ids, run),
    )
    return h(
        "div",
        {"class": f"qx-merge {step_class(merged.best_branch)}"},
        h("p", None, h("strong", None, name), f"{others}."),
        (
            h("p", {"class": "qx-sm qx-mut", "dir": "auto"}, shorten(merged.reason, _LONGEST))
            if merged.reason
            else None
        ),
        note,
        (
            h("p", {"class": "qx-sm qx-mut"}, f"context manager {cost_words(merged.cost)}")
            if merged.cost.calls or merged.cost.milliseconds
            else None
        ),
    )


# The end


def final(run: SparcRun | None) -> list[Node]:
    """The answer with what it rests on, why the run ended, and its evidence."""
    if run is None or run.status == "running" or run.trace.stopped is None:
        return []
    stopped = run.trace.stopped
    winner = run.trace.chosen_branch
    answered = None if winner is None else winner.answered
    answer: Node = h("p", {"class": "qx-empty"}, f"There is {NO_ANSWER}.")
    if stopped.answer.strip():
        answer = h("p", {"class": "qx-final-answer", "dir": "auto"}, shorten(stopped.answer, _LONGEST_TEXT))
    sure = None if answered is None or answered.confidence is None else _sure(answered.confidence)
    cited = () if answered is None else answered.citations
    accepted = stopped.reason == "accepted"
    return [
        h("h3", None, "Answer"),
        h(
            "div",
            {"class": "qx-row"},
            answer,
            sure,
            judged(verdict_on(stopped.answer, run.known_answer), run.known_answer, "span"),
            _cited(cited, run),
        ),
        h("p", {"class": "qx-stop" if accepted else "qx-stop qx-unsure"}, end_sentence(run.trace)),
        *_evidence(run, cited),
    ]


def _evidence(run: SparcRun, cited: Collection[int]) -> list[Node]:
    if not run.evidence:
        return []
    texts = run.texts
    hits = (
        f" · {len({*run.gold} & {*run.evidence})} of {len(run.gold)} support chunks found" if run.gold else ""
    )
    items = [
        h(
            "li",
            {"class": "qx-cited-item" if chunk_id in cited else None},
            h(
                "button",
                {
                    "class": "qx-link",
                    "data-act": "open",
                    "data-arg": str(chunk_id),
                    "data-same": str(chunk_id),
                },
                f"chunk {chunk_id:,}",
            ),
            h("span", {"class": "qx-mark"}, "cited") if chunk_id in cited else None,
            h("span", {"class": "qx-mark qx-hit"}, "support") if chunk_id in run.gold else None,
            h("p", {"class": "qx-quote qx-sm", "dir": "auto"}, shorten(plain(texts.get(chunk_id, "")), 400)),
        )
        for chunk_id in sorted(run.evidence)
    ]
    head = h("h4", None, f"Evidence in document order: {counted(len(items), 'chunk')}{hits}")
    return [head, h("ol", {"class": "qx-evidence"}, *items)]


def reading(
    run: SparcRun | None, chunk_id: int | None, anchor: int | None, *, in_explore: bool = False
) -> list[Node]:
    """The text around the open chunk; what branches found carries the first that did. `in_explore`: its
    documents are open there, too.
    """
    if run is None or chunk_id is None:
        return []
    close = act("close", "", "Close")
    workspace, finders = run.workspace, _finders(run.trace)
    names = finders.get(chunk_id, [])
    told = (
        f"Found by {'branch' if len(names) == 1 else 'branches'} {', '.join(names)}."
        if names
        else "No branch found it."
    )
    if workspace is None:
        text = run.texts.get(chunk_id, "")
        words = h(
            "p",
            {"class": "qx-mut qx-sm"},
            "The document's text was not kept with this run, so only the chunk can be shown.",
        )
        head = h(
            "div",
            {"class": "qx-read-head"},
            h("strong", None, f"chunk {chunk_id:,}"),
            h("div", {"class": "qx-read-actions"}, close),
        )
        return [
            head,
            h("p", {"class": "qx-sm"}, told),
            h("p", {"class": "qx-quote", "dir": "auto"}, text) if text else words,
        ]
    centre = chunk_id if anchor is None else anchor
    page = page_around(workspace, centre)

    def mark(other: int) -> tuple[list[str], Node | None]:
        classes = ["qx-gold"] * (other in run.gold)
        if other not in finders:
            return classes, None
        first = finders[other][0]
        paint = step_class(int(first.partition(".")[2]))
        return ["qx-chosen", paint, *classes], h(
            "span", {"class": "qx-pin", "title": f"Found by {', '.join(finders[other])}"}, first
        )

    actions = [*turn_pages(workspace, page)]
    if in_explore:
        actions.append(
            act("explore", chunk_id, "Show in Explore", title="Opens this chunk in Explore's reading pane")
        )
    return [
        h(
            "div",
            {"class": "qx-read-head"},
            h("div", None, crumb(workspace, centre, chunk_id), h("div", {"class": "qx-sm"}, told)),
            h("div", {"class": "qx-read-actions"}, *actions, close),
        ),
        document_page(workspace, page, chunk_id, mark),
    ]


def _finders(trace: SparcTrace) -> dict[int, list[str]]:
    """By chunk, the branches that found it."""
    found: dict[int, list[str]] = {}
    for one in trace.rounds:
        for branch in one.branches:
            for chunk in _chunks(branch):
                found.setdefault(chunk.chunk_id, []).append(branch_name(one.number, branch.number))
    return found
