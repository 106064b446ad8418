"""What makes the page of a run live.

Its numbers and texts packed as data, the app's own scripts and styles, and a policy that lets nothing else
run or load. Q of every chunk at every look comes first, exact up to a size and then in fewer digits, then
texts as far as there is room, those nearest to what was chosen first.
"""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from html import escape
from itertools import chain
from typing import Any

import numpy as np

from core.base.home import ASSETS
from core.runs.log.records import LoggedDocument
from core.views.draw.nodes import Html, Node, h, html_of
from core.views.draw.scripts import bundled, script
from core.views.draw.tables import fields
from core.views.draw.words import counted, shorten

PAGE_ROOM = 1_000_000
NUMBERS_ROOM, TEXTS_ROOM = 600_000, 180_000
"""Characters that packed numbers and texts may take: with scripts and styles, less than 1 MB."""
LONGEST_TEXT = 2_000
"""Characters of one chunk."""
_NEAR = 3
"""Neighbours on either side of a chosen chunk whose texts come first."""
_BEST = 100
"""Chunks of each look whose texts come next."""

STYLE = "\n".join(
    (ASSETS / name).read_text(encoding="utf-8")
    for name in ("theme.css", "app.css", "strip.css", "sparc.css", "offline.css")
)
SCRIPT = f"{bundled('offline.js')};\n"


def packed_looks(looks: Sequence[np.ndarray], room: int = NUMBERS_ROOM) -> tuple[str, int]:
    """(L, N) float32 as compressed text, and how many bits of each number were rounded away, 0 where it is
    exact. Bytes of one significance lie together, which is what makes them smaller.
    """
    numbers = np.stack(looks).astype("<f4")
    for bits in (0, 4, 8, 10):
        packed = _deflated(_rounded(numbers, bits).view(np.uint8).reshape(-1, 4).T.tobytes())
        if len(packed) <= room:
            break
    return packed, bits


def packed_together(
    runs: Sequence[Sequence[np.ndarray]], room: int = NUMBERS_ROOM
) -> tuple[str, int, list[list[int]]]:
    """Looks of several runs packed as one, the bits that were rounded away, and for every run the row of each
    of its looks, as far as there is room: the first of all runs, then the second of all, and so on. A look
    like the one before is the same row.
    """
    looks: list[np.ndarray] = []
    rows: list[list[int]] = [[] for _ in runs]
    for depth in range(max(map(len, runs), default=0)):
        for run, own in zip(runs, rows, strict=True):
            if depth >= len(run):
                continue
            if not depth or not np.array_equal(run[depth], run[depth - 1], equal_nan=True):
                looks.append(run[depth])
                own.append(len(looks) - 1)
            else:
                own.append(own[-1])
    packed, bits = packed_looks(looks, room) if looks else ("", 0)
    while len(packed) > max(room, 0):
        looks = looks[: min(len(looks) - 1, len(looks) * max(room, 0) // len(packed))]
        packed, bits = packed_looks(looks, room) if looks else ("", 0)
    return packed, bits, [[row for row in own if row < len(looks)] for own in rows]


def _rounded(numbers: np.ndarray, bits: int) -> np.ndarray:
    if not bits:
        return numbers
    whole = numbers.view("<u4").astype(np.uint64)
    near = (whole + (1 << (bits - 1))) & np.uint64(0xFFFFFFFF ^ ((1 << bits) - 1))
    return np.where(np.isfinite(numbers), near.astype("<u4").view("<f4"), numbers).astype("<f4")


def packed_texts(
    places: Mapping[int, tuple[str, str]],
    first: Sequence[int],
    looks: Sequence[np.ndarray],
    room: int = TEXTS_ROOM,
) -> tuple[str, int]:
    """`places`, (heading, text) by chunk, as compressed text, as many as have room, and how many those are.
    first: chunks whose neighbourhood matters most.
    """
    near = (
        chunk_id + by
        for by in sorted(range(-_NEAR, _NEAR + 1), key=abs)
        for chunk_id in first
        if chunk_id + by in places
    )
    ranked = (np.argsort(-np.nan_to_num(look, nan=-np.inf), kind="stable")[:_BEST] for look in looks)
    best = (chunk_id for ids in ranked for chunk_id in ids.tolist() if chunk_id in places)
    order = list(dict.fromkeys(chain(near, best, places)))

    def packed(count: int) -> str:
        rows = [[i, places[i][0], shorten(places[i][1], LONGEST_TEXT)] for i in sorted(order[:count])]
        return _deflated(json.dumps(rows, ensure_ascii=False).encode("utf-8", "replace"))

    count = len(order)
    text = packed(count)
    while len(text) > room:  # texts compress alike: sizes tell how many have room
        count = int(0.98 * count * room / len(text))
        text = packed(count)
    return text, count


def _deflated(content: bytes) -> str:
    return base64.b64encode(zlib.compress(content)).decode("ascii")


def framed(title: str, sections: Sequence[Node], data: dict[str, Any]) -> str:
    """A page of its own, with what its script draws from. One style sheet and one script are let in."""
    sources = (f"{kind}-src '{_hash(text)}'" for kind, text in (("style", STYLE), ("script", SCRIPT)))
    policy = "; ".join(["default-src 'none'", *sources])
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta'
        f' http-equiv="Content-Security-Policy" content="{policy}"><title>{escape(title)}</title>'
    )
    # `<` is escaped, so that no text in the data ends its element
    words = json.dumps(data, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    block = f'<script type="application/json" id="qx-data">{words}</script>' if data else ""
    page = (
        f'<!doctype html>\n<html lang="en">\n<head>{head}<style>{STYLE}</style></head>\n'
        '<body>\n<main class="qx-offline">\n'
        + "\n".join(map(html_of, sections))
        + f"\n</main>\n{block}\n<script>{SCRIPT}</script>\n</body>\n</html>\n"
    )
    return page.encode("utf-8", "replace").decode()  # half a surrogate pair can't be written


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}"


def walk_bar(reads: bool) -> Node:
    """Buttons to walk the steps. reads: bars can be clicked to read their chunk."""
    before = h("button.qx-btn", {"id": "qx-before"}, "‹ Step before")
    after = h("button.qx-btn", {"id": "qx-next"}, "Next step ›")
    keys = h("span", f"Keys [ and ] walk the steps{'; click a bar to read its chunk' if reads else ''}.")
    at = h("span", {"id": "qx-at", "role": "status"}, "")
    return h("div.qx-walk", {"id": "qx-walk", "hidden": True}, before, after, at, keys)


def strip_card(*above: Node) -> Node:
    """Where the script draws the strip. above: what stands over it."""
    strip = h("div", {"id": "qx-strip"}, Html(script("strip.html")))
    return h("section.qx-card", {"id": "qx-live", "hidden": True}, *above, strip)


def reading_card(*head: Node, kind: str = "qx-card") -> Node:
    """Where a chunk that was opened is read, in its place."""
    pane, names = h("div", {"id": "qx-reading"}, h("div.qx-tree")), head or [h("h3", "In its place")]
    return h("section", {"class": kind, "id": "qx-reading-card", "hidden": True}, *names, pane)


def panels(nodes: Mapping[str, Sequence[Node]]) -> list[Node]:
    """Panels of the app by their ids, in the frame that its styles look for; empty ones are left out."""
    return [
        h("section.qx-card", {"id": name}, h("div.qx-tree", *each)) for name, each in nodes.items() if each
    ]


def head_of(query: str, documents: Sequence[LoggedDocument], facts: str, *more: Node | None) -> Node:
    """The beginning of a page."""
    titles = h("p", {"dir": "auto"}, ", ".join(document.title for document in documents))
    return h("header", h("h1", {"dir": "auto"}, query), titles, h("p.qx-mut", facts), *more)


def about(facts: Mapping[str, str], documents: Sequence[LoggedDocument], with_text: bool) -> Node:
    """The end of a page: names and facts, and whether it has the documents' texts."""
    words = "" if with_text else " Texts of documents were left out."
    made = h("p.qx-mut", f"Made with Q-RAG Explorer from its log.{words}")
    hashes = {f"SHA-256 of document {i}": document.sha256 for i, document in enumerate(documents, start=1)}
    return h("footer", h("h2", "About"), made, h("dl", *fields({**facts, **hashes})))


def left_out(data: Mapping[str, Any], scores: str, of_strip: str, n_chunks: int) -> Iterator[Node]:
    """What a page had no room for. scores: what is rounded; of_strip: what the strip lacks, or nothing."""
    said = [of_strip]
    if bits := data["rounded_bits"]:
        digits = math.floor((24 - bits) * math.log10(2))
        said.insert(0, f"To keep the page small, {scores} is rounded to {digits} digits.")
    if 0 < (n := data["n_texts"]) < n_chunks:
        said.append(
            f"Texts of {counted(n, 'chunk')} are in this page, those around the choices and the best of every"
            " step first."
        )
    return (h("p.qx-mut", sentence) for sentence in said if sentence)
