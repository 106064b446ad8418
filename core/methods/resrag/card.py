"""The cards of light policies, read without torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from core.base.errors import BadCheckpoint
from core.base.home import ASSETS
from core.encode.checkpoint import read_settings
from core.methods.resrag.features import NAMES
from core.methods.resrag.sets import LEAST_CHANCE

_SHIPPED = ASSETS / "resrag"
"""A folder a policy, by the name of the checkpoint whose vectors it reads."""
USUAL = "general"
"""Checkpoint of the policy that serves where an agent has none of its own."""
CARD_FILE, WEIGHTS_FILE = "resrag.json", "head.safetensors"


class PolicyCard(BaseModel):
    """What a policy is and how it came about."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: int = 1
    name: str
    features: tuple[str, ...] = NAMES
    """Columns that it reads; those of this version, or it can't be used."""
    hidden: int
    """Width of both hidden layers."""
    encoder: str
    """Checkpoint whose vectors it was trained on, and is served with."""
    least_chance: float = Field(LEAST_CHANCE, ge=0, lt=1)
    """Above which a chunk is taken."""
    training: dict[str, Any] | None = None
    scores: dict[str, Any] | None = None


def shipped_policies() -> dict[str, Path]:
    """Folders of the policies that ship, by the checkpoint whose vectors each reads."""
    return {card.parent.name: card.parent for card in sorted(_SHIPPED.glob(f"*/{CARD_FILE}"))}


def policy_for(checkpoint: str) -> Path:
    """The policy that serves documents that are open under a checkpoint."""
    folders = shipped_policies()
    return folders.get(checkpoint, folders[USUAL])


def read_card(folder: Path) -> PolicyCard:
    """The card of a policy. Raises BadCheckpoint when the folder holds none, or one of another version."""
    card = read_settings(PolicyCard, folder / CARD_FILE, "policy")
    if card.format != 1 or card.features != NAMES or not 1 <= card.hidden <= 4096:
        raise BadCheckpoint(
            f"the policy {card.name} in {folder} reads other features than this version has; train it anew"
        )
    return card
