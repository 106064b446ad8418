"""A set of evidence as trees of plain data for the page.

What is set, the set as a sentence, what it costs, and the text around a chunk. `documents`, `reward` and
`frontier` draw the rest.
"""

from __future__ import annotations

import math

from app.pages.widgets.asking import settings_toggle
from app.pages.widgets.notices import changed_since
from app.services.evidence_sets import SetInView
from core.lab.tasks.samples import list_samples
from core.methods.registry import notice_of
from core.views.draw.answers import BY_READER, CONFIDENCE, WHY
from core.views.draw.nodes import Node, act, h, tip
from core.views.draw.text import reading_pane
from core.views.draw.words import counted, shorten
from core.views.quotes import LONGEST_MARK
from core.views.story import state_words, sure, verdict_on

EMPTY = (
    "Ask a question. A small policy gives every chunk a chance and takes the smallest set that should answer."
)


EXAMPLE = "How much mercury has to be in the trough when it is weighed?"
"""Of the handbook, a text like those that the light policy was trained on."""


def policy_line(by_model: bool, model: str) -> list[Node]:
    """Who chooses and who answers. model: name of the language model that is connected; empty without one."""
    name = (model or "no language model is connected") if by_model else "light policy"
    does = "reads question and chunks, writes the set" if by_model else "needs no language model"
    first = h("span", {} if model or not by_model else {"class": "qx-untrained"}, h("strong", name))
    return [settings_toggle("qx-sets-settings", first, [does, "the reader answers"])]


def took(view: SetInView) -> list[Node]:
    """How long the choice took, at the end of the line of settings."""
    stopped = view.run.trace.stopped
    if stopped is None:
        return []
    seconds = (stopped.milliseconds + sum(step.milliseconds for step in view.run.trace.steps)) / 1000
    return [h("span", f"{seconds:,.2f} s · the whole set at once")]


def sentence(view: SetInView | None) -> list[Node]:
    """The set as one sentence, with the answer from it."""
    if view is None:
        return [h("p.qx-empty", EMPTY), _example()]
    run = view.run
    n_from = sum(bool(one.taken) for one in view.documents)
    places = f" from {n_from} of {len(view.documents):,} documents" if len(view.documents) > 1 else ""
    parts: list[Node] = [
        h("strong", f"{len(view.taken)} of {counted(run.n_chunks, 'chunk')}"),
        f"{places}, ",
        h("strong", counted(view.tokens, "token")),
    ]
    if not view.taken:
        why = "was taken by the language model" if view.by_model else f"has a chance above {_least(view)}"
        parts = [h("strong", "No chunk"), f" of {run.n_chunks:,} {why}"]
    elif run.gold:
        kind = "qx-good" if view.n_support_found == len(run.gold) else "qx-warn"
        parts += [
            f", hold{'s' if len(view.taken) == 1 else ''} ",
            h("strong", {"class": kind}, f"{view.n_support_found} of {len(run.gold)} support"),
        ]
    nodes = [h("p.qx-set-label", "The set"), h("p.qx-set-say", *parts, ". ", *_answer(view))]
    return nodes if view.taken or view.by_model else [*nodes, *_why_empty(view)]


def _why_empty(view: SetInView) -> list[Node]:
    """Why the light policy takes nothing, and where it takes something."""
    words = (
        f"The best chunk has a chance of {percent(float(view.chances.max()))}: the light policy learned from"
        " articles and manuals, so ask a story in Explore, or choose a language model under Settings."
    )
    return [h("p.qx-sm.qx-mut", words), _example()]


def _example() -> Node:
    """The way to a question that the light policy finds all of."""
    handbook = list_samples()[1]
    title = f"Opens {handbook.title} and asks it: {EXAMPLE}"
    return act("sample", handbook.key, f"Try: {EXAMPLE}", title=title)


def _answer(view: SetInView) -> list[Node]:
    answer = view.answer
    if answer is None:
        return [h("span.qx-mut", "Reading it…")]
    head = state_words(answer.state, answer.confidence, answer.asks)
    if not answer.told_text:
        return [tip("span", WHY[answer.state], f"{head}."), *_judged(view)]
    parts: list[Node] = [
        tip("span", WHY[answer.state], f"{head}: "),
        tip("strong", BY_READER, shorten(answer.told_text, LONGEST_MARK)),
    ]
    if answer.document is not None:
        parts.append(h("span.qx-mut", f" (JSON-LD of document {answer.document + 1})"))
    if answer.confidence is not None and answer.state == "answer":
        parts += [", ", tip("span", CONFIDENCE, sure(answer.confidence))]
    return [*parts, *_judged(view), "."]


def _judged(view: SetInView) -> list[Node]:
    known_answer = view.run.known_answer
    match verdict_on(view.answer.told_text if view.answer else "", known_answer):
        case "right":
            return [", ", h("strong.qx-good", "right")]
        case "wrong":
            return [", ", h("strong.qx-warn", "wrong"), f": the known answer is {known_answer}"]
        case "no answer":
            return [f" The known answer is {known_answer}."]
    return []


def _least(view: SetInView) -> str:
    return "one half" if view.least == 0.5 else f"{view.least:.2f}"


def budget_words(view: SetInView | None) -> list[Node]:
    """What the budget did to the set."""
    if view is None:
        return [h("p.qx-sm.qx-mut", "Chunks at most, over all documents together")]
    n, budget = len(view.taken), min(view.budget, view.run.n_chunks)
    asked = view.run.config.step_budget
    if view.by_model:
        words = f"the first {n} of {len(view.run.trace.picks)} that the model took"
        if view.is_logged:
            words = f"the model was asked for {asked} at most and took {n}"
        rest = f" {cut[0].upper()}{cut[1:]}." if (cut := notice_of(view.run.trace)) else ""
    else:
        whole = "as many as there are chunks" if budget == view.run.n_chunks else "all that the budget allows"
        words = f"takes {n}: no other is above {_least(view)}" if n < budget else f"takes {n}, {whole}"
        rest = "" if view.is_logged else f" The log has the set at a budget of {asked}; Run logs this one."
    return [h("p.qx-sm.qx-mut", {"role": "status"}, f"{words}.{rest}")]


def tokens(view: SetInView) -> list[Node]:
    """What the answer has to read, beside other ways to take evidence."""
    rows = [("this set", len(view.taken), view.tokens)]
    rows += [(one.name, one.n_chunks, one.n_tokens) for one in view.rivals]
    longest = math.log1p(max(n_tokens for _, _, n_tokens in rows)) or 1.0
    bars = []
    for place, (name, n_chunks, n_tokens) in enumerate(rows):
        share = 100 * math.log1p(n_tokens) / longest
        bars.append(
            h(
                f"li.qx-token-bar.qx-token-{place}",
                {"title": counted(n_chunks, "chunk")},
                h("span", name),
                h("span.qx-token-track", {"aria-hidden": "true"}, h("span", {"--x": f"{share:.1f}%"})),
                h("span.qx-token-count", f"{n_tokens:,}"),
            )
        )
    return [h("p.qx-set-label", "Tokens given to the answer (log scale)"), h("ul.qx-token-bars", *bars)]


def reading(view: SetInView, chunk_id: int | None, anchor: int | None, in_explore: bool) -> list[Node]:
    """The text around the open chunk, what is taken marked with its chance."""
    if chunk_id is None:
        return []
    pins: dict[int, tuple[str, Node]] = {
        other: ("qx-c8", h("span.qx-pin.qx-c8", "✓" if view.by_model else chance_of(view, other)))
        for other in view.taken
    }
    state = "taken" if chunk_id in view.taken else "not taken"
    chance = chance_of(view, chunk_id)
    words = f"Chance {chance}, {state} at a budget of {view.budget}."
    words = f"By the language model: {chance}." if view.by_model else words
    explore = act("explore", chunk_id, "Open in Explore", title="This chunk in the reading pane of Explore")
    workspace = view.run.documents.workspace
    return reading_pane(workspace, chunk_id, anchor, words, view.run.gold, pins, *[explore] * in_explore)


def changes(view: SetInView | None, question: str, same_documents: bool, by_model: bool) -> list[Node]:
    """Whether what is shown still fits what is asked for. The budget is no change: the set moves with it."""
    if view is None:
        return []
    differs = {
        "document": not same_documents,
        "question": not view.run.asks(question),
        "policy": view.by_model != by_model,
    }
    return changed_since("this set was chosen", differs, act("again", "", "Run again"))


def chance_of(view: SetInView, chunk_id: int) -> str:
    """A chunk's chance in words; what a language model made of it, which gives no chance."""
    value = float(view.chances[chunk_id])
    if view.by_model:
        return "taken" if value > 0 else "read and left" if value == 0 else "not read"
    return percent(value)


def percent(chance: float) -> str:
    """A chance as people say it.

    >>> percent(0.583), percent(0.002), percent(0.998)
    ('58 %', 'below 1 %', 'above 99 %')
    """
    whole = round(100 * chance)
    return "below 1 %" if chance < 0.01 else "above 99 %" if chance > 0.99 else f"{whole} %"


def choice(label: str, *buttons: Node) -> Node:
    """Several buttons, of which one is chosen."""
    return h("span.qx-seg", {"role": "group", "aria-label": label}, *buttons)
