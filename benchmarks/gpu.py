"""What a graphics card changes: encoding, scoring, a step, memory, training.

One call of a few minutes, for a card that is at hand for a short while; `--n` tokens of a document, ten
million by default, and four times as many. Without a card it measures the processor, so that it can be tried
first: `--n 20000` takes seconds. FAISS and torch each bring a CUDA library of their own, so the first rows
show that they work side by side. Vectors of documents are random: time and memory don't depend on them.
"""

from __future__ import annotations

import sys
import tempfile
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from benchmarks import Row, median_seconds
from benchmarks.prose import compose_chunks
from core.base.errors import BadRequest
from core.corpus.index import ChunkIndex
from core.corpus.opening import index_of
from core.encode.encoder import DualEncoder, load_encoder
from core.lab.tasks.data import data_folder
from core.lab.train.recipes import plan_training
from core.lab.train.trainer import Trainer
from core.methods.qrag.positions import chunk_positions

TOKENS_A_CHUNK = 62.5
"""Of a story read a sentence a chunk: 160,000 chunks are some ten million tokens."""
ENCODED_SHARE = 0.02
"""Of the tokens that are encoded for a rate."""
BEST = 200
REPEATS = 5
UPDATES = 3
"""Of a training, the first of which warms up."""


def rows(n: int = 10_000_000) -> list[Row]:
    """Times and rates of this machine, as it would run the app."""
    agents = {name: load_encoder(name) for name in ("narrative", "general")}
    out = [_beside_faiss(agents["narrative"])]
    for encoder in agents.values():
        out += _encoding(encoder, n)
    for size in (n, 4 * n):
        out += _step(agents["narrative"], max(1_000, int(size / TOKENS_A_CHUNK)))
    try:
        out.append(_training(data_folder()))
    except BadRequest as missing:
        print(f"no training is measured: {missing}", file=sys.stderr)
    if torch.cuda.is_available():
        out.append(
            Row("most memory of the card, all of this", torch.cuda.max_memory_allocated() / 2**20, "MB")
        )
    return out


def _beside_faiss(encoder: DualEncoder) -> Row:
    """FAISS searches, torch multiplies, FAISS searches again: on one device, over the same vectors."""
    index = _random_index(encoder, 10_000)
    state = _random_vectors(1, index.dim)[0]
    first, products = index.top_k(state, 10)
    exact = index.q_values(state, np.zeros(len(index)))
    again, _ = index.top_k(state, 10)
    if not np.array_equal(first, again):
        raise RuntimeError("FAISS found other chunks after torch had multiplied: the two disturb each other")
    difference = float(np.abs(exact[first] - products).max())
    return Row("largest difference of ten products", difference, "at vectors of length 1", "FAISS")


def _encoding(encoder: DualEncoder, n: int) -> list[Row]:
    texts = list(islice(compose_chunks(), max(20, int(n * ENCODED_SHARE / TOKENS_A_CHUNK))))
    n_tokens = int(np.minimum(encoder.tokenizer.count(texts) + 2, encoder.spec.max_chunk_tokens).sum())
    rate = n_tokens / median_seconds({"ours": lambda: encoder.encode_chunks(texts)}, REPEATS)["ours"]
    what = ", ".join([encoder.spec.name, *encoder.engine.split(", ")[:2]])
    return [
        Row(f"encoding, {what}", rate, "tokens/s"),
        Row(f"{n:,} tokens at this rate, {what}", n / rate, "s"),
    ]


def _step(encoder: DualEncoder, n_chunks: int) -> list[Row]:
    """Parts of a step after three choices, all chunks scored at their positions."""
    index = _random_index(encoder, n_chunks)
    chosen = (n_chunks // 5, n_chunks // 2, n_chunks // 2 + 40)
    positions = chunk_positions(encoder.spec, np.array([0, n_chunks]), chosen)
    words = encoder.state_tokens("Where was the blanket before the chapel?", ["Ruth headed to the chapel."])
    state = encoder.encode_states([words])[0]
    index.prepare_top_k()

    def best_of_scores() -> np.ndarray:
        scores = index.q_values(state, positions)
        return np.argpartition(-scores, min(BEST, n_chunks - 1))[:BEST]

    def whole() -> None:
        encoder.encode_states([words])
        chunk_positions(encoder.spec, np.array([0, n_chunks]), chosen)
        best_of_scores()

    seconds = median_seconds(
        {
            "a state encoded": lambda: encoder.encode_states([words]),
            f"scores, and the {BEST} best": best_of_scores,
            "a whole step": whole,
            "FAISS, no positions": lambda: index.top_k(state, min(BEST, n_chunks)),
        },
        REPEATS,
    )
    faiss = seconds.pop("FAISS, no positions")
    return [
        Row(f"{name}, {n_chunks:,} chunks", 1000 * value, "ms", "FAISS, no positions", value / faiss)
        for name, value in seconds.items()
    ]


def _training(data: Path) -> Row:
    plan = plan_training("chains", agent="benchmark", updates=UPDATES, source=data, n_validation=1)
    with tempfile.TemporaryDirectory() as folder:
        seconds = [
            event["seconds"]
            for event in Trainer(plan, Path(folder) / "agent").run()
            if event["event"] == "update"
        ]
    return Row("an update of training, chains", (seconds[-1] - seconds[0]) / (UPDATES - 1), "s")


def _random_index(encoder: DualEncoder, n_chunks: int) -> ChunkIndex:
    return index_of(encoder, _random_vectors(n_chunks, encoder.dim))


def _random_vectors(n: int, dim: int) -> np.ndarray:
    """(n, dim) float32 of length 1."""
    vectors = np.random.default_rng(0).standard_normal((n, dim), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors
