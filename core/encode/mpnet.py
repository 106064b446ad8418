"""MPNet to compute with: BERT whose attention weighs how far tokens are."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, TypeAlias

import torch
from torch import nn

from core.encode.bert import Bert, BertSettings, Hidden, Layer, PlainEncoder, embedding

if TYPE_CHECKING:
    from transformers import PreTrainedModel

Encoder: TypeAlias = "PreTrainedModel | Bert | MPNet"
"""What computes hidden states."""
_FARTHEST = 128
"""Tokens from which on distances share the last bucket."""


class MPNetSettings(BertSettings):
    """What config.json of a plain MPNet says."""

    model_type: Literal["mpnet"]  # type: ignore[assignment]
    type_vocab_size: int = 1
    pad_token_id: Literal[1]  # positions are counted from it
    relative_attention_num_buckets: Literal[32]


class MPNet(PlainEncoder):
    """See the module."""

    def __init__(self, config: MPNetSettings) -> None:
        super().__init__(config, _PaddedEmbeddings, _BiasedLayers)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> Hidden:
        """Both (B, T) integers."""
        hidden = self.embeddings(input_ids)
        unseen = torch.finfo(hidden.dtype).min * (1 - attention_mask[:, None, None, :].to(hidden.dtype))
        return Hidden(self.encoder(hidden, unseen))


class _PaddedEmbeddings(nn.Module):
    """(B, T, D) from token ids; padding has the position of the padding."""

    def __init__(self, config: MPNetSettings) -> None:
        super().__init__()
        self._pad_id = config.pad_token_id
        self.word_embeddings = embedding(config.vocab_size, config.hidden_size)
        self.position_embeddings = embedding(config.max_position_embeddings, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        real = (ids != self._pad_id).int()
        positions = (real.cumsum(1) * real).long() + self._pad_id
        normal: torch.Tensor = self.LayerNorm(self.word_embeddings(ids) + self.position_embeddings(positions))
        return normal


class _BiasedLayers(nn.Module):
    def __init__(self, config: MPNetSettings) -> None:
        super().__init__()
        self.layer = nn.ModuleList(
            Layer(_BiasedAttention(config), config) for _ in range(config.num_hidden_layers)
        )
        n_buckets, self._most = config.relative_attention_num_buckets, config.max_position_embeddings
        self.relative_attention_bias = embedding(n_buckets, config.num_attention_heads)
        # a table: OpenVINO would take logarithms in bfloat16, and the wrong buckets
        self._buckets: torch.Tensor
        self.register_buffer("_buckets", _buckets(n_buckets, self._most), persistent=False)

    def forward(self, hidden: torch.Tensor, unseen: torch.Tensor) -> torch.Tensor:
        places = torch.arange(hidden.shape[1], device=hidden.device)
        buckets = self._buckets[places[None, :] - places[:, None] + self._most]
        bias = self.relative_attention_bias(buckets).permute(2, 0, 1)[None] + unseen
        for layer in self.layer:
            hidden = layer(hidden, bias)
        return hidden


def _buckets(n_buckets: int, most: int) -> torch.Tensor:
    """A bucket for each offset from -`most` to `most`: of each sign, one a near distance, the rest by log."""
    half = n_buckets // 2
    near = half // 2
    offsets = torch.arange(-most, most + 1, device="cpu")
    distance = offsets.abs()
    beyond = torch.log(distance.float() / near) / math.log(_FARTHEST / near) * (half - near)
    far = near + beyond.long().clamp(max=half - near - 1)
    return torch.where(distance < near, distance, far) + half * (offsets > 0)


class _BiasedAttention(nn.Module):
    def __init__(self, config: MPNetSettings) -> None:
        super().__init__()
        self._n_heads, width = config.num_attention_heads, config.hidden_size
        self.attn = nn.ModuleDict({name: nn.Linear(width, width) for name in "qkvo"})
        self.LayerNorm = nn.LayerNorm(width, eps=config.layer_norm_eps)

    def forward(self, hidden: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        query, key, value = (
            self.attn[name](hidden).unflatten(-1, (self._n_heads, -1)).transpose(1, 2) for name in "qkv"
        )
        seen = nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=bias)
        normal: torch.Tensor = self.LayerNorm(self.attn["o"](seen.transpose(1, 2).flatten(2)) + hidden)
        return normal
