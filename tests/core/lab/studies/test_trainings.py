"""Trainings are told apart by their configurations, and their tables hold what their events say."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from core.base.errors import BadRequest
from core.lab.studies.trainings import ablations, curves, read_training, trainings_in, tunings


def make_training(scores: list[float], n_updates: int = 60, **config: Any) -> list[dict[str, Any]]:
    settings = {
        "data": "narrative",
        "seed": 0,
        "alpha": 0.03,
        "trace_lambda": 0.6,
        "soft_values": True,
        "objective": "pqn",
    } | config
    events: list[dict[str, Any]] = [
        {"event": "started", "config": settings},
        {"event": "validated", "update": 0, "score": scores[0]},
    ]
    for update in range(1, n_updates + 1):
        share = update / n_updates
        events.append(
            {
                "event": "update",
                "update": update,
                "seconds": 6.0 * update,
                "success": share,
                "reward": [0.0, share],
                "q": [share, share],
                "returns": [share + 0.1, share + 0.1],
                "entropy": [1 - share, 1 - share],
            }
        )
    for i, score in enumerate(scores[1:], start=1):
        events.append({"event": "validated", "update": i * n_updates // (len(scores) - 1), "score": score})
    return events


def test_curves_of_one_training() -> None:
    report = curves([make_training([0.2, 0.9, 0.8])])
    (row,) = report.tables[0].rows
    assert row == ("narrative", 60, "6", pytest.approx((36 + 60) / 2 / 60), 0.2, 0.9, 0.8)
    returned, score, q, entropy = report.charts
    assert returned.lines[0].y == pytest.approx((13 / 60, 38 / 60, 55.5 / 60))
    assert (score.lines[0].x, score.lines[0].y) == ((0, 30, 60), (0.2, 0.9, 0.8))
    assert q.lines[1].y == pytest.approx([value + 0.1 for value in q.lines[0].y])
    assert entropy.lines[0].y == pytest.approx([1 - value for value in returned.lines[0].y])


def test_ablations_gather_seeds() -> None:
    trainings = [make_training([0.2, score], seed=seed) for seed, score in enumerate((0.9, 0.8, 1.0))]
    trainings += [make_training([0.2, 0.6, 0.5], seed=seed, soft_values=False) for seed in range(2)]
    trainings.append(make_training([0.2, 0.3], objective="supervised"))
    (table,) = ablations(trainings).tables
    assert table.rows == (
        ("full", 3, "0.900 ± 0.100", "0.900 ± 0.100"),
        ("without soft values", 2, "0.600 ± 0.000", "0.500 ± 0.000"),
        ("supervised fine-tuning", 1, "0.300", "0.300"),
        ("without fine-tuning", 6, "0.200 ± 0.000", "0.200 ± 0.000"),
    )


def test_reading_a_training(tmp_path: Path) -> None:
    events = make_training([0.1, 0.9], n_updates=2)
    lines = "".join(json.dumps(event) + "\n" for event in events)
    (tmp_path / "progress.jsonl").write_text(lines + '{"event": "upd', encoding="utf-8")
    packed = tmp_path / "copy.jsonl.gz"
    packed.write_bytes(gzip.compress((tmp_path / "progress.jsonl").read_bytes()))
    for path in (tmp_path, tmp_path / "progress.jsonl", packed):
        assert read_training(path) == events
    packed.write_bytes(packed.read_bytes()[:-20])
    reader = '{"event": "started", "config": {"lessons": 16}}\n'
    for text in ("", "[]\n", '{"event": "update"}\n', "nonsense\n", reader):
        (tmp_path / "progress.jsonl").write_text(text, encoding="utf-8")
        for path in (packed, tmp_path, tmp_path / "none"):
            with pytest.raises(BadRequest, match="holds no training"):
                read_training(path)


def test_a_folder_of_several_trainings_is_all_of_them(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "progress.jsonl").write_text("", encoding="utf-8")
    assert trainings_in(tmp_path) == [tmp_path / "a", tmp_path / "b"]
    assert trainings_in(tmp_path / "a") == [tmp_path / "a"]
    assert trainings_in(tmp_path / "a" / "progress.jsonl") == [tmp_path / "a" / "progress.jsonl"]


def test_a_training_that_only_began_has_no_curve() -> None:
    begun = make_training([0.1, 0.2], n_updates=1)[:2]
    with pytest.raises(BadRequest, match="no update yet"):
        curves([begun])
    with pytest.raises(BadRequest, match="no validation yet"):
        ablations([begun[:1]])
    with pytest.raises(BadRequest, match="tuning 1 has measured nothing yet"):
        tunings([make_tuning([])[:1]])


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
