"""`python -m core train`: one sentence for what can't be trained, the result alone on stdout."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from core.cli import main
from tests.core.cli.conftest import argv, home, refused  # noqa: F401
from tests.core.lab.train.conftest import SHORT


def flags(questions: Path, base: Path, out: Path) -> list[str]:
    return argv("train", **SHORT, questions=questions, base=base, out=out, device="cpu")


def test_stdout_carries_the_result_and_nothing_else(
    questions: Path, base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = flags(questions, base, tmp_path / "agent")
    assert main([*command, "--json"]) == 0
    out, err = capsys.readouterr()
    result = json.loads(out)
    assert result.keys() == {"agent", "updates", "seconds", "best"}
    assert (result["agent"], result["updates"]) == (str(tmp_path / "agent"), 2)
    lines = err.splitlines()
    assert lines[0].startswith("training ")
    words = " ".join(line.partition(" ")[0] for line in lines)
    assert words == "training validation update validation update validation finished"
    assert (
        json.loads((tmp_path / "agent" / "qrag.json").read_text())["name"] == "agent"
    )  # called as its folder
    assert main(argv("calibrate", tmp_path / "agent", questions=questions, device="cpu", n=4)) == 0
    calibrated = json.loads(capsys.readouterr().out)
    assert (calibrated["on"], calibrated["n"]) == (["validation"], 4)
    assert (
        json.loads((tmp_path / "agent" / "qrag.json").read_text())["stop_threshold"]
        == calibrated["stop_threshold"]
    )
    asked = {"questions": questions, "device": "cpu", "n": 3, "review": True}
    assert main(argv("calibrate", tmp_path / "agent", "validation", **asked)) == 0
    reviewed = json.loads(capsys.readouterr().out)
    assert (reviewed["on"], reviewed["split"], reviewed["n"]) == (["validation"], "validation", 3)
    assert main(["calibrate", str(tmp_path / "agent"), "--device", "cpu"]) == 2
    assert "was trained on own questions; name their file with --questions" in capsys.readouterr().err
    assert main(command) == 0  # finished long ago
    assert capsys.readouterr().out.startswith(
        f"{tmp_path / 'agent'}: validation score {result['best']} after "
    )


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--device", "warp"], "device 'warp' is not on this machine"),
        (["--base", "/no/such/encoder"], "'/no/such/encoder' is no local folder"),
        (
            ["--name", "x" * 101],
            "the agent's name has 101 characters, there must be between 1 and 100; name it with --name",
        ),
        (["--data", "narrative"], "say what to train on: either --data NAME or --questions FILE.jsonl"),
    ],
)
def test_a_flag_that_can_not_be_used_is_one_sentence(
    refused: Callable[..., str],  # noqa: F811
    questions: Path,
    base: Path,
    tmp_path: Path,
    more: list[str],
    sentence: str,
) -> None:
    assert sentence in refused(*flags(questions, base, tmp_path / "agent"), *more)
    assert not (tmp_path / "agent").exists()


def test_data_must_be_named_and_there(refused: Callable[..., str], base: Path, tmp_path: Path) -> None:  # noqa: F811
    out = ["--base", base, "--out", tmp_path / "agent"]
    assert refused("train", *out).startswith(
        "say what to train on: either --data NAME or --questions FILE.jsonl"
    )
    assert "required: --out" in refused("train", "--data", "narrative")
    assert "books/train" in refused("train", "--data", "narrative", "--data-folder", tmp_path, *out)
    assert "the data sets are not in" in refused(
        "train", *out, data="multi-hop", data_folder=tmp_path / "nowhere"
    )
    assert "nothing.jsonl can't be read" in refused("train", "--questions", tmp_path / "nothing.jsonl", *out)
