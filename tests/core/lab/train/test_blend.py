"""An agent from several: its changes lie between theirs, it serves, and what can't be blended is refused."""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from core.base.errors import BadCheckpoint, BadRequest
from core.cli import main
from core.encode.adapter import adapter_file
from core.encode.checkpoint import read_spec, write_spec
from core.encode.encoder import load_encoder
from core.lab.train.blend import blend
from core.lab.train.trainer import Trainer
from tests.core.lab.train.conftest import PlanOf


@pytest.fixture(scope="module")
def pair(plan_of: PlanOf, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("pair")
    for name, start in (("first", None), ("second", str(folder / "first"))):
        list(Trainer(plan_of(start_from=start, validate_every=2), folder / name, "cpu").run())
    return folder / "first", folder / "second"


def changes(folder: Path, tower: str) -> dict[str, torch.Tensor]:
    """Each layer's change as a matrix, without the common factor."""
    weights = {name: value.float() for name, value in load_file(adapter_file(folder / tower)).items()}
    return {
        name: weights[name.replace("lora_A", "lora_B")] @ weights[name]
        for name in weights
        if "lora_A" in name
    }


def test_a_blend_lies_between_and_serves(pair: tuple[Path, Path], tmp_path: Path) -> None:
    first, second = pair
    spec = blend([first, second], [0.75, 0.25], tmp_path / "between")
    for tower in ("state", "action"):
        ours, theirs, blended = (changes(folder, tower) for folder in (first, second, tmp_path / "between"))
        for name, change in blended.items():
            wanted = 0.75 * ours[name] + 0.25 * theirs[name]
            left, values, right = torch.linalg.svd(wanted)
            cut = left[:, :8] @ torch.diag(values[:8]) @ right[:8]  # rank 8 is that of the two
            assert torch.allclose(change, cut, atol=0.02 * float(wanted.abs().max()))
    assert [part["share"] for part in (spec.training or {})["blend"]] == [0.75, 0.25]
    assert (spec.training or {})["data"] == "own"
    assert (spec.name, read_spec(tmp_path / "between").name) == ("between", "between")
    assert spec.scores is None, "the second's calibration is not the blend's"
    assert not (tmp_path / "between" / "progress.jsonl").exists()
    vectors = [
        load_encoder(str(folder), "cpu").encode_chunks(["Mary got the milk."])
        for folder in (first, tmp_path / "between", second)
    ]
    assert all((a != b).any() for a, b in itertools.pairwise(vectors))


def test_agents_may_differ_in_curves_and_in_what_is_read_again(
    pair: tuple[Path, Path], tmp_path: Path
) -> None:
    folders = [Path(shutil.copytree(one, tmp_path / one.name)) for one in pair]
    served = {"lead_curves": {4: ((0.1, 0.5),)}, "rerank_again": 4}
    for folder, changed in zip(folders, (served, {}), strict=True):
        write_spec(folder, read_spec(folder).model_copy(update={"reads_choices": False, **changed}))
    spec = blend(folders, [0.5, 0.5], tmp_path / "out")
    assert (spec.lead_curves, spec.rerank_again) == ({}, 0)


def test_what_can_t_be_blended_is_one_sentence(
    pair: tuple[Path, Path], tmp_path: Path, tiny_checkpoints: dict[str, Path]
) -> None:
    first, second = pair
    out = tmp_path / "out"
    for shares in ([0.0, 1.0], [0.6, 0.5], [float("nan"), 0.5]):
        with pytest.raises(BadRequest, match="above 0 and sum to at most 1"):
            blend([first, second], shares, out)
    with pytest.raises(BadRequest, match="2 agents and 1 shares"):
        blend([first, second], [1.0], out)
    with pytest.raises(BadRequest, match="has 101 characters, there must be between 1 and 100"):
        blend([first, second], [0.5, 0.5], tmp_path / ("x" * 101))
    with pytest.raises(BadRequest, match="is there already"):
        blend([first, second], [0.5, 0.5], first)
    with pytest.raises(BadCheckpoint, match="has whole towers"):
        blend([tiny_checkpoints["none"], second], [0.5, 0.5], out)
    other = Path(shutil.copytree(second, tmp_path / "other"))
    write_spec(other, read_spec(other).model_copy(update={"position_kind": "absolute"}))
    with pytest.raises(BadCheckpoint, match="differ in position_kind"):
        blend([first, other], [0.5, 0.5], out)
    assert not out.exists()


def test_the_command_says_what_it_made(
    pair: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["blend", *map(str, pair), "--out", str(tmp_path / "agent")]) == 0
    assert f"served as {pair[1]} is; calibrate it" in capsys.readouterr().err
    assert json.loads((tmp_path / "agent" / "qrag.json").read_text())["training"]["blend"][0]["share"] == 0.5
