"""The story line, whose words are in core.views.story."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from core.views.draw.answers import CONFIDENCE, WHY, marked
from core.views.draw.nodes import Node, h, sends
from core.views.draw.words import counted, step_class
from core.views.story import Story, StoryAnswer, StoryPart, ordinal, state_words, sure

_LONG_ANSWER = 48
"""Characters from which on an answer is written smaller, since it is never cut."""
LONG = 8
"""Parts that still stand side by side; more of them scroll."""


def story_line(aloud: str, parts: Sequence[Node]) -> list[Node]:
    """The parts as one list, and the same as a sentence to be read aloud."""
    kind = "ol.qx-story" + ".qx-story-long" * (len(parts) > LONG)
    return [h("p.qx-unseen", aloud), h(kind, {"aria-label": "Story of the run"}, *parts)]


def question_part(query: str) -> Node:
    """The first part: the question."""
    return part("li.qx-asked", "Asked", None, h("span.qx-part-words", {"dir": "auto"}, query))


def answer_part(answer: StoryAnswer, none: str = "") -> Node:
    """What the run ends in. `none`: what is said instead where there is no answer."""
    kind = {"right": ".qx-right", "wrong": ".qx-wrong", "no answer": ".qx-wrong", None: ""}[answer.verdict]
    sign = {"right": "✓", "wrong": "✗"}.get(
        answer.verdict or "", {"answer": "=", "guess": "≈"}.get(answer.state, "–")
    )
    foot: list[Node] = []
    head = state_words(answer.state, answer.confidence, answer.asks)
    if answer.state == "guess":
        foot.append(h("span", {"title": WHY["guess"]}, head))
    elif answer.confidence is not None and answer.text:
        foot.append(h("span", {"title": CONFIDENCE}, sure(answer.confidence)))
    if answer.text and answer.verdict is not None:
        foot += [" · "] * bool(foot) + [h("strong", answer.verdict)]
    if answer.verdict not in (None, "right"):
        foot.append(h("span.qx-known-answer", f"known: {answer.known_answer}"))
    words = h("span.qx-part-words", {"title": WHY[answer.state]}, none or head)
    if answer.text:
        quote = answer.quote if answer.state == "guess" and answer.in_quote else None
        said = [answer.text] if quote is None else marked(quote, "em")
        long = ".qx-long" * (quote is not None or len(answer.text) > _LONG_ANSWER)
        words = h(f"span.qx-part-answer{long}", {"dir": "auto"}, *said)
    return part(
        f"li.qx-ends.qx-is-{answer.state}{kind}",
        "Answer",
        h("span.qx-badge", {"aria-hidden": "true"}, sign),
        words,
        h("span.qx-part-foot", *foot),
        does=None if answer.chunk_id is None else ("open", answer.chunk_id),
    )


def part(
    kind: str,
    head: str,
    sign: Node | None,
    words: Node,
    foot: Node | None = None,
    *,
    does: tuple[str, object] | None = None,
    **attributes: Any,
) -> Node:
    """A part of the line. `does`: what a click on it sends."""
    inner = (h("span.qx-part-head", sign, h("span", head)), words, foot)
    if does is None:
        return h(kind, h("div.qx-part", *inner))
    return h(kind, sends("qx-part", *does, *inner, **attributes))


def last_part(head: str, words: Node, foot: Node | None = None, *, kind: str = "", **more: Any) -> Node:
    """One that stands where the line ends; `kind`: further classes of its sign."""
    sign = h(f"span.qx-stop-mark{kind}", {"aria-hidden": "true"})
    is_shown = "aria_current" in more
    return part("li.qx-ends" + ".qx-on" * is_shown, head, sign, words, foot, **more)


RANKS = "Place of this chunk in line at each step, after the chunks chosen so far"
_WIDTH, _HEIGHT = 44, 16


def story_nodes(story: Story, *, look: int, n_looks: int, tokens: int | None) -> list[Node]:
    """The line of a story. look: the one that is shown. tokens: of the evidence, where anybody counted."""
    parts: list[Node] = [question_part(story.query)]
    parts += [_choice(one, story.n_chunks, look) for one in story.steps]
    parts += [_missed(one) for one in story.missed]
    if story.answer is not None:
        parts.append(answer_part(story.answer))
    if story.end:
        n_kept = sum(not one.taken_back for one in story.steps)
        size = "" if tokens is None else f", {counted(tokens, 'token')}"
        words = h("span.qx-part-words", story.end)
        foot = h("span.qx-part-foot", counted(n_kept, "chunk") + size)
        shows = {} if n_looks == len(story.steps) else _shows(n_looks, look)
        parts.append(last_part("Stopped", words, foot, **shows))
    return story_line(story.sentence(), parts)


def _choice(one: StoryPart, n_chunks: int, look: int) -> Node:
    assert one.step is not None
    notes = " · yours" * (one.chosen_by == "person") + " · taken back" * one.taken_back
    kind = step_class(one.step) + ".qx-on" * (look == one.step) + ".qx-taken-back" * one.taken_back
    return part(
        f"li.qx-told.{kind}",
        f"chunk {one.chunk_id:,}{notes}",
        h("span.qx-badge", str(one.step)),
        _words(one),
        h("span.qx-part-foot", {"title": RANKS}, *_rise(one.ranks, n_chunks)),
        **_shows(one.step, look),
    )


def _missed(one: StoryPart) -> Node:
    return part(
        "li.qx-told.qx-miss",
        f"missed: {one.chunk_id:,}",
        h("span.qx-badge.qx-ask", {"aria-hidden": "true"}, "?"),
        _words(one),
        h("span.qx-part-foot", {"title": RANKS}, _ranks(one.ranks)),
        does=("open", one.chunk_id),
    )


def _shows(n: int, look: int) -> dict[str, Any]:
    """What makes a part show look `n`; `look` is the one that is shown."""
    return {"does": ("look", n)} | ({"aria_current": "step"} if look == n else {})


def _words(one: StoryPart) -> Node:
    return h("span.qx-part-words.qx-part-chunk", {"dir": "auto"}, *marked(one.excerpt, "em"))


def _rise(ranks: Sequence[int], n_chunks: int) -> list[Node]:
    """From which place a chunk came up to be chosen."""
    if not ranks:
        return []
    if len(ranks) == 1:
        return [f"{'first' if ranks[0] == 1 else ordinal(ranks[0])} of {n_chunks:,}"]
    if len(set(ranks)) == 1:
        return [_ranks(ranks)]
    return [_spark(ranks, n_chunks), _ranks(ranks)]


def _ranks(ranks: Sequence[int]) -> Node:
    """ "70th → 4th → 3rd"; of a longer way, its ends; "3rd from the start" where nothing changed."""
    if not ranks:
        return h("span")
    if len(ranks) > 1 and len(set(ranks)) == 1:
        return h("span", h("strong", ordinal(ranks[0])), " from the start")
    *before, last = [ordinal(rank) for rank in (ranks if len(ranks) <= 3 else (ranks[0], ranks[-1]))]
    return h("span", *(f"{words} → " for words in before), h("strong", last))


def _spark(ranks: Sequence[int], n_chunks: int) -> Node:
    """The way as a line, the best place on top, on a scale of logarithms."""
    depth = math.log(max(8, n_chunks / 8, *ranks))
    points = [
        (3 + i * (_WIDTH - 6) / (len(ranks) - 1), 3 + (_HEIGHT - 6) * math.log(rank) / depth)
        for i, rank in enumerate(ranks)
    ]
    line = "M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return h(
        "svg.qx-spark", {"viewBox": f"0 0 {_WIDTH} {_HEIGHT}", "aria-hidden": "true"}, h("path", {"d": line})
    )
