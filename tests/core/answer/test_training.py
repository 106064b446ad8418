"""A reader trained from scratch, stopped and resumed, and what its folder may hold."""

from __future__ import annotations

import json
import shutil
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from core.answer.checkpoint import HEADS_FILE, SPEC_FILE, read_reader_spec
from core.answer.reader import ExtractiveReader
from core.base.errors import BadCheckpoint, BadRequest
from core.lab.reader.training import ReaderConfig
from core.lab.train.sitting import RESUME_FILE, read_progress
from tests.core.answer.conftest import TINY, TrainedReader, trainer
from tests.core.conftest import without_seconds

FLOOR = 0.8
"""Mean F1 of held-out lessons after the training of TINY; before it is the share of questions without an
answer, 0.3, or below.
"""


def weights(folder: Path) -> list[bytes]:
    return [(folder / name).read_bytes() for name in (HEADS_FILE, "adapter/adapter_model.safetensors")]


def test_a_tiny_task_is_learned_from_scratch(trained: TrainedReader) -> None:
    validated = [event for event in trained.events if event["event"] == "validated"]
    assert validated[0]["score"] < 0.45
    assert validated[-1]["score"] > FLOOR
    assert validated[-1]["scores"]["no_answer_right"] > FLOOR
    spec = read_reader_spec(trained.folder)
    assert (spec.name, spec.base) == ("tiny", ".")
    assert (spec.window, spec.longest_answer) == (TINY["window"], TINY["longest_answer"])
    assert spec.training["config"] == ReaderConfig(**TINY).__dict__
    assert spec.scores["validation"]["n"] == TINY["n_validation"]
    assert {"f1", "em", "ece", "no_answer_right"} <= spec.scores["validation"].keys()
    assert "/" not in json.dumps(spec.training)


def test_stopped_and_started_again_it_learns_the_same(base: Path, tmp_path: Path) -> None:
    whole = list(trainer(tmp_path / "whole", base).run())
    stopped = trainer(tmp_path / "stopped", base).run()
    told = [event["event"] for event in islice(stopped, 6)]
    assert told == ["started", "validated", "update", "update", "validated", "update"]
    stopped.close()
    rest = list(trainer(tmp_path / "stopped", base).run())
    assert rest[0]["update"] == 3
    assert without_seconds(read_progress(tmp_path / "stopped")) == without_seconds(whole)
    assert weights(tmp_path / "stopped") == weights(tmp_path / "whole")
    assert without_seconds(list(trainer(tmp_path / "whole", base).run())) == without_seconds(whole[-1:])


def test_what_a_folder_holds_already_is_refused(base: Path, tmp_path: Path) -> None:
    next(trainer(tmp_path, base).run())
    for settings in ({"seed": 1}, {"updates": 4}):
        with pytest.raises(BadRequest, match="holds a training with other settings"):
            trainer(tmp_path, base, **settings)
    about = {"update": "2", "best": "", "seconds": "1.0"}
    save_file({"weight": torch.zeros(2)}, tmp_path / RESUME_FILE, about)
    with pytest.raises(BadRequest, match=r"can't be read, .*; delete that file to begin again"):
        trainer(tmp_path, base)


def test_settings_out_of_range(base: Path, tmp_path: Path) -> None:
    for settings, sentence in (
        ({"window": 50}, "window 50 is below 96"),
        ({"window": 600}, "window 600 is above 512"),
        ({"clip": -1.0}, "clip -1.0 must be a finite number, 0 or more"),
    ):
        with pytest.raises(BadRequest, match=sentence):
            trainer(tmp_path, base, **settings)


@pytest.mark.parametrize(
    "name", [HEADS_FILE, "adapter/adapter_model.safetensors", "base/model.safetensors", SPEC_FILE]
)
def test_a_damaged_reader(trained: TrainedReader, tmp_path: Path, name: str) -> None:
    folder = shutil.copytree(trained.folder, tmp_path / "copy")
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: len(content) // 2])
    for _ in ("cut", "gone"):
        with pytest.raises(BadCheckpoint) as caught:
            ExtractiveReader(folder, "cpu")
        assert "\n" not in str(caught.value)
        (folder / name).unlink(missing_ok=True)


def with_record(trained: TrainedReader, folder: Path, **changes: Any) -> Path:
    copy = shutil.copytree(trained.folder, folder)
    values = json.loads((copy / SPEC_FILE).read_text())
    (copy / SPEC_FILE).write_text(json.dumps(values | changes))
    return copy


def test_a_rising_line_is_demanded_of_the_record(trained: TrainedReader, tmp_path: Path) -> None:
    folder = with_record(trained, tmp_path / "copy", confidence=[[0.1, 0.9], [0.2, 0.1]])
    with pytest.raises(BadCheckpoint, match="must rise from point to point"):
        ExtractiveReader(folder, "cpu")


def test_a_reader_is_trained_further(trained: TrainedReader, base: Path, tmp_path: Path) -> None:
    run = trainer(tmp_path / "further", base, start_from=str(trained.folder)).run()
    further = next(event for event in run if event["event"] == "validated")
    assert further["update"] == 0
    assert further["score"] > FLOOR


def test_a_start_of_another_rank_or_encoder_is_refused(
    trained: TrainedReader, base: Path, tmp_path: Path
) -> None:
    with pytest.raises(BadCheckpoint, match="has no change of rank 4"):
        trainer(tmp_path / "rank", base, start_from=str(trained.folder), rank=4)
    folder = with_record(trained, tmp_path / "copy", base_sha256="0" * 64)
    with pytest.raises(BadCheckpoint, match="start from a reader that was trained on the same encoder"):
        trainer(tmp_path / "encoder", base, start_from=str(folder))
