"""Runs as HTML for notebooks, which have no style sheet of ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np

from core.base.events import Trace
from core.base.types import Workspace
from core.corpus.tiles import run_map
from core.integrations.adapters.search import Passage
from core.methods.registry import facts_of
from core.views.draw.nodes import Html, Node, h, html_of
from core.views.draw.words import shorten
from core.views.ending import end_sentence
from core.views.findings import found_by, looks

_WIDTH, _ROW = 240, 14
"""Columns of a strip at most, and the height of a row in pixels."""
_MOST_ROWS = 40
_TEXT = 240
"""Characters of a chunk that stand for it."""


def run_html(
    trace: Trace, passages: Sequence[Passage], said: str, complete: float | None, notice: str
) -> str:
    """Question, what is said to it, strip, and a row a chunk that was kept. All text is escaped."""
    sure = "" if complete is None else f" The evidence is complete with a chance of {100 * complete:.0f} %."
    score_name = facts_of(trace.started.method).score_name
    rows = [
        h(
            "tr",
            h("td", str(passage.metadata["step"])),
            h("td", f"{passage.score:.3f}"),
            h("td", " › ".join([passage.metadata["title"], *passage.metadata["headings"]])),
            h("td", {"dir": "auto"}, shorten(passage.text, _TEXT)),
        )
        for passage in passages
    ]
    return _together(
        h("p", h("strong", {"dir": "auto"}, trace.started.query)),
        h("p", {"dir": "auto"}, said, sure),
        strip(trace),
        _table(["step", score_name, "place", "text"], rows),
        h("p", " ".join(filter(None, [end_sentence(trace), notice]))),
    )


def comparison_html(
    traces: Mapping[str, Trace],
    answers: Mapping[str, str | None],
    workspace: Workspace | None,
    refused: Mapping[str, str],
) -> str:
    """A column a method, a row a chunk that any of them found, with the step that chose it."""
    rows = []
    for chunk_id in found_by({name: trace.picks for name, trace in traces.items()}):
        steps = [
            str(trace.chosen.index(chunk_id) + 1) if chunk_id in trace.picks else ""
            for trace in traces.values()
        ]
        text = "" if workspace is None else shorten(workspace[chunk_id].text, _TEXT)
        rows.append(h("tr", h("td", {"dir": "auto"}, text), *(h("td", step) for step in steps)))
    said = (h("td", {"dir": "auto"}, answers[name] or "no answer") for name in traces)
    rows.append(h("tr", h("td", "answer"), *said))
    labels = [facts_of(trace.started.method).label for trace in traces.values()]
    return _together(
        *(
            h("div", h("p", label), strip(trace))
            for label, trace in zip(labels, traces.values(), strict=True)
        ),
        _table(["chunk", *labels], rows),
        *(h("p", f"{name}: {why}") for name, why in refused.items()),
    )


def strip(trace: Trace) -> Node:
    """Scores of all chunks along the documents, a row a look, the darker the more; chosen chunks ticked."""
    seen = looks(trace)[:_MOST_ROWS]
    n = trace.started.n_chunks
    finite = np.concatenate([values[np.isfinite(values)] for values, _ in seen] or [np.zeros(0)])
    if not finite.size:
        return h("p", "No scores were kept.")
    lo, hi = min(0.0, float(finite.min())), float(finite.max())
    shapes = ""
    for row, best in enumerate(run_map([values for values, _ in seen], _WIDTH)):
        edges, top = np.linspace(0, 1000, len(best) + 1), row * _ROW
        shares = np.clip((np.nan_to_num(best, nan=lo, posinf=hi, neginf=lo) - lo) / ((hi - lo) or 1.0), 0, 1)
        for i in np.flatnonzero(shares > 0.02).tolist():
            place = f'x="{edges[i]:.1f}" y="{top}" width="{edges[i + 1] - edges[i]:.1f}" height="{_ROW - 3}"'
            shapes += f'<rect {place} fill="#3b6fb5" fill-opacity="{shares[i]:.2f}"/>'
        for chunk_id in seen[row][1]:
            x = 1000 * (chunk_id + 0.5) / n
            shapes += f'<path d="M{x:.1f} {top}v{_ROW}" stroke="#c2410c" stroke-width="3"/>'
    name, height = facts_of(trace.started.method).score_name, _ROW * len(seen)
    words = escape(
        f"{name} of {n:,} chunks along the documents, from {lo:.2f} to {hi:.2f}; chosen ones ticked"
    )
    return Html(
        f'<svg viewBox="0 0 1000 {height}" width="100%" height="{height}" preserveAspectRatio="none"'
        f' role="img" aria-label="{words}"><title>{words}</title>{shapes}</svg>'
    )


def _table(heads: Sequence[str], rows: Sequence[Node]) -> Node:
    return h("table", h("thead", h("tr", *(h("th", head) for head in heads))), h("tbody", *rows))


def _together(*nodes: Node) -> str:
    return html_of(h("div", *nodes))
