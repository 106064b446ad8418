"""LoRA on a tower: low-rank changes of its blocks' linear layers.

In the file format of peft. The change of a layer is B A * alpha / rank. In training it is a parametrization
of the weight, so that the product is formed once per update; on loading it is added to the weight.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn

from core.base.errors import BadCheckpoint
from core.encode.mpnet import Encoder

ALPHA_PER_RANK = 2
_WEIGHTS_FILE, _CONFIG_FILE = "adapter_model.safetensors", "adapter_config.json"
_PREFIX = "base_model.model."
_MISSING = torch.empty(0, 0)
"""In place of a weight that is not there: it fits no layer."""


class LowRankChange(nn.Module):
    """Parametrization of a weight (out, in): W -> W + alpha / rank * B A. B starts at zero, W unchanged."""

    def __init__(self, n_out: int, n_in: int, rank: int) -> None:
        super().__init__()
        self.a = nn.Parameter(torch.randn(rank, n_in) / math.sqrt(n_in))
        self.b = nn.Parameter(torch.zeros(n_out, rank))

    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        """The changed weight, float32 like `weight`."""
        return weight + ALPHA_PER_RANK * (self.b @ self.a)


def adaptable_layers(model: Encoder) -> dict[str, nn.Linear]:
    """Linear layers of the encoder's blocks, by module name."""
    return {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear) and ".layer." in f".{name}."
    }


def _keys(layer: str) -> tuple[str, str]:
    """Names of a layer's A and B."""
    return f"{layer}.lora_A.weight", f"{layer}.lora_B.weight"


def save_adapter(folder: Path, changes: Mapping[str, LowRankChange], base: str) -> None:
    """Writes the two files that peft reads, weights in bfloat16."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = {}
    for name, change in changes.items():
        for key, part in zip(_keys(_PREFIX + name), (change.a, change.b), strict=True):
            weights[key] = part.detach().to("cpu", torch.bfloat16).contiguous()
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
    weights, factor = _read(folder, origin)
    for name, change in changes.items():
        a, b = (weights.pop(key, _MISSING) for key in _keys(_PREFIX + name))
        if (a.shape, b.shape, factor) != (change.a.shape, change.b.shape, ALPHA_PER_RANK):
            raise BadCheckpoint(
                f"the adapter {origin} has no change of rank {len(change.a)} for {name}; start from another"
                " agent, or choose its rank and base"
            )
        change.a.copy_(a)
        change.b.copy_(b)


@torch.no_grad()
def merge_adapter(model: Encoder, folder: Path, origin: str) -> None:
    """Adds an adapter to a float32 tower in place. Raises BadCheckpoint on anything that does not fit."""
    weights, factor = _read(folder, origin)
    layers = adaptable_layers(model)
    for name in sorted({key.removeprefix(_PREFIX).rpartition(".lora_")[0] for key in weights}):
        a, b = (weights.pop(key, _MISSING) for key in _keys(_PREFIX + name))
        if name not in layers or not _fits(a, b, layers[name].weight):
            raise BadCheckpoint(
                f"the adapter {origin} does not fit its base encoder at {name or 'an unnamed layer'}; name"
                " the right base or train it again"
            )
        layers[name].weight += factor * b.float() @ a.float()
    if weights:
        raise BadCheckpoint(
            f"the adapter {origin} holds {len(weights)} weights that are no LoRA pairs; train or download it"
            " again"
        )


@torch.no_grad()
def blend_adapters(folder: Path, adapters: Sequence[Path], shares: Sequence[float], origin: str) -> None:
    """Puts the sum of the adapters' changes, each times its share, into `folder`, a copy of the last of them.

    Each layer's change is cut back to the last one's rank by its largest singular values. Raises
    BadCheckpoint where they don't belong together.
    """
    parts = [_read(adapter, origin) for adapter in adapters]
    last, last_factor = parts[-1]
    sizes = {len(weights) for weights, _ in parts}
    blended = {}
    for name in sorted({key.rpartition(".lora_")[0] for key in last}):
        key_a, key_b = _keys(name)
        changes = []
        for weights, factor in parts:
            a, b = weights.get(key_a), weights.get(key_b)
            if a is not None and b is not None and a.shape[0] == b.shape[1]:
                changes.append(factor * b.float() @ a.float())
        if len(changes) < len(parts) or len({change.shape for change in changes}) > 1 or len(sizes) > 1:
            raise BadCheckpoint(
                f"the adapters {origin} do not change the same layers; blend agents that were trained from"
                " one base encoder"
            )
        total = sum(share * change for share, change in zip(shares, changes, strict=True))
        left, values, right = torch.linalg.svd(total / last_factor, full_matrices=False)
        rank = len(last[key_a])
        roots = values[:rank].sqrt()
        blended[key_a] = (roots[:, None] * right[:rank]).to(torch.bfloat16).contiguous()
        blended[key_b] = (left[:, :rank] * roots).to(torch.bfloat16).contiguous()
    save_file(blended, adapter_file(folder))


def _read(folder: Path, origin: str) -> tuple[dict[str, torch.Tensor], float]:
    """Weights by their names in the file, and alpha / rank."""
    try:
        factor = _factor(folder)
        return load_file(adapter_file(folder)), factor
    except (OSError, SafetensorError) as error:
        raise BadCheckpoint(f"the adapter {origin} is not readable; train or download it again") from error


def _factor(folder: Path) -> float:
    """alpha / rank as the adapter's own file says. Raises BadCheckpoint, OSError."""
    settings = f"{_CONFIG_FILE} of the adapter in {folder.name}"
    try:
        config = json.loads((folder / _CONFIG_FILE).read_text(encoding="utf-8"))
        factor = float(config["lora_alpha"]) / float(config["r"])
    except (ValueError, TypeError, KeyError, ArithmeticError, RecursionError) as error:
        raise BadCheckpoint(
            f"{settings} names no usable r and lora_alpha; train or download it again"
        ) from error
    if not math.isfinite(factor):
        raise BadCheckpoint(f"{settings} gives the factor {factor}; train or download it again")
    return factor


def _fits(a: torch.Tensor, b: torch.Tensor, weight: torch.Tensor) -> bool:
    return a.ndim == b.ndim == 2 and a.shape[0] == b.shape[1] and (b.shape[0], a.shape[1]) == weight.shape
