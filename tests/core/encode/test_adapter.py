"""Adapters in peft's format: what we write peft reads, and what does not fit is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from core.base.errors import BadCheckpoint
from core.encode.adapter import (
    ALPHA_PER_RANK,
    LowRankChange,
    adaptable_layers,
    adapter_file,
    blend_adapters,
    merge_adapter,
    save_adapter,
)
from core.encode.checkpoint import load_weights, served_architecture
from core.encode.mpnet import Encoder

Weights = dict[str, torch.Tensor]
RANK = 3
LAYER = "base_model.model.encoder.layer.0.attention.self.query"
NO_FIT = "does not fit its base encoder at encoder.layer.0.attention.self.query"
IDS = torch.tensor([[2, 5, 9, 11, 12, 3], [2, 6, 14, 11, 13, 3]])


@pytest.fixture
def model_of(reference: Path) -> Callable[[], Encoder]:
    def build() -> Encoder:
        model = served_architecture(reference / "tiny-bert")
        load_weights(model, load_file(reference / "tiny-bert" / "model.safetensors"), "the base")
        return model.eval()

    return build


@pytest.fixture
def adapter(model_of: Callable[[], Encoder], tmp_path: Path) -> Path:
    torch.manual_seed(0)
    changes = {
        name: LowRankChange(*layer.weight.shape, RANK) for name, layer in adaptable_layers(model_of()).items()
    }
    for change in changes.values():
        change.b.data.normal_(0, 0.2)
    save_adapter(tmp_path / "adapter", changes, "some/base")
    return tmp_path / "adapter"


@torch.inference_mode()
def hidden(model: torch.nn.Module) -> torch.Tensor:
    states: torch.Tensor = model(input_ids=IDS, attention_mask=torch.ones_like(IDS)).last_hidden_state
    return states


@pytest.mark.campaign
def test_peft_computes_with_our_files_what_we_merge(
    model_of: Callable[[], Encoder], reference: Path, adapter: Path
) -> None:
    from peft import PeftModel  # take seconds: not for every worker that collects
    from transformers import AutoModel

    merged = model_of()
    merge_adapter(merged, adapter, "made")
    theirs = AutoModel.from_pretrained(reference / "tiny-bert", dtype=torch.float32, add_pooling_layer=False)
    by_peft = PeftModel.from_pretrained(theirs.eval(), adapter).eval()
    torch.testing.assert_close(hidden(merged), hidden(by_peft), rtol=1e-4, atol=1e-4)
    assert (hidden(merged) - hidden(model_of())).abs().max() > 0.1
    config = json.loads((adapter / "adapter_config.json").read_text())
    assert (config["r"], config["lora_alpha"], config["base_model_name_or_path"]) == (
        RANK,
        ALPHA_PER_RANK * RANK,
        "some/base",
    )
    assert {tensor.dtype for tensor in load_file(adapter_file(adapter)).values()} == {torch.bfloat16}


def test_the_factor_is_that_of_the_file(model_of: Callable[[], Encoder], adapter: Path) -> None:
    path = adapter / "adapter_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"lora_alpha": 0}))
    unchanged = model_of()
    merge_adapter(unchanged, adapter, "made")
    torch.testing.assert_close(hidden(unchanged), hidden(model_of()))


def test_every_linear_layer_of_the_blocks_is_adapted_and_no_other(model_of: Callable[[], Encoder]) -> None:
    names = set(adaptable_layers(model_of()))
    assert len(names) == 2 * 6
    assert all(name.startswith("encoder.layer.") for name in names)


def test_a_change_starts_at_nothing() -> None:
    weight = torch.randn(4, 6)
    change = LowRankChange(4, 6, 2)
    assert torch.equal(change(weight), weight)
    change.b.data.fill_(1.0)
    torch.testing.assert_close(change(weight), weight + 2 * change.a.sum(0).detach().expand(4, 6))


def set_to(**tensors: torch.Tensor) -> Callable[[Weights], Weights]:
    return lambda weights: weights | {f"{LAYER}.{name}.weight": tensor for name, tensor in tensors.items()}


def without_b(weights: Weights) -> Weights:
    return {name: tensor for name, tensor in weights.items() if name != f"{LAYER}.lora_B.weight"}


def of_another_encoder(weights: Weights) -> Weights:
    return {name.replace("layer.1", "layer.7"): tensor for name, tensor in weights.items()}


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (without_b, f"{NO_FIT}; name the right base or train it again"),
        (of_another_encoder, "does not fit its base encoder at encoder.layer.7.attention.output.dense"),
        (set_to(lora_A=torch.zeros(RANK, 31)), NO_FIT),
        (set_to(lora_A=torch.zeros(RANK + 1, 32)), NO_FIT),
        (set_to(lora_B=torch.zeros(31, RANK)), NO_FIT),
        (set_to(lora_A=torch.zeros(32), lora_B=torch.zeros(32, 32)), NO_FIT),
        (set_to(lora_A=torch.tensor(1.0), lora_B=torch.tensor(1.0)), NO_FIT),
        (set_to(lora_A=torch.zeros(RANK, 2, 32)), NO_FIT),
        (
            lambda weights: weights | {"classifier.weight": torch.zeros(2)},
            "does not fit its base encoder at an unnamed layer",
        ),
        (
            lambda weights: weights | {f"{LAYER}.lora_magnitude_vector": torch.zeros(32)},
            "holds 1 weights that are no LoRA pairs; train or download it again",
        ),
    ],
)
def test_what_does_not_fit_is_refused(
    model_of: Callable[[], Encoder], adapter: Path, spoil: Callable[[Weights], Weights], sentence: str
) -> None:
    save_file(spoil(load_file(adapter_file(adapter))), adapter_file(adapter))
    with pytest.raises(BadCheckpoint) as caught:
        merge_adapter(model_of(), adapter, "made")
    assert str(caught.value).startswith("the adapter made ")
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[]",
        b"null",
        b"{}",
        b'{"r": 8}',
        b'{"r": 0, "lora_alpha": 16}',
        b'{"r": null, "lora_alpha": 16}',
        b'{"r": [8], "lora_alpha": 16}',
        b'{"r": "eight", "lora_alpha": 16}',
        b'{"r": 8, "lora_alpha": NaN}',
        b'{"r": 8, "lora_alpha": 1' + b"0" * 400 + b"}",
        b'{"r": 1e-300, "lora_alpha": 1e300}',
        b"[" * 100_000,
    ],
)
def test_a_hostile_configuration_is_one_sentence(
    model_of: Callable[[], Encoder], adapter: Path, content: bytes
) -> None:
    (adapter / "adapter_config.json").write_bytes(content)
    with pytest.raises(
        BadCheckpoint,
        match=r"^adapter_config\.json of the adapter in adapter .*; train or download it again$",
    ) as caught:
        merge_adapter(model_of(), adapter, "made")
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("more", ["classifier.weight", "x.lora_embedding_A", "x.lora_A.weight"])
def test_what_holds_more_than_pairs_is_not_blended(adapter: Path, more: str) -> None:
    weights = load_file(adapter_file(adapter)) | {more: torch.zeros(0, 3)}
    save_file(weights, adapter_file(adapter))
    with pytest.raises(BadCheckpoint, match="do not change the same layers"):
        blend_adapters(adapter, [adapter, adapter], [0.5, 0.5], "made")


@pytest.mark.parametrize("name", ["adapter_model.safetensors", "adapter_config.json"])
def test_files_that_are_missing_or_cut(model_of: Callable[[], Encoder], adapter: Path, name: str) -> None:
    path, said = adapter / name, r"^the adapter made is not readable; train or download it again$"
    if name.endswith(".safetensors"):
        path.write_bytes(path.read_bytes()[:500])
        with pytest.raises(BadCheckpoint, match=said):
            merge_adapter(model_of(), adapter, "made")
    path.unlink()
    with pytest.raises(BadCheckpoint, match=said):
        merge_adapter(model_of(), adapter, "made")
