"""A tiny agent with a reranker of random weights that reads three chunks."""

from __future__ import annotations

import shutil
from pathlib import Path

import torch

from core.encode.adapter import save_adapter
from core.encode.checkpoint import find_base, read_spec, save_head, write_spec
from core.encode.reranker import HEAD_FILE, RERANKER_FOLDER, RerankerNetwork
from core.lab.train.towers import base_encoder, low_rank_changes, trainable_tower
from tests.conftest import made_once

REFERENCE = Path(__file__).parent / "data" / "reference"


def add_reranker(agent: Path) -> None:
    """Writes it into the folder of an agent whose Q no choice changes and that reads no positions."""
    shutil.copy(REFERENCE / "tiny-bert" / "model.safetensors", agent / "base")
    spec = read_spec(agent)
    write_spec(
        agent, spec.model_copy(update={"reads_choices": False, "rerank_weight": 0.5, "rerank_pool": 3})
    )

    def make(folder: Path) -> None:
        torch.manual_seed(0)
        encoder = base_encoder(find_base(spec.base, agent))
        network = RerankerNetwork(trainable_tower(encoder, 2, torch.float32))
        with torch.no_grad():
            for parameter in network.parameters():
                if parameter.requires_grad:
                    parameter.normal_()
        folder.mkdir()
        save_adapter(folder, low_rank_changes(encoder), spec.base)
        save_head(network.head, folder / HEAD_FILE)

    # transformers takes seconds to import
    shutil.copytree(made_once(RERANKER_FOLDER, make), agent / RERANKER_FOLDER)
