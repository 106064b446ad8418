"""The gold trail: the rank of every support chunk at every step."""

from __future__ import annotations

from collections.abc import Sequence

from core.base.events import Trace
from core.methods.registry import facts_of
from core.views.draw.nodes import Node, chunk_link, h, tip
from core.views.draw.tables import table
from core.views.trail import Trail, gold_trails

RANK = "Place in line before this step, after the chunks chosen so far"


def gold_trail(trace: Trace, gold: Sequence[int]) -> list[Node]:
    """The card beside the figures; nothing for a question whose support is not known."""
    if not gold or not trace.n_looks:
        return []
    words = "Where each support chunk stood before every step, and where retrieval lost it"
    return [h("h3", "Gold trail"), h("p.qx-mut.qx-sm", words), trail_table(trace, gold, "Gold trail")]


def trail_table(trace: Trace, gold: Sequence[int], name: str) -> Node:
    """A row a support chunk, under a name of this table alone. Cells can be clicked: they open the chunk."""
    n_steps = len(trace.steps)
    looks = [
        (str(look), RANK) if look <= n_steps else ("end", "Rank when the agent stopped")
        for look in range(1, trace.n_looks + 1)
    ]
    rows = [_row(trail, trace) for trail in gold_trails(trace, gold)]
    return h("div.qx-trail", table(["support chunk", *looks], rows, name))


def _row(trail: Trail, trace: Trace) -> Node:
    link = chunk_link(trail.chunk_id, data_same=str(trail.chunk_id))
    lost_at = trail.loss.step if trail.loss else None
    cells = []
    for look, standing in enumerate(trail.standings, start=1):
        if standing is None:
            cells.append(h("td.qx-mut", "·" if trail.found_at and look > trail.found_at else "–"))
            continue
        kind = ".qx-mark.qx-hit" if look == trail.found_at else ".qx-lost" if look == lost_at else ""
        sentence = f"Rank {standing.rank:,} before step {look}, Q {standing.q_value:.3f}"
        cells.append(h("td", tip(f"span{kind}", sentence, f"{standing.rank:,}")))
    kind = "div.qx-fate" + ".qx-found-at" * (trail.found_at is not None)
    return h("tr", h("th", {"scope": "row"}, link, h(kind, fate(trail, trace))), *cells)


def fate(trail: Trail, trace: Trace) -> str:
    """What became of a support chunk, in words."""
    if trail.found_at is not None:
        return f"found at step {trail.found_at}"
    standings = [standing for standing in trail.standings if standing is not None]
    if not standings:
        if facts_of(trace.started.method).foreign:
            return "not among what it returned"
        return "forbidden" if trail.chunk_id in trace.started.config.forbidden else "its ranks were not kept"
    if (loss := trail.loss) is not None:
        ranks = f"rank {loss.before.rank:,} before it, {loss.after.rank:,} after it"
        return f"lost by choice {loss.step}: {ranks}"
    rank = f"rank {standings[-1].rank:,}"
    match trace.stopped and trace.stopped.reason:
        case "threshold":
            return f"not reached: {rank}, Q {standings[-1].q_value:.2f}, where the agent stopped"
        case "budget" | "exhausted":
            return f"not reached: {rank} before the last choice"
    return f"{rank} so far"
