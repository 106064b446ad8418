"""What every retrieval method keeps to.

Every method turns (query, corpus, config) into the same events, scores of all chunks included, so that one
view, one log and one comparison serve them all. `config.step_budget` bounds the evidence of all but
threshold; randomness comes from `config.seed`. `core.methods.registry` lists the methods.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from core.base.config import EpisodeConfig, check_query
from core.base.errors import BadRequest
from core.base.events import Event, RunStarted, StepScores, StepTaken, Stopped, StopReason
from core.corpus.index import Searchable
from core.encode.encoder import DualEncoder


@dataclass(frozen=True, kw_only=True)
class Method:
    """What there is to be told of a method, wherever methods are listed."""

    name: str
    """In flags, calls, files and the log."""
    label: str
    """On the page, among other methods."""
    sentence: str
    """What it does, without a full stop."""
    score_name: str = "Q"
    """What its scores are, for axes and tables."""
    long_label: str = ""
    """On the page, where there is room to say more; empty: the label."""
    trained: bool = False
    """It searches with a trained agent of its own, not with the untrained encoder."""
    has_vectors: bool = True
    """It searches vectors of chunks, so that they have to be embedded first."""
    looks_again: bool = False
    """Every choice changes what it sees of the other chunks."""
    zero_is_none: bool = False
    """A chunk whose score is 0 has no rank."""
    foreign: bool = False
    """It ran elsewhere: only what it returned has a score."""


class Retriever(Protocol):
    """A method of choosing chunks."""

    name: str

    def retrieve(self, query: str, corpus: Searchable, config: EpisodeConfig) -> Iterator[Event]:
        """Events of one run. Raises BadRequest before the first."""


def check(query: str, corpus: Searchable, config: EpisodeConfig) -> str:
    """The query as a run searches with it. Raises BadRequest for what this corpus can't be searched with."""
    config.check_against(len(corpus))
    if config.searched:
        raise BadRequest("only an agent can be asked while chunks are being embedded; wait until all are")
    return check_query(query)


def cosines_of(vector: np.ndarray, corpus: Searchable) -> np.ndarray:
    """(N,) float32 cosine of a vector (D,) with every chunk."""
    norms = np.maximum(corpus.index.norms * float(np.linalg.norm(vector)), 1e-12)
    cosines: np.ndarray = (corpus.index.q_values(vector, np.zeros(len(corpus))) / norms).astype(np.float32)
    return cosines


def query_cosines(encoder: DualEncoder, query: str, corpus: Searchable) -> np.ndarray:
    """(N,) float32 cosine of the query with every chunk."""
    return cosines_of(encoder.encode_states([encoder.state_tokens(query, [])])[0], corpus)


def reaches(q_values: np.ndarray, threshold: float) -> np.ndarray:
    """Where Q, of any shape, is at least a threshold, which may be beyond all numbers of Q's type."""
    with np.errstate(over="ignore"):
        reached: np.ndarray = q_values >= threshold
    return reached


def ranked(scores: np.ndarray, config: EpisodeConfig) -> list[int]:
    """Ids of the best `step_budget` chunks that aren't forbidden, equals in document order."""
    ids, n_others = np.arange(len(scores)), len(scores) - config.step_budget - len(config.forbidden)
    if n_others > 0:
        ids = np.flatnonzero(scores >= np.partition(scores, n_others)[n_others])
    return allowed(ids[np.argsort(-scores[ids], kind="stable")], config)


def allowed(ids: np.ndarray, config: EpisodeConfig) -> list[int]:
    """The first `step_budget` of ranked ids that aren't forbidden."""
    forbidden = set(config.forbidden)
    return [i for i in ids.tolist() if i not in forbidden][: config.step_budget]


def one_look_events(
    method: str,
    checkpoint: str,
    query: str,
    corpus: Searchable,
    config: EpisodeConfig,
    scores: np.ndarray,
    ranked: Sequence[int],
    started: float,
    stop_at: int | None = None,
) -> Iterator[Event]:
    """Events of a method that scored once: `ranked` in order; `stop_at`: the best chunk it rejected."""
    milliseconds = 1000 * (time.perf_counter() - started)  # before a listener takes its time
    yield RunStarted(query, method, checkpoint, len(corpus), config)
    looked = StepScores(scores, None)
    for step, chunk_id in enumerate(ranked, start=1):
        score = float(scores[chunk_id])
        text = corpus.text(chunk_id)
        yield StepTaken(
            step, chunk_id, score, 1.0, score, None, text, milliseconds if step == 1 else 0.0, scores=looked
        )
    left = 0.0 if ranked else milliseconds  # the first step has it, where there is one
    if stop_at is not None:
        yield Stopped("threshold", len(ranked), stop_at, float(scores[stop_at]), left, scores=looked)
    else:
        reason: StopReason = "budget" if len(ranked) == config.step_budget else "exhausted"
        yield Stopped(reason, len(ranked), milliseconds=left)
