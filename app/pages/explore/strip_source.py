"""The strip's numbers of a run: Q, change, rank, probability."""

from __future__ import annotations

from functools import lru_cache
from typing import TypeVar

import numpy as np

from app.services.in_view import RunInView
from core.base.events import StepScores
from core.corpus.tiles import ChunkFacts, Mode
from core.methods.qrag.policy import probabilities

T = TypeVar("T", int, float)

_SNIPPET = 280
"""Characters of a chunk's text that a tooltip shows."""


class RunStrip:
    """A `core.corpus.tiles.StripSource` over one run as it stands."""

    def __init__(self, run: RunInView) -> None:
        self.run = run
        self.n_chunks, self.n_looks = run.n_chunks, run.trace.n_looks

    def values(self, look: int, mode: Mode) -> np.ndarray:
        """(N,) numbers of a 1-based look, NaN where there is none."""
        match mode:
            case "q":
                return self.run.q_values(look)
            case "dq":
                if look == 1:
                    return np.full(self.n_chunks, np.nan, np.float32)
                change: np.ndarray = self.run.q_values(look) - self.run.q_values(look - 1)
                return change
            case "rank":
                return _ranks(self.run.scores(look), self.run.unavailable(look))
            case "p":
                return _probabilities(
                    self.run.scores(look),
                    self.run.unavailable(look),
                    shown_temperature(self.run),
                    self.run.config.top_k_actions,
                )

    def describe(self, chunk_id: int, look: int) -> ChunkFacts:
        """What there is to say about one chunk at a look."""
        workspace = self.run.documents.workspace
        chunk = workspace[chunk_id]
        chosen = self.run.chosen_before(look)
        chosen_at = chosen.index(chunk_id) + 1 if chunk_id in chosen else None
        positions = self.run.positions(chosen_at or look)  # of a chosen one as its card has it
        return ChunkFacts(
            text=chunk.text[:_SNIPPET],
            title=workspace.documents[chunk.document].title,
            heading=" › ".join(chunk.heading_path),
            q=_number(self.run.q_values(look)[chunk_id], float),
            rank=_number(self.values(look, "rank")[chunk_id], int),
            p=_number(self.values(look, "p")[chunk_id], float),
            rho=None if positions is None else float(positions[chunk_id]),
            chosen_at=chosen_at,
        )


def shown_temperature(run: RunInView) -> float:
    """Temperature of the probabilities: the run's own, or the checkpoint's while the run is greedy."""
    return run.config.temperature or run.spec.shown_temperature


@lru_cache(maxsize=24)
def _ranks(scores: StepScores, unavailable: tuple[int, ...]) -> np.ndarray:
    """(N,) place among the available chunks, 1 is best, equals in document order; NaN for all others."""
    q_values = scores.q_values.copy()
    q_values[list(unavailable)] = -np.inf
    ranks = np.empty(len(q_values), np.float32)
    ranks[np.argsort(-q_values, kind="stable")] = np.arange(1, len(q_values) + 1)
    ranks[list(unavailable)] = np.nan
    ranks[np.isnan(scores.q_values)] = np.nan
    return ranks


@lru_cache(maxsize=24)
def _probabilities(
    scores: StepScores, unavailable: tuple[int, ...], temperature: float, top_k: int | None
) -> np.ndarray:
    """(N,) Boltzmann probabilities; NaN for chosen and forbidden chunks, and those without Q."""
    available = ~np.isnan(scores.q_values)
    available[list(unavailable)] = False
    if not available.any():
        return np.full(len(available), np.nan)
    values = probabilities(scores.q_values, available, temperature, top_k)
    values[~available] = np.nan
    return values


def _number(value: float, kind: type[T]) -> T | None:
    return None if np.isnan(value) else kind(value)
