"""BERT to compute with, in torch alone.

transformers, which has it too and trains it here, takes seconds to import. Names of weights and vectors are
the same, bit for bit (`tests/core/encode/test_bert.py`). A config.json that is not plain is left to it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Self

import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from torch import nn


class BertSettings(BaseModel):
    """What config.json of a plain BERT says. All of it must be there: defaults are transformers' to know."""

    model_config = ConfigDict(frozen=True, strict=True, allow_inf_nan=False)

    model_type: Literal["bert"]
    hidden_act: Literal["gelu"]
    position_embedding_type: Literal["absolute"] = "absolute"
    is_decoder: Literal[False] = False
    add_cross_attention: Literal[False] = False
    vocab_size: int = Field(ge=1)
    hidden_size: int = Field(ge=1)
    num_hidden_layers: int = Field(ge=1)
    num_attention_heads: int = Field(ge=1)
    intermediate_size: int = Field(ge=1)
    max_position_embeddings: int = Field(ge=1)
    type_vocab_size: int = Field(ge=1)
    pad_token_id: int = Field(ge=0)
    layer_norm_eps: float = Field(gt=0)

    @model_validator(mode="after")
    def _heads_share_the_width(self) -> BertSettings:
        if self.hidden_size % self.num_attention_heads:
            raise ValueError("hidden_size must be a multiple of num_attention_heads")
        return self

    @classmethod
    def of(cls, values: dict[str, Any]) -> Self | None:
        """None where config.json asks for anything else."""
        try:
            return cls.model_validate(values)
        except ValidationError:
            return None


class Hidden(NamedTuple):
    """What a pass gives."""

    last_hidden_state: torch.Tensor
    """(B, T, D)."""


class PlainEncoder(nn.Module):
    """An encoder in torch alone, without weights until `core.encode.checkpoint.load_weights` assigns them."""

    def __init__(
        self, config: BertSettings, embeddings: Callable[[Any], nn.Module], layers: Callable[[Any], nn.Module]
    ) -> None:
        super().__init__()
        self.config = config
        with torch.device("meta"):  # no random values that are overwritten anyway
            self.embeddings, self.encoder = embeddings(config), layers(config)

    @property
    def device(self) -> torch.device:
        """Where its weights are."""
        return next(self.parameters()).device

    @property
    def dtype(self) -> torch.dtype:
        """What it computes in."""
        return next(self.parameters()).dtype


class Bert(PlainEncoder):
    """See the module."""

    def __init__(self, config: BertSettings) -> None:
        super().__init__(config, _Embeddings, _Layers)

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        token_type_ids: torch.Tensor | None = None,
    ) -> Hidden:
        """All three (B, T) integers; without `token_type_ids` all tokens are of the first segment."""
        n_rows, n_tokens = input_ids.shape
        segments = torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids
        hidden = self.embeddings(input_ids, segments)
        mask = attention_mask.bool()[:, None, None, :].expand(n_rows, 1, n_tokens, n_tokens)
        return Hidden(self.encoder(hidden, mask))


class _Embeddings(nn.Module):
    """(B, T, D) from token ids and segments."""

    def __init__(self, config: BertSettings) -> None:
        super().__init__()
        self.word_embeddings = embedding(config.vocab_size, config.hidden_size)
        self.position_embeddings = embedding(config.max_position_embeddings, config.hidden_size)
        self.token_type_embeddings = embedding(config.type_vocab_size, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

    def forward(self, ids: torch.Tensor, segments: torch.Tensor) -> torch.Tensor:
        positions = torch.arange(ids.shape[1], device=ids.device)[None]
        embedded = self.word_embeddings(ids) + self.token_type_embeddings(segments)
        normal: torch.Tensor = self.LayerNorm(embedded + self.position_embeddings(positions))
        return normal


def embedding(n: int, width: int) -> nn.Embedding:
    """Without its constructor's normal values: for them the meta device loads torch's compiler, 2 s."""
    embedding: nn.Embedding = nn.Embedding.from_pretrained(torch.empty(n, width), freeze=False)  # type: ignore[no-untyped-call]
    return embedding


class Output(nn.Module):
    """A linear layer whose result is added to what was there before."""

    def __init__(self, n_in: int, config: BertSettings) -> None:
        super().__init__()
        self.dense = nn.Linear(n_in, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

    def forward(self, hidden: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
        normal: torch.Tensor = self.LayerNorm(self.dense(hidden) + before)
        return normal


class _Attention(nn.Module):
    def __init__(self, config: BertSettings) -> None:
        super().__init__()
        self._n_heads = config.num_attention_heads
        width = config.hidden_size
        self.self = nn.ModuleDict({name: nn.Linear(width, width) for name in ("query", "key", "value")})
        self.output = Output(width, config)

    def forward(self, hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        query, key, value = (
            project(hidden).unflatten(-1, (self._n_heads, -1)).transpose(1, 2)
            for project in self.self.values()
        )
        seen = nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        joined: torch.Tensor = self.output(seen.transpose(1, 2).flatten(2), hidden)
        return joined


class _Layers(nn.Module):
    def __init__(self, config: BertSettings) -> None:
        super().__init__()
        self.layer = nn.ModuleList(Layer(_Attention(config), config) for _ in range(config.num_hidden_layers))

    def forward(self, hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        for layer in self.layer:
            hidden = layer(hidden, mask)
        return hidden


class Layer(nn.Module):
    """An attention, told what each token may see, and what is computed of its result."""

    def __init__(self, attention: nn.Module, config: BertSettings) -> None:
        super().__init__()
        self.attention = attention
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(config.hidden_size, config.intermediate_size)})
        self.output = Output(config.intermediate_size, config)

    def forward(self, hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        seen = self.attention(hidden, mask)
        out: torch.Tensor = self.output(nn.functional.gelu(self.intermediate["dense"](seen)), seen)
        return out
