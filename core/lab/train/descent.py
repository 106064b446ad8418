"""Steps of the optimizer, and trainings by LoRA."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import nn

from core.base.errors import BadRequest
from core.encode.encoder import fast_dtype
from core.lab.train.config import LowRankConfig
from core.lab.train.towers import base_encoder, formed, trainable_tower

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from core.encode.mpnet import Encoder

Part = TypeVar("Part")


class Descent:
    """AdamW over those of some parameters that learn."""

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        weight_decay: float = 0.0,
        encoders: Iterable[Encoder] = (),
        betas: tuple[float, float] = (0.9, 0.98),
        eps: float = 1e-6,
    ) -> None:
        """`encoders`: those with changed weights."""
        self._parameters = [parameter for parameter in parameters if parameter.requires_grad]
        self._encoders = list(encoders)
        self._optimizer = torch.optim.AdamW(self._parameters, betas=betas, eps=eps, weight_decay=weight_decay)

    @property
    def n_parameters(self) -> int:
        return sum(parameter.numel() for parameter in self._parameters)

    def step(
        self, rate: float, clip: float, parts: Sequence[Part], loss_of: Callable[[Part], torch.Tensor]
    ) -> tuple[float, float]:
        """One step by the summed gradients of the parts' losses; their sum, and the length of its gradient
        before that was cut to `clip`. Raises BadRequest when that is no number: then nothing changes.
        """
        total = 0.0
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        self._optimizer.zero_grad()
        with formed(self._encoders):
            for i, part in enumerate(parts, start=1):
                loss = loss_of(part)
                # the next part needs the graph of the formed weights, too
                loss.backward(retain_graph=i < len(parts))  # type: ignore[no-untyped-call]
                total += float(loss.detach())
                del loss  # its graph must be gone before the next part's is built
        norm = float(nn.utils.clip_grad_norm_(self._parameters, clip))
        if not math.isfinite(norm):
            raise diverged()
        self._optimizer.step()
        return total, norm

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


def diverged() -> BadRequest:
    """For who meets what is no number any more."""
    return BadRequest("the training has diverged; begin in another folder with a smaller --learning-rate")


def low_rank_state(network: nn.Module) -> dict[str, torch.Tensor]:
    """What such a training changes."""
    return {
        name.removeprefix("encoder."): parameter.detach()
        for name, parameter in network.named_parameters()
        if parameter.requires_grad
    }


def low_rank_encoder(base: Path, config: LowRankConfig, device: torch.device) -> PreTrainedModel:
    """A folder's base encoder with a LoRA to learn, drawn on with torch's generator. Raises BadCheckpoint."""
    torch.manual_seed(config.seed)
    encoder = trainable_tower(base_encoder(base), config.rank, fast_dtype(device))
    if device.type == "cpu":  # see TrainableTowers
        encoder.set_attn_implementation("eager")
    return encoder
