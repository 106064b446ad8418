"""How much a document's words resemble an agent's training texts.

The mean surprise of its word pieces, in bits, under the frequencies of the training texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from core.base.errors import BadCheckpoint
from core.encode.tokens import FastTokenizer

FAMILIARITY_FILE = "familiarity.safetensors"
FOREIGN = 1.15
"""Times the surprise of the agent's own validation texts, from which a document counts as foreign."""
_SAMPLE = 400
"""Texts of a document that are read, evenly spread."""
_SMOOTHING = 0.5
"""Added to the count of every word piece."""


@dataclass(frozen=True, eq=False)
class Familiarity:
    """What an agent has read."""

    bits: np.ndarray
    """(V,) float32 surprise of each token id, -log2 of its smoothed frequency in the training texts."""
    own: float
    """Bits a word piece of texts like the training texts that were not counted."""

    @classmethod
    def of(cls, texts: Sequence[str], held_out: Sequence[str], tokenizer: FastTokenizer) -> Familiarity:
        """Counts the words of training texts; `held_out` are others like them."""
        counts = np.full(tokenizer.vocabulary_size, _SMOOTHING)
        for ids in tokenizer.ids(texts):
            np.add.at(counts, ids, 1)
        bits = (-np.log2(counts / counts.sum())).astype(np.float16).astype(np.float32)
        unmeasured = cls(bits, 0.0)
        return cls(bits, unmeasured.surprise(held_out, tokenizer) or 0.0)

    def surprise(self, texts: Sequence[str], tokenizer: FastTokenizer) -> float | None:
        """Bits a word piece, over an even sample of the texts; None where there are no words."""
        if not texts:
            return None
        sample = [texts[i] for i in np.unique(np.linspace(0, len(texts) - 1, _SAMPLE).astype(int))]
        ids = [token for part in tokenizer.ids(sample) for token in part]
        return float(self.bits[ids].mean()) if ids else None

    def is_foreign(self, bits: float) -> bool:
        """Whether texts of that surprise count as foreign to the agent."""
        return bits > FOREIGN * self.own

    def save(self, folder: Path) -> None:
        """Writes the file into a checkpoint folder."""
        tensors = {"bits": self.bits.astype(np.float16), "own": np.array([self.own], dtype=np.float32)}
        save_file(tensors, folder / FAMILIARITY_FILE)


def load_familiarity(folder: Path, tokenizer: FastTokenizer) -> Familiarity | None:
    """What a checkpoint says it has read; None where it doesn't. Raises BadCheckpoint for a wrong file."""
    path = folder / FAMILIARITY_FILE
    if not path.is_file():
        return None
    try:
        tensors = load_file(path)
        familiarity = Familiarity(tensors["bits"].astype(np.float32), float(tensors["own"][0]))
    except (OSError, SafetensorError, KeyError, IndexError, TypeError) as error:
        raise BadCheckpoint(
            f"{FAMILIARITY_FILE} of {folder.name} can't be read; delete it or download the checkpoint again"
        ) from error
    if familiarity.bits.shape != (tokenizer.vocabulary_size,):
        raise BadCheckpoint(
            f"{FAMILIARITY_FILE} of {folder.name} belongs to another tokenizer; delete it or download the"
            " checkpoint again"
        )
    return familiarity
