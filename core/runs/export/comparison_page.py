"""Several runs of one question as a page that stands alone.

What the Compare tab shows of them, with a strip of the steps of any one column, and chunks to be read in
their place. Where room is scarce the later steps of the strip give way, of all columns alike.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from core.runs.export import live
from core.runs.export.logged import LoggedView, settings_of, strip_data
from core.runs.log.records import LoggedDocument, LoggedRun, known_answer_of
from core.views.draw import comparison
from core.views.draw.comparison import HOLLOW, ShownComparison
from core.views.draw.nodes import Node, act, h, html_of
from core.views.draw.words import counted
from core.views.findings import Column, column_names

MAX_COLUMNS = 12
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

    `documents`: those of the runs, in order. `with_text`: with texts of chunks. `refused`: methods that made
    no run, with why: columns behind the others.
    """
    views = [LoggedView(run, documents, with_text) for run in runs]
    first, names = views[0], column_names((run.record.method, run.record.checkpoint) for run in runs)
    made = [_column(name, view) for name, view in zip(names, views, strict=True)]
    failed = [Column(name, None, refused=why) for name, why in refused]
    support = next((view.support for view in views if view.support), ())
    shown = ShownComparison([*made, *failed], first.borders, support, first.workspace)
    columns, *below = live.panels(
        {
            "qx-compare-columns": [comparison.columns(shown)],
            "qx-compare-support": comparison.support(shown),
            "qx-compare-common": comparison.common(shown),
        }
    )
    facts = {name: _facts(run) for name, run in zip(names, runs, strict=True)}
    ends = [*below, live.about(facts, documents, with_text)]
    drawn = [*map(html_of, (columns, *ends)), live.SCRIPT, live.STYLE]
    used = _MARGIN + sum(len(part.encode("utf-8", "replace")) for part in drawn)
    data = _data(shown, views, names, live.PAGE_ROOM - used)
    record, when = runs[0].record, f"{runs[0].created_at:%Y-%m-%d %H:%M} UTC"
    sizes = f"{counted(len(runs), 'run')} · {counted(record.n_chunks, 'chunk')}"
    head = live.head_of(record.query, documents, f"{sizes} · {when}")
    title = h("div.qx-row", h("h3", "In its place"), h("span.qx-grow"), act("close", "", "Close"))
    reading = live.reading_card(title, kind="qx-card qx-drawer")
    sections = [head, columns, *_strip(views, data), reading, *ends]
    return live.framed(f"{record.query[:80]} · Q-RAG comparison", sections, data)


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


def _strip(views: Sequence[LoggedView], data: dict[str, Any]) -> Iterator[Node]:
    """The strip with the columns that it can show; nothing where there is none."""
    if not data["runs"]:
        yield h("p.qx-mut", "Q of all chunks is not in this page: it was not kept, or had no room.")
        return
    runs = enumerate(data["runs"])
    choices = [act("column", run["column"], run["name"], aria_pressed=not i) for i, run in runs]
    head = h("h3", "Step by step")
    buttons = h("div.qx-row", {"role": "group", "aria-label": "Column"}, *choices)
    yield live.strip_card(head, buttons, live.walk_bar(bool(data["texts"])))
    shown = ((run["name"], len(run["rows"]), len(views[run["column"]].looks)) for run in data["runs"])
    cut = ", ".join(f"{n} of {n_looks} of {name}" for name, n, n_looks in shown if n < n_looks)
    cut = f"To keep the page small, the strip has steps {cut}." if cut else ""
    yield from live.left_out(data, "every score", cut, views[0].run.record.n_chunks)


def _data(
    comparison: ShownComparison, views: Sequence[LoggedView], names: Sequence[str], room: int
) -> dict[str, Any]:
    """What the script draws from. room: bytes for all of it."""
    first = views[0]
    shown = zip(comparison.columns, views, strict=False)  # the refused stand behind them
    looks = [() if column.trace is None else view.looks for column, view in shown]
    firsts = [look for own in looks for look in own[:1]]
    chosen = [*comparison.paint, *comparison.support]
    texts, n_texts = "", 0
    if first.places:
        texts, n_texts = live.packed_texts(first.places, chosen, firsts, min(live.TEXTS_ROOM, room // 3))
    reading = _reading_data(comparison, first)

    def runs(rows: Sequence[Sequence[int]]) -> list[dict[str, Any]]:
        return [_run_data(comparison, at, views[at], names[at], own) for at, own in enumerate(rows) if own]

    whole = json.dumps([reading, runs([range(len(own)) for own in looks])])
    room -= len(texts) + len(whole)  # escaped, it has as many bytes as characters
    numbers, rounded, rows = live.packed_together(looks, min(live.NUMBERS_ROOM, room))
    return {
        "runs": runs(rows),
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
        kind = comparison.paint[pin["chunk_id"]]
        pin["colour"] = "mut" if kind == HOLLOW else kind.replace("qx-c", "s")
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
    return first.reading(pins, comparison.support) | {"nobody": "No method found it."}


def _facts(run: LoggedRun) -> str:
    record, settings = run.record, [f"{key} {words}" for key, words in settings_of(run).items()]
    agent = f"{record.checkpoint} {record.checkpoint_fingerprint}"
    return " · ".join([*settings, agent, f"run {record.run_id}"])
