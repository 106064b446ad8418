"""Evidence in its place: chosen chunks and missed support in their paragraphs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from core.answer.evidence import EvidenceAnswer
from core.base.types import Workspace
from core.ingest.prose import Prose
from core.views.draw.answers import answer_place
from core.views.draw.nodes import Node, chunk_link, h
from core.views.draw.text import MAX_SHOWN, drawn
from core.views.draw.words import counted, step_class

CONTEXT = 240
"""Characters of a paragraph that are shown on either side of a chosen chunk."""
Passage = tuple[int, int, int, list[int]]
"""(document, first character, behind the last, its chunks in order)."""


def evidence_rows(
    workspace: Workspace,
    chosen: Mapping[int, int],
    missed: Sequence[int],
    look: int,
    answer: EvidenceAnswer | None,
    run: str = "",
) -> list[Node]:
    """Paragraphs in document order, with what lies between two. chosen: step by chunk id. look: the step that
    is looked at. answer: marked where it stands. run: its run, so that it is shown as it comes, if it does.
    """
    places = _passages(workspace, sorted([*chosen, *missed]))
    rows: list[Node] = []
    for i, passage in enumerate(places):
        if i:
            rows.append(h("li.qx-gap", _distance(workspace, places[i - 1], passage)))
        rows.append(_passage(workspace, passage, chosen, look, answer, run))
    return rows


def _passages(workspace: Workspace, chunk_ids: Sequence[int]) -> list[Passage]:
    """Each chunk in its paragraph; those whose paragraphs meet together."""
    passages: list[Passage] = []
    for chunk_id in chunk_ids:
        chunk = workspace[chunk_id]
        text = workspace.documents[chunk.document].text
        before = text[max(0, chunk.start - CONTEXT) : chunk.start]
        behind = text[chunk.end : chunk.end + CONTEXT]
        start = chunk.start - len(_last_words(before.rpartition("\n\n")[2]))
        end = chunk.end + len(_first_words(behind.partition("\n\n")[0]))
        if passages and passages[-1][0] == chunk.document and start <= passages[-1][2]:
            document, first, last, ids = passages.pop()
            passages.append((document, first, max(last, end), [*ids, chunk_id]))
        else:
            passages.append((chunk.document, start, end, [chunk_id]))
    return passages


def _last_words(text: str) -> str:
    """The end of a text from its first sentence on, or its first word, where that begins in its first half;
    all of it where it is whole: shorter than CONTEXT.
    """
    if len(text) < CONTEXT:
        return text
    sentence = re.search(r"[.!?]\s+(?=\S)", text[: CONTEXT // 2])
    word = re.search(r"\s+", text[: CONTEXT // 2])
    return text[sentence.end() :] if sentence else text[word.end() :] if word else text


def _first_words(text: str) -> str:
    """The beginning of a piece of text, up to its last whole word where that ends in its second half."""
    if len(text) < CONTEXT:
        return text
    return re.sub(rf"\s\S{{0,{CONTEXT // 2}}}\Z", "", text)


def _distance(workspace: Workspace, before: Passage, after: Passage) -> str:
    if before[0] != after[0]:
        return f"in {workspace.documents[after[0]].title}"
    return f"{counted(after[3][0] - before[3][-1], 'chunk')} further on"


def _passage(
    workspace: Workspace,
    passage: Passage,
    chosen: Mapping[int, int],
    look: int,
    answer: EvidenceAnswer | None,
    run: str,
) -> Node:
    """A paragraph with its chunks marked, and in its margin which they are and where."""
    document, at, end, chunk_ids = passage
    text = workspace.documents[document].text
    prose = Prose(text, at, end, workspace.documents[document].kind)
    parts: list[Node] = ["… "] if at > 0 and text[at - 1 : at] not in ("\n", "") else []
    margin: list[Node] = []
    for chunk_id in chunk_ids:
        chunk, step = workspace[chunk_id], chosen.get(chunk_id)
        if chunk.start > at:
            parts += drawn(prose, at, chunk.start)
        last = min(chunk.end, chunk.start + MAX_SHOWN)
        opens: dict[str, Any] = {"data-act": "open", "data-arg": str(chunk_id)}
        name = where = None
        if step is None:
            name = h("strong.qx-missed-name", "missed support ")
            parts.append(h("span.qx-chunk.qx-missed", opens, *drawn(prose, chunk.start, last)))
        else:
            kind = f"span.qx-chunk.qx-chosen.{step_class(step)}" + ".qx-marked" * (look == step)
            words = drawn(prose, chunk.start, last, answer_place(chunk, answer), run)
            opens["data-show"] = look == step
            parts.append(h(kind, opens, h("span.qx-pin", str(step)), *words))
        at = max(at, chunk.end)
        if chunk.heading_path:
            where = h("span.qx-mut", {"title": " › ".join(chunk.heading_path)}, chunk.heading_path[-1])
        margin.append(h("div", name, chunk_link(chunk_id), where))
    if end > at:
        parts += drawn(prose, at, end)
    if text[end : end + 1] not in ("\n", ""):
        parts.append(" …")
    quote = h("p.qx-quote", {"dir": "auto"}, *map(_closed_up, parts))
    return h("li.qx-passage", quote, h("div.qx-margin.qx-sm", *margin))


def _closed_up(node: Node) -> Node:
    """Without blank lines, which take the room of evidence."""
    if isinstance(node, str):
        return re.sub(r"\n\s+", "\n", node)
    tag, attributes, children = node
    return [tag, attributes, [_closed_up(child) for child in children]]
