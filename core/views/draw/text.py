"""A page of a document with marked chunks, and turning pages."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise

import numpy as np

from core.base.types import Workspace
from core.ingest.prose import Prose, Words
from core.views.draw.nodes import Node, act, h
from core.views.draw.words import EXPLAIN, counted

PAGE_CHARACTERS = 3_600
"""Text around a chunk that the reading pane shows at once."""
MAX_SHOWN = 20_000
"""Characters of one chunk that the pane shows: a word of a megabyte is one token to the encoder."""
Span = tuple[int, int]
Page = tuple[int, int, int]
"""(document, first row, row behind the last) of what a reading pane shows at once."""


def document_page(
    workspace: Workspace, page: Page, marked: int | None, mark: Callable[[int], tuple[list[str], Node | None]]
) -> Node:
    """A page of a document, every chunk to be clicked. `mark`: classes and badge of a chunk."""
    document, first, last = page
    table, base = workspace.tables[document], int(workspace.borders[document])
    source, at = workspace.documents[document], int(table.start[first])
    prose = Prose(source.text, at, int(table.end[last - 1]), source.kind)
    spans: list[Node] = []
    for row in range(first, last):
        start, end, chunk_id = int(table.start[row]), int(table.end[row]), base + row
        if start > at:
            spans += drawn(prose, at, start)
        classes, badge = mark(chunk_id)
        is_marked = chunk_id == marked
        kind = ".".join(["span.qx-chunk", *classes, *["qx-marked"] * is_marked])
        opens = {"data-act": "open", "data-arg": str(chunk_id), "data-show": is_marked}
        nodes = drawn(prose, start, min(end, start + MAX_SHOWN))
        cut = f"… ({end - start - MAX_SHOWN:,} more characters)" if end - start > MAX_SHOWN else None
        spans.append(h(kind, opens, badge, *nodes, cut))
        at = max(at, end)
    region = {"tabindex": "0", "role": "region", "aria-label": "Document text"}
    return h("div.qx-read", {"data-keep-scroll": f"{document} {first}", **region}, *spans)


def drawn(prose: Prose, start: int, end: int, mark: Span | None = None, news: str = "") -> list[Node]:
    """A slice of a document. `mark`: the answer's place. `news`: names the answer that a pane turns to."""
    borders = sorted({start, end, *(place for place in mark or () if start < place < end)})
    nodes: list[Node] = []
    for first, last in pairwise(borders):
        words = [_within(one) for one in prose.words(first, last)]
        if mark is not None and mark[0] <= first < mark[1]:
            words = [h("mark.qx-answer-mark", {"data-news": news} if news else None, *words)]
        nodes += words
    return nodes


def _within(words: Words) -> Node:
    node: Node = words.text
    for element in reversed(words.elements):
        attributes = {"class": "qx-address", "title": element.address} if element.address else None
        node = h(element.tag, attributes, node)
    return node


def turn_pages(workspace: Workspace, page: Page) -> list[Node]:
    """Buttons to the page before and the one after, within the document."""
    document, first, last = page
    base, end = int(workspace.borders[document]), int(workspace.borders[document + 1])
    return [
        act("page", max(base + first - 1, 0), "↑ before", disabled=first == 0),
        act("page", min(base + last, len(workspace) - 1), "↓ after", disabled=base + last == end),
    ]


def crumb(workspace: Workspace, centre: int, chunk_id: int) -> Node:
    """Where in the documents a page lies, and which chunk is marked."""
    chunk, around = workspace[chunk_id], workspace[centre]
    words = path_words(workspace.documents[around.document].title, around.heading_path)
    size = counted(chunk.n_tokens, "token")
    label = f"chunk {chunk.chunk_id:,} of {len(workspace):,} · {chunk.type} · {size}"
    return h("div.qx-crumb", h("span", words), h("span.qx-mut", {"title": EXPLAIN["tokens"]}, label))


def path_words(title: str, headings: tuple[str, ...]) -> str:
    """Where a chunk stands; a document that begins with its title as a heading says it once.

    >>> path_words("Salt", ("Salt", "Mines"))
    'Salt › Mines'
    """
    return " › ".join(headings if headings[:1] == (title,) else (title, *headings))


def found_by(names: Sequence[str], words: str) -> Node:
    """The badge of a chunk that these found."""
    return h("span.qx-pin", {"title": f"Found by {', '.join(names)}"}, words)


def reading_pane(
    workspace: Workspace,
    chunk_id: int,
    anchor: int | None,
    words: str,
    gold: Collection[int],
    pins: Mapping[int, tuple[str, Node]],
    *actions: Node,
) -> list[Node]:
    """The page around a chunk, or around `anchor`, under `words` of the chunk and what can be done
    with it. pins: class and badge of each chunk that was found.
    """
    centre = chunk_id if anchor is None else anchor
    page = page_around(workspace, centre)

    def mark(other: int) -> tuple[list[str], Node | None]:
        kind, badge = pins.get(other, ("", None))
        return ["qx-chosen", kind] * (other in pins) + ["qx-gold"] * (other in gold), badge

    place = h("div", crumb(workspace, centre, chunk_id), h("div.qx-sm", words))
    close = act("close", "", "Close")
    turns = h("div.qx-read-actions", *turn_pages(workspace, page), *actions, close)
    return [h("div.qx-read-head", place, turns), document_page(workspace, page, chunk_id, mark)]


def page_around(workspace: Workspace, chunk_id: int) -> Page:
    """A page of about PAGE_CHARACTERS around a chunk, whole chunks only."""
    document, row = workspace.locate(chunk_id)
    table = workspace.tables[document]
    start = table.start[row] - PAGE_CHARACTERS // 3
    end = table.end[row] + 2 * PAGE_CHARACTERS // 3
    first = int(np.searchsorted(table.end, start, side="left"))
    last = int(np.searchsorted(table.start, end, side="right"))
    return document, min(first, row), max(last, row + 1)
