"""LoRA on a tower.

Low-rank changes of every linear layer of the encoder's blocks, in the files of peft, which merges them on
loading. The change of a layer is B A * alpha / rank. In training it is a parametrization of the weight, so
that the product is formed once per update, where peft forms it once per token.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from peft import LoraConfig, LoraModel, set_peft_model_state_dict
from pydantic import BaseModel, ConfigDict, Field
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn
from transformers import PreTrainedModel

from core.base.errors import BadCheckpoint, quoted
from core.encode.checkpoint import read_settings

ALPHA_PER_RANK = 2
"""alpha / rank, the factor on every change."""
_WEIGHTS_FILE, _CONFIG_FILE = "adapter_model.safetensors", "adapter_config.json"
_PREFIX = "base_model.model."


class _Scaling(BaseModel):
    """What is read of adapter_config.json; the rest could ask peft for other methods and other code."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    r: int = Field(ge=1, le=1024)
    lora_alpha: float = Field(gt=0, le=1e6)

    @property
    def factor(self) -> float:
        """On every change."""
        return self.lora_alpha / self.r


class LowRankChange(nn.Module):
    """Parametrization of a weight (out, in): W -> W + alpha / rank * B A. B starts at zero, W unchanged."""

    def __init__(self, n_out: int, n_in: int, rank: int) -> None:
        super().__init__()
        self.a = nn.Parameter(torch.randn(rank, n_in) / math.sqrt(n_in))
        self.b = nn.Parameter(torch.zeros(n_out, rank))

    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        """The changed weight, float32 like `weight`."""
        return weight + ALPHA_PER_RANK * (self.b @ self.a)


def adaptable_layers(model: PreTrainedModel) -> dict[str, nn.Linear]:
    """Linear layers of the encoder's blocks, by module name."""
    return {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear) and ".layer." in f".{name}."
    }


def save_adapter(folder: Path, changes: Mapping[str, LowRankChange], base: str) -> None:
    """Writes the two files that peft reads, weights in bfloat16."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = {}
    for name, change in changes.items():
        weights[f"{_PREFIX}{name}.lora_A.weight"] = change.a.detach().to("cpu", torch.bfloat16).contiguous()
        weights[f"{_PREFIX}{name}.lora_B.weight"] = change.b.detach().to("cpu", torch.bfloat16).contiguous()
    save_file(weights, folder / _WEIGHTS_FILE)
    rank = len(next(iter(changes.values())).a)
    config = {
        "peft_type": "LORA",
        "task_type": "FEATURE_EXTRACTION",
        "base_model_name_or_path": base,
        "r": rank,
        "lora_alpha": ALPHA_PER_RANK * rank,
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": sorted(changes),
    }
    (folder / _CONFIG_FILE).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def adapter_file(folder: Path) -> Path:
    """Where an adapter's weights lie."""
    return folder / _WEIGHTS_FILE


@torch.no_grad()
def load_adapter(folder: Path, changes: Mapping[str, LowRankChange], origin: str) -> None:
    """Inverse of `save_adapter`. Raises BadCheckpoint on an adapter of another rank, factor or encoder."""
    weights, scaling = _read(folder, origin)
    for name, change in changes.items():
        a = weights.pop(f"{_PREFIX}{name}.lora_A.weight", None)
        b = weights.pop(f"{_PREFIX}{name}.lora_B.weight", None)
        if (
            a is None
            or b is None
            or a.shape != change.a.shape
            or b.shape != change.b.shape
            or scaling.factor != ALPHA_PER_RANK
        ):
            raise BadCheckpoint(
                f"the adapter {origin} has no change of rank {len(change.a)} for {name}; start from another"
                " agent, or choose its rank and base"
            )
        change.a.copy_(a)
        change.b.copy_(b)


def merge_adapter(model: PreTrainedModel, folder: Path, origin: str) -> None:
    """Adds an adapter to a float32 tower in place. Raises BadCheckpoint on anything that does not fit."""
    weights, scaling = _read(folder, origin)
    layers = sorted({key.removeprefix(_PREFIX).rpartition(".lora_")[0] for key in weights})
    config = LoraConfig(r=scaling.r, lora_alpha=scaling.lora_alpha, target_modules=layers)
    try:
        if weights.keys() != {f"{_PREFIX}{layer}.lora_{side}.weight" for layer in layers for side in "AB"}:
            raise ValueError("it holds weights that are no LoRA pairs")
        adapted = LoraModel(model, config, "default")
        unknown = set_peft_model_state_dict(model, weights).unexpected_keys
        if unknown:
            raise ValueError(f"there is no {unknown[0]}")
    except (RuntimeError, ValueError) as error:
        raise BadCheckpoint(
            f"the adapter {origin} does not fit its base encoder{quoted(str(error))}; name the right base or"
            " train it again"
        ) from error
    adapted.merge_and_unload()


@torch.no_grad()
def blend_adapters(folder: Path, adapters: Sequence[Path], shares: Sequence[float], origin: str) -> None:
    """Puts the sum of the adapters' changes, each times its share, into `folder`, which holds a copy of the
    last of them.

    Each layer's change is cut back to the last one's rank by its largest singular values. Raises
    BadCheckpoint where they don't belong together.
    """
    parts = [_read(adapter, origin) for adapter in adapters]
    last, last_scaling = parts[-1]
    blended = {}
    for name in sorted({key.rpartition(".lora_")[0] for key in last}):
        key_a, key_b = f"{name}.lora_A.weight", f"{name}.lora_B.weight"
        pairs = [(scaling.factor, weights.get(key_b), weights.get(key_a)) for weights, scaling in parts]
        changes = [
            factor * b.float() @ a.float()
            for factor, b, a in pairs
            if a is not None and b is not None and a.shape[0] == b.shape[1]
        ]
        alike = (
            len(changes) == len(parts)
            and len({change.shape for change in changes}) == 1
            and len({len(weights) for weights, _ in parts}) == 1
        )
        if not alike:
            raise BadCheckpoint(
                f"the adapters {origin} do not change the same layers; blend agents that were trained from"
                " one base encoder"
            )
        total = sum(share * change for share, change in zip(shares, changes, strict=True))
        left, values, right = torch.linalg.svd(total / last_scaling.factor, full_matrices=False)
        rank = len(last[key_a])
        roots = values[:rank].sqrt()
        blended[key_a] = (roots[:, None] * right[:rank]).to(torch.bfloat16).contiguous()
        blended[key_b] = (left[:, :rank] * roots).to(torch.bfloat16).contiguous()
    save_file(blended, adapter_file(folder))


def _read(folder: Path, origin: str) -> tuple[dict[str, torch.Tensor], _Scaling]:
    """Weights by their names in the file, and what they are scaled by."""
    scaling = read_settings(_Scaling, folder / _CONFIG_FILE, "adapter")
    try:
        return load_file(adapter_file(folder)), scaling
    except (OSError, SafetensorError) as error:
        raise BadCheckpoint(f"the adapter {origin} is not readable; train or download it again") from error
