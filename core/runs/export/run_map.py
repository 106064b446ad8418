"""The whole run in one picture.

A row a look, for browsers without scripts.
"""

from __future__ import annotations

from html import escape

import numpy as np

from core.corpus.tiles import run_map
from core.runs.export.logged import MAX_PICTURES, LoggedView
from core.runs.export.words import score_name
from core.views.draw.nodes import Html, Node, h

_WIDTH = 240
"""Columns of a picture at most."""
_ROW = 14
"""Height of a row in pixels."""
_LEVELS = 9


def _levels(values: np.ndarray, lo: float, hi: float) -> np.ndarray:
    """(W,) int colours, the lowest where there is no number."""
    share = np.clip((np.nan_to_num(values, nan=lo, posinf=hi, neginf=lo) - lo) / (hi - lo), 0.0, 1.0)
    levels: np.ndarray = np.minimum((share * _LEVELS).astype(int), _LEVELS - 1)
    return levels


def _shapes(levels: np.ndarray, top: np.ndarray, bottom: int) -> str:
    """Bars from `top` (W,) down to `bottom`, a path a colour, 1,000 units across."""
    edges = np.linspace(0, 1000, len(levels) + 1)
    paths = []
    for level in np.unique(levels).tolist():
        d = "".join(
            f"M{edges[k]:.1f} {bottom}V{top[k]:.1f}H{edges[k + 1]:.1f}V{bottom}Z"
            for k in np.flatnonzero(levels == level)
        )
        paths.append(f'<path class="q{level}" d="{d}"/>')
    return "".join(paths)


def _drawing(shapes: str, height: int, words: str) -> Html:
    attributes = f'viewBox="0 0 1000 {height}" height="{height}" preserveAspectRatio="none" role="img"'
    return Html(f'<svg {attributes} aria-label="{escape(words)}">{shapes}</svg>')


def run_picture(view: LoggedView) -> Node:
    """The whole run in one picture."""
    values, (lo, hi) = view.looks[:MAX_PICTURES], view.scale
    n, height = len(values[0]), _ROW * len(values)
    shapes = ""
    for row, best in enumerate(run_map(values, _WIDTH)):
        shapes += _shapes(_levels(best, lo, hi), np.full(len(best), _ROW * row), _ROW * (row + 1) - 1)
    lines = "".join(
        f'<path d="M{1000 * first / n:.1f} 0V{height}" stroke="currentColor" stroke-dasharray="2 2"/>'
        for first in view.borders[1:-1]
    )
    n_looks = view.trace.n_looks
    more = f", the first {MAX_PICTURES} steps of {n_looks}" if n_looks > MAX_PICTURES else ""
    name = score_name(view.run)
    words = (
        f"{name} of {n:,} chunks along the documents, a row a step{more}, the stronger the more, from"
        f" {lo:.2f} to {hi:.2f}."
    )
    return h("div.qx-picture", _drawing(shapes + lines, height, words), h("p.qx-mut", words))
