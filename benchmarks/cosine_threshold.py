"""The cosine that best tells support from the rest.

It is that of the encoder that ships. RES-RAG (section 3.4.1) labels by a cosine of at least 0.4, with another
encoder. Here: for each threshold from 0 to 1 in steps of 0.01, the F1 of {chunks at or over it} against the
annotated support, averaged over 200 evenly spaced questions of each TRAINING set, then over the sets, so that
the largest doesn't decide alone. A question for which nothing is kept counts 0. Ties go to the lower
threshold. The vectors are those that the app would use, stored precision included, and are kept in its cache.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass

import numpy as np

from benchmarks import Row
from core.corpus.opening import vector_store
from core.encode.cache import embed_chunks
from core.encode.encoder import DualEncoder, load_encoder
from core.lab.tasks.data import data_folder
from core.methods.threshold import Threshold

SETS = ("hotpotqa", "musique", "2wikimultihopqa")
N_QUESTIONS = 200
"""Of each set: some 8,000 chunks in all, minutes on two cores."""
GRID = np.arange(101) / 100


@dataclass(frozen=True, eq=False)
class Scored:
    """Every (question, chunk) pair of one set. P pairs, M questions."""

    question: np.ndarray
    """(P,) int, ascending."""
    cosine: np.ndarray
    """(P,) float32."""
    support: np.ndarray
    """(P,) bool."""

    @property
    def n_questions(self) -> int:
        """M; every question has chunks."""
        return int(self.question[-1]) + 1

    def f1(self, threshold: float) -> np.ndarray:
        """(M,) F1 of each question."""
        kept = self.cosine >= threshold
        hits, n_kept, n_support = (
            np.bincount(self.question, weights=mask) for mask in (kept & self.support, kept, self.support)
        )
        f1: np.ndarray = 2 * hits / (n_kept + n_support)
        return f1


def rows() -> list[Row]:
    """The best threshold, and F1 there and at the paper's."""
    encoder = load_encoder("base")
    scored = {name: score(name, encoder) for name in SETS}
    means = {
        name: np.array([pairs.f1(threshold).mean() for threshold in GRID]) for name, pairs in scored.items()
    }
    overall = np.mean(list(means.values()), axis=0)
    best, paper = int(overall.argmax()), round(Threshold.PAPER_THRESHOLD * 100)
    against = f"F1 at {GRID[paper]:.2f}, RES-RAG's threshold"
    out = [
        Row("best threshold", float(GRID[best]), "cosine"),
        Row(
            f"mean F1 at {GRID[best]:.2f}, mean of the sets",
            float(overall[best]),
            "F1",
            against,
            float(overall[best] / overall[paper]),
        ),
    ]
    for name, pairs in scored.items():
        at_best, at_paper = means[name][best], means[name][paper]
        kept = float((pairs.cosine >= GRID[best]).sum() / pairs.n_questions)
        out += [
            Row(
                f"mean F1 at {GRID[best]:.2f}, {name}",
                float(at_best),
                "F1",
                against,
                float(at_best / at_paper),
            ),
            Row(f"mean F1 at {GRID[paper]:.2f}, {name}", float(at_paper), "F1"),
            Row(f"best threshold of {name} alone", float(GRID[means[name].argmax()]), "cosine"),
            Row(f"chunks kept a question at {GRID[best]:.2f}, {name}", kept, "chunks"),
            Row(f"size of {name}", pairs.n_questions, "questions"),
            Row(f"chunks of {name}", len(pairs.cosine), "chunks"),
        ]
    return out


def score(name: str, encoder: DualEncoder) -> Scored:
    """Cosines of one training set. Raises BadRequest, FileNotFoundError."""
    with gzip.open(data_folder() / name / "train.jsonl.gz", "rt", encoding="utf-8") as file:
        everything = [json.loads(line) for line in file]
    records = [everything[i * len(everything) // N_QUESTIONS] for i in range(N_QUESTIONS)]
    texts = [f"{chunk['title']}. {chunk['text']}" for record in records for chunk in record["chunks"]]
    chunks = embed_chunks(encoder, texts, vector_store(encoder)).astype(np.float32)
    states = [encoder.encode_states([encoder.state_tokens(record["question"], [])])[0] for record in records]
    question = np.repeat(np.arange(len(records)), [len(record["chunks"]) for record in records])
    support = np.concatenate(
        [np.isin(np.arange(len(record["chunks"])), record["support"]) for record in records]
    )
    questions = np.stack(states)[question]
    lengths = np.linalg.norm(chunks, axis=1) * np.linalg.norm(questions, axis=1)
    return Scored(question, (chunks * questions).sum(axis=1) / lengths, support)
