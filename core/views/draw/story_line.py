"""The story line that Explore and SPARC begin with.

Its frame, and the parts that both have.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.views.draw.answers import CONFIDENCE, LONGEST, UNRELIABLE
from core.views.draw.nodes import Node, h, sends
from core.views.draw.words import shorten
from core.views.story import StoryAnswer, sure

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


def answer_part(answer: StoryAnswer, none: str = "", why: str = UNRELIABLE) -> Node:
    """What the run ends in. `none`: what is said instead where there is no answer; `why`: on hover."""
    kind = {"right": "qx-right", "wrong": "qx-wrong", "no answer": "qx-wrong", None: ""}[answer.verdict]
    sign = {"right": "✓", "wrong": "✗"}.get(answer.verdict or "", "=" if answer.text else "–")
    foot: list[Node] = []
    if answer.sureness is not None:
        foot.append(h("span", {"title": CONFIDENCE}, sure(answer.sureness)))
    if answer.text and answer.verdict is not None:
        foot += [" · ", h("strong", answer.verdict)]
    if answer.verdict not in (None, "right"):
        foot.append(h("span.qx-known-answer", f"known: {answer.known_answer}"))
    why = "" if answer.denies else why
    words = h("span.qx-part-words", {"title": why}, none or answer.nothing.capitalize())
    if answer.text:
        words = h("span.qx-part-answer", {"dir": "auto"}, shorten(answer.text, LONGEST))
    inner = [
        part_head("Answer", h("span.qx-badge", {"aria-hidden": "true"}, sign)),
        words,
        h("span.qx-part-foot", *foot),
    ]
    part = h("div.qx-part", *inner)
    if answer.chunk_id is not None:
        part = sends("qx-part", "open", answer.chunk_id, *inner)
    return h("li", {"class": f"qx-ends {kind}"}, part)


def part_head(words: str, sign: Node | None = None) -> Node:
    """The small line on top of a part."""
    return h("span.qx-part-head", sign, h("span", words))
