"""A tiny agent with a reranker of random weights that reads three chunks."""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path

import torch

from core.encode.adapter import save_adapter
from core.encode.checkpoint import CheckpointSpec, find_base, read_spec, write_spec
from core.encode.reranker import RERANKER_FOLDER, RerankerNetwork, save_head
from core.lab.train.towers import base_encoder, low_rank_changes, trainable_tower
from tests.conftest import SERVERS

REFERENCE = Path(__file__).parent / "data" / "reference"


def add_reranker(agent: Path) -> None:
    """Writes it into the folder of an agent whose Q no choice changes and that reads no positions."""
    shutil.copy(REFERENCE / "tiny-bert" / "model.safetensors", agent / "base")
    spec = read_spec(agent)
    write_spec(
        agent, spec.model_copy(update={"reads_choices": False, "rerank_weight": 0.5, "rerank_pool": 3})
    )
    shutil.copytree(_made(agent, spec), agent / RERANKER_FOLDER)


def _made(agent: Path, spec: CheckpointSpec) -> Path:
    """Its weights, made by one worker for all: transformers takes seconds to import."""
    folder = Path(os.environ[SERVERS]) / RERANKER_FOLDER
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            torch.manual_seed(0)
            encoder = base_encoder(find_base(spec.base, agent))
            network = RerankerNetwork(trainable_tower(encoder, 2, torch.float32))
            with torch.no_grad():
                for parameter in network.parameters():
                    if parameter.requires_grad:
                        parameter.normal_()
            folder.mkdir()
            save_adapter(folder, low_rank_changes(encoder), spec.base)
            save_head(network, folder)
    return folder
