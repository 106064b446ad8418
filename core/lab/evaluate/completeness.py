"""How likely one search has found all that a question needs.

The lead is Q of the best chunk at the first look minus Q of the fourth. Where one chunk stands out, its
passage is mostly the one that is needed; where four are worth about the same, mostly none is. The share of
complete evidence at each lead is measured on questions whose passages are known, by number of chunks, and
kept with the agent. This holds only for agents whose towers read no choices. A curve is judged by
cross-validation over documents.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.answer.confidence import (
    FEWEST_IN_BLOCK,
    Knots,
    confidence,
    expected_calibration_error,
    fit_confidence,
)
from core.base.events import Trace
from core.encode.checkpoint import CheckpointSpec
from core.lab.evaluate.calibrate import with_record
from core.lab.evaluate.documents import DocumentRow
from core.methods.qrag.retriever import QRAG

PLACE = 4
"""The chunk whose Q the best one's is compared with."""
SIZES = (4, 8, 12)
"""Numbers of chunks that a curve is made for, where the rows tell."""
LOW = 0.5
"""Below this, evidence is more likely incomplete than not, and the page says so (docs/q-rag.md)."""
_FOLDS = 5
_FEWEST_ROWS = 5 * FEWEST_IN_BLOCK


def lead(q_values: np.ndarray | Sequence[float]) -> float | None:
    """Q of the best minus Q of the fourth; None for fewer than four finite values.

    >>> round(lead([0.1, 0.9, 0.5, 0.4, 0.3]), 3)
    0.6
    """
    values = np.asarray(q_values, np.float64)
    values = values[np.isfinite(values)]
    if len(values) < PLACE:
        return None
    best = np.partition(values, -PLACE)[-PLACE:]
    return float(best.max() - best.min())


def completeness_by_size(spec: CheckpointSpec, trace: Trace) -> dict[int, float]:
    """By number of chunks, the share of validation questions with such a lead whose evidence was complete.
    Empty without curves or the first look, and where a person, chance or a plan chose, or not all chunks were
    there.
    """
    config, first = trace.started.config, trace.scores_at(1)
    is_own_search = (
        (trace.started.method, trace.started.checkpoint) == (QRAG.name, spec.name)
        and config.beam_width == 1
        and not config.temperature
        and not config.forced
        and not config.forbidden
        and not config.searched
        and not trace.taken_back
    )
    own_lead = lead(first.q_values) if is_own_search and first is not None else None
    if own_lead is None:
        return {}
    return {size: confidence(own_lead, curve) for size, curve in sorted(spec.lead_curves.items())}


def completeness(spec: CheckpointSpec, trace: Trace) -> float | None:
    """How likely a run's chunks hold all that is needed: that of the largest measured number which they
    reach; None where nothing is known of it, and while the run goes on.
    """
    reached = [share for size, share in completeness_by_size(spec, trace).items() if size <= len(trace.picks)]
    return reached[-1] if reached and trace.stopped is not None else None


def completeness_note(share: float | None) -> str:
    """What a language model should make of it."""
    if share is None:
        return "Nothing is known of how complete these passages are."
    words = f"With a chance of {100 * share:.0f} % these passages hold all that the question needs."
    return f"{words} If they don't hold the answer, say that it was not found." if share < LOW else words


@dataclass(frozen=True, eq=False)
class JudgedQuestions:
    """Questions with their lead, whether their evidence was complete, and what others' curves say."""

    leads: np.ndarray
    """(B,) float64."""
    complete: np.ndarray
    """(B,) bool."""
    estimates: np.ndarray
    """(B,) float64."""

    @property
    def curve(self) -> Knots:
        """Fitted to all of them."""
        return _fit(self.leads, self.complete)

    @property
    def ece(self) -> float:
        """Expected calibration error of what is said."""
        error = expected_calibration_error(self.estimates.tolist(), self.complete.tolist())
        assert error is not None
        return error

    @property
    def auc(self) -> float | None:
        """Chance that more is said of complete evidence than of other evidence; None without both."""
        if self.complete.all() or not self.complete.any():
            return None
        from scipy.stats import mannwhitneyu  # it takes seconds, and only calibration needs it

        of_complete, of_others = self.estimates[self.complete], self.estimates[~self.complete]
        statistic = float(mannwhitneyu(of_complete, of_others).statistic)
        return statistic / (len(of_complete) * len(of_others))

    def to_json(self) -> dict[str, Any]:
        """What a curve rests on."""
        return {
            "n": len(self.leads),
            "complete": round(float(self.complete.mean()), 4),
            "ece": round(self.ece, 4),
            "auc": None if self.auc is None else round(self.auc, 4),
        }


def questions_by_size(rows: Iterable[DocumentRow], agent: str) -> dict[int, JudgedQuestions]:
    """An agent's answerable rows without a stop, by number of chunks; sizes with too few are left out."""
    own = {
        row.id: row
        for row in rows
        if (row.ran, row.checkpoint) == (QRAG.name, agent) and row.covered and not row.stops
    }
    by_size: dict[int, JudgedQuestions] = {}
    for size in SIZES:
        judged = [
            (row.document, row_lead, is_complete)
            for row in own.values()
            # older rows tell it by their choices: the same unless a reranker reads again
            if (row_lead := lead(row.scores) if row.first_lead is None else row.first_lead) is not None
            and (is_complete := _complete_with(row, size)) is not None
        ]
        if len(judged) < _FEWEST_ROWS:
            continue
        documents, all_leads, all_complete = zip(*judged, strict=True)
        leads, complete, names = np.array(all_leads), np.array(all_complete), sorted({*documents})
        fold = np.array([names.index(name) % _FOLDS for name in documents])
        shares = np.zeros(len(judged))
        for number in np.unique(fold):
            others = fold != number
            curve = _fit(leads[others], complete[others])
            shares[~others] = [confidence(value, curve) for value in leads[~others]]
        by_size[size] = JudgedQuestions(leads, complete, shares)
    return by_size


def with_curves(
    spec: CheckpointSpec, curves: Mapping[int, JudgedQuestions], how: Mapping[str, Any]
) -> CheckpointSpec:
    """The spec with these curves; `scores.completeness` says what they rest on, `how` included."""
    record = {**how, "by_chunks": {str(size): calibrated.to_json() for size, calibrated in curves.items()}}
    lead_curves = {size: calibrated.curve for size, calibrated in curves.items()}
    return with_record(spec, {"lead_curves": lead_curves}, "completeness", record)


def _fit(leads: np.ndarray, complete: np.ndarray) -> Knots:
    """A curve over leads of any scale."""
    largest = float(leads.max(initial=1.0))
    knots = fit_confidence((leads / largest).tolist(), complete.tolist())
    return tuple((round(place * largest, 4), share) for place, share in knots)


def _complete_with(row: DocumentRow, size: int) -> bool | None:
    """Whether a row's first chunks, at most so many, covered all quotes; None where it does not tell."""
    size = min(size, row.n_chunks)
    if row.found_at:
        return None if row.k < size else all(at is not None and at <= size for at in row.found_at)
    return all(row.covered) if row.k == size else None
