"""`study`: rows are made once, read ever after, and become Markdown and a figure."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from core.base.rows import read_rows, row_line
from core.lab.studies.registry import STUDIES
from tests.core.cli.conftest import Output
from tests.core.lab.evaluate.rows import make_row
from tests.core.lab.studies.test_trainings import make_training, make_tuning

ROWS = [
    make_row((4, 9, 2), (0.9, 0.8, 0.1, 0.0), id="a"),
    make_row((4, 2, 9), (0.9, 0.8, 0.7, 0.0), id="b"),
]


@pytest.mark.parametrize("name", [name for name, study in STUDIES.items() if study.read is read_rows])
def test_rows_become_tables_and_a_figure(core: Output, tmp_path: Path, name: str) -> None:
    rows, figure = tmp_path / "rows.jsonl.gz", tmp_path / "figure.svg"
    rows.write_bytes(gzip.compress("".join(map(row_line, ROWS)).encode()))
    drawn = name not in ("planning", "scores", "methods")
    printed = core("study", name, "--rows", rows, *(("--figure", figure) if drawn else ()))
    assert printed.startswith("**")
    assert "qa2 at 1K" in printed or "qa2, agent" in printed
    assert not drawn or figure.read_text(encoding="utf-8").startswith("<svg")


@pytest.mark.parametrize("name", ["curves", "ablations", "alpha", "lambda"])
def test_studies_of_trainings(core: Output, tmp_path: Path, name: str) -> None:
    folders = []
    for seed in (0, 1):
        folders.append(tmp_path / f"training{seed}")
        folders[-1].mkdir()
        (folders[-1] / "progress.jsonl").write_text(
            "".join(json.dumps(event) + "\n" for event in make_training([0.1, 0.9], seed=seed)),
            encoding="utf-8",
        )
    assert "0.900" in core("study", name, "--trainings", *folders)


def test_the_study_of_tunings(core: Output, tmp_path: Path) -> None:
    progress = tmp_path / "progress.jsonl"
    progress.write_text("".join(json.dumps(event) + "\n" for event in make_tuning([0.5])), encoding="utf-8")
    figure = tmp_path / "figure.svg"
    assert "| 1 | after 3 updates | 4 | 1.000 |" in core(
        "study", "tunings", "--trainings", progress, "--figure", figure
    )
    assert figure.read_text(encoding="utf-8").startswith("<svg")


def test_refusals_are_one_sentence(refused: Output, tmp_path: Path) -> None:
    assert "--trainings" in refused("study", "curves")
    (tmp_path / "progress.jsonl").write_text('{"event": "started", "n_held_out": 1}\n', encoding="utf-8")
    assert "holds no training" in refused("study", "curves", "--trainings", tmp_path)
    assert "holds no training" in refused("study", "tunings", "--trainings", tmp_path)
    assert "reads rows, and there are none" in refused("study", "answering", "--n", "2")
    assert "nothere.jsonl is not there" in refused("study", "documents", "--rows", tmp_path / "nothere.jsonl")
    assert "no .svg file" in refused("study", "budget", "--figure", tmp_path / "figure.png")
    assert "invalid choice" in refused("study", "everything")
    (tmp_path / "rows.jsonl").write_text("{}\n", encoding="utf-8")
    assert "no evaluation row" in refused("study", "budget", "--rows", tmp_path / "rows.jsonl")


def test_tables_of_rows_do_without_torch(tmp_path: Path) -> None:
    """It takes as long to import as all the rest."""
    (tmp_path / "rows.jsonl").write_text("".join(map(row_line, ROWS)), encoding="utf-8")
    script = "import sys; from core.cli import main; main(sys.argv[1:]); print('torch' in sys.modules)"
    command = [sys.executable, "-c", script, "study", "budget", "--rows", str(tmp_path / "rows.jsonl")]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout.endswith("\nFalse\n")
