"""What made the difference: a changed chunk, other ways of cutting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.pages.widgets.notices import changed_since, notice
from app.services.comparisons import AS_OPEN, CutRow, ShownColumn
from app.services.in_view import OpenDocuments
from core.ingest.prose import plain
from core.runs.whatif.variant import StepPair, TryOut, VariantChoice
from core.views.draw.nodes import Node, act, chunk_link, h
from core.views.draw.tables import table
from core.views.draw.words import counted, shorten, step_class
from core.views.ending import end_sentence

NOT_LOGGED = "A try-out: it is not in Experiments, since no document reads like this."
_BOTH = "The chunk that was chosen, and its Q at this step: as the documents are → with the change"
SUPPORT_FOUND = "Share of the characters of this question's support that lie in what was chosen"
SAME_TEXT = "Of the text found as the documents are cut now, how much this cut finds too"
CUTS = (
    "Asks the agent again with the documents cut finer and coarser, to find the chunk size that suits this"
    " question. The first time takes longest: each way of cutting is embedded once."
)


@dataclass(frozen=True)
class Cuts:
    """The ways of cutting that are shown, and what was asked: small, for a session."""

    rows: tuple[CutRow, ...] = ()
    query: str = ""
    document: int = 0
    """Of the text and how it was cut."""
    agent: str = ""

    @classmethod
    def over(cls, documents: OpenDocuments, query: str, rows: tuple[CutRow, ...] = ()) -> Cuts:
        """Of a question to what is open."""
        workspace = documents.workspace
        ends = (table.end.tobytes() for table in workspace.tables)
        return cls(rows, query.strip(), hash((workspace.sha256, *ends)), documents.agent.spec.name)


def tried(runs: Sequence[tuple[ShownColumn, TryOut]]) -> list[Node]:
    """Each run as it was and with the change, step by step."""
    variant = runs[0][1].variant
    chunk_id, text = variant.change.chunk_id, variant.change.text
    n_cached = len(variant) - variant.n_embedded
    embedded = f"{counted(variant.n_embedded, 'chunk')} embedded, the other {n_cached:,} not again"
    done = f"Chunk {chunk_id:,} reads otherwise: {embedded}."
    if text is None:
        left = f"the {counted(len(variant), 'chunk')} left keep their vectors"
        done = f"Chunk {chunk_id:,} left out: nothing was embedded, and {left}."
    return [
        h("div.qx-row", h("h3", "What made the difference"), h("span.qx-grow"), act("forget", "", "Close")),
        h("p.qx-sm", done),
        h("p.qx-quote.qx-sm.qx-instead", f"“{shorten(text, 400)}”") if text is not None else "",
        *(part for column, run in runs for part in _run(column.name, run)),
        h("p.qx-sm.qx-mut", NOT_LOGGED),
    ]


def unread(runs: Sequence[tuple[ShownColumn, TryOut]]) -> list[Node]:
    """A sentence where an agent has no room for all of a changed text; nothing where all read all of it."""
    cut = ", ".join(
        f"{column.name} does not read its last {counted(run.variant.n_unread, 'token')}"
        for column, run in runs
        if run.variant.n_unread
    )
    words = f"The changed text is longer than an agent reads: {cut}. Shorten it to have all of it count."
    return notice(words if cut else "", "info")


def _run(name: str, run: TryOut) -> list[Node]:
    first = run.differs_from
    words = "The same choices with the change."
    if first is not None:
        before = "; up to there only Q can differ" if first > 1 else ""
        words = f"Another choice from step {first} on{before}."
    rows = [_pair(pair, run) for pair in run.pairs]
    ends = (end_sentence(trace) for trace in (run.before, run.after))
    rows.append(h("tr", h("td.qx-mut", "end"), *(h("td.qx-mut", end) for end in ends)))
    head: list[str | tuple[str, str]] = ["step", ("as it is", _BOTH), ("with the change", _BOTH)]
    pairs = table(head, rows, f"{name} as it is and with the change")
    return [h("h4", name), h("p.qx-sm.qx-mut", f"{words} {run.milliseconds:,.0f} ms."), pairs]


def _pair(pair: StepPair, run: TryOut) -> Node:
    pin = h("span", {"class": f"qx-pin {step_class(pair.step)}"}, str(pair.step))
    cells = (_choice(pair.before, pair, run, is_after=False), _choice(pair.after, pair, run, is_after=True))
    return h("tr", {"class": "" if pair.same_chunk else "qx-on"}, h("td", pin), *cells)


def _choice(choice: VariantChoice | None, pair: StepPair, run: TryOut, *, is_after: bool) -> Node:
    if choice is None:
        return h("td.qx-mut", "had stopped")
    gone = run.variant.change.text is None and choice.chunk_id == run.variant.change.chunk_id
    other = "gone" if gone else "–" if choice.other_q is None else f"{choice.other_q:.3f}"
    values = (other, f"{choice.q_value:.3f}") if is_after else (f"{choice.q_value:.3f}", other)
    same = h("span.qx-mark", "the same") if is_after and pair.same_chunk else None
    text = h("div.qx-support-text", shorten(plain(choice.text), 90))
    q_values = h("div.qx-sm", f"Q {values[0]} → {values[1]}")
    return h("td", chunk_link(choice.chunk_id), " ", same, q_values, text)


def cuts_of(shown: Cuts, query: str, documents: OpenDocuments | None) -> list[Node]:
    """The question above the rows, and whether another one, or something else, would be asked now."""
    if not shown.rows:
        return []
    differs = {"question": shown.query != query.strip()}
    if documents is not None:
        now = Cuts.over(documents, query)
        differs |= {"document": shown.document != now.document, "agent": shown.agent != now.agent}
    return [h("h4", {"dir": "auto"}, shown.query), *changed_since("these rows were made", differs)]


def cuts(rows: Sequence[CutRow]) -> list[Node]:
    """A row a way of cutting."""
    if not rows:
        return []
    labelled = any(row.support is not None for row in rows)
    head: list[str | tuple[str, str]] = [
        "cut",
        "chunks",
        *[("support found", SUPPORT_FOUND)] * labelled,
        ("same text", SAME_TEXT),
        ("tokens", "Length of what was chosen: larger chunks hold more by themselves"),
        ("Q of each step", "Q of each choice, in order; the same agent, over other chunks"),
        ("ms", "Time of retrieval, without embedding"),
        "",
    ]
    lines = [_cut(at, row, labelled) for at, row in enumerate(rows)]
    return [table(head, lines, "The same question across chunk sizes")]


def _cut(at: int, row: CutRow, labelled: bool) -> Node:
    name = h("th", {"scope": "row"}, row.name)
    if row.refused:
        return h("tr", name, h("td.qx-mut.qx-fate", {"colspan": 7 if labelled else 6}, row.refused))
    embedded = f"{counted(row.n_embedded, 'chunk')} embedded for this, the others were known"
    chips = [
        h(f"span.qx-mark.{step_class(step)}.qx-q-chip", {"title": f"Step {step}"}, f"{q_value:.2f}")
        for step, q_value in enumerate(row.q_values, start=1)
    ]
    share = h("span.qx-share" + ".qx-hit" * (row.support == 1), _percent(row.support))
    return h(
        "tr" + ".qx-on" * (row.name == AS_OPEN),
        name,
        h("td", {"title": embedded}, f"{row.n_chunks:,}"),
        h("td", share) if labelled else None,
        h("td", _percent(row.shared)),
        h("td", f"{row.n_tokens:,}"),
        h("td", h("div.qx-chips", *(chips or ["none"]))),
        h("td", f"{row.milliseconds:,.0f}"),
        h("td", act("explore", at, "Open in Explore")),
    )


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.0f} %"
