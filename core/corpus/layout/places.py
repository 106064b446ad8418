"""Where each chunk's vector lies in a plane.

t-SNE of the vectors' directions. Copies of equal vectors (in half precision) stand in a small spiral around
the first; of more than MOST_FITTED a sample is laid out, even over the document, and the others stand amid
those of it that are nearest; few are shown as their two principal components. The same vectors get the same
places.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Progress = Callable[[int, int], None]

LEAST_CHUNKS = 50
"""Fewer make no map: the line shows them all."""
MOST_CHUNKS = 200_000
"""A document of ten million tokens has 160,000."""
MOST_FITTED = 5_000
_LEAST_FITTED = 20
"""Different vectors that t-SNE has neighbours to choose among."""
_COMPONENTS = 50
"""Principal components whose distances t-SNE keeps."""
_PERPLEXITY = 30
"""Neighbours that count, about."""
_EXAGGERATED, _ITERATIONS = 250, 500
_REPORTED = 25
"""Iterations between two words on progress."""
_NEAREST = 5
"""Neighbours in the sample among which a chunk outside of it stands."""
_TURN = 2.399963
"""Angle between two copies on the spiral, in radians: no two stand behind one another."""
_SPIRAL, _WIDEST = 0.003, 0.03
"""Distance of the first copy, and most of the last one, as shares of the map's width."""
_SIDE = 65_535


def places_of(vectors: np.ndarray, on_progress: Progress = lambda *_: None) -> np.ndarray:
    """(N, 2) uint16 places of vectors (N, D), x to the right, y downwards, in 1/65535 of a square's side.

    >>> places_of(np.eye(3)[[0, 1, 0]]).shape
    (3, 2)
    """
    unit = vectors.astype(np.float32)
    unit /= np.maximum(np.linalg.norm(unit, axis=1, keepdims=True), 1e-12)
    distinct, which = _distinct(unit)
    of_distinct = _filling(_places_of_distinct(unit[distinct], on_progress))
    places = of_distinct[which] + _beside(which)
    reach = float(np.abs(places).max()) or 1.0
    scaled: np.ndarray = np.round((places / (2 * reach) + 0.5) * _SIDE).astype(np.uint16)
    return scaled


def _distinct(unit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """((M,) rows of the different vectors in document order, (N,) which of them each row equals)."""
    half = np.ascontiguousarray(unit, np.float16) + np.float16(0)  # -0 is 0
    keys = half.view(np.dtype((np.void, half.itemsize * half.shape[1]))).ravel()
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[which.ravel()]


def _beside(which: np.ndarray) -> np.ndarray:
    """(N, 2) how far each copy stands from the first of its kind; zero for that one."""
    order = np.argsort(which, kind="stable")
    starts = np.flatnonzero(np.diff(which[order], prepend=-1))
    sizes = np.diff(starts, append=len(order))
    nth = np.empty(len(which))
    nth[order] = np.arange(len(order)) - np.repeat(starts, sizes)
    n_alike = np.maximum(1, sizes[which])
    distance = np.minimum(_SPIRAL, _WIDEST / np.sqrt(n_alike)) * np.sqrt(nth)
    angle = _TURN * nth
    beside: np.ndarray = distance[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1)
    return beside


def _filling(places: np.ndarray) -> np.ndarray:
    """(M, 2) from -1/2 to 1/2 along either axis: half of it the place itself, half its rank, so that a
    cluster far away doesn't leave the map empty.
    """
    low, high = places.min(0), places.max(0)
    linear = (places - low) / np.where(high > low, high - low, 1)
    ranks = np.argsort(np.argsort(places, axis=0, kind="stable"), axis=0, kind="stable")
    return np.where(high > low, (linear + ranks / max(1, len(places) - 1) - 1) / 2, 0.0)


def _places_of_distinct(unit: np.ndarray, on_progress: Progress) -> np.ndarray:
    """(M, 2) places of vectors (M, D) that all differ."""
    m = len(unit)
    fitted = np.unique(np.linspace(0, m - 1, min(m, MOST_FITTED)).round().astype(int))
    laid = _fit(unit[fitted], on_progress)
    if len(fitted) == m:
        return laid
    import faiss

    index = faiss.IndexFlatIP(unit.shape[1])
    index.add(np.ascontiguousarray(unit[fitted]))
    places = np.empty((m, 2))
    for first in range(0, m, MOST_FITTED):
        on_progress(_EXAGGERATED + _ITERATIONS, _EXAGGERATED + _ITERATIONS)
        _, nearest = index.search(np.ascontiguousarray(unit[first : first + MOST_FITTED]), _NEAREST)
        places[first : first + MOST_FITTED] = np.median(laid[nearest], axis=1)
    places[fitted] = laid
    return places


def _fit(unit: np.ndarray, on_progress: Progress) -> np.ndarray:
    """(F, 2) of (F, D)."""
    centred = unit - unit.mean(0)
    _, axes = np.linalg.eigh(centred.T @ centred)
    components = (centred @ axes[:, ::-1][:, :_COMPONENTS]).astype(np.float64)
    if len(unit) < _LEAST_FITTED:
        return np.pad(components[:, :2], ((0, 0), (0, max(0, 2 - components.shape[1]))))
    from openTSNE import TSNE

    done = 0

    def on_iterations(*_: object) -> None:
        nonlocal done
        done += _REPORTED
        on_progress(done, _EXAGGERATED + _ITERATIONS)

    fitting = TSNE(
        perplexity=min(_PERPLEXITY, (len(unit) - 1) / 3),
        early_exaggeration_iter=_EXAGGERATED,
        n_iter=_ITERATIONS,
        neighbors="exact",
        negative_gradient_method="bh",
        callbacks=on_iterations,
        callbacks_every_iters=_REPORTED,
        random_state=0,
        n_jobs=1,
    )
    return np.asarray(fitting.fit(components), np.float64)
