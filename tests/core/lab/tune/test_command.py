"""`python -m core preferences` and `tune`."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from core.cli import main
from core.lab.tune.pairs import pair_lines, read_pairs
from core.runs.log import ExperimentLog
from tests.core.cli.conftest import argv, core, home, refused  # noqa: F401
from tests.core.lab.tune.conftest import clear_pairs
from tests.core.lab.tune.recording import Round, log_sparc

Output = Callable[..., str]
RIGHT = Round(found=((1, 9), (2, 3)))


def test_a_log_becomes_a_file_of_pairs(core: Output, tmp_path: Path) -> None:  # noqa: F811
    path, to = tmp_path / "log.duckdb", tmp_path / "pairs.jsonl"
    with ExperimentLog.open(path) as log:
        log_sparc(log, [RIGHT])
        log_sparc(log, [replace(RIGHT, answer="Bob", found=((1, 9), (7, 8)), queries=("who", "what"))])
    result = json.loads(core("preferences", "--log", path, "--to", to, "--json"))
    assert result["pairs"] == {"continue_over_stop": 2, "rewrite": 1, "stop_over_continue": 2}
    assert (result["runs"], result["left_out"], len(read_pairs(to))) == (2, 0, 5)
    assert (
        core("preferences", "--log", path, "--to", to)
        == f"{to}: 2 continue over stop, 1 rewrite, 2 stop over continue, from 2 runs\n"
    )


def test_preferences_refuses_in_one_sentence(refused: Output, tmp_path: Path) -> None:  # noqa: F811
    path = tmp_path / "log.duckdb"
    assert "there is no log at" in refused("preferences", "--log", path, "--to", tmp_path / "pairs.jsonl")
    with ExperimentLog.open(path) as log:
        log_sparc(log, [RIGHT])
    assert "can't be written (No such file or directory); name another file" in refused(
        "preferences", log=path, to=tmp_path / "no" / "pairs.jsonl"
    )


def test_a_model_is_tuned(tiny_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = tmp_path / "pairs.jsonl", tmp_path / "tuned"
    file.write_text("".join(pair_lines(clear_pairs(5))))
    flags = {"pairs": file, "model": tiny_model, "out": out, "epochs": 1, "seed": 2**62, "device": "cpu"}
    command = argv("tune", **flags, no_reference=True, json=True)
    assert main(command) == 0
    said, told = capsys.readouterr()
    result = json.loads(said)
    assert (result["out"], result["n_pairs"] + result["n_held_out"]) == (str(out), 10)
    lines = told.splitlines()
    assert lines[0].startswith("training ")
    assert [line for line in lines if line.startswith(f"update {result['steps']}: loss ")]
    assert json.loads((out / "tune.json").read_text())["config"]["reference"] is False


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--beta", "0"], "beta 0.0 must be a finite number above 0"),
        (["--epochs", "0"], "epochs 0 is below 1; choose 1 or more"),
        (["--rank", "17"], "rank 17 is above 16, the width of the model; choose 16 or less"),
        (["--seed", str(2**63)], "choose a smaller one"),
        (["--device", "warp"], "device 'warp' is not on this machine"),
        (["--pairs", "nothing.jsonl"], "nothing.jsonl can't be read"),
    ],
)
def test_a_flag_that_can_not_be_used_is_one_sentence(
    refused: Output,  # noqa: F811
    tiny_model: Path,
    tmp_path: Path,
    more: list[str],
    sentence: str,
) -> None:
    file = tmp_path / "pairs.jsonl"
    file.write_text("".join(pair_lines(clear_pairs(1))))
    assert sentence in refused(
        "tune", "--pairs", file, "--model", tiny_model, "--out", tmp_path / "out", *more
    )
    assert not (tmp_path / "out").exists()
