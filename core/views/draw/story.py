"""The story line as a tree of plain data: pure functions.

All text stays text (see core.views.draw.nodes). What it says is in core.views.story.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

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


RANKS = "Place of this chunk in line at each step, after the chunks chosen so far"
_WIDTH, _HEIGHT = 44, 16


def story_nodes(story: Story, *, look: int, n_looks: int, tokens: int | None) -> list[Node]:
    """The line of a story. look: the look that is shown. tokens: of the evidence,
    None where nobody counted."""
    parts: list[Node] = [question_part(story.query)]
    parts += [_choice(part, story.n_chunks, look) for part in story.steps]
    parts += [_missed(part) for part in story.missed]
    if story.answer is not None:
        parts.append(answer_part(story.answer))
    if story.end:
        parts.append(_end(story, look, n_looks, tokens))
    return story_line(story.sentence(), parts)


def _choice(part: StoryPart, n_chunks: int, look: int) -> Node:
    assert part.step is not None
    badge = h("span.qx-badge", str(part.step))
    notes = [" · yours"] * (part.chosen_by == "person") + [" · taken back"] * part.taken_back
    inner = [
        part_head(f"chunk {part.chunk_id:,}{''.join(notes)}", badge),
        _words(part),
        h("span.qx-part-foot", {"title": RANKS}, *_rise(part.ranks, n_chunks)),
    ]
    kind = step_class(part.step) + ".qx-on" * (look == part.step) + ".qx-taken-back" * part.taken_back
    return h(f"li.qx-told.{kind}", _look_at(part.step, look, inner))


def _missed(part: StoryPart) -> Node:
    badge = h("span.qx-badge.qx-ask", {"aria-hidden": "true"}, "?")
    inner = [
        part_head(f"missed: {part.chunk_id:,}", badge),
        _words(part),
        h("span.qx-part-foot", {"title": RANKS}, _ranks(part.ranks)),
    ]
    return h("li.qx-told.qx-miss", sends("qx-part", "open", part.chunk_id, *inner))


def _end(story: Story, look: int, n_looks: int, tokens: int | None) -> Node:
    n_kept = sum(not part.taken_back for part in story.steps)
    size = "" if tokens is None else f", {counted(tokens, 'token')}"
    inner = [
        part_head("Stopped", h("span.qx-stop-mark", {"aria-hidden": "true"})),
        h("span.qx-part-words", story.end),
        h("span.qx-part-foot", counted(n_kept, "chunk") + size),
    ]
    if n_looks == len(story.steps):
        return h("li.qx-ends", h("div.qx-part", *inner))
    return h("li.qx-ends" + ".qx-on" * (look == n_looks), _look_at(n_looks, look, inner))


def _look_at(n: int, look: int, inner: Sequence[Node]) -> Node:
    """A part that shows look `n`; `look` is the one that is shown."""
    current = {"aria-current": "step"} if look == n else {}
    return sends("qx-part", "look", n, *inner, **current)


def _words(part: StoryPart) -> Node:
    return h("span.qx-part-words.qx-part-chunk", {"dir": "auto"}, *marked(part.excerpt, "em"))


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
    if len(ranks) > 1 and len(set(ranks)) == 1:
        return h("span", h("strong", ordinal(ranks[0])), " from the start")
    places = [ordinal(rank) for rank in (ranks if len(ranks) <= 3 else (ranks[0], ranks[-1]))]
    return (
        h("span", *(f"{words} → " for words in places[:-1]), h("strong", places[-1])) if places else h("span")
    )


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
