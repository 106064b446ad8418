"""The two towers under training and their slowly following targets.

Q-RAG algorithm 1, lines 3 to 7 and 31. Only the linear layers of the encoder's blocks change, by LoRA;
embeddings, norms and biases stay the base's. The changed weights are formed in float32 once per update and
rounded to the compute precision there, exactly as serving rounds them.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
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
from core.lab.train.config import TrainConfig, check_rank

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from core.encode.mpnet import Encoder

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

    def __init__(self, spec: CheckpointSpec, base: Path, config: TrainConfig, device: torch.device) -> None:
        """`base`: the encoder's folder. Raises BadCheckpoint."""
        self.spec, self.device, self.tokenizer = spec, device, FastTokenizer(base)
        self._ids: dict[str, list[int]] = {}
        torch.manual_seed(config.seed)
        dtype = compute_dtype(spec, device)
        pristine = base_encoder(base)
        self.max_positions = max_positions_of(pristine)
        self.dim = int(pristine.config.hidden_size)

        def tower() -> PreTrainedModel:
            return trainable_tower(copy.deepcopy(pristine), config.rank, dtype).to(device)

        self.online = self.targets = {name: tower() for name in TOWERS}
        if config.target_towers:  # made anew, since copies of a parametrized layer share weights
            self.targets = {name: tower().requires_grad_(False) for name in TOWERS}
            for name, target in self.targets.items():
                target.load_state_dict(self.online[name].state_dict())
        for online in self.online.values():
            if config.dropout:  # drawn from torch's global generator
                for module in online.train().modules():
                    if isinstance(module, nn.Dropout):
                        module.p = config.dropout
            if device.type == "cpu":
                # the backward pass of fused attention is several times slower here than plain products'
                online.set_attn_implementation("eager")

    @property
    def parameters(self) -> list[nn.Parameter]:
        """What the optimiser moves."""
        return [each for each in nn.ModuleDict(self.online).parameters() if each.requires_grad]

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
        sides = {"online": self.online} | ({} if self.targets is self.online else {"target": self.targets})
        every = nn.ModuleDict({side: nn.ModuleDict(towers) for side, towers in sides.items()})
        changes = (item for item in every.named_parameters() if ".parametrizations.weight.0." in item[0])
        return {name: parameter.detach() for name, parameter in changes}

    def start_from(self, folder: Path, origin: str) -> None:
        """Takes over the adapters of a checkpoint, targets too. Raises BadCheckpoint where they don't fit."""
        for towers in (self.online, self.targets):
            for name, tower in towers.items():
                load_adapter(folder / name, low_rank_changes(tower), origin)

    def save(self, folder: Path) -> None:
        """Writes the adapters into a checkpoint folder."""
        for name, tower in self.online.items():
            save_adapter(folder / name, low_rank_changes(tower), self.spec.base)

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
def formed(encoders: Iterable[Encoder]) -> Iterator[None]:
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
    """Freezes a float32 tower but for what is added to linear layers; all is computed in `dtype`. Raises
    BadRequest for a rank above the tower's width.
    """
    check_rank(rank, int(tower.config.hidden_size))
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


def low_rank_changes(tower: PreTrainedModel) -> dict[str, LowRankChange]:
    """By name of their layer."""
    changes: dict[str, LowRankChange] = {}
    for name, layer in adaptable_layers(tower).items():
        change = layer.parametrizations.weight[0]  # type: ignore[index, union-attr]
        assert isinstance(change, LowRankChange)
        changes[name] = change
    return changes
