"""Evidence sets as trees of plain data for the page: pure functions, one per panel (see components.tree).

Decides wording and what is drawn: chances as bars along each document and sorted against the square root of
its size, tokens on a logarithmic scale, the reward as steps that add up, the frontier as a line a method.
However long the documents are, a row has at most COLUMNS bars. Knows nothing of Gradio events.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.components.tree import Node, act, h
from app.pages.evidence.actions import SetInView
from app.pages.widgets.answers import BY_READER, CONFIDENCE, shortened
from app.pages.widgets.notices import notice
from app.pages.widgets.tables import PAGE, pager
from app.pages.widgets.text import crumb, document_page, page_around, turn_pages
from app.pages.widgets.words import counted, shorten
from core.prose import plain
from core.resrag.action import action_json, action_of
from core.resrag.reward import RewardConfig
from core.resrag.sets import DocumentSet, RewardTerms
from core.story import sure, verdict_on
from core.studies.frontier import Curve
from core.tiles import column_starts, tile

COLUMNS = 200
"""Bars along a document at most: each is the likeliest of its chunks."""
RANKS = 40
"""Bars of the sorted chances at most."""
HEIGHT = 38
"""Of both pictures of a document, in pixels."""
_LEAST_DRAWN = 0.005
"""Chance below which no bar would be seen."""
_SHOWN = 8
"""Chunks of an opened document that are listed of those taken."""
_NEXT = 2
"""Likeliest chunks listed of those that aren't."""
_HITS = 12
"""Bars of a document that can be clicked."""
_OPEN = 3
"""Documents whose chunks are listed at first."""
_TEXT = 240
"""Characters of a chunk in a list."""
_LONGEST_ACTION = 4_000
"""Characters of an action that are shown; the export has all of it."""
EMPTY = (
    "Press Run: a small policy gives every chunk a chance and takes the smallest set that should answer, over"
    " all documents at once."
)
WHO = (
    ("light policy", "needs no language model"),
    ("the most probable set", ""),
    ("the reader answers", ""),
    ("beside top-k, the threshold rule and everything", ""),
)


@dataclass(frozen=True)
class Shown:
    """What of a set is on the page."""

    opened: tuple[int, ...] = ()
    """Documents whose chunks are listed."""
    only_taken: bool = False
    """Documents of which nothing is taken are left out."""
    page: int = 0


def at_first(view: SetInView, only_taken: bool) -> Shown:
    """What is opened of a new set: the documents with most of it."""
    most = sorted((one for one in view.documents if one.taken), key=lambda one: -len(one.taken))
    return Shown(tuple(sorted(one.document for one in most[:_OPEN])), only_taken)


def policy_line() -> list[Node]:
    """Who chooses and who answers."""
    parts = [
        h("span", None, h("strong", None, name), f" {words}" if words else "")
        if words
        else h("span", None, name)
        for name, words in WHO
    ]
    return [h("p", {"class": "qx-sm qx-mut qx-set-who"}, *parts)]


# The story


def said(view: SetInView | None) -> list[Node]:
    """The set as one sentence, with the answer from it."""
    if view is None:
        return [h("p", {"class": "qx-empty"}, EMPTY)]
    run = view.run
    n_from = sum(bool(one.taken) for one in view.documents)
    places = f" from {n_from} of {len(view.documents):,} documents" if len(view.documents) > 1 else ""
    parts: list[Node] = [
        h("strong", None, f"{len(view.taken)} of {counted(run.n_chunks, 'chunk')}"),
        f"{places}, ",
        h("strong", None, counted(view.tokens, "token")),
    ]
    if not view.taken:
        parts = [h("strong", None, "No chunk"), f" of {run.n_chunks:,} is likelier taken than not"]
    elif run.gold:
        kind = "qx-good" if view.found == len(run.gold) else "qx-warn"
        parts += [
            f", hold{'s' if len(view.taken) == 1 else ''} ",
            h("strong", {"class": kind}, f"{view.found} of {len(run.gold)} support"),
        ]
    return [
        h("p", {"class": "qx-set-label"}, "The set"),
        h("p", {"class": "qx-set-say"}, *parts, ". ", *_answer(view)),
    ]


def _answer(view: SetInView) -> list[Node]:
    told = view.answer
    if told is None:
        return [h("span", {"class": "qx-mut"}, "Reading it…")]
    if not told.said:
        words = "No reliable answer" if not told.reliable else "No answer in it"
        return [h("span", {"title": BY_READER, "tabindex": "0"}, f"{words}."), *_judged(view)]
    parts: list[Node] = ["Answer: ", h("strong", {"title": BY_READER, "tabindex": "0"}, shortened(told.said))]
    if told.document is not None:
        parts.append(h("span", {"class": "qx-mut"}, f" (JSON-LD of document {told.document + 1})"))
    if told.confidence is not None:
        parts += [", ", h("span", {"title": CONFIDENCE, "tabindex": "0"}, sure(told.confidence))]
    return [*parts, *_judged(view), "."]


def _judged(view: SetInView) -> list[Node]:
    known = view.run.known_answer
    match verdict_on(view.answer.said if view.answer else "", known):
        case "right":
            return [", ", h("strong", {"class": "qx-good"}, "right")]
        case "wrong":
            return [", ", h("strong", {"class": "qx-warn"}, "wrong"), f": the known answer is {known}"]
        case "no answer":
            return [f" The known answer is {known}."]
    return []


def budget_words(view: SetInView | None) -> list[Node]:
    """What the budget did to the set."""
    if view is None:
        return [h("p", {"class": "qx-sm qx-mut"}, "Chunks at most, over all documents together")]
    n, budget = len(view.taken), min(view.budget, view.run.n_chunks)
    least = "one half" if view.least == 0.5 else f"{view.least:.2f}"
    words = (
        f"takes {n}: no other is above {least}"
        if n < budget
        else f"takes {n}, as many as there are chunks"
        if budget == view.run.n_chunks
        else f"takes {n}, all that the budget allows"
    )
    logged = (
        ""
        if view.is_logged
        else f" The log has the set at a budget of {view.run.config.step_budget}; Run logs this one."
    )
    return [h("p", {"class": "qx-sm qx-mut", "role": "status"}, f"{words}.{logged}")]


def tokens(view: SetInView | None) -> list[Node]:
    """What the answer has to read, beside other ways to take evidence."""
    if view is None:
        return []
    rows = [("this set", len(view.taken), view.tokens)]
    rows += [(one.name, one.n_chunks, one.n_tokens) for one in view.rivals]
    longest = math.log1p(max(n_tokens for _, _, n_tokens in rows)) or 1.0
    bars = []
    for place, (name, n_chunks, n_tokens) in enumerate(rows):
        share = 100 * math.log1p(n_tokens) / longest
        bars.append(
            h(
                "li",
                {"class": f"qx-token-bar qx-token-{place}", "title": counted(n_chunks, "chunk")},
                h("span", None, name),
                h(
                    "span",
                    {"class": "qx-token-track", "aria-hidden": "true"},
                    h("span", {"--x": f"{share:.1f}%"}),
                ),
                h("span", {"class": "qx-token-count"}, f"{n_tokens:,}"),
            )
        )
    return [
        h("p", {"class": "qx-set-label"}, "Tokens given to the answer (log scale)"),
        h("ul", {"class": "qx-token-bars"}, *bars),
    ]


# Documents


def documents(view: SetInView | None, shown: Shown) -> list[Node]:
    """A row a document: chances along it and sorted, and the texts of what is opened."""
    if view is None:
        return []
    taken_from = [one for one in view.documents if one.taken]
    rows = taken_from if shown.only_taken else list(view.documents)
    page = min(shown.page, max(0, (len(rows) - 1) // PAGE))
    choice = h(
        "span",
        {"class": "qx-seg", "role": "group", "aria-label": "Documents shown"},
        _pressed("rows", "all", f"All {len(view.documents):,}", not shown.only_taken),
        _pressed("rows", "taken", f"Only taken from ({len(taken_from):,})", shown.only_taken),
    )
    legend = h(
        "span",
        {"class": "qx-sm qx-mut qx-set-legend"},
        h("span", {"class": "qx-key qx-key-taken"}, "taken"),
        h("span", {"class": "qx-key qx-key-beyond"}, "beyond √N"),
        h("span", {"class": "qx-key qx-key-gold"}, "support") if view.run.gold else None,
        h("span", {"class": "qx-key qx-key-root"}, "√N: more than this costs"),
    )
    head = h(
        "div",
        {"class": "qx-row qx-set-head"},
        h("h3", None, "Chance of every chunk"),
        h("span", {"class": "qx-sm qx-mut"}, "a row a document, in document order, 0 to 1"),
        h("span", {"class": "qx-grow"}),
        legend,
        choice,
    )
    lines = [_document(view, one, shown) for one in rows[page * PAGE : (page + 1) * PAGE]]
    nothing = h("p", {"class": "qx-empty"}, "Nothing is taken of any document.")
    return [head, *(lines or [nothing]), *pager("docs-page", page, len(rows))]


def _pressed(action: str, argument: str, label: str, on: bool) -> Node:
    return act(action, argument, label, **{"aria-pressed": str(on).lower()})


def _document(view: SetInView, one: DocumentSet, shown: Shown) -> Node:
    workspace = view.run.documents.workspace
    document = workspace.documents[one.document]
    is_open = one.document in shown.opened
    first = int(workspace.borders[one.document])
    chances = view.chances[first : first + one.n_chunks]
    n, name = len(one.taken), shorten(document.title, 120)
    title = h(
        "button",
        {
            "class": "qx-set-name",
            "data-act": "row",
            "data-arg": str(one.document),
            "aria-expanded": str(is_open).lower(),
            "title": document.title,
        },
        name,
    )
    about = h(
        "span",
        {"class": "qx-sm qx-mut qx-set-about"},
        f"Document_{one.document + 1} · {document.kind} · {counted(one.n_chunks, 'chunk')}",
        *_types(view, one.document),
    )
    told = (
        [
            h("strong", None, f"{n}"),
            f" chunk{'s' * (n > 1)}",
            h("span", {"class": "qx-set-cost"}, counted(one.n_tokens, "token")),
        ]
        if n
        else ["none"]
    )
    cells = [
        h("div", {"class": "qx-set-title"}, title, about),
        h("div", {"class": "qx-set-strip"}, *_strip(view, one, chances, first)),
        h("div", {"class": "qx-set-sorted"}, *_sorted(one, chances)),
        h("div", {"class": "qx-set-took qx-sm"}, *told),
    ]
    texts = _texts(view, one, chances, first) if is_open else None
    kinds = "qx-set-row" + " qx-set-open" * is_open + " qx-beyond" * one.is_beyond
    return h("section", {"class": kinds, "aria-label": name}, *cells, texts)


def _types(view: SetInView, document: int) -> list[Node]:
    """A small mark for a document with JSON-LD."""
    if not view.json_ld[document]:
        return []
    words = ", ".join(view.types[document]) or "JSON-LD"
    return [
        h(
            "span",
            {"class": "qx-mark", "title": "JSON-LD of the page; open the row to read it", "tabindex": "0"},
            words,
        )
    ]


def _strip(view: SetInView, one: DocumentSet, chances: np.ndarray, first: int) -> list[Node]:
    if not one.n_chunks:
        return [
            h("p", {"class": "qx-sm qx-mut"}, "This document has no chunks, so nothing can be taken of it.")
        ]
    columns = tile(chances, 0, one.n_chunks, COLUMNS)
    n, width = len(columns.maxima), 1000 / len(columns.maxima)
    starts = column_starts(one.n_chunks, n)
    taken = {int(np.searchsorted(starts, chunk_id - first, side="right")) - 1 for chunk_id in one.taken}
    bars: dict[str, list[str]] = {"qx-bar-left": [], "qx-bar-taken": []}
    for column in np.flatnonzero((columns.maxima >= _LEAST_DRAWN) | np.isin(np.arange(n), [*taken])).tolist():
        kind = "qx-bar-taken" if column in taken else "qx-bar-left"
        bars[kind].append(_bar((column + 0.5) * width, min(0.8 * width, 12), float(columns.maxima[column])))
    words = (
        f"Chances of {counted(one.n_chunks, 'chunk')} along the document; taken:"
        f" {', '.join(str(chunk_id) for chunk_id in sorted(one.taken)) or 'none'}"
    )
    likeliest = np.argsort(-chances, kind="stable")[:_HITS]
    hits = [
        h(
            "span",
            {
                "class": "qx-set-hit",
                "--x": _across(int(row), one.n_chunks),
                "data-act": "open",
                "data-arg": str(first + int(row)),
                "title": f"chunk {first + int(row):,}, chance {percent(float(chances[row]))}",
                "aria-hidden": "true",
            },
        )
        for row in likeliest.tolist()
        if chances[row] >= _LEAST_DRAWN
    ]
    rings = [
        h(
            "span",
            {
                "class": "qx-gold-ring",
                "--x": _across(chunk_id - first, one.n_chunks),
                "title": f"chunk {chunk_id:,} is support",
            },
        )
        for chunk_id in view.run.gold
        if 0 <= chunk_id - first < one.n_chunks
    ]
    return [_picture(bars, words), *rings, *hits]


def _sorted(one: DocumentSet, chances: np.ndarray) -> list[Node]:
    if not one.n_chunks:
        return []
    n_ranks = min(one.n_chunks, max(2 * math.ceil(one.root) + 2, 8, len(one.taken)))
    best = np.sort(chances)[::-1][:n_ranks]
    starts = column_starts(n_ranks, RANKS)
    width = 1000 / n_ranks
    ends = [*starts[1:].tolist(), n_ranks]
    bars: dict[str, list[str]] = {"qx-bar-left": [], "qx-bar-taken": [], "qx-bar-beyond": []}
    for start, end in zip(starts.tolist(), ends, strict=True):
        kind = (
            "qx-bar-left"
            if start >= len(one.taken)
            else "qx-bar-beyond"
            if one.is_beyond and start + 1 > one.root
            else "qx-bar-taken"
        )
        if best[start] >= _LEAST_DRAWN:
            span = width * (end - start)
            bars[kind].append(_bar(width * start + span / 2, min(0.8 * span, 60), float(best[start])))
    at = 100 * min(1.0, one.root / n_ranks)
    label = f"√{one.n_chunks:,} = {one.root:.1f}"
    side = " qx-left" * (at > 50)
    words = f"The same sorted; {label} may be taken without cost, {len(one.taken)} are"
    return [
        _picture(bars, words),
        h("span", {"class": f"qx-set-root{side}", "--x": f"{at:.2f}%"}, h("span", None, label)),
    ]


def _bar(centre: float, width: float, chance: float) -> str:
    top = HEIGHT - max(1.5, chance * (HEIGHT - 2))
    return f"M{centre - width / 2:.1f} {HEIGHT}V{top:.1f}h{width:.1f}V{HEIGHT}Z"


def _picture(bars: dict[str, list[str]], words: str) -> Node:
    half = HEIGHT - (HEIGHT - 2) / 2
    paths = [h("path", {"class": "qx-half", "d": f"M0 {half:.1f}H1000"})]
    paths += [h("path", {"class": kind, "d": "".join(shapes)}) for kind, shapes in bars.items() if shapes]
    attributes = {"viewBox": f"0 0 1000 {HEIGHT}", "preserveAspectRatio": "none", "height": str(HEIGHT)}
    return h("svg", {**attributes, "role": "img", "aria-label": words}, *paths)


def _across(row: int, n: int) -> str:
    return f"{100 * (row + 0.5) / n:.2f}%"


def percent(chance: float) -> str:
    """A chance as people say it.

    >>> percent(0.583), percent(0.002), percent(0.998)
    ('58 %', 'below 1 %', 'above 99 %')
    """
    shown = round(100 * chance)
    return "below 1 %" if chance < 0.01 else "above 99 %" if chance > 0.99 else f"{shown} %"


def _texts(view: SetInView, one: DocumentSet, chances: np.ndarray, first: int) -> Node:
    """What is taken of a document, the likeliest first, and what would come next."""
    ranked = first + np.argsort(-chances, kind="stable")[: len(one.taken) + _NEXT]
    following = [chunk_id for chunk_id in ranked.tolist() if chunk_id not in one.taken][:_NEXT]
    lines = [_text(view, chunk_id, first, True) for chunk_id in one.taken[:_SHOWN]]
    if len(one.taken) > _SHOWN:
        lines.append(h("li", {"class": "qx-mut"}, f"and {len(one.taken) - _SHOWN} more, see the action"))
    lines += [_text(view, chunk_id, first, False) for chunk_id in following]
    told = view.json_ld[one.document]
    beside = (
        h(
            "details",
            {"class": "qx-sm qx-set-ld"},
            h("summary", None, "JSON-LD of the page, read with the set"),
            h("pre", {"class": "qx-pre", "tabindex": "0"}, told),
        )
        if told
        else None
    )
    return h("div", {"class": "qx-set-texts"}, h("ul", {"class": "qx-set-list"}, *lines), beside)


def _text(view: SetInView, chunk_id: int, first: int, is_taken: bool) -> Node:
    text = view.run.documents.workspace[chunk_id].text
    is_gold = chunk_id in view.run.gold
    link = h(
        "button",
        {
            "class": "qx-link",
            "data-act": "open",
            "data-arg": str(chunk_id),
            "title": f"Number {chunk_id - first + 1} of its document in the action",
        },
        f"chunk {chunk_id:,}",
    )
    marks = [h("span", {"class": "qx-mark qx-hit"}, "support")] if is_gold else []
    chance = h("span", {"class": "qx-mut"}, percent(float(view.chances[chunk_id])))
    kind = "qx-set-text" if is_taken else "qx-set-text qx-next"
    words = h("span", {"class": "qx-set-words"}, shorten(" ".join(plain(text[: 4 * _TEXT]).split()), _TEXT))
    left = None if is_taken else h("span", {"class": "qx-mut"}, "not taken")
    return h("li", {"class": kind}, link, words, h("span", {"class": "qx-set-side"}, *marks, left, chance))


# Reward and action


def reward(view: SetInView | None) -> list[Node]:
    """The reward of the set as a bar that adds up, for a question whose answer and support are known."""
    if view is None:
        return []
    told = view.reward
    head = h("h3", None, "Reward of this set")
    if told is None:
        words = (
            "The set is being read…"
            if view.answer is None and view.run.gold
            else "It takes a question whose answer and support are known: choose one of the known questions."
        )
        return [head, h("p", {"class": "qx-sm qx-mut"}, words)]
    return [
        h(
            "div",
            {"class": "qx-row"},
            head,
            h("span", {"class": "qx-sm qx-mut"}, "what training would give it (RES-RAG eq. 14)"),
        ),
        _waterfall(told),
        h("table", {"class": "qx-terms"}, h("tbody", None, *_terms(told))),
    ]


def _terms(told: RewardTerms) -> list[Node]:
    reward, config = told.reward, told.config
    beyond = (
        "No document above √N"
        if not told.n_beyond
        else f"{counted(told.n_beyond, 'document')} above √N, mean {told.mean_penalty:.2f}"
    )
    answer = (
        ("No answer", "fixed")
        if told.f1 is None
        else (f"Answer, F1 {told.f1:.2f}", f"{config.answer_weight:g} × F1 with the known answer")
    )
    rows = [
        ("answer", *answer, signed(reward.answer)),
        (
            "consistency",
            f"Agreement with the support, F1 {told.consistency:.2f}",
            f"{config.consistency_weight:g} × F1, mean of the documents",
            signed(reward.consistency),
        ),
        ("penalty", beyond, f"{config.penalty_weight:g} × mean of 0, ½ or 1", signed(-reward.penalty)),
        (
            "total",
            "Reward",
            f"clipped to {config.least:g} … {config.most:g}".replace("-", "−"),
            f"{reward.total:.2f}".replace("-", "−"),
        ),
    ]
    return [
        h(
            "tr",
            {"class": f"qx-term-{kind}"},
            h("th", {"scope": "row"}, label),
            h("td", {"class": "qx-mut qx-sm"}, formula),
            h("td", {"class": "qx-term-value"}, value),
        )
        for kind, label, formula, value in rows
    ]


def signed(value: float) -> str:
    """Two places, with a sign.

    >>> signed(2.0), signed(-0.5), signed(-0.0)
    ('+2.00', '−0.50', '−0.00')
    """
    return f"{value:+.2f}".replace("-", "−")


def _waterfall(told: RewardTerms) -> Node:
    """Three steps, each beginning where the one before ends; the line is where they end."""
    steps = [
        ("answer", told.reward.answer),
        ("consistency", told.reward.consistency),
        ("penalty", -told.reward.penalty),
    ]
    ends = np.cumsum([0.0, *(value for _, value in steps)])
    usual = RewardConfig()
    hi = max(usual.answer_weight + usual.consistency_weight, float(ends.max()))
    lo = min(0.0, float(ends.min()))

    def at(value: float) -> float:
        return 1000 * (value - lo) / (hi - lo)

    row, gap = 14, 4
    height = len(steps) * (row + gap)
    drawing = [h("path", {"class": "qx-half", "d": f"M{at(0.0):.1f} 0V{height}"})]
    for place, (kind, _) in enumerate(steps):
        left, right = sorted((at(float(ends[place])), at(float(ends[place + 1]))))
        top = place * (row + gap)
        if right > left:
            drawing.append(
                h(
                    "path",
                    {"class": f"qx-step-{kind}", "d": f"M{left:.1f} {top}H{right:.1f}v{row}H{left:.1f}Z"},
                )
            )
    total = at(float(ends[-1]))
    drawing.append(h("path", {"class": "qx-total", "d": f"M{total:.1f} 0V{height}"}))
    words = ", ".join(f"{kind} {signed(value)}" for kind, value in steps)
    attributes = {"viewBox": f"0 0 1000 {height}", "preserveAspectRatio": "none", "height": str(height)}
    return h(
        "div",
        {"class": "qx-waterfall"},
        h("svg", {**attributes, "role": "img", "aria-label": f"{words}: {told.reward.total:.2f}"}, *drawing),
    )


def action(view: SetInView | None) -> list[Node]:
    """The set as the JSON object of the paper."""
    if view is None:
        return []
    words = json.dumps(action_json(action_of(view.taken, view.run.documents.workspace.borders)))
    shown = words if len(words) <= _LONGEST_ACTION else words[:_LONGEST_ACTION] + "…"
    copy = (
        h("button", {"class": "qx-btn", "data-act": "copy", "data-arg": words}, "Copy")
        if shown == words
        else None
    )
    about = "numbers from 1, likeliest first"
    return [
        h(
            "div",
            {"class": "qx-row"},
            h("h3", None, "The action"),
            h("span", {"class": "qx-sm qx-mut"}, about),
            h("span", {"class": "qx-grow"}),
            copy,
        ),
        h("pre", {"class": "qx-pre", "tabindex": "0"}, shown),
    ]


# Reading


def reading(view: SetInView, chunk_id: int | None, anchor: int | None, in_explore: bool) -> list[Node]:
    """The text around the open chunk, what is taken marked with its chance."""
    if chunk_id is None:
        return []
    workspace = view.run.documents.workspace
    centre = chunk_id if anchor is None else anchor
    page = page_around(workspace, centre)

    def mark(other: int) -> tuple[list[str], Node | None]:
        classes = ["qx-gold"] * (other in view.run.gold)
        if other not in view.taken:
            return classes, None
        badge = h("span", {"class": "qx-pin qx-c8"}, percent(float(view.chances[other])))
        return ["qx-chosen", "qx-c8", *classes], badge

    state = "taken" if chunk_id in view.taken else "not taken"
    words = f"Chance {percent(float(view.chances[chunk_id]))}, {state} at a budget of {view.budget}."
    explore = act("explore", chunk_id, "Open in Explore", title="This chunk in the reading pane of Explore")
    return [
        h(
            "div",
            {"class": "qx-read-head"},
            h("div", None, crumb(workspace, centre, chunk_id), h("div", {"class": "qx-sm"}, words)),
            h(
                "div",
                {"class": "qx-read-actions"},
                *turn_pages(workspace, page),
                explore if in_explore else None,
                act("close", "", "Close"),
            ),
        ),
        document_page(workspace, page, chunk_id, mark),
    ]


def changes(view: SetInView | None, question: str, same_documents: bool) -> list[Node]:
    """Whether what is shown still fits what is asked for. The budget is no change: the set moves with it."""
    if view is None:
        return []
    differs = {
        "document": not same_documents,
        "question": view.run.trace.started.query != question.strip(),
    }
    words = ", ".join(name for name, changed in differs.items() if changed)
    sentence = f"The set below was chosen with another {words}." if words else ""
    return notice(sentence, "outdated", act("again", "", "Run again"))


# Quality against cost

MEASURES = {"f1": "Answer F1", "recall": "Support recall"}
_COLOURS = (
    "var(--qx-acc)",
    "var(--qx-s2)",
    "var(--qx-s3)",
    "var(--qx-s4)",
    "var(--qx-s1)",
    "var(--qx-s5)",
    "var(--qx-s6)",
)
_TICKS = tuple(digit * 10**power for power in range(8) for digit in (1, 2, 5))
_SETTING = {"threshold": "cosine", "resrag": "budget", "qrag": "stop at Q", "sparc": "W × D"}


def frontier(curves: Sequence[Curve], task: str, measure: str, budget: int) -> list[Node]:
    """A line a method over the mean tokens of its evidence; the ring is RES-RAG at the budget that is set.
    Nothing without curves.
    """
    tasks = list(dict.fromkeys(curve.task for curve in curves))
    if not tasks:
        return []
    task = task if task in tasks else tasks[0]
    measure = measure if measure in MEASURES else next(iter(MEASURES))
    own = sorted(
        (curve for curve in curves if curve.task == task), key=lambda curve: curve.method != "resrag"
    )
    head = h(
        "div",
        {"class": "qx-row"},
        h("h3", None, "Quality against cost"),
        h(
            "span",
            {"class": "qx-sm qx-mut"},
            f"mean of {own[0].n} test questions; measured by the project, not on your documents",
        ),
        h("span", {"class": "qx-grow"}),
        h(
            "span",
            {"class": "qx-seg", "role": "group", "aria-label": "Questions"},
            *(_pressed("task", one, one, one == task) for one in tasks),
        ),
        h(
            "span",
            {"class": "qx-seg", "role": "group", "aria-label": "Measure"},
            *(_pressed("measure", name, words, name == measure) for name, words in MEASURES.items()),
        ),
    )
    return [
        head,
        _plot(own, measure, budget),
        h(
            "p",
            {"class": "qx-sm qx-mut"},
            "A dot is a setting; it opens your own runs of that method. Evidence tokens on a log scale.",
        ),
    ]


def _plot(curves: Sequence[Curve], measure: str, budget: int) -> Node:
    spent = [max(one, 1.0) for curve in curves for one in curve.tokens]
    values = [one for curve in curves for one in getattr(curve, measure)]
    x0, x1 = math.log(min(spent) * 0.9), math.log(max(spent) * 1.1)
    y1 = 0.1 * math.ceil(10 * max(values) + 0.5)

    def across(n_tokens: float) -> float:
        return 100 * (math.log(max(n_tokens, 1.0)) - x0) / (x1 - x0)

    def down(value: float) -> float:
        return float(100 * (1 - value / y1))

    lines, marks, names = [], [], []
    for tick in (one for one in _TICKS if x0 <= math.log(one) <= x1):
        marks.append(h("span", {"class": "qx-front-x", "--x": f"{across(tick):.1f}%"}, f"{tick:,}"))
    for tick in np.arange(0, y1 + 1e-9, 0.1 if y1 <= 0.6 else 0.2).tolist():
        lines.append(h("path", {"class": "qx-half", "d": f"M0 {3 * down(tick):.1f}H1000"}))
        marks.append(h("span", {"class": "qx-front-y", "--y": f"{down(tick):.1f}%"}, f"{tick:.1f}"))
    for place, curve in enumerate(curves):
        colour = _COLOURS[place % len(_COLOURS)]
        points = sorted(zip(curve.tokens, getattr(curve, measure), curve.settings, strict=True))
        path = "L".join(f"{10 * across(x):.1f} {3 * down(y):.1f}" for x, y, _ in points)
        lines.append(h("path", {"class": "qx-front-line", "--c": colour, "d": f"M{path}"}))
        ring = max((one for one in curve.settings if one <= budget), default=min(curve.settings))
        for x, y, setting in points:
            kind = "qx-front-dot" + " qx-ring" * (curve.method == "resrag" and setting == ring)
            words = (
                f"{_name(curve)}, {_SETTING.get(curve.method, 'k')} {setting:g}: {x:,.0f} tokens,"
                f" {MEASURES[measure]} {y:.3f}"
            )
            at = {"--x": f"{min(max(across(x), 0), 100):.1f}%", "--y": f"{min(max(down(y), 0), 100):.1f}%"}
            marks.append(
                h(
                    "button",
                    {
                        "class": kind,
                        "--c": colour,
                        **at,
                        "data-act": "runs",
                        "data-arg": curve.method,
                        "title": words,
                        "aria-label": words,
                    },
                )
            )
        x, y, _ = points[-1]
        names.append((min(max(across(x), 0), 100), min(max(down(y), 0), 100), _name(curve), colour))
    labels = [
        h("span", {"class": "qx-front-name", "--c": colour, "--x": f"{x:.1f}%", "--y": f"{y:.1f}%"}, name)
        for x, y, name, colour in _apart(names)
    ]
    svg = h(
        "svg",
        {"viewBox": "0 0 1000 300", "preserveAspectRatio": "none", "height": "240", "aria-hidden": "true"},
        *lines,
    )
    return h(
        "div",
        {"class": "qx-front", "role": "group", "aria-label": "Quality against cost, a dot a setting"},
        svg,
        *marks,
        *labels,
    )


def _name(curve: Curve) -> str:
    return "top-k" if curve.method == "topk" else curve.name


def _apart(
    names: list[tuple[float, float, str, str]], gap: float = 8.0
) -> list[tuple[float, float, str, str]]:
    """Names whose lines end near each other, one below the other."""
    placed: list[tuple[float, float, str, str]] = []
    for x, y, name, colour in sorted(names, key=lambda one: one[1]):
        near = [other[1] for other in placed if abs(other[0] - x) < 25]
        placed.append((x, max(y, max(near, default=-gap) + gap), name, colour))
    return placed


def no_runs(method: str) -> list[Node]:
    """Where a dot leads nowhere."""
    return notice(f"No run of {shorten(method, 40)} is in your log yet; Compare makes some.", "info")
