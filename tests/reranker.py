"""A tiny agent with a reranker of random weights that reads three chunks."""

from __future__ import annotations

import shutil
from pathlib import Path

import torch

from core.encode.adapter import save_adapter
from core.encode.checkpoint import find_base, read_spec, write_spec
from core.encode.reranker import RERANKER_FOLDER, RerankerNetwork, save_head
from core.lab.train.towers import base_encoder, low_rank_changes, trainable_tower

REFERENCE = Path(__file__).parent / "data" / "reference"


def add_reranker(agent: Path) -> None:
    """Writes it into the folder of an agent whose Q no choice changes and that reads no positions."""
    shutil.copy(REFERENCE / "tiny-bert" / "model.safetensors", agent / "base")
    spec = read_spec(agent)
    write_spec(
        agent, spec.model_copy(update={"reads_choices": False, "rerank_weight": 0.5, "rerank_pool": 3})
    )
    base = find_base(spec.base, agent)
    torch.manual_seed(0)
    encoder = base_encoder(base)
    network = RerankerNetwork(trainable_tower(encoder, 2, torch.float32))
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.requires_grad:
                parameter.normal_()
    (agent / RERANKER_FOLDER).mkdir()
    save_adapter(agent / RERANKER_FOLDER, low_rank_changes(encoder), spec.base)
    save_head(network, agent / RERANKER_FOLDER)
