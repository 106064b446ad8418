"""Numbers of an evaluation from rows done by hand, and two evaluations on the same questions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.base.errors import BadRequest
from core.lab.evaluate.summary import compare, summarise
from tests.core.lab.evaluate.rows import make_row

PERFECT = make_row((4, 9, 2), (0.9, 0.8, 0.1, 0.0), id="perfect")
LATE = make_row((4, 9, 2), (0.9, 0.8, 0.6, 0.0), id="late")
EARLY = make_row((4, 9, 2), (0.9, 0.2, 0.1, 0.0), id="early")
NEVER = make_row((1, 2, 3), (0.4, 0.3, 0.2, 0.1), id="never")


def test_means_by_hand() -> None:
    summary = summarise([PERFECT, LATE, EARLY, NEVER])
    expected = {
        "fact_em": 2 / 4,
        "fact_f1": (1 + 4 / 5 + 2 / 3 + 0) / 4,
        "exact": 1 / 4,
        "fact_em_reviewed": None,
        "fact_f1_reviewed": None,
        "exact_reviewed": None,
        "fact_f1_oracle_stop": (1 + 1 + 1 + 0) / 4,
        "fact_recall": (1 + 1 + 1 / 2 + 0) / 4,
        "fact_precision": (1 + 2 / 3 + 1) / 3,
        "false_positive_rate": (0 + 1 / 18 + 0 + 0) / 4,
        "fact_em_no_stop": 3 / 4,
        "fact_f1_no_stop": (3 * 4 / 5 + 0) / 4,
        "answer_em": None,
        "answer_f1": None,
        "steps": (2 + 3 + 1 + 0) / 4,
        "steps_to_completion": 2.0,
        "evidence_tokens": (20 + 30 + 10 + 0) / 4,
        "evidence_tokens_reviewed": None,
        "stopped_perfectly": 1 / 4,
        "stopped_early": 1 / 4,
        "stopped_late": 1 / 4,
        "never_complete": 1 / 4,
        "milliseconds": 1.5,
    }
    assert summary.n == 4
    assert summary.metrics == {
        name: None if value is None else pytest.approx(value) for name, value in expected.items()
    }
    for name, ends in summary.intervals.items():
        value = summary.metrics[name]
        assert (ends is None) == (value is None)
        assert ends is None or ends[0] <= value <= ends[1]


def test_what_a_review_left_is_measured_beside_what_was_chosen() -> None:
    """LATE without its superfluous chunk is exact; a review that takes support back loses it."""
    kept = [replace(LATE, kept=LATE.support), replace(PERFECT, kept=PERFECT.support[:1])]
    metrics = summarise(kept).metrics
    assert (
        metrics["fact_f1_reviewed"],
        metrics["fact_em_reviewed"],
        metrics["exact_reviewed"],
    ) == pytest.approx(((1 + 2 / 3) / 2, 0.5, 0.5))
    assert (metrics["fact_f1"], metrics["fact_em"], metrics["exact"]) == pytest.approx(
        ((1 + 4 / 5) / 2, 1.0, 0.5)
    )
    assert (metrics["evidence_tokens"], metrics["evidence_tokens_reviewed"]) == ((30 + 20) / 2, (20 + 10) / 2)


def test_two_agents_on_the_same_questions() -> None:
    ours = [PERFECT, LATE, EARLY]
    theirs = [
        make_row((1, 2, 3), (0.9, 0.8, 0.7, 0.1), id=row.id, fingerprint="other") for row in (EARLY, PERFECT)
    ]
    comparison = compare(ours, theirs)
    assert (comparison.n, comparison.n_left_out) == (2, 1)
    assert comparison.tests["fact_em"].difference == 0.5
    assert comparison.tests["fact_f1"].difference == pytest.approx((1 + 2 / 3) / 2)
    assert comparison.tests["fact_f1"].p_value == 0.5
    assert compare(theirs, ours).tests["fact_f1"].difference == -comparison.tests["fact_f1"].difference
    assert comparison.tests["fact_em"].n == 2


def test_what_can_not_be_compared_is_refused() -> None:
    with pytest.raises(BadRequest, match="no question in common"):
        compare([PERFECT], [make_row(id="perfect", length=2000)])
    with pytest.raises(BadRequest, match="more than once"):
        compare([PERFECT, PERFECT], [PERFECT])
