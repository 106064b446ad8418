"""The story line that Explore and SPARC begin with.

Its frame, and the parts that both have.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.views.draw.answers import CONFIDENCE, WHY, marked
from core.views.draw.nodes import Node, h, sends
from core.views.story import StoryAnswer, state_words, sure

_LONG_ANSWER = 48
"""Characters from which on an answer is written smaller, since it is never cut."""
LONG = 8
"""Parts that still stand side by side; more of them scroll."""


def story_line(aloud: str, parts: Sequence[Node]) -> list[Node]:
    """The parts as one list, and the same as a sentence to be read aloud."""
    kind = "qx-story" + (" qx-story-long" if len(parts) > LONG else "")
    return [h("p.qx-unseen", aloud), h("ol", {"class": kind, "aria-label": "Story of the run"}, *parts)]


def question_part(query: str) -> Node:
    """The first part: the question."""
    words = h("span.qx-part-words", {"dir": "auto"}, query)
    return h("li.qx-asked", h("div.qx-part", part_head("Asked"), words))


def answer_part(answer: StoryAnswer, none: str = "") -> Node:
    """What the run ends in. `none`: what is said instead where there is no answer."""
    kind = {"right": "qx-right", "wrong": "qx-wrong", "no answer": "qx-wrong", None: ""}[answer.verdict]
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
    inner = [
        part_head("Answer", h("span.qx-badge", {"aria-hidden": "true"}, sign)),
        words,
        h("span.qx-part-foot", *foot),
    ]
    part = h("div.qx-part", *inner)
    if answer.chunk_id is not None:
        part = sends("qx-part", "open", answer.chunk_id, *inner)
    return h("li", {"class": f"qx-ends qx-is-{answer.state} {kind}"}, part)


def part_head(words: str, sign: Node | None = None) -> Node:
    """The small line on top of a part."""
    return h("span.qx-part-head", sign, h("span", words))
