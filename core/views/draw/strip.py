"""What the canvas strip draws around its numbers."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any, NotRequired, TypedDict

import numpy as np

from core.base.events import ChosenBy
from core.corpus.tiles import MODES, Mode
from core.encode.checkpoint import CheckpointSpec
from core.methods.qrag.positions import Interval
from core.views.draw.scripts import bundled

STRIP_SCRIPT = f"({bundled('strip.js')}).strip(element, props, trigger, watch, server);"
"""For gr.HTML, which runs it where those five names are."""


class Pin(TypedDict):
    """A chosen chunk."""

    step: int
    chunk_id: int
    by: ChosenBy
    colour: NotRequired[str]
    """Of the theme, such as "s3"; its step's by default."""


class Part(TypedDict):
    """A document and where it begins."""

    title: str
    first_chunk: int


class Slope(TypedDict):
    """An interval of the ruler: rho runs from rho_lo at chunk lo to rho_hi at chunk hi - 1."""

    lo: int
    hi: int
    rho_lo: float
    rho_hi: float


class ChunkMap(TypedDict):
    """The map that can be asked for."""

    of: str
    """Names the vectors that it is made of."""
    least: int
    """Chunks without which there is none."""


def strip_value(
    *,
    token: str,
    n_chunks: int,
    n_looks: int,
    look: int,
    scale: tuple[float, float],
    threshold: float | None = None,
    chosen: Sequence[Pin] = (),
    gold: Sequence[int] = (),
    missed: Sequence[int] = (),
    forbidden: Sequence[int] = (),
    marks: Sequence[tuple[int, bool]] = (),
    searched: Sequence[tuple[int, int]] = (),
    documents: Sequence[Part] = (),
    intervals: Sequence[Slope] = (),
    stopped: bool = False,
    modes: Sequence[Mode] = MODES,
    score_name: str = "Q",
    probability_name: str = "p",
    chunk_map: ChunkMap | None = None,
) -> dict[str, Any]:
    """What the strip shows. `look` is 1-based; `intervals` are those of that look; `scale` holds for the
    whole run. searched: ranges of the chunks that have values, empty for all; the others are hatched.

    missed: chunks of `gold` that a run which has ended never chose. marks: chunks that a person marked, and
    whether each belongs to the answer. stopped: the last look is the one after which the agent stopped, so no
    chunk was chosen at it. probability_name: such as "p at T = 0.03".
    """
    return {
        "token": token,
        "n_chunks": n_chunks,
        "n_looks": n_looks,
        "look": look,
        "scale": {"lo": scale[0], "hi": scale[1]},
        "threshold": threshold,
        "chosen": list(chosen),
        "gold": list(gold),
        "missed": list(missed),
        "forbidden": list(forbidden),
        "marks": [list(mark) for mark in marks],
        "searched": [list(part) for part in searched],
        "documents": list(documents),
        "intervals": list(intervals),
        "stopped": stopped,
        "modes": list(modes),
        "score_name": score_name,
        "probability_name": probability_name,
        "chunk_map": chunk_map,
    }


def packed(numbers: np.ndarray) -> str:
    """Little-endian bytes in base 64: a third of the size of JSON numbers, and NaN and infinities survive."""
    return base64.b64encode(numbers.astype(numbers.dtype.newbyteorder("<")).tobytes()).decode("ascii")


def colour_scale(looks: Sequence[np.ndarray], spec: CheckpointSpec | None) -> tuple[float, float]:
    """Ends of a run's scale of Q: where Q of its checkpoint usually lies, else what the first look saw, and
    never below the best of any of its looks (N,). A later look may push chunks far below all others, which
    tells less than the differences between the rest: these stand at its lower end.

    Where no choice changes Q, the scale ends at twice the best of the first look at most: the strip would be
    flat where Q of a checkpoint goes far beyond.
    """
    seen = [look[np.isfinite(look)] for look in looks]
    least, first = float(seen[0].min()), float(seen[0].max())
    lo, hi = (spec.q_range if spec else None) or (0.0, 1.2 * first)
    if spec and not spec.reads_choices:
        hi = min(hi, 2 * first)
    best = max(float(q_values.max()) for q_values in seen if q_values.size)
    return min(lo, least), max(hi, best, lo + 1e-6)


def slopes(ruler: Sequence[Interval]) -> list[Slope]:
    """The ruler's intervals."""
    return [{"lo": part.lo, "hi": part.hi, "rho_lo": part.rho_lo, "rho_hi": part.rho_hi} for part in ruler]
