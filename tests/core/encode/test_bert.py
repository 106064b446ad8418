"""The plain BERT computes what transformers computes, bit for bit, and starts without it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from core.encode.bert import Bert, BertSettings
from core.encode.checkpoint import architecture, find_base, load_weights, served_architecture
from core.encode.mpnet import MPNet, MPNetSettings
from core.encode.packaged import MINILM
from tests.conftest import CAMPAIGN

TINY = Path(__file__).resolve().parents[2] / "data" / "reference" / "tiny-bert"
BASES = {"tiny": TINY} | ({"MiniLM": find_base(MINILM)} if CAMPAIGN else {})
SHAPES = ((1, 9, 0), (3, 16, 5), (2, 200, 130))
"""Rows, tokens, padding of the last row."""


def batch(shape: tuple[int, int, int], vocabulary: int) -> dict[str, torch.Tensor]:
    n_rows, n_tokens, padding = shape
    ids = torch.randint(vocabulary, (n_rows, n_tokens), generator=torch.Generator().manual_seed(n_tokens))
    mask, segments = torch.ones_like(ids), torch.zeros_like(ids)
    mask[-1, n_tokens - padding :] = 0
    segments[:, n_tokens // 3 :] = 1
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": segments}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("base", BASES.values(), ids=BASES)
@torch.inference_mode()
def test_hidden_states_are_those_of_transformers(base: Path, dtype: torch.dtype) -> None:
    encoders = served_architecture(base), architecture(base)
    assert isinstance(encoders[0], Bert)
    for encoder in encoders:
        load_weights(encoder, load_file(base / "model.safetensors"), "the base")
        encoder.eval().to(dtype)
    ours, theirs = encoders
    for shape in SHAPES:
        inputs = batch(shape, ours.config.vocab_size)
        real = inputs["attention_mask"].bool()
        for given in (inputs, {name: inputs[name] for name in ("input_ids", "attention_mask")}):
            assert torch.equal(
                ours(**given).last_hidden_state[real], theirs(**given).last_hidden_state[real]
            ), shape


@pytest.fixture(scope="module")
def tiny_mpnet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from transformers import MPNetConfig, MPNetModel  # takes seconds: not for every worker that collects

    torch.manual_seed(0)
    config = MPNetConfig(
        vocab_size=134,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=48,
        max_position_embeddings=302,
    )
    folder = tmp_path_factory.mktemp("base") / "tiny-mpnet"
    model = MPNetModel(config, add_pooling_layer=False)
    model.encoder.relative_attention_bias.weight.data *= 50  # as drawn, a distance would hardly be felt
    model.save_pretrained(folder)
    return folder


@torch.inference_mode()
def test_hidden_states_of_mpnet_are_those_of_transformers(tiny_mpnet: Path) -> None:
    encoders = served_architecture(tiny_mpnet), architecture(tiny_mpnet)
    assert isinstance(encoders[0], MPNet)
    for encoder in encoders:
        load_weights(encoder, load_file(tiny_mpnet / "model.safetensors"), "the base")
        encoder.eval()
    ours, theirs = encoders
    for shape in SHAPES:
        inputs = batch(shape, ours.config.vocab_size)
        del inputs["token_type_ids"]
        inputs["input_ids"] = inputs["input_ids"].clamp(min=2)
        inputs["input_ids"][inputs["attention_mask"] == 0] = ours.config.pad_token_id
        real = inputs["attention_mask"].bool()
        torch.testing.assert_close(
            ours(**inputs).last_hidden_state[real],
            theirs(**inputs).last_hidden_state[real],
            atol=1e-5,
            rtol=1e-5,
        )


def test_anything_but_a_plain_mpnet_is_left_to_transformers(tiny_mpnet: Path) -> None:
    values = json.loads((tiny_mpnet / "config.json").read_text())
    assert MPNetSettings.of(values) is not None
    for change in (
        {"model_type": "bert"},
        {"pad_token_id": 0},
        {"relative_attention_num_buckets": 16},
        {"hidden_act": "relu"},
    ):
        assert MPNetSettings.of(values | change) is None


@pytest.mark.parametrize(
    "change",
    [
        {"model_type": "roberta"},
        {"hidden_act": "relu"},
        {"position_embedding_type": "relative_key"},
        {"is_decoder": True},
        {"layer_norm_eps": None},
        {"num_attention_heads": 5},
        {"hidden_size": 0},
        {"vocab_size": "134"},
    ],
)
def test_anything_but_a_plain_bert_is_left_to_transformers(change: dict[str, Any]) -> None:
    values = json.loads((TINY / "config.json").read_text())
    assert BertSettings.of(values) is not None
    assert BertSettings.of(values | change) is None


@pytest.mark.campaign
def test_neither_the_shipped_agents_nor_the_reader_need_transformers() -> None:
    """It takes seconds to import, and every command would wait for it."""
    script = (
        "import sys\n"
        "from core.answer.reader import load_reader\n"
        "from core.encode.encoder import load_encoder\n"
        "load_encoder('narrative').encode_chunks(['The key lies under the mat.'])\n"
        "load_reader()\n"
        "print('transformers' in sys.modules)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=300
    )
    assert run.stdout.split() == ["False"]
