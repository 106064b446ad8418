"""Several runs of one question as a page that stands alone.

What the Compare tab shows of them, by the same views (core.views.draw.comparison), with a strip that shows
the steps of any one column, and chunks to be read in their place. Where room is scarce the later steps of the
strip give way, of all columns alike.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from core.methods.registry import facts_of
from core.runs.export.live import (
    NUMBERS_ROOM,
    PAGE_ROOM,
    SCRIPT,
    STYLE,
    TEXTS_ROOM,
    about,
    framed,
    left_out,
    packed_texts,
    packed_together,
    reading_card,
    strip_card,
    tree,
    walk_bar,
)
from core.runs.export.logged import LoggedView, settings_of, strip_data
from core.runs.log.records import LoggedDocument, LoggedRun, RunRecord, known_answer_of
from core.views.draw import comparison
from core.views.draw.comparison import HOLLOW, ShownComparison
from core.views.draw.nodes import Node, act, h, html_of
from core.views.draw.tables import fields
from core.views.draw.words import counted
from core.views.findings import Column

MAX_COLUMNS = 12
"""Runs on one page."""
_MARGIN = 10_000
"""Bytes of a page for its head and what stands around the strip."""


def comparison_page(
    runs: Sequence[LoggedRun],
    documents: Sequence[LoggedDocument],
    *,
    with_text: bool = False,
    refused: Sequence[tuple[str, str]] = (),
) -> str:
    """The page, a column a run in the order given: up to MAX_COLUMNS of one question over the same chunks.

    `documents`: those of the runs, in order. `with_text`: the chosen chunks' texts, and those of others that
    have room. `refused`: methods that made no run, with why: columns behind the others.
    """
    views = [LoggedView(run, documents, with_text) for run in runs]
    first, names = views[0], _names([run.record for run in runs])
    shown = ShownComparison(
        [
            *(_column(name, view) for name, view in zip(names, views, strict=True)),
            *(Column(name, None, refused=why) for name, why in refused),
        ],
        first.borders,
        next((view.support for view in views if view.support), ()),
        first.workspace,
    )
    columns = h("section.qx-card", {"id": "qx-compare-columns"}, tree([comparison.columns(shown)]))
    below = [
        h("section.qx-card", {"id": name}, tree(nodes))
        for name, nodes in (
            ("qx-compare-support", comparison.support(shown)),
            ("qx-compare-common", comparison.common(shown)),
        )
        if nodes
    ]
    ends = [*below, _about(names, runs, documents, with_text)]
    drawn = [*map(html_of, (columns, *ends)), SCRIPT, STYLE]
    used = _MARGIN + sum(len(part.encode("utf-8", "replace")) for part in drawn)
    data = _data(shown, views, names, PAGE_ROOM - used)
    sections = [_head(runs, documents), columns, *_strip(views, data), _reading(), *ends]
    return framed(f"{runs[0].record.query[:80]} · Q-RAG comparison", sections, data)


def _names(records: Sequence[RunRecord]) -> list[str]:
    """Names of columns as Compare has them, a number behind those that come again."""
    names: list[str] = []
    for record in records:
        method = facts_of(record.method)
        name = f"Q-RAG {record.checkpoint}" if method.trained else method.label
        again = sum(other == name or other.startswith(f"{name} (") for other in names)
        names.append(f"{name} ({again + 1})" if again else name)
    return names


def _column(name: str, view: LoggedView) -> Column:
    run, trace = view.run, view.trace
    if run.status == "failed":
        return Column(name, None, refused=f"It failed: {run.message or 'the log does not say why'}.")
    if not view.with_text:
        trace = replace(trace, steps=tuple(replace(step, text="") for step in trace.steps))
    # a beam has paths that are in no event, SPARC has branches
    is_timed = trace.started.config.beam_width == 1
    return Column(
        name,
        trace,
        milliseconds=trace.milliseconds or None if is_timed else None,
        answer=view.answer,
        known_answer=known_answer_of(run),
    )


def _head(runs: Sequence[LoggedRun], documents: Sequence[LoggedDocument]) -> Node:
    record, made = runs[0].record, runs[0].created_at
    sizes = f"{counted(len(runs), 'run')} · {counted(record.n_chunks, 'chunk')}"
    facts = f"{sizes} · {made:%Y-%m-%d %H:%M} UTC"
    return h(
        "header",
        h("h1", {"dir": "auto"}, record.query),
        h("p", {"dir": "auto"}, ", ".join(document.title for document in documents)),
        h("p.qx-mut", facts),
    )


def _strip(views: Sequence[LoggedView], data: dict[str, Any]) -> Iterator[Node]:
    """The strip with the columns that it can show; nothing where there is none."""
    if not data["runs"]:
        yield h("p.qx-mut", "Q of all chunks is not in this page: it was not kept, or had no room.")
        return
    choices = [
        act("column", run["column"], run["name"], aria_pressed=not i) for i, run in enumerate(data["runs"])
    ]
    head = h("h3", "Step by step")
    buttons = h("div.qx-row", {"role": "group", "aria-label": "Column"}, *choices)
    yield strip_card(head, buttons, walk_bar(bool(data["texts"])))
    cut = ", ".join(
        f"{len(run['rows'])} of {len(views[run['column']].looks)} of {run['name']}"
        for run in data["runs"]
        if len(run["rows"]) < len(views[run["column"]].looks)
    )
    cut = f"To keep the page small, the strip has steps {cut}." if cut else ""
    yield from left_out(data, "every score", cut, views[0].run.record.n_chunks)


def _reading() -> Node:
    head = [h("h3", "In its place"), h("span.qx-grow"), act("close", "", "Close")]
    return reading_card(h("div.qx-row", *head), kind="qx-card qx-drawer")


def _data(
    comparison: ShownComparison, views: Sequence[LoggedView], names: Sequence[str], room: int
) -> dict[str, Any]:
    """What the script draws from. room: bytes for all of it."""
    first = views[0]
    looks = [
        () if column.trace is None else view.looks
        for column, view in zip(comparison.columns, views, strict=False)  # the refused stand behind them
    ]
    firsts = [look for own in looks for look in own[:1]]
    chosen = [*comparison.paint, *comparison.support]
    texts, n_texts = (
        packed_texts(first.places, chosen, firsts, min(TEXTS_ROOM, room // 3)) if first.places else ("", 0)
    )
    reading = _reading_data(comparison, first)
    whole = [
        _run_data(comparison, at, views[at], names[at], range(len(own)))
        for at, own in enumerate(looks)
        if own
    ]
    room -= len(texts) + len(json.dumps([reading, whole]))  # escaped, it has as many bytes as characters
    numbers, rounded, rows = packed_together(looks, min(NUMBERS_ROOM, room))
    return {
        "runs": [_run_data(comparison, at, views[at], names[at], own) for at, own in enumerate(rows) if own],
        "reading": reading,
        "numbers": numbers,
        "n_rows": 1 + max((row for own in rows for row in own), default=-1),
        "rounded_bits": rounded,
        "texts": texts,
        "n_texts": n_texts,
    }


def _run_data(
    comparison: ShownComparison, at: int, view: LoggedView, name: str, rows: Sequence[int]
) -> dict[str, Any]:
    """A column as the strip draws it, in the colours that its chunks have here."""
    run = {"column": at, "name": name, **strip_data(view, rows)}
    for pin in run["value"]["chosen"]:
        pin["colour"] = _colour(comparison.paint[pin["chunk_id"]])
    return run


def _reading_data(comparison: ShownComparison, first: LoggedView) -> dict[str, Any]:
    """What marks the chunks that were found, wherever one is read."""
    pins = [
        {
            "chunk_id": chunk_id,
            "name": f"{len(finders)}×",
            "kind": comparison.paint[chunk_id],
            "said": f"Found by {', '.join(finders)}.",
        }
        for chunk_id, finders in comparison.finders.items()
    ]
    return {
        "n_chunks": first.run.record.n_chunks,
        "chosen": pins,
        "gold": list(comparison.support),
        "documents": first.first_chunks,
        "nobody": "No method found it.",
    }


def _colour(kind: str) -> str:
    """Name in the theme of a chunk's colour."""
    return "mut" if kind == HOLLOW else kind.replace("qx-c", "s")


def _about(
    names: Sequence[str], runs: Sequence[LoggedRun], documents: Sequence[LoggedDocument], with_text: bool
) -> Node:
    facts = {
        name: " · ".join(
            [
                *(f"{key} {words}" for key, words in settings_of(run).items()),
                f"{run.record.checkpoint} {run.record.checkpoint_fingerprint}",
                f"run {run.record.run_id}",
            ]
        )
        for name, run in zip(names, runs, strict=True)
    }
    hashes = {f"SHA-256 of document {i}": document.sha256 for i, document in enumerate(documents, start=1)}
    return about(fields(facts | hashes), with_text)
