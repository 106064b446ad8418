"""The frame of a page that stands alone.

And the parts that its script fills. Whatever stands in it stays text, and it loads nothing: see
`core.runs.export.live`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

from core.runs.export.live import SCRIPT, STYLE, data_block, policy
from core.views.draw.nodes import Html, Node, h, html_of
from core.views.draw.scripts import script


def framed(title: str, sections: Sequence[Node], data: dict[str, Any]) -> str:
    """A page of its own, with what its script draws from."""
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta'
        f' http-equiv="Content-Security-Policy" content="{policy(STYLE)}"><title>{escape(title)}</title>'
    )
    page = (
        f'<!doctype html>\n<html lang="en">\n<head>{head}<style>{STYLE}</style></head>\n'
        '<body>\n<main class="qx-offline">\n'
        + "\n".join(map(html_of, sections))
        + f"\n</main>\n{data_block(data) if data else ''}\n<script>{SCRIPT}</script>\n</body>\n</html>\n"
    )
    return page.encode("utf-8", "replace").decode()  # half a surrogate pair can't be written


def walk_bar(reads: bool) -> Node:
    """Buttons to walk the steps. reads: bars can be clicked to read their chunk."""
    before, after = (
        h("button.qx-btn", {"id": name}, words)
        for name, words in (("qx-before", "‹ Step before"), ("qx-next", "Next step ›"))
    )
    keys = h("span", f"Keys [ and ] walk the steps{'; click a bar to read its chunk' if reads else ''}.")
    at = h("span", {"id": "qx-at", "role": "status"}, "")
    return h("div.qx-walk", {"id": "qx-walk", "hidden": True}, before, after, at, keys)


def strip_card(*above: Node) -> Node:
    """Where the script draws the strip. above: what stands over it."""
    strip = h("div", {"id": "qx-strip"}, Html(script("strip.html")))
    return h("section.qx-card", {"id": "qx-live", "hidden": True}, *above, strip)


def reading_card(*head: Node, kind: str = "qx-card") -> Node:
    """Where a chunk that was opened is read, in its place."""
    pane = h("div", {"id": "qx-reading"}, h("div.qx-tree"))
    return h(
        "section",
        {"class": kind, "id": "qx-reading-card", "hidden": True},
        *(head or [h("h3", "In its place")]),
        pane,
    )


def tree(nodes: Sequence[Node]) -> Node:
    """Nodes in the frame that styles of the app's panels look for."""
    return h("div.qx-tree", *nodes)


def about(rows: Sequence[Node], with_text: bool) -> Node:
    """The end of a page: names and facts, and whether it has the documents' texts."""
    words = "" if with_text else " Texts of documents were left out."
    return h(
        "footer",
        h("h2", "About"),
        h("p.qx-mut", f"Made with Q-RAG Explorer from its log.{words}"),
        h("dl", *rows),
    )


def rounded_sentence(what: str, bits: int) -> str:
    """That numbers lost `bits` of their 24."""
    return f"To keep the page small, {what} is rounded to {math.floor((24 - bits) * math.log10(2))} digits."


def texts_sentence(n_texts: int) -> str:
    """That some texts are in the page."""
    return (
        f"Texts of {n_texts:,} chunks are in this page, those around the choices and the best of every step"
        " first."
    )
