"""A run as a picture without style sheet or script."""

from __future__ import annotations

from html import escape

import numpy as np

from core.base.events import Trace
from core.corpus.tiles import run_map
from core.methods.registry import facts_of
from core.views.draw.nodes import Html, Node, h
from core.views.findings import looks

_WIDTH, _ROW = 240, 14
"""Columns of a picture at most, and the height of a row in pixels."""
_MOST_ROWS = 60
_LEVELS = 10


def run_picture(trace: Trace) -> Node:
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
        levels = np.round(shares * _LEVELS).astype(int)
        for level in np.unique(levels[levels > 0]).tolist():
            bars = (
                f"M{edges[i]:.1f} {top}H{edges[i + 1]:.1f}v{_ROW - 3}H{edges[i]:.1f}Z"
                for i in np.flatnonzero(levels == level)
            )
            shapes += f'<path d="{"".join(bars)}" fill="#3b6fb5" fill-opacity="{level / _LEVELS:.2f}"/>'
        for chunk_id in seen[row][1]:
            x = 1000 * (chunk_id + 0.5) / n
            shapes += f'<path d="M{x:.1f} {top}v{_ROW}" stroke="#c2410c" stroke-width="3"/>'
    name, height = facts_of(trace.started.method).score_name, _ROW * len(seen)
    ends = f"from {lo:.2f} to {hi:.2f}; chosen ones ticked"
    words = escape(f"{name} of {n:,} chunks along the documents, {ends}")
    return Html(
        f'<svg viewBox="0 0 1000 {height}" width="100%" height="{height}" preserveAspectRatio="none"'
        f' role="img" aria-label="{words}"><title>{words}</title>{shapes}</svg>'
    )
