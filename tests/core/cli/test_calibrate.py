"""`calibrate` writes what it prints into the agent's qrag.json, and the agent then runs with it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from core.base.rows import read_rows, row_line
from core.encode.checkpoint import read_spec, write_spec
from core.lab.evaluate.calibrate import PLATEAU
from tests.core.cli.conftest import Output
from tests.core.lab.evaluate.test_completeness import ROWS, SPEC


@pytest.fixture
def agent(tiny_checkpoints: dict[str, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_checkpoints["relative10"], tmp_path / "agent"))


def test_defaults_are_written_with_what_they_rest_on(
    core: Output, agent: Path, data: Path, tmp_path: Path
) -> None:
    rows = tmp_path / "rows.jsonl"
    result = json.loads(core("calibrate", agent, "qa1", "qa2@4K", "--data", data, "--n", 3, "--rows", rows))
    spec = read_spec(agent)
    chosen = ("stop_threshold", "step_budget", "shown_temperature", "q_range")
    assert spec.model_dump(mode="json", include={*chosen}) == {name: result[name] for name in chosen}
    assert set(result["tasks"]) == {"qa1 at 1000 tokens", "qa2 at 4000 tokens"}
    assert spec.scores["calibration"] == {
        name: value for name, value in result.items() if name != "checkpoint"
    }
    assert (result["split"], result["on"], result["n"]) == ("train", ["qa1", "qa2@4K"], 6)
    assert {row.step_budget for row in read_rows(rows)} == {6}
    trace = json.loads(core("evaluate", "qa1", "--data", data, "--n", 1, "--checkpoint", agent, "--json"))
    assert trace["config"]["stop_threshold"] == spec.stop_threshold


def test_the_review_is_calibrated_with_the_stop_that_suits_it(core: Output, agent: Path, data: Path) -> None:
    core("calibrate", agent, "qa1", "--data", data, "--n", 3)
    before = read_spec(agent)
    result = json.loads(core("calibrate", agent, "qa1", "qa2", "--data", data, "--n", 3, "--review"))
    spec = read_spec(agent)
    assert (spec.step_budget, spec.q_range) == (before.step_budget, before.q_range)
    assert spec.scores["calibration"] == before.scores["calibration"]
    assert spec.scores["review"] == {
        name: value for name, value in result.items() if name != "checkpoint"
    } | {"stop_threshold": spec.stop_threshold}
    assert (spec.stop_threshold, spec.review_threshold) == (
        result["stop_threshold"] or before.stop_threshold,
        result["review_threshold"],
    )
    assert result["n"] == 6
    assert {"0.05", "0.6", f"{before.stop_threshold:g}"} <= set(result["by_stop"])
    assert {"none", "0.05", "0.3"} <= set(result["fact_f1"])
    chosen = result["fact_f1"]["none" if spec.review_threshold is None else f"{spec.review_threshold:g}"]
    assert chosen >= max(result["by_stop"].values()) - PLATEAU


def test_an_agent_of_unknown_training_needs_tasks(refused: Output, agent: Path) -> None:
    before = (agent / "qrag.json").read_bytes()
    assert "name tasks to calibrate on" in refused("calibrate", agent)
    assert (agent / "qrag.json").read_bytes() == before


def test_completeness_is_read_off_rows_about_documents(core: Output, refused: Output, tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(map(row_line, ROWS)), encoding="utf-8")
    write_spec(tmp_path, SPEC)
    result = json.loads(core("calibrate", tmp_path, "--documents", rows))
    spec = read_spec(tmp_path)
    assert list(spec.lead_curves) == [4, 8, 12]
    assert result == {"checkpoint": "finder", **spec.scores["completeness"]}
    assert result["by_chunks"]["4"]["n"] == 100
    assert "leave out tasks" in refused("calibrate", tmp_path, "qa1", "--documents", rows)
    write_spec(tmp_path, SPEC.model_copy(update={"name": "other"}))
    assert "too few rows of other" in refused("calibrate", tmp_path, "--documents", rows)
    write_spec(tmp_path, SPEC.model_copy(update={"reads_choices": True}))
    assert "looks again after each choice" in refused("calibrate", tmp_path, "--documents", rows)
