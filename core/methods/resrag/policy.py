"""The light policy of RES-RAG: a small network's chances of chunks."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from torch import nn

from core.base.batches import batches
from core.encode.checkpoint import load_head, save_head, write_settings
from core.methods.resrag.card import CARD_FILE, WEIGHTS_FILE, PolicyCard, read_card
from core.methods.resrag.features import NAMES
from core.methods.resrag.sets import LEAST_CHANCE

_BLOCK = 65_536
"""Chunks whose chances are computed at once."""


class EvidencePolicy(nn.Module):
    """Features (N, F) -> log-odds (N,) of being taken; standardised by buffers that training sets once."""

    mean: torch.Tensor
    spread: torch.Tensor

    def __init__(self, hidden: int, least_chance: float = LEAST_CHANCE) -> None:
        """least_chance: see `PolicyCard`."""
        super().__init__()
        self.least_chance = least_chance
        self.register_buffer("mean", torch.zeros(len(NAMES)))
        self.register_buffer("spread", torch.ones(len(NAMES)))
        self.layers = nn.Sequential(
            nn.Linear(len(NAMES), hidden),
            nn.SiLU(),
            nn.Linear(hidden, hidden),
            nn.SiLU(),
            nn.Linear(hidden, 1),
        )

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        log_odds: torch.Tensor = self.layers((features - self.mean) / self.spread).squeeze(-1)
        return log_odds

    @torch.inference_mode()
    def chances(self, features: np.ndarray) -> np.ndarray:
        """(N, F) float32 -> (N,) float32, 0 to 1."""
        parts = [torch.sigmoid(self(torch.from_numpy(some))) for some in batches(features, _BLOCK)]
        chances: np.ndarray = torch.cat(parts).numpy() if parts else np.zeros(0, np.float32)
        return chances


def save_policy(folder: Path, policy: EvidencePolicy, card: PolicyCard) -> None:
    """Writes card and weights into a folder."""
    save_head(policy, folder / WEIGHTS_FILE)
    write_settings(folder / CARD_FILE, card)


@lru_cache(maxsize=4)
def load_policy(folder: Path) -> EvidencePolicy:
    """A policy, read once a process. Raises BadCheckpoint."""
    card = read_card(folder)
    policy = EvidencePolicy(card.hidden, least_chance=card.least_chance)
    load_head(policy, folder / WEIGHTS_FILE, f"policy {folder}")
    return policy.eval()
