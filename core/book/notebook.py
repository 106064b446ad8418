"""Runs as HTML for notebooks, which have no style sheet of ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from core.base.events import Trace
from core.base.types import Workspace
from core.integrations.adapters.search import Passage
from core.methods.registry import facts_of
from core.views.draw.nodes import Node, h, html_of
from core.views.draw.run_map import run_picture
from core.views.draw.words import shorten
from core.views.ending import end_sentence
from core.views.findings import found_by
from core.views.story import closed

_TEXT = 240
"""Characters of a chunk that stand for it."""


def run_html(
    trace: Trace, passages: Sequence[Passage], said: str, complete: float | None, notice: str
) -> str:
    """Question, what is said to it, strip, and a row a chunk that was kept. All text is escaped."""
    sure = "" if complete is None else f"The evidence is complete with a chance of {100 * complete:.0f} %."
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
        h("p", {"dir": "auto"}, closed(said)) if said else None,
        h("p", sure) if sure else None,
        run_picture(trace),
        _table(["step", score_name, "place", "text"], rows),
        h("p", " ".join(filter(None, [end_sentence(trace), notice]))),
    )


def comparison_html(
    traces: Mapping[str, Trace],
    answers: Mapping[str, str],
    workspace: Workspace | None,
    remarks: Mapping[str, str],
) -> str:
    """A column a method, a row a chunk that any of them found, with the step that chose it, and what there is
    to remark of methods.
    """
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
            h("div", h("p", label), run_picture(trace))
            for label, trace in zip(labels, traces.values(), strict=True)
        ),
        _table(["chunk", *labels], rows),
        *(h("p", f"{name}: {remark}") for name, remark in remarks.items()),
    )


def _table(heads: Sequence[str], rows: Sequence[Node]) -> Node:
    return h("table", h("thead", h("tr", *(h("th", head) for head in heads))), h("tbody", *rows))


def _together(*nodes: Node | None) -> str:
    return html_of(h("div", *nodes))
