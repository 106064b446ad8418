"""Early stopping and calibration from rows done by hand, and the paper's own table under our AUC."""

from __future__ import annotations

import numpy as np
import pytest

from core.base.errors import BadRequest
from core.lab.evaluate.outcomes import GAMMA
from core.lab.studies.stopping import areas, early_stopping, reliability
from core.views.charts import Report
from tests.core.lab.evaluate.rows import make_row

ROWS = [
    make_row((4, 9, 2), (0.9, 0.8, 0.15, 0.0), id="sure"),
    make_row((4, 9, 2), (0.9, 0.25, 0.2, 0.0), id="unsure"),
    make_row((1, 2, 3), (0.5, 0.4, 0.3, 0.1), id="lost"),
]


def row_of(report: Report, first: str) -> dict[str, object]:
    (table,) = report.tables
    (line,) = [row for row in table.rows if row[0] == first]
    return dict(zip(table.columns, line, strict=True))


def test_a_line_of_the_table_by_hand() -> None:
    """At 0.3 the first stops perfectly, the second after one chunk, the third is never complete and takes
    three.
    """
    line = row_of(early_stopping(ROWS), "0.30")
    expected = {
        "early": 1 / 3,
        "late": 0.0,
        "perfect": 1 / 3,
        "never complete": 1 / 3,
        "early*": 1 / 2,
        "late*": 0.0,
        "perfect*": 1 / 2,
        "TPR": (1 + 1 / 2 + 0) / 3,
        "FPR": (0 + 0 + 3 / 18) / 3,
        "length": (2 + 1 + 3) / 3,
        "Fact EM": 1 / 3,
        "Fact F1": (1 + 2 / 3 + 0) / 3,
    }
    assert line == {"threshold": "0.30"} | {name: pytest.approx(value) for name, value in expected.items()}


def test_the_auc_convention_gives_the_papers_number_on_its_own_table() -> None:
    """TPR and FPR of Q-RAG table 4; the text says 0.96."""
    tpr = (0.983, 0.976, 0.952, 0.937, 0.927, 0.919, 0.910, 0.903, 0.891, 0.840, 0.611, 0.105, 0)
    fpr = (0.380, 0.110, 0.041, 0.032, 0.029, 0.027, 0.025, 0.024, 0.023, 0.017, 0.006, 0.000, 0)
    reached, joined = areas([(0.0, 0.0), *zip(fpr, tpr, strict=True)])
    assert round(reached, 2) == 0.96
    assert round(joined, 2) == 0.98


def test_reliability_by_hand() -> None:
    """Both completing rows gain gamma and 1 with their first two choices, nothing with the third; the lost
    one nothing at all.
    """
    report = reliability(ROWS, n_bins=2)
    (table,) = report.tables
    low, high = table.rows
    assert low == (
        "0.00 to 0.50",
        5,
        pytest.approx(np.mean([0.15, 0.25, 0.2, 0.4, 0.3])),
        pytest.approx(1 / 5),
        pytest.approx(0.4),
    )
    assert high[:2] == ("0.50 to 1.00", 4)
    assert high[2:4] == (
        pytest.approx(np.mean([0.9, 0.8, 0.9, 0.5])),
        pytest.approx((GAMMA + 1 + GAMMA + 0) / 4),
    )
    error = (4 * abs(high[2] - high[3]) + 5 * abs(low[2] - low[3])) / 9
    assert f"error {error:.3f} over 9 choices" in report.notes[0]


def test_rows_without_thresholds_are_refused() -> None:
    for study in (early_stopping, reliability):
        for rows in (
            [],
            [make_row(beam_width=2)],
            [make_row(best_q=(), q_values=(1.0, 2.0, 3.0), method="bm25")],
        ):
            with pytest.raises(BadRequest):
                study(rows)
