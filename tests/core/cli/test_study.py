"""`study`: rows are made once, read ever after, and become Markdown and a figure."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.base.rows import read_rows
from core.lab.studies.registry import STUDIES, RowStudy
from tests.core.cli.conftest import Output
from tests.core.lab.studies.test_trainings import make_training
from tests.core.lab.studies.test_tunings import make_tuning


@pytest.fixture
def agent(tiny_checkpoints: dict[str, Path]) -> Path:
    return tiny_checkpoints["relative10"]


ROW_STUDIES = {
    "scores": ("qa1", "qa2"),
    "methods": ("hotpotqa",),
    "early-stopping": ("qa2",),
    "calibration": ("qa2",),
    "budget": ("hotpotqa",),
    "planning": ("hotpotqa",),
    "length": ("qa1", "--lengths", "1K,4K"),
    "time": ("qa1", "--lengths", "1K"),
    "chunk-size": ("qa2",),
}


def test_every_study_of_rows_is_tried_here() -> None:
    assert set(ROW_STUDIES) == {name for name, study in STUDIES.items() if isinstance(study, RowStudy)}


@pytest.mark.parametrize("name", ROW_STUDIES)
def test_rows_are_made_once_and_then_read(
    core: Output, agent: Path, data: Path, tmp_path: Path, name: str
) -> None:
    rows, figure = tmp_path / "results" / "rows.jsonl.gz", tmp_path / "figure.svg"
    printed = core("study", name, *ROW_STUDIES[name], data=data, n=2, checkpoint=agent, rows=rows)
    assert printed.startswith("**")
    assert "qrag" in {row.method for row in read_rows(rows)}
    if name == "chunk-size":
        n_chunks = {row.chunk_tokens: row.n_chunks for row in read_rows(rows)}
        assert n_chunks[None] > n_chunks[32] > n_chunks[64] > n_chunks[96]
    drawn = name not in ("planning", "scores", "methods")
    options = ("--figure", figure) if drawn else ()
    again = core("study", name, "--rows", rows, "--data", tmp_path, "--checkpoint", "nobody", *options)
    assert again == printed
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
    assert "only reads rows" in refused("study", "answering", "--n", "2")
    assert "no .svg file" in refused("study", "budget", "--figure", tmp_path / "figure.png")
    assert "names none of the study's lengths" in refused("study", "length", "--lengths", "2K")
    assert "invalid choice" in refused("study", "everything")
    assert "the study answers runs in this process" in refused("study", "answers", "--cluster", "local")
    (tmp_path / "rows.jsonl").write_text("{}\n", encoding="utf-8")
    assert "no evaluation row" in refused("study", "budget", "--rows", tmp_path / "rows.jsonl")
