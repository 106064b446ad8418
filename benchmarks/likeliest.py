"""What a preview finds of what the agent will find, in real documents.

A question to a document that is still embedded has the chunks embedded first that share most words with it.
Asked here: of the quotes that `general` covers with its best 20 chunks, how many are covered by the best M of
an order that needs no vectors of chunks. The orders are BM25; token vectors, the action tower's of each token
alone, weighed by rarity and averaged; and their sum. Among those M the agent's Q is exact: it finds those of
its best 20 that are there. --n documents, the shortest first; all ten long ones of the validation set by
default. Its eight novels are also searched together: a million tokens.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import numpy as np
from scipy.sparse import csr_matrix

from benchmarks import Row
from core.base.config import EpisodeConfig
from core.base.errors import BadRequest
from core.base.metrics import is_covered
from core.base.types import Document
from core.corpus.bm25 import WordIndex, words_of
from core.corpus.index import Corpus
from core.corpus.opening import default_chunk_configs, open_corpus
from core.encode.encoder import DualEncoder, load_encoder
from core.ingest import chunk_document
from core.lab.tasks.data import data_folder
from core.lab.tasks.documents import (
    DocumentFolder,
    QuoteFinder,
    TextPlace,
    places_of,
    read_document_questions,
)
from core.methods.qrag.agent import Agent, Episode

LEAST_CHARACTERS = 200_000
"""Shorter documents are embedded before anybody can ask."""
AGENT_CHUNKS = 20
SIZES = (25, 50, 100, 200)
RARITY = 1e-4
"""Share of all tokens at which one counts half."""

Asked = tuple[int, str, tuple[TextPlace, ...]]
"""Index of a document, a question about it, places of its quotes."""


def rows(n: int = 10) -> list[Row]:
    """Shares by order and size, then seconds."""
    encoder = load_encoder("general", "cpu")
    tokens = _token_vectors(encoder)
    documents, asked = validation(n)
    singly = [
        ([documents[i]], [(0, *one[1:]) for one in asked if one[0] == i]) for i in range(len(documents))
    ]
    novels = [i for i, document in enumerate(documents) if document.kind == "text"]
    together = [(novels.index(i), query, places) for i, query, places in asked if i in novels]
    out = [*_shares(f"{len(documents)} documents", singly, encoder, tokens)]
    if len(novels) > 1:
        group = [documents[i] for i in novels]
        out += _shares(f"{len(novels)} novels as one", [(group, together)], encoder, tokens)
        out += _seconds(group, together[0][1], encoder)
    return out


def validation(n: int) -> tuple[list[Document], list[Asked]]:
    data = data_folder()
    path = data / "natural" / "validation.jsonl.gz"
    questions, folder = read_document_questions(path), DocumentFolder(data, path)
    read = {name: folder.read(name) for name in {one.document for one in questions}}
    long = [name for name, document in read.items() if len(document.text) >= LEAST_CHARACTERS]
    names = sorted(long, key=lambda name: len(read[name].text))[:n]
    finders = {name: QuoteFinder(read[name].text, name) for name in names}
    asked: list[Asked] = []
    for question in questions:
        if question.document in finders and question.quotes:
            try:
                places = places_of(question, finders[question.document])
            except BadRequest:  # a quote that the converter changed
                continue
            asked.append((names.index(question.document), question.question, places))
    return [read[name] for name in names], asked


def _shares(
    label: str,
    groups: Sequence[tuple[list[Document], list[Asked]]],
    encoder: DualEncoder,
    tokens: np.ndarray,
) -> Iterator[Row]:
    """Documents of a group are searched together."""
    hits: dict[tuple[str, int], int] = {}
    n_found = 0
    for documents, asked in groups:
        corpus = open_corpus(documents, encoder).corpus
        static = _averages(encoder, corpus, tokens)
        for document, query, places in asked:
            episode = Episode(query, corpus, EpisodeConfig(step_budget=AGENT_CHUNKS))
            (look,) = Agent(encoder).look([(episode, ())])
            found = _covered(corpus, document, places, look.scores.q_values, AGENT_CHUNKS)
            n_found += len(found)
            for name, scores in _orders(query, corpus, look.state_vector, static).items():
                for size in SIZES:
                    covered = _covered(corpus, document, found, scores, size)
                    hits[name, size] = hits.get((name, size), 0) + len(covered)
    for (name, size), hit in hits.items():
        against = f"the agent's best {AGENT_CHUNKS}, {n_found} quotes"
        yield Row(f"{label}: {name}, best {size}", hit / n_found, "of the quotes", against)


def _orders(query: str, corpus: Corpus, state: np.ndarray, static: np.ndarray) -> dict[str, np.ndarray]:
    words = corpus.words.shares(words_of(query))
    cosines = static @ state
    return {"words": words, "static": cosines, "static + words / 2": cosines + words / 2}


def _covered(
    corpus: Corpus, document: int, places: Sequence[TextPlace], scores: np.ndarray, size: int
) -> list[TextPlace]:
    """Of places in one document, those that the best chunks of all cover."""
    table, first = corpus.workspace.tables[document], int(corpus.borders[document])
    best = np.argsort(-scores, kind="stable")[:size] - first
    evidence = [
        (int(table.start[row]), int(table.end[row])) for row in best.tolist() if 0 <= row < len(table.start)
    ]
    return [place for place in places if is_covered(place, evidence)]


def _token_vectors(encoder: DualEncoder) -> np.ndarray:
    """(V, D): what the action tower makes of each token alone."""
    cls, sep = encoder.tokenizer.cls_id, encoder.tokenizer.sep_id
    rows = [[cls, token, sep] for token in range(encoder.tokenizer.vocabulary_size)]
    batches = ((list(range(i, min(i + 300, len(rows)))), rows[i : i + 300]) for i in range(0, len(rows), 300))
    return np.concatenate([vectors for _, vectors in encoder._chunks.run(batches)])


def _averages(encoder: DualEncoder, corpus: Corpus, tokens: np.ndarray) -> np.ndarray:
    """(N, D) static vectors of chunks, of length 1."""
    rows = encoder.tokenizer.ids(corpus.texts())
    ends = np.cumsum([0, *map(len, rows)])
    counts = csr_matrix(
        (np.ones(ends[-1], np.float32), np.concatenate(rows), ends), shape=(len(rows), len(tokens))
    )
    shares = np.asarray(counts.sum(0)).ravel() / ends[-1]
    sums: np.ndarray = counts @ (tokens * (RARITY / (RARITY + shares))[:, None])
    return sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-9)


def _seconds(documents: list[Document], query: str, encoder: DualEncoder) -> Iterator[Row]:
    """Of the processors, before a first look and of embedding all."""
    corpus = open_corpus(documents, encoder).corpus
    began = time.process_time()
    configs = default_chunk_configs(documents, encoder)
    for document, config in zip(documents, configs, strict=True):
        chunk_document(document, config, encoder.tokenizer)
    cut = time.process_time()
    index = WordIndex(corpus.texts())
    indexed = time.process_time()
    best = np.argsort(-index.scores(words_of(query)), kind="stable")[: SIZES[-1]]
    encoder.encode_chunks([corpus.text(chunk_id) for chunk_id in best.tolist()])
    embedded = time.process_time()
    n_tokens = corpus.workspace.n_tokens
    yield Row(f"{n_tokens:,} tokens: cutting", cut - began, "CPU s")
    yield Row(f"{n_tokens:,} tokens: index of words", indexed - cut, "CPU s")
    embedding = embedded - indexed
    share = float(corpus.workspace.tables[0].n_tokens.mean()) * SIZES[-1] / n_tokens
    yield Row(f"embedding the {SIZES[-1]} likeliest", embedding, "CPU s", "embedding all", share)
