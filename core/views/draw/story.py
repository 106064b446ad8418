"""The story line as a tree of plain data: pure functions.

All text stays text (see core.views.draw.nodes). What it says is in core.views.story.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from core.views.draw.answers import marked
from core.views.draw.nodes import Node, h, sends
from core.views.draw.story_line import answer_part, part_head, question_part, story_line
from core.views.draw.words import counted, step_class
from core.views.story import Story, StoryPart, ordinal

RANKS = (
    "Place of this chunk at each step, among those that could still be chosen; 1st is what the agent takes"
)
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
    size = "" if tokens is None else f", {tokens:,} tokens"
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
    return [_spark(ranks, n_chunks), _ranks(ranks)]


def _ranks(ranks: Sequence[int]) -> Node:
    """ "70th → 4th → 1st"; of a longer way, its ends."""
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
