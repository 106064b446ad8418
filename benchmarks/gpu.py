"""Embedding, scoring and stepping on a CUDA device, in minutes: --n tokens are embedded, 10,000,000 by
default.

Texts are composed prose, encoded anew though they recur. Scores of all chunks come to the host, where strip
and log want them; how long that takes is a part of the time. The same code on the processor says how far the
numbers differ. Trainings are not measured here: `python -m core train` says how long one took.
"""

from __future__ import annotations

import time
from random import Random

import numpy as np
import torch

from benchmarks import Row, median_seconds
from core.config import EpisodeConfig
from core.encode.encoder import load_encoder
from core.errors import BadRequest
from core.index import ChunkIndex, Corpus
from core.opening import index_of
from core.qrag.agent import Agent, Episode
from core.tasks.prose import compose_paragraph
from core.types import workspace_of_chunks

SIZES = (160_000, 400_000)
"""Chunks of some 10 and 25 million tokens."""
DISTINCT = 500
COMPARED = 16
BEST = 200
REPEATS = 7


def rows(n: int = 10_000_000) -> list[Row]:
    """Raises BadRequest where there is no CUDA device."""
    if not torch.cuda.is_available():
        raise BadRequest("this machine has no CUDA device; run it where there is one")
    return measured("cuda", n, SIZES)


def measured(device: str, n_tokens: int, sizes: tuple[int, ...]) -> list[Row]:
    """All figures, on any device."""
    return [*_embedding(device, n_tokens), *(row for n in sizes for row in _searching(device, n))]


def _embedding(device: str, n_tokens: int) -> list[Row]:
    encoder, on_processor = load_encoder("general", device), load_encoder("general", "cpu")
    rng = Random(0)
    texts = [
        " ".join(sentence for _ in range(4) for sentence in compose_paragraph(rng)) for _ in range(DISTINCT)
    ]
    lengths = np.minimum(encoder.tokenizer.count(texts) + 2, encoder.spec.max_chunk_tokens)
    repeated = np.resize(np.arange(DISTINCT), max(COMPARED, round(n_tokens / float(lengths.mean()))))
    many, n_read = [texts[i] for i in repeated.tolist()], int(lengths[repeated].sum())
    vectors = encoder.encode_chunks(many[:COMPARED])
    ours = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    theirs = on_processor.encode_chunks(many[:COMPARED])
    theirs /= np.linalg.norm(theirs, axis=1, keepdims=True)
    began = time.perf_counter()
    for _ in encoder.iter_encode_chunks(many):
        pass
    seconds = time.perf_counter() - began
    began = time.perf_counter()
    encoder.tokenizer.ids(many)
    tokenizing = time.perf_counter() - began
    return [
        Row(f"embedding {n_read:,} tokens, {encoder.engine}", seconds, "s"),
        Row("of it tokenizing, on the processor", tokenizing, "s", "embedding", tokenizing / seconds),
        Row("rate", n_read / seconds, "tokens/s"),
        Row("least cosine of a vector", float((ours * theirs).sum(1).min()), "cosine", on_processor.engine),
    ]


def _searching(device: str, n: int) -> list[Row]:
    agent = Agent(load_encoder("narrative", device))
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((n, agent.encoder.dim), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    state = rng.standard_normal(agent.encoder.dim, dtype=np.float32)
    index, texts = index_of(agent.encoder, vectors), [f"john went {i} ." for i in range(n)]
    corpus = Corpus(workspace_of_chunks(texts, np.full(n, 4)), index)
    episode = Episode("where was john ?", corpus, EpisodeConfig(step_budget=4))
    chosen, positions = (n // 5, n // 2, n // 2 + 1), np.linspace(0.0, 9.0, n)
    index.prepare_top_k()
    seconds = median_seconds(
        {
            "scores of all": lambda: index.q_values(state, positions),
            f"{BEST} best without positions": lambda: index.top_k(state, BEST),
            "a whole step": lambda: agent.look([(episode, chosen)]),
        },
        REPEATS,
    )
    spec = agent.spec
    plain = ChunkIndex(
        vectors, halves=spec.halves, theta=spec.rope_theta, resolution=spec.position_resolution
    )
    difference = np.abs(index.q_values(state, positions) - plain.q_values(state, positions)).max()
    return [
        *(Row(f"{name}, {n:,} chunks", 1000 * value, "ms") for name, value in seconds.items()),
        Row(f"largest difference of a score, {n:,} chunks", float(difference), "Q", "the processor"),
    ]
