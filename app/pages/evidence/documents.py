"""The documents of a set, a row each.

Chances as bars along the document and sorted against the square root of its size, and the texts of what is
taken. A row has at most COLUMNS bars, however long the document is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from app.pages.evidence.view import chance_of, choice
from app.services.evidence_sets import SetInView
from core.corpus.tiles import column_starts, tile
from core.ingest.prose import plain
from core.methods.resrag.sets import DocumentSet
from core.views.draw.nodes import Node, act, chunk_link, h, sends, tip
from core.views.draw.tables import PAGE, on_page, pager
from core.views.draw.words import counted, shorten

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
_AROUND = {"BreadcrumbList", "ImageObject", "Organization", "SearchAction", "WebPage", "WebSite"}
"""Types of JSON-LD that nearly every page has: they say little of what it is about."""
_TEXT = 240
"""Characters of a chunk in a list."""


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


def documents(view: SetInView, shown: Shown) -> list[Node]:
    """A row a document: chances along it and sorted, and the texts of what is opened."""
    taken_from = [one for one in view.documents if one.taken]
    rows = taken_from if shown.only_taken else list(view.documents)
    page = min(shown.page, max(0, (len(rows) - 1) // PAGE))
    some = f"Only taken from ({len(taken_from):,})"
    rows_shown = choice(
        "Documents shown",
        act("rows", "all", f"All {len(view.documents):,}", aria_pressed=not shown.only_taken),
        act("rows", "taken", some, aria_pressed=shown.only_taken),
    )
    legend = h(
        "span.qx-sm.qx-mut.qx-set-legend",
        h("span.qx-key.qx-key-taken", "taken"),
        h("span.qx-key.qx-key-beyond", "beyond √N"),
        h("span.qx-key.qx-key-gold", "support") if view.run.gold else None,
        h("span.qx-key.qx-key-root", "√N: more than this lowers the reward"),
    )
    scale = "" if view.by_model else ", 0 to 1"
    head = h(
        "div.qx-row.qx-set-head",
        h("h3", "What the model took" if view.by_model else "Chance of every chunk"),
        h("span.qx-sm.qx-mut", f"a row a document, in document order{scale}"),
        h("span.qx-grow"),
        legend,
        rows_shown,
    )
    lines = [_document(view, one, shown) for one in on_page(rows, page)]
    nothing = h("p.qx-empty", "Nothing is taken of any document.")
    return [head, *(lines or [nothing]), *pager("docs-page", page, len(rows))]


def _document(view: SetInView, one: DocumentSet, shown: Shown) -> Node:
    workspace = view.run.documents.workspace
    document = workspace.documents[one.document]
    is_open = one.document in shown.opened
    first = int(workspace.borders[one.document])
    chances = view.chances[first : first + one.n_chunks]
    n, name = len(one.taken), shorten(document.title, 120)
    title = sends("qx-set-name", "row", one.document, name, aria_expanded=is_open, title=document.title)
    words = f"Document_{one.document + 1} · {counted(one.n_chunks, 'chunk')}"
    size = h("span", {"title": document.kind}, words)
    about = h("span.qx-sm.qx-mut.qx-set-about", size, *_types(view, one.document))
    cost = h("span.qx-set-cost", counted(one.n_tokens, "token"))
    facts = [h("strong", f"{n}"), f" chunk{'s' * (n > 1)}", cost] if n else ["none"]
    cells = [
        h("div.qx-set-title", title, about),
        h("div.qx-set-strip", *_strip(view, one, chances, first)),
        h("div.qx-set-sorted", *_sorted(one, chances, view.least)),
        h("div.qx-set-took.qx-sm", *facts),
    ]
    texts = _texts(view, one, chances, first) if is_open else None
    kinds = "qx-set-row" + " qx-set-open" * is_open + " qx-beyond" * one.is_beyond + " qx-set-none" * (not n)
    return h("section", {"class": kinds, "aria-label": name}, *cells, texts)


def _types(view: SetInView, document: int) -> list[Node]:
    """A small mark for a document with JSON-LD."""
    if not view.json_ld[document]:
        return []
    types = sorted(view.types[document], key=lambda name: name in _AROUND)
    words = f"{types[0]} +{len(types) - 1}" if len(types) > 1 else types[0] if types else "JSON-LD"
    about = f" about {', '.join(types)}" if types else ""
    return [tip("span.qx-mark", f"JSON-LD of the page{about}; open the row to read it", words)]


def _strip(view: SetInView, one: DocumentSet, chances: np.ndarray, first: int) -> list[Node]:
    if not one.n_chunks:
        return [h("p.qx-sm.qx-mut", "This document has no chunks, so nothing can be taken of it.")]
    columns = tile(chances, 0, one.n_chunks, COLUMNS)
    n, width = len(columns.maxima), 1000 / len(columns.maxima)
    starts = column_starts(one.n_chunks, n)
    taken = {int(np.searchsorted(starts, chunk_id - first, side="right")) - 1 for chunk_id in one.taken}
    bars: dict[str, list[str]] = {"qx-bar-left": [], "qx-bar-taken": []}
    for column in np.flatnonzero((columns.maxima >= _LEAST_DRAWN) | np.isin(np.arange(n), [*taken])).tolist():
        kind = "qx-bar-taken" if column in taken else "qx-bar-left"
        bars[kind].append(_bar((column + 0.5) * width, min(0.8 * width, 12), float(columns.maxima[column])))
    named = ", ".join(map(str, sorted(one.taken))) or "none"
    words = f"Chances of {counted(one.n_chunks, 'chunk')} along the document; taken: {named}"
    likeliest = np.argsort(-chances, kind="stable")[:_HITS]
    what = "" if view.by_model else "chance "
    hits = []
    for row in (row for row in likeliest.tolist() if chances[row] >= _LEAST_DRAWN):
        chunk_id = first + row
        title = f"chunk {chunk_id:,}, {what}{chance_of(view, chunk_id)}"
        opens = {"data-act": "open", "data-arg": str(chunk_id), "aria-hidden": "true"}
        hits.append(h("span.qx-set-hit", {"--x": _across(row, one.n_chunks), "title": title, **opens}))
    rings = [
        h(
            "span.qx-gold-ring",
            {"--x": _across(chunk_id - first, one.n_chunks), "title": f"chunk {chunk_id:,} is support"},
        )
        for chunk_id in view.run.gold
        if 0 <= chunk_id - first < one.n_chunks
    ]
    return [_picture(bars, words, view.least), *rings, *hits]


def _sorted(one: DocumentSet, chances: np.ndarray, least: float) -> list[Node]:
    if not one.n_chunks:
        return []
    n_ranks = min(one.n_chunks, max(2 * math.ceil(one.root) + 2, 8, len(one.taken)))
    best = np.sort(chances)[::-1][:n_ranks]
    starts = column_starts(n_ranks, RANKS)
    width = 1000 / n_ranks
    ends = [*starts[1:].tolist(), n_ranks]
    bars: dict[str, list[str]] = {"qx-bar-left": [], "qx-bar-taken": [], "qx-bar-beyond": []}
    for start, end in zip(starts.tolist(), ends, strict=True):
        is_beyond = one.is_beyond and start + 1 > one.root
        kind = "qx-bar-beyond" if is_beyond else "qx-bar-taken"
        kind = kind if start < len(one.taken) else "qx-bar-left"
        if best[start] >= _LEAST_DRAWN:
            span = width * (end - start)
            bars[kind].append(_bar(width * start + span / 2, min(0.8 * span, 60), float(best[start])))
    at = 100 * min(1.0, one.root / n_ranks)
    label = f"√{one.n_chunks:,} = {one.root:.1f}"
    side = " qx-left" * (at > 50)
    words = f"The same sorted; {label} may be taken without cost, {len(one.taken)} are"
    return [
        _picture(bars, words, least),
        h("span", {"class": f"qx-set-root{side}", "--x": f"{at:.2f}%"}, h("span", label)),
    ]


def _bar(centre: float, width: float, chance: float) -> str:
    top = HEIGHT - max(1.5, chance * (HEIGHT - 2))
    return f"M{centre - width / 2:.1f} {HEIGHT}V{top:.1f}h{width:.1f}V{HEIGHT}Z"


def _picture(bars: dict[str, list[str]], words: str, least: float) -> Node:
    """Bars, and a line at the chance above which a chunk is taken."""
    paths = [h("path.qx-half", {"d": f"M0 {HEIGHT - least * (HEIGHT - 2):.1f}H1000"})]
    paths += [h("path", {"class": kind, "d": "".join(shapes)}) for kind, shapes in bars.items() if shapes]
    attributes = {"viewBox": f"0 0 1000 {HEIGHT}", "preserveAspectRatio": "none", "height": str(HEIGHT)}
    return h("svg", {**attributes, "role": "img", "aria-label": words}, *paths)


def _across(row: int, n: int) -> str:
    return f"{100 * (row + 0.5) / n:.2f}%"


def _texts(view: SetInView, one: DocumentSet, chances: np.ndarray, first: int) -> Node:
    """What is taken of a document, the likeliest first, and what would come next."""
    ranked = first + np.argsort(-chances, kind="stable")[: len(one.taken) + _NEXT]
    following = [chunk_id for chunk_id in ranked.tolist() if chunk_id not in one.taken][:_NEXT]
    if view.by_model:  # it ranks nothing that it left
        following = []
    lines = [_text(view, chunk_id, first, True) for chunk_id in one.taken[:_SHOWN]]
    if len(one.taken) > _SHOWN:
        lines.append(h("li.qx-mut", f"and {len(one.taken) - _SHOWN} more, see the action"))
    lines += [_text(view, chunk_id, first, False) for chunk_id in following]
    beside: list[Node] = []
    if json_ld := view.json_ld[one.document]:
        summary = h("summary", "JSON-LD of the page, read with the set")
        beside = [h("details.qx-sm.qx-set-ld", summary, h("pre.qx-pre", {"tabindex": "0"}, json_ld))]
    return h("div.qx-set-texts", h("ul.qx-set-list", *lines), *beside)


def _text(view: SetInView, chunk_id: int, first: int, is_taken: bool) -> Node:
    text = view.run.documents.workspace[chunk_id].text
    is_gold = chunk_id in view.run.gold
    link = chunk_link(chunk_id, title=f"Number {chunk_id - first + 1} of its document in the action")
    marks = [h("span.qx-mark.qx-hit", "support")] if is_gold else []
    chance = None if view.by_model else h("span.qx-mut", chance_of(view, chunk_id))
    kind = "qx-set-text" if is_taken else "qx-set-text qx-next"
    words = h("span.qx-set-words", shorten(" ".join(plain(text[: 4 * _TEXT]).split()), _TEXT))
    left = None if is_taken else h("span.qx-mut", "not taken")
    return h("li", {"class": kind}, link, words, h("span.qx-set-side", *marks, left, chance))
