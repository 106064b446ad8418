"""Gradient steps by AdamW.

The optimizer of every training of encoders, and how an encoder with LoRA and heads on it takes a step: in
parts that fit into memory, each changed weight formed once. What the next step depends on is flat tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import nn

from core.encode.device import fast_dtype
from core.lab.train.towers import base_encoder, changes_of, formed, trainable_tower

if TYPE_CHECKING:
    from transformers import PreTrainedModel

Part = TypeVar("Part")
LEAST = {"updates": 1, "rank": 1, "validate_every": 1, "n_validation": 1}
"""Smallest values of a `LowRankConfig`."""


@dataclass(frozen=True, kw_only=True)
class LowRankConfig:
    """One training of an encoder by LoRA, with heads."""

    updates: int = 240
    """Gradient steps."""
    rank: int = 32
    """Rank of the LoRA changes."""
    learning_rate: float = 1e-3
    """Highest rate."""
    warmup: int = 30
    """Updates over which the rate rises from 0; then it falls linearly."""
    weight_decay: float = 1e-3
    """Of AdamW."""
    validate_every: int = 120
    """Updates between validations."""
    n_validation: int = 500
    """Questions of each validation."""
    seed: int = 0
    """Of everything random."""

    def rate(self, update: int) -> float:
        """Learning rate of a 0-based update."""
        return self.learning_rate * min(1.0, (update + 1) / max(1, self.warmup)) * (1 - update / self.updates)


class Descent:
    """AdamW over those of some parameters that learn."""

    def __init__(self, parameters: Iterable[nn.Parameter], rate: float, weight_decay: float) -> None:
        self._parameters = [parameter for parameter in parameters if parameter.requires_grad]
        self._optimizer = torch.optim.AdamW(
            self._parameters, lr=rate, betas=(0.9, 0.98), eps=1e-6, weight_decay=weight_decay
        )

    @property
    def n_parameters(self) -> int:
        return sum(parameter.numel() for parameter in self._parameters)

    def begin(self, rate: float) -> None:
        """Before the gradients of a step."""
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        self._optimizer.zero_grad()

    def end(self, clip: float) -> float:
        """The step, its gradient at most `clip` long; the length before."""
        norm = nn.utils.clip_grad_norm_(self._parameters, clip)
        self._optimizer.step()
        return float(norm)

    def state_dict(self) -> dict[str, torch.Tensor]:
        """The moments as flat tensors, for safetensors."""
        state: dict[int, dict[str, Any]] = self._optimizer.state_dict()["state"]
        return {
            f"adam.{index}.{key}": value for index, entry in state.items() for key, value in entry.items()
        }

    def load_state_dict(self, saved: Mapping[str, torch.Tensor]) -> None:
        """Inverse of `state_dict`; other names are left out."""
        state: dict[int, dict[str, torch.Tensor]] = {}
        for name, value in saved.items():
            if name.startswith("adam."):
                _, index, key = name.split(".")
                state.setdefault(int(index), {})[key] = value
        groups = self._optimizer.state_dict()["param_groups"]
        self._optimizer.load_state_dict({"state": state, "param_groups": groups})


class HeadedDescent(Descent):
    """AdamW over the LoRA of an encoder and over the heads on it."""

    def __init__(
        self, encoder: PreTrainedModel, heads: Mapping[str, nn.Module], config: LowRankConfig
    ) -> None:
        self._encoder, self._heads = encoder, nn.ModuleDict(heads)
        parameters = [*encoder.parameters(), *self._heads.parameters()]
        super().__init__(parameters, config.learning_rate, config.weight_decay)

    def step(
        self, rate: float, clip: float, parts: Sequence[Part], loss_of: Callable[[Part], torch.Tensor]
    ) -> tuple[float, float]:
        """(sum of the parts' losses, length of its gradient before it was cut)."""
        total = 0.0
        self.begin(rate)
        with formed([self._encoder]):
            for i, part in enumerate(parts, start=1):
                loss = loss_of(part)
                loss.backward(retain_graph=i < len(parts))  # type: ignore[no-untyped-call]
                total += float(loss.detach())
        return total, self.end(clip)

    def state_dict(self) -> dict[str, torch.Tensor]:
        """Everything that the next step depends on."""
        return self._learned() | super().state_dict()

    @torch.no_grad()
    def load_state_dict(self, saved: Mapping[str, torch.Tensor]) -> None:
        """Inverse of `state_dict`."""
        for name, value in self._learned().items():
            value.copy_(saved[name])
        super().load_state_dict(saved)

    def _learned(self) -> dict[str, torch.Tensor]:
        changes = {name: value.detach() for name, value in changes_of(self._encoder)}
        return changes | self._heads.state_dict()


def low_rank_encoder(base: Path, config: LowRankConfig, device: torch.device) -> PreTrainedModel:
    """A folder's base encoder with a LoRA to learn, drawn on with torch's generator. Raises BadCheckpoint."""
    torch.manual_seed(config.seed)
    encoder = trainable_tower(base_encoder(base), config.rank, fast_dtype(device))
    if device.type == "cpu":  # see TrainableTowers
        encoder.set_attn_implementation("eager")
    return encoder
