"""Defaults read off rows: the threshold against trying many, and each of the others by hand."""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
import pytest

from core.base.errors import BadRequest
from core.base.metrics import fact_f1
from core.base.rows import EpisodeRow
from core.encode.checkpoint import CheckpointSpec
from core.lab.evaluate.calibrate import (
    PLATEAU,
    ReviewCalibration,
    best_threshold,
    calibrate,
    calibrate_review,
)
from core.lab.evaluate.outcomes import steps_taken
from core.lab.evaluate.review import Thresholds
from tests.core.lab.evaluate.rows import make_row


def random_rows(seed: int, n: int, task: str) -> list[EpisodeRow]:
    """Episodes of an agent that is mostly right: Q is high while support is missing, low afterwards, with
    noise.
    """
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        chosen = tuple(rng.permutation(8)[:5].tolist())
        support = tuple(sorted(chosen[: rng.integers(1, 4)]))
        best_q = tuple(
            round(float(q), 4)
            for q in [
                *(0.8 + 0.2 * rng.standard_normal(len(support))),
                *(0.2 + 0.2 * rng.standard_normal(6 - len(support))),
            ]
        )
        rows.append(make_row(chosen, best_q, support, id=f"{task}{i}", task=task, n_chunks=8))
    return rows


def mean_f1(groups: list[list[EpisodeRow]], threshold: float) -> float:
    f1 = [
        [fact_f1(row.chosen[: steps_taken(row, threshold)], row.support) for row in rows] for rows in groups
    ]
    return float(np.mean([np.mean(own) for own in f1]))


@pytest.mark.parametrize("seed", range(2))
def test_no_other_threshold_is_better(seed: int) -> None:
    groups = [random_rows(seed, 40, "a"), random_rows(seed + 100, 10, "b")]
    threshold, (lo, hi) = best_threshold(groups)
    tried = {t: mean_f1(groups, t) for t in np.linspace(-0.5, 1.5, 2001).tolist()}
    assert lo <= threshold <= hi
    assert mean_f1(groups, threshold) >= max(tried.values()) - PLATEAU
    assert all(
        value >= max(tried.values()) - PLATEAU - 1e-9
        for t, value in tried.items()
        if lo + 1e-3 < t < hi - 1e-3
    )


def test_the_middle_of_a_plateau() -> None:
    """Any threshold above 0.3 and up to 0.7 stops these two perfectly."""
    rows = [
        make_row((4, 9, 2), (0.9, 0.7, 0.3, 0.0), id="a"),
        make_row((4, 9, 2), (0.8, 0.75, 0.2, 0.0), id="b"),
    ]
    assert best_threshold([rows]) == (0.5, (0.3, 0.7))


def test_all_defaults_at_once() -> None:
    rows = [
        make_row((4, 9, 2, 1), (0.93, 0.8, 0.04, 0.02, 0.01), id="a"),
        make_row((4, 2, 9, 1), (0.9, 0.85, 0.8, 0.03, 0.01), id="b", length=None),
    ]
    result = calibrate(rows)
    assert result.step_budget == 3
    assert result.stop_threshold == pytest.approx((0.04 + 0.8) / 2)
    assert result.q_range == (0.0, 0.95)
    assert result.shown_temperature == 0.0475
    assert result.tasks == {"qa2 at 1000 tokens": 1.0, "qa2": pytest.approx(0.8)}
    assert result.fact_f1 == pytest.approx(0.9)
    spec = result.applied_to(
        CheckpointSpec(name="agent", trained=True, scores={"other": 1}), {"split": "validation"}
    )
    assert (spec.stop_threshold, spec.step_budget) == (result.stop_threshold, 3)
    assert (spec.q_range, spec.shown_temperature) == ((0.0, 0.95), 0.0475)
    assert spec.scores["other"] == 1
    assert spec.scores["calibration"]["split"] == "validation"
    assert CheckpointSpec.model_validate_json(spec.model_dump_json()) == spec


Pairs = dict[Thresholds, list[EpisodeRow]]


def review_of(by_pair: Pairs) -> ReviewCalibration:
    return calibrate_review(by_pair.items())


def test_the_review_in_the_middle_of_the_best_and_none_where_none_is_better() -> None:
    plain = [
        make_row((4, 2, 9), (0.9, 0.8, 0.6, 0.1), (4, 9), stop_threshold=0.5, id=str(i)) for i in range(3)
    ]
    kept = {0.1: (4, 9), 0.2: (4,), 0.3: (4, 2, 9)}
    by_review: Pairs = {
        (0.5, review): [replace(row, kept=ids) for row in plain] for review, ids in kept.items()
    }
    best = review_of({(0.5, None): plain} | by_review)
    assert (best.stop_threshold, best.review_threshold, best.n) == (0.5, 0.1, 3)
    assert best.fact_f1 == pytest.approx({"none": 0.8, "0.1": 1.0, "0.2": 2 / 3, "0.3": 0.8}, abs=1e-6)
    assert best.fact_em == {"none": 1.0, "0.1": 1.0, "0.2": 0.0, "0.3": 1.0}
    brings_nothing = review_of(
        {(0.5, None): plain, (0.5, 0.2): by_review[0.5, 0.2], (0.5, 0.3): by_review[0.5, 0.3]}
    )
    assert (brings_nothing.stop_threshold, brings_nothing.review_threshold) == (None, None)
    flat = {(0.5, review): by_review[0.5, 0.1] for review in (0.1, 0.15, 0.25, 0.4)}
    # the middle of where it stays so
    assert review_of({(0.5, None): plain, (0.5, 0.2): by_review[0.5, 0.2]} | flat).review_threshold == 0.15
    # F1 rises, a third of Fact EM is lost
    costly = [replace(row, kept=(4,) if row.id == "0" else (4, 9)) for row in plain]
    assert review_of({(0.5, None): plain, (0.5, 0.2): costly}).review_threshold is None
    spec = best.applied_to(
        CheckpointSpec(name="a", trained=True, stop_threshold=0.3, scores={"calibration": {}}),
        {"on": "validation"},
    )
    assert (spec.stop_threshold, spec.review_threshold) == (0.5, 0.1)
    assert spec.scores == {"calibration": {}, "review": asdict(best) | {"on": "validation"}}
    as_it_was = brings_nothing.applied_to(spec, {})
    assert (as_it_was.stop_threshold, as_it_was.review_threshold) == (0.5, None)
    assert as_it_was.scores["review"]["stop_threshold"] == 0.5


def test_the_stop_that_is_best_before_a_review_need_not_be_so_with_it() -> None:
    """Stopping later finds what was missed, and the review takes the rest back."""
    row = make_row((4, 2, 9), (0.9, 0.4, 0.4, 0.1), (4, 9))
    by_pair: Pairs = {(stop, None): [replace(row, stop_threshold=stop)] for stop in (0.2, 0.3, 0.35, 0.5)}
    for stop in (0.2, 0.3, 0.35):
        by_pair |= {
            (stop, review): [replace(row, stop_threshold=stop, kept=(4, 9))] for review in (0.2, 0.3, 0.4)
        }
    best = review_of(by_pair | {(0.5, 0.2): [replace(row, stop_threshold=0.5, kept=(4,))]})
    assert (best.stop_threshold, best.review_threshold) == (0.3, 0.3)
    assert best.fact_f1 == {"none": 0.8, "0.2": 1.0, "0.3": 1.0, "0.4": 1.0}
    assert best.by_stop == {"0.2": 1.0, "0.3": 1.0, "0.35": 1.0, "0.5": 0.666667}


def test_rows_that_hold_no_threshold_are_refused() -> None:
    for rows, words in (
        ([], "no rows"),
        ([make_row(), make_row(fingerprint="other")], "several agents"),
        ([make_row(beam_width=2)], "plain agent"),
        ([make_row(best_q=(), q_values=(1.0, 2.0, 3.0))], "plain agent"),
    ):
        with pytest.raises(BadRequest, match=words):
            calibrate(rows)
