"""qrag.json and the weights beside it: what is accepted, and one sentence for everything else."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from core.base.errors import BadCheckpoint, BadRequest
from core.encode.checkpoint import (
    CheckpointSpec,
    as_served,
    find_base,
    find_checkpoint,
    read_spec,
    shipped_checkpoints,
    with_defaults,
    write_spec,
)
from core.encode.encoder import DualEncoder


@pytest.fixture
def folder(tiny_checkpoints: dict[str, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_checkpoints["relative10"], tmp_path / "checkpoint"))


def change_spec(folder: Path, **changes: Any) -> None:
    """Writes values into qrag.json as they are, valid or not."""
    values = json.loads((folder / "qrag.json").read_text()) | changes
    (folder / "qrag.json").write_text(json.dumps(values))


def test_what_ships_is_valid_and_the_default_comes_first() -> None:
    names = shipped_checkpoints()
    assert "base" in names
    assert find_checkpoint(None).name == names[0]
    for name in names:
        spec = read_spec(find_checkpoint(name))
        assert spec.name == name
        assert spec.episode_config().step_budget == spec.step_budget
        assert spec.chunk_config("structure").max_tokens <= spec.max_chunk_tokens - 2


def test_base_is_untrained_without_positions_and_threshold() -> None:
    spec = read_spec(find_checkpoint("base"))
    assert (spec.trained, spec.position_kind, spec.stop_threshold, spec.temperature) == (
        False,
        "none",
        None,
        0.0,
    )


def test_a_spec_survives_writing(folder: Path) -> None:
    spec = read_spec(folder)
    other = spec.model_copy(
        update={"name": "other", "stop_threshold": 0.25, "scores": {"fact_f1": 0.5}, "q_range": (-2.0, 3.0)}
    )
    write_spec(folder, other)
    assert read_spec(folder) == other


@pytest.mark.parametrize("reader", ["large", "small"])
def test_new_defaults_are_kept_for_the_reader_they_were_measured_with(
    monkeypatch: pytest.MonkeyPatch, reader: str
) -> None:
    monkeypatch.setenv("QRAG_READER", reader)
    stored = read_spec(find_checkpoint("general"))
    assert stored.reranked is not None
    changes = {"stop_threshold": 0.4, "q_range": (-1.0, 2.0), "step_budget": 7}
    fresh = with_defaults(stored, changes)
    assert served(fresh) == served(stored).model_copy(update=changes)
    assert (served(fresh).rerank_weight > 0) == (reader == "large")
    monkeypatch.setenv("QRAG_READER", "small" if reader == "large" else "large")
    assert served(fresh) == served(stored).model_copy(update={"step_budget": 7})


def served(spec: CheckpointSpec) -> CheckpointSpec:
    return as_served(spec).model_copy(update={"reranked": None})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"surprise": 1}, "surprise"),
        ({"format": 2}, "format"),
        ({"name": ""}, "name"),
        ({"base": "/etc"}, "base"),
        ({"base": "../../secret"}, "base"),
        ({"base": "~/models"}, "base"),
        ({"base": "\\\\host\\share"}, "base"),
        ({"halves": 0}, "halves"),
        ({"scale": 0}, "scale"),
        ({"position_kind": "sideways"}, "position_kind"),
        ({"position_resolution": 0}, "position_resolution"),
        ({"temperature": -1}, "temperature"),
        ({"stop_threshold": float("nan")}, "stop_threshold"),
        ({"position_step": float("inf")}, "position_step"),
        ({"chunk_tokens": {"sentences": 64}}, "structure"),
        ({"chunk_tokens": {"sentences": 64, "structure": 2}}, "max tokens 2"),
        ({"max_chunk_tokens": 1}, "max_chunk_tokens"),
    ],
)
def test_an_invalid_spec_is_named(folder: Path, changes: dict[str, Any], words: str) -> None:
    change_spec(folder, **changes)
    with pytest.raises(BadCheckpoint, match=r"qrag\.json of checkpoint: ") as caught:
        read_spec(folder)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "Value error" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe{}", b"[]", b"null"])
def test_a_spec_that_is_no_json_object(folder: Path, content: bytes) -> None:
    (folder / "qrag.json").write_bytes(content)
    with pytest.raises(BadCheckpoint, match=r"qrag\.json"):
        read_spec(folder)


def test_checkpoints_that_are_not_there(tmp_path: Path, reference: Path) -> None:
    for name in ("nowhere", "x" * 300):
        with pytest.raises(BadCheckpoint, match=f"'{name}' not found; name one of"):
            find_checkpoint(name)
        with pytest.raises(BadCheckpoint, match=f"'{name}' not found"):
            find_checkpoint(Path(name))
    with pytest.raises(BadCheckpoint, match="int names no agent; give its name, or the path"):
        find_checkpoint(3)  # type: ignore[arg-type]
    with pytest.raises(BadCheckpoint, match="import it first: python -m core import-checkpoint"):
        find_checkpoint(str(reference / "checkpoints" / "none"))
    with pytest.raises(BadCheckpoint, match=r"no readable qrag\.json"):
        read_spec(tmp_path)


def test_chunks_may_not_exceed_what_the_encoder_reads() -> None:
    spec = read_spec(find_checkpoint("base"))
    assert spec.chunk_config("sentences", 254).max_tokens == 254
    with pytest.raises(BadCheckpoint, match="max tokens 255 is above 254"):
        spec.chunk_config("sentences", 255)
    with pytest.raises(BadRequest, match="max tokens 7"):
        spec.chunk_config("sentences", 7)


def drop_a_layer(weights: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: tensor for name, tensor in weights.items() if "layer.1.output" not in name}


def add_a_layer(weights: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return weights | {"encoder.layer.7.extra": torch.zeros(2)}


def bend_a_layer(weights: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return weights | {"embeddings.word_embeddings.weight": torch.zeros(7, 32)}


@pytest.mark.parametrize("spoil", [drop_a_layer, add_a_layer, bend_a_layer])
@pytest.mark.parametrize("tower", ["state", "action"])
def test_weights_that_do_not_fit_are_refused(
    folder: Path, spoil: Callable[..., dict[str, torch.Tensor]], tower: str
) -> None:
    """Never a layer that silently stays random."""
    path = folder / f"{tower}.safetensors"
    save_file(spoil(load_file(path)), path)
    with pytest.raises(
        BadCheckpoint, match=f"{tower}.safetensors of checkpoint relative10 does not fit its base encoder"
    ):
        DualEncoder(folder, "cpu")


def test_a_base_with_missing_weights_is_refused(folder: Path) -> None:
    """weights: base means both towers are the base encoder; half an encoder is none."""
    change_spec(folder, weights="base")
    save_file(drop_a_layer(load_file(folder / "state.safetensors")), folder / "base" / "model.safetensors")
    with pytest.raises(BadCheckpoint, match="does not fit its base encoder"):
        DualEncoder(folder, "cpu")


def test_missing_and_damaged_weight_files(folder: Path) -> None:
    path = folder / "action.safetensors"
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(
        BadCheckpoint, match=r"action\.safetensors of checkpoint relative10 is no readable safetensors file"
    ):
        DualEncoder(folder, "cpu")
    path.unlink()
    with pytest.raises(BadCheckpoint, match=r"action\.safetensors is missing in checkpoint relative10"):
        DualEncoder(folder, "cpu")


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ('{"model_type": "bert", "auto_map": {"AutoModel": "evil.Model"}}', "runs code of its own"),
        ('{"model_type": "unheard-of"}', "can't build the base encoder"),
        ('{"model_type": "bert", "hidden_size": "wide"}', "can't build the base encoder"),
        (
            '{"model_type": "bert", "hidden_size": 33, "num_attention_heads": 2}',
            "can't build the base encoder",
        ),
        ("[1]", "holds no settings"),
        ("{", "no readable config.json"),
        ("[" * 100_000, "no readable config.json"),
    ],
)
def test_a_base_that_can_not_be_built(folder: Path, config: str, words: str) -> None:
    (folder / "base" / "config.json").write_text(config)
    with pytest.raises(BadCheckpoint, match=words):
        DualEncoder(folder, "cpu")


@pytest.mark.parametrize(("content", "words"), [(None, "has no tokenizer.json"), ("{}", "can't be read")])
def test_a_base_without_a_fast_tokenizer(folder: Path, content: str | None, words: str) -> None:
    path = folder / "base" / "tokenizer.json"
    path.unlink() if content is None else path.write_text(content)
    with pytest.raises(BadCheckpoint, match=words):
        DualEncoder(folder, "cpu")


def test_halves_that_do_not_divide_the_vector(folder: Path) -> None:
    change_spec(folder, halves=5)
    with pytest.raises(BadCheckpoint, match="halves=5 of relative10 don't split its 32 dimensions"):
        DualEncoder(folder, "cpu")


@pytest.mark.parametrize("base", ["nobody/nothing", "", "x" * 300])
def test_a_base_that_neither_disk_nor_hub_has(base: str) -> None:
    """The tests run with the hub switched off."""
    words = rf"'{base}' is no local folder and the hub gave none .*; pass a local folder as base encoder"
    with pytest.raises(BadCheckpoint, match=words):
        find_base(base)


def test_fingerprints_name_weights_and_settings_but_not_scores(folder: Path) -> None:
    first = DualEncoder(folder, "cpu")
    change_spec(folder, scores={"fact_f1": 1}, description="measured")
    assert DualEncoder(folder, "cpu").fingerprint == first.fingerprint
    change_spec(folder, stop_threshold=0.5)
    same_vectors = DualEncoder(folder, "cpu")
    assert same_vectors.fingerprint != first.fingerprint
    assert same_vectors.vector_fingerprint == first.vector_fingerprint
    change_spec(folder, max_chunk_tokens=32)
    assert DualEncoder(folder, "cpu").vector_fingerprint != first.vector_fingerprint
    weights = load_file(folder / "state.safetensors")
    save_file({name: tensor + 0.01 for name, tensor in weights.items()}, folder / "state.safetensors")
    other_state = DualEncoder(folder, "cpu")
    assert other_state.fingerprint != same_vectors.fingerprint
    np.testing.assert_array_equal(
        other_state.encode_chunks(["mary went home ."]), same_vectors.encode_chunks(["mary went home ."])
    )
