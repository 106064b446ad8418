"""The two towers under training and their slowly following targets.

Q-RAG algorithm 1, lines 3 to 7 and 31. Only the linear layers of the encoder's blocks change, by LoRA;
embeddings, norms and biases stay the base's. The changed weights are formed in float32 once per update and
rounded to the compute precision there, exactly as serving rounds them.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn
from torch.nn.utils import parametrize

from core.base.errors import BadCheckpoint
from core.encode.adapter import LowRankChange, adaptable_layers, load_adapter, save_adapter
from core.encode.checkpoint import CheckpointSpec, architecture, load_weights, max_positions_of
from core.encode.encoder import compute_dtype
from core.encode.forward import batches_by_length, chunk_row, join_state, padded_rows, pooled_vectors
from core.encode.tokens import FastTokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_BATCH_TOKENS = {"cpu": 1_024, "cuda": 65_536}
"""Padded tokens a batch: few on a CPU, where rows of one length cost more than calls."""
_WIDTH_STEP = 4
"""Widths of a batch are multiples of it, finer than a server's: padding took a sixth of an update."""
TOWERS = ("state", "action")


class _Rounded(nn.Module):
    """The last parametrization of a weight: to the precision that the products are computed in."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype

    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        return weight.to(self.dtype)


class TrainableTowers:
    """State and action tower, online and target, on one device."""

    def __init__(
        self,
        spec: CheckpointSpec,
        base: Path,
        *,
        rank: int,
        with_targets: bool,
        device: torch.device,
        seed: int,
        dropout: float = 0.0,
    ) -> None:
        """`base`: the encoder's folder. `dropout`: of the online towers. Raises BadCheckpoint."""
        self.spec = spec
        self.device = device
        self.tokenizer = FastTokenizer(base)
        self._rank = rank
        self._ids: dict[str, list[int]] = {}
        torch.manual_seed(seed)
        dtype = compute_dtype(spec, device)
        pristine = base_encoder(base)
        self.max_positions = max_positions_of(pristine)
        self.dim = int(pristine.config.hidden_size)
        self.online = {
            name: trainable_tower(copy.deepcopy(pristine), rank, dtype).to(device) for name in TOWERS
        }
        self.targets = (
            {name: self._twin(name, pristine, dtype) for name in TOWERS} if with_targets else self.online
        )
        if dropout:
            for tower in self.online.values():
                _drop(tower, dropout)
        if device.type == "cpu":
            # the backward pass of fused attention is several times slower here than that of plain products
            for tower in self.online.values():
                tower.set_attn_implementation("eager")

    @property
    def parameters(self) -> list[nn.Parameter]:
        """What the optimiser moves."""
        return [
            parameter
            for tower in self.online.values()
            for parameter in tower.parameters()
            if parameter.requires_grad
        ]

    def formed(self) -> AbstractContextManager[None]:
        """See `formed`: of the online towers."""
        return formed(self.online.values())

    def embed_chunks(self, texts: Sequence[str], *, target: bool = False) -> torch.Tensor:
        """(N, D) float32 on the device."""
        rows = [chunk_row(part, self.spec, self.tokenizer, self.max_positions) for part in self._parts(texts)]
        return self._embed((self.targets if target else self.online)["action"], rows)

    def embed_states(
        self, states: Sequence[tuple[str, Sequence[str]]], *, target: bool = False
    ) -> torch.Tensor:
        """(B, D) float32 of (query, chosen texts in the state's order)."""
        rows = [
            join_state(self._parts([query, *texts]), self.spec, self.tokenizer, self.max_positions).ids
            for query, texts in states
        ]
        return self._embed((self.targets if target else self.online)["state"], rows)

    def count_tokens(self, texts: Iterable[str]) -> int:
        """Tokens of some texts, special ones left out."""
        return sum(len(part) for part in self._parts(list(texts)))

    @torch.no_grad()
    def follow(self, share: float) -> None:
        """Moves the targets by `share` of the way (tau of algorithm 1)."""
        for name, target in self.targets.items():
            for slow, fast in zip(target.parameters(), self.online[name].parameters(), strict=True):
                if fast.requires_grad:
                    slow.lerp_(fast, share)

    def state_dict(self) -> dict[str, torch.Tensor]:
        """Everything that training changes, online and target: the tensors themselves, by name."""
        out: dict[str, torch.Tensor] = {}
        sides = {"online": self.online} | ({} if self.targets is self.online else {"target": self.targets})
        for side, towers in sides.items():
            for name, tower in towers.items():
                out |= {f"{side}.{name}.{key}": value.detach() for key, value in changes_of(tower)}
        return out

    def start_from(self, folder: Path, origin: str) -> None:
        """Takes over the adapters of a checkpoint, targets too. Raises BadCheckpoint where they don't fit."""
        for towers in (self.online, self.targets):
            for name, tower in towers.items():
                load_adapter(folder / name, low_rank_changes(tower), origin)

    def save(self, folder: Path) -> None:
        """Writes the adapters into a checkpoint folder."""
        for name, tower in self.online.items():
            save_adapter(folder / name, low_rank_changes(tower), self.spec.base)

    def _twin(self, name: str, pristine: PreTrainedModel, dtype: torch.dtype) -> PreTrainedModel:
        """A target like the online tower; made anew, since copies of a parametrized layer share weights."""
        tower = (
            trainable_tower(copy.deepcopy(pristine), self._rank, dtype).to(self.device).requires_grad_(False)
        )
        tower.load_state_dict(self.online[name].state_dict())
        return tower

    def _parts(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of texts, each tokenized once."""
        fresh = [text for text in dict.fromkeys(texts) if text not in self._ids]
        if len(self._ids) + len(fresh) > 500_000:
            self._ids.clear()
            fresh = list(dict.fromkeys(texts))
        self._ids.update(zip(fresh, self.tokenizer.ids(fresh), strict=True))
        return [self._ids[text] for text in texts]

    def _embed(self, tower: PreTrainedModel, rows: Sequence[list[int]]) -> torch.Tensor:
        vectors, order = [], []
        for batch in batches_by_length([len(row) for row in rows], _BATCH_TOKENS[self.device.type]):
            padded = padded_rows([rows[i] for i in batch], tower, self.tokenizer.pad_id, _WIDTH_STEP)
            vectors.append(pooled_vectors(tower, self.spec, *padded))
            order += batch
        if not vectors:
            return torch.zeros(0, self.dim, device=self.device)
        return torch.cat(vectors)[torch.argsort(torch.tensor(order)).to(self.device)]


@contextmanager
def formed(encoders: Iterable[PreTrainedModel]) -> Iterator[None]:
    """Within it, each changed weight is formed once. The optimizer must not step inside."""
    with parametrize.cached():
        for encoder in encoders:
            for layer in adaptable_layers(encoder).values():
                # formed here, with its graph: were a pass without gradients the first, all others would get
                # its weights
                _ = layer.weight
        yield


def base_encoder(base: Path) -> PreTrainedModel:
    """A base encoder from its folder. Raises BadCheckpoint."""
    encoder = architecture(base)
    try:
        load_weights(encoder, load_file(base / "model.safetensors"), base.name)
        return encoder
    except (OSError, SafetensorError) as error:
        raise BadCheckpoint(
            f"the base encoder {base.name} has no readable model.safetensors; fetch it again, or choose"
            " another one"
        ) from error


def trainable_tower(tower: PreTrainedModel, rank: int, dtype: torch.dtype) -> PreTrainedModel:
    """Freezes a float32 tower but for what is added to linear layers; all is computed in `dtype`."""
    tower.eval().requires_grad_(False)
    for layer in adaptable_layers(tower).values():
        n_out, n_in = layer.weight.shape
        parametrize.register_parametrization(layer, "weight", LowRankChange(n_out, n_in, rank))
        parametrize.register_parametrization(
            layer, "weight", _Rounded(dtype), unsafe=True
        )  # unsafe: it changes the dtype
    for name, parameter in tower.named_parameters():
        if "parametrizations" not in name:
            parameter.data = parameter.data.to(dtype)
    return tower


def _drop(tower: PreTrainedModel, share: float) -> None:
    """Lets a tower drop that share of its activations in every pass. Draws from torch's global generator."""
    for module in tower.train().modules():
        if isinstance(module, nn.Dropout):
            module.p = share


def changes_of(tower: PreTrainedModel) -> Iterator[tuple[str, torch.Tensor]]:
    """(name, tensor) of the trainable changes, of online towers and targets alike."""
    return (
        (name, parameter)
        for name, parameter in tower.named_parameters()
        if ".parametrizations.weight.0." in name
    )


def low_rank_changes(tower: PreTrainedModel) -> dict[str, LowRankChange]:
    """By name of their layer."""
    changes: dict[str, LowRankChange] = {}
    for name, layer in adaptable_layers(tower).items():
        change = layer.parametrizations.weight[0]  # type: ignore[index, union-attr]
        assert isinstance(change, LowRankChange)
        changes[name] = change
    return changes
