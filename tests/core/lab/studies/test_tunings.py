"""What a language model wrote before, between and after its tuning stands in one table."""

from __future__ import annotations

from typing import Any

import pytest

from core.base.errors import BadRequest
from core.lab.studies.tunings import tunings


def make_tuning(rewards: list[float], n_warmup: int = 2) -> list[dict[str, Any]]:
    """Events of a tuning whose updates after the warm-up were paid `rewards`."""
    measured: dict[str, Any] = {
        "reward": 1.0,
        "answer_f1": 0.5,
        "support_f1": 0.25,
        "support_recall": 0.2,
        "chunks": 1.5,
        "tokens": 40.0,
    }
    nothing = dict.fromkeys(measured, 0.0) | {"reward": -5.0, "chunks": None, "tokens": None}
    end = n_warmup + len(rewards)
    return [
        {"event": "started", "step": 0, "n_questions": 8, "n_held_out": 4},
        {"event": "held_out", "step": 0, "valid": 0.0, **nothing},
        *({"event": "step", "step": step, "loss": 0.1} for step in range(1, n_warmup + 1)),
        {"event": "held_out", "step": n_warmup, "valid": 0.75, **measured},
        *(
            {"event": "step", "step": step, "loss": 0.0, "reward": reward, "valid": 1.0}
            for step, reward in enumerate(rewards, start=n_warmup + 1)
        ),
        {"event": "held_out", "step": end, "valid": 1.0, **measured},
        {"event": "finished", "step": end, "seconds": 9.0},
    ]


def test_each_measurement_is_a_line_and_grpo_a_curve() -> None:
    report = tunings([make_tuning([0.5, 1.5]), make_tuning([])])
    (table,) = report.tables
    assert [row[:4] for row in table.rows] == [
        (1, "before", 4, 0.0),
        (1, "after 2 updates", 4, 0.75),
        (1, "after 4 updates", 4, 1.0),
        (2, "before", 4, 0.0),
        (2, "after 2 updates", 4, 0.75),
        (2, "after 2 updates", 4, 1.0),
    ]
    assert table.rows[0][-2:] == (None, None)
    reward, valid = report.charts
    assert [(line.name, line.x, line.y) for line in reward.lines] == [("tuning 1", (3.0, 4.0), (0.5, 1.5))]
    assert valid.lines[0].y == (1.0, 1.0)


def test_a_tuning_that_measured_nothing_has_no_table() -> None:
    with pytest.raises(BadRequest, match="tuning 1 has measured nothing yet"):
        tunings([make_tuning([])[:1]])
