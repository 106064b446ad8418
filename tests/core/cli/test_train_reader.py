"""`train-reader`, `study answers`, and the answers that `trace` and `compare` print."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from core.answer.checkpoint import read_reader_spec
from core.base.rows import row_line
from core.cli import main
from core.lab.reader import course
from core.lab.reader.evaluation import read_answers
from core.lab.tasks import natural
from tests.core.answer.conftest import SHORT, TrainedReader, base, course_data, trained  # noqa: F401
from tests.core.answer.test_found import found_row
from tests.core.cli.conftest import Output, argv

LINES = {"confidence", "no_answer_confidence"}
"""What confidence is fitted to."""


def test_training_by_command(
    base: Path,  # noqa: F811
    course_data: Path,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(natural, "OWN_QUESTIONS", tmp_path / "none")
    monkeypatch.setattr(course, "NOISE_TOKENS", 2_000)
    named = {"out": tmp_path / "mine", "base": base, "data_folder": course_data, "device": "cpu"}
    command = argv("train-reader", **SHORT, **named, json=True)
    assert main(command) == 0
    out, err = capsys.readouterr()
    result = json.loads(out)
    assert (result["reader"], result["updates"]) == (str(tmp_path / "mine"), SHORT["updates"])
    assert ["update" in line and " left" in line for line in err.splitlines()].count(True) == SHORT["updates"]
    spec = read_reader_spec(tmp_path / "mine")
    assert (spec.name, spec.training is not None) == ("mine", True)
    assert main(command) == 0
    assert capsys.readouterr().err.startswith("finished")

    assert main(argv("tune-reader", tmp_path / "mine", data_folder=course_data, n=8, device="cpu")) == 0
    told, tuned = json.loads(capsys.readouterr().out), read_reader_spec(tmp_path / "mine")
    assert told["scores"] == tuned.scores["validation"]
    assert (told["scores"]["n"], told["least_confidence"]) == (8, tuned.least_confidence)
    assert (tuned.training, tuned.base_sha256) == (spec.training, spec.base_sha256)
    command = argv("tune-reader", tmp_path / "mine", data_folder=course_data, n=8, no_answer_bias=-0.3)
    assert main(command) == 0
    kept = read_reader_spec(tmp_path / "mine")
    assert kept.no_answer_bias == -0.3

    answered = replace(found_row((0, 400)), answers=("yes",))
    names = [path.stem for path in course_data.glob("harbour*.txt")]
    rows = [replace(answered, id=f"{name}-1", document=f"{name}.txt") for name in names]
    (tmp_path / "rows.jsonl").write_text("".join(map(row_line, rows)))
    found = ["--found", tmp_path / "rows.jsonl", course_data / "natural" / "train.jsonl.gz", course_data]
    capsys.readouterr()
    assert main([*command, *map(str, found)]) == 0
    assert json.loads(capsys.readouterr().out)["found"] == len(names) > 0
    fitted = read_reader_spec(tmp_path / "mine")
    assert fitted.scores == kept.scores, "what was found scores nothing"
    assert fitted.model_dump(include=LINES) != kept.model_dump(include=LINES)


def test_refusals_are_one_sentence(refused: Output, tmp_path: Path) -> None:
    assert "n=0 must be at least 1" in refused("tune-reader", tmp_path / "x", "--n", 0)
    for bias in ("4", "nan"):
        assert "between -3 and 3" in refused("tune-reader", tmp_path / "x", "--no-answer-bias", bias)
    assert "reader.json" in refused("tune-reader", tmp_path)
    assert "updates 0 is below 1" in refused("train-reader", "--out", tmp_path / "x", "--updates", 0)
    assert "the data sets are not in" in refused(
        "train-reader", out=tmp_path / "x", data_folder=tmp_path / "nowhere"
    )
    assert "reader.json" in refused("study", "answers", "qa1", "--reader", tmp_path)


@pytest.mark.campaign
def test_rows_of_answers_are_made_once_and_then_read(
    core: Output,
    trained: TrainedReader,  # noqa: F811
    tiny_checkpoints: dict[str, Path],
    data: Path,
    tmp_path: Path,
) -> None:
    rows = tmp_path / "answers.jsonl.gz"
    agent = tiny_checkpoints["relative10"]
    how = {"data": data, "n": 2, "reader": trained.folder, "checkpoint": agent, "rows": rows}
    printed = core("study", "answers", "qa1", "hotpotqa", **how)
    assert {(row.task, row.evidence) for row in read_answers(rows)} == {
        (task, kind) for task in ("qa1", "hotpotqa") for kind in ("gold", "relative10", "topk", "bm25")
    }
    assert core("study", "answers", "--rows", rows, "--reader", tmp_path) == printed


def test_runs_end_in_an_answer(core: Output, tiny_checkpoints: dict[str, Path], tmp_path: Path) -> None:
    chunks = ["Mary went to the kitchen.", "The rain was cold.", "John went to the garden."]
    (tmp_path / "chunks.json").write_text(json.dumps(chunks), encoding="utf-8")
    about = {"chunks": tmp_path / "chunks.json", "checkpoint": tiny_checkpoints["none"], "step_budget": 3}
    asked = {"query": "Where is Mary?", "json": True} | about
    told = json.loads(core("trace", log=tmp_path / "log.duckdb", **asked))
    answer, span = told["answer"], told["answer"]["span"]
    assert (answer["text"], answer["by"], answer["citations"]) == ("kitchen", "reader", [span["chunk_id"]])
    assert chunks[span["chunk_id"]][span["start"] : span["end"]] == "kitchen"
    assert 0 < answer["confidence"] < 1
    assert told["timings"]["answer"] > 0
    [run] = json.loads(core("runs", "list", log=tmp_path / "log.duckdb", json=True))["runs"]
    shown = json.loads(core("runs", "show", run["run_id"], log=tmp_path / "log.duckdb", json=True))
    assert (shown["details"]["answer"]["text"], shown["details"]["answer"]["span"]) == ("kitchen", span)
    compared = json.loads(core("compare", methods="topk,bm25", **asked))
    assert {name: column["answer"] for name, column in compared["methods"].items()} == {
        "topk": "kitchen",
        "bm25": "kitchen",
    }
    asked["query"] = "Who wrote the novel?"
    assert json.loads(core("trace", **asked))["answer"]["text"] == ""
    assert json.loads(core("compare", methods="topk", **asked))["methods"]["topk"]["answer"] is None
