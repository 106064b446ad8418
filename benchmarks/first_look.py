"""What the first look finds with vectors as they are served, against torch in float32.

`general` without its reranker, over long documents of the validation set; --n of them, the shortest first,
three by default. States are the same for both, and vectors are kept in the precision of the spec.
"""

from __future__ import annotations

import copy
import os
from unittest.mock import patch

import numpy as np

from benchmarks import Row
from benchmarks.likeliest import validation
from core.base.config import EpisodeConfig
from core.corpus.index import Corpus
from core.corpus.opening import chunk_documents, index_of
from core.encode.checkpoint import find_checkpoint
from core.encode.encoder import DualEncoder, load_encoder
from core.encode.engine import TorchEngine
from core.encode.weights import load_towers
from core.methods.qrag.agent import Agent, Episode

RECALLED = 50


def rows(n: int = 3) -> list[Row]:
    """Cosines of chunks, and shares of the best chunks that are the same."""
    with patch.dict(os.environ, {"QRAG_READER": "small"}):
        served = load_encoder("general", "cpu")
    exact = _in_torch(served)
    documents, asked = validation(n)
    cosines: list[np.ndarray] = []
    recalls: list[float] = []
    same_four = 0
    for i, document in enumerate(documents):
        workspace = chunk_documents([document], served)
        ours, theirs = (encoder.encode_chunks(workspace.texts()) for encoder in (served, exact))
        lengths = np.linalg.norm(ours, axis=1) * np.linalg.norm(theirs, axis=1)
        cosines.append((ours * theirs).sum(axis=1) / lengths)
        corpora = [
            Corpus(workspace, index_of(served, vectors.astype(served.spec.vectors)))
            for vectors in (ours, theirs)
        ]
        for _, query, _ in (one for one in asked if one[0] == i):
            best = [_best(served, query, corpus) for corpus in corpora]
            recalls.append(len(np.intersect1d(*best)) / len(best[1]))
            same_four += set(best[0][:4]) == set(best[1][:4])
    every = np.concatenate(cosines)
    against = f"torch float32, {len(every):,} chunks"
    questions = f"torch float32, {len(recalls)} questions"
    name = ", ".join(served.engine.split(", ")[:2])  # without how it was chosen
    return [
        Row(f"{name}: cosine, mean", float(every.mean()), "cosine", against),
        Row(f"{name}: cosine, least", float(every.min()), "cosine", against),
        Row(f"{name}: recall@{RECALLED}", float(np.mean(recalls)), "of the chunks", questions),
        Row(f"{name}: least recall@{RECALLED}", min(recalls), "of the chunks", questions),
        Row(f"{name}: the same best four", same_four / len(recalls), "of the questions", questions),
    ]


def _in_torch(served: DualEncoder) -> DualEncoder:
    """The same agent, its chunks by torch in float32."""
    exact = copy.copy(served)
    tower = load_towers(find_checkpoint("general"), served.spec).action
    exact._chunks = TorchEngine(served._pass_of(tower))
    return exact


def _best(encoder: DualEncoder, query: str, corpus: Corpus) -> np.ndarray:
    episode = Episode(query, corpus, EpisodeConfig(step_budget=1))
    (look,) = Agent(encoder).look([(episode, ())])
    return np.argsort(-look.scores.q_values, kind="stable")[:RECALLED]
