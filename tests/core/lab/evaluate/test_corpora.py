"""Examples share vectors, and score as if each had been embedded alone."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.corpus.index import ChunkIndex
from core.encode.cache import EmbedProgress, VectorStore
from core.lab.evaluate import corpora
from core.lab.evaluate.corpora import index_examples, join_chunks
from core.lab.tasks.example import Example
from core.lab.tasks.pooled import pooled
from core.methods.qrag.agent import Agent


def test_every_chunk_has_its_own_vector(
    agents: dict[str, Agent], examples: list[Example], store: VectorStore
) -> None:
    encoder = agents["relative10"].encoder
    indexed = list(index_examples(examples, encoder, store=store))
    assert [corpus.example for corpus in indexed] == examples
    for corpus in indexed:
        texts = list(corpus.example.chunks)
        assert (len(corpus), corpus.borders.tolist()) == (len(texts), [0, len(texts)])
        assert list(corpus.texts()) == texts == [corpus.text(i) for i in range(len(texts))]
        alone = ChunkIndex(encoder.encode_chunks(texts), halves=encoder.spec.halves)
        np.testing.assert_allclose(corpus.index.vectors[corpus.index.rows], alone.vectors, atol=1e-5)


def test_questions_over_one_pool_share_all_of_it(
    agents: dict[str, Agent], examples: list[Example], store: VectorStore
) -> None:
    over_lists = [example for example in examples if isinstance(example.chunks, tuple)]
    first, second = index_examples(pooled(over_lists, "pool")[:2], agents["none"].encoder, store=store)
    assert first.example.id != second.example.id
    assert first.index is second.index
    assert first.words is second.words


def test_the_matrix_is_shared_and_holds_each_text_once(
    agents: dict[str, Agent], examples: list[Example], store: VectorStore
) -> None:
    indexed = list(index_examples(examples, agents["relative10"].encoder, store=store))
    assert len({corpus.index.vectors.data_ptr() for corpus in indexed}) == 1
    # "night fell ." stands in the noise and in a listed context: the two kinds don't look for each other
    own = {
        text
        for example in examples
        for text in (example.chunks if isinstance(example.chunks, tuple) else example.chunks.own)
    }
    assert len(indexed[0].index.vectors) == 5 + len(own)


def test_only_noise_that_is_read_is_embedded(
    agents: dict[str, Agent], examples: list[Example], store: VectorStore
) -> None:
    seen: list[EmbedProgress] = []
    (corpus,) = index_examples([examples[3]], agents["relative10"].encoder, seen.append, store=store)
    assert len(corpus.index.vectors) == 4  # two rows of noise, the last and the first, and two facts
    assert max(progress.done for progress in seen) == 4
    (again,) = index_examples([examples[3]], agents["relative10"].encoder, seen.append, store=store)
    assert seen[-1].n_cached == seen[-1].total == 4
    np.testing.assert_array_equal(again.index.vectors, corpus.index.vectors)


def test_many_own_texts_are_worked_off_in_parts(
    agents: dict[str, Agent], examples: list[Example], store: VectorStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = agents["relative10"].encoder
    whole = list(index_examples(examples, encoder, store=store))
    monkeypatch.setattr(corpora, "MOST_OWN_TEXTS", 3)
    parts = list(index_examples(examples, encoder, store=store))
    assert len({corpus.index.vectors.data_ptr() for corpus in parts}) > 1
    for a, b in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(a.index.vectors[a.index.rows], b.index.vectors[b.index.rows])


class Words:
    """A tokenizer that counts words."""

    def count(self, texts: list[str]) -> np.ndarray:
        return np.array([len(text.split()) for text in texts], dtype=np.int32)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=30), st.integers(1, 20), st.data())
def test_joining(sizes: list[int], max_tokens: int, data: st.DataObject) -> None:
    chunks = tuple(" ".join(f"w{i}.{j}" for j in range(size)) for i, size in enumerate(sizes))
    support = tuple(sorted(data.draw(st.sets(st.integers(0, len(chunks) - 1), min_size=1, max_size=3))))
    joined = join_chunks(Example("e", "t", "q ?", chunks, support), Words(), max_tokens)
    assert " ".join(joined.chunks) == " ".join(chunks)
    assert all(len(text.split()) <= max_tokens or text in chunks for text in joined.chunks)
    first_words = {chunks[i].split()[0] for i in support}
    assert set(joined.support) == {
        i for i, text in enumerate(joined.chunks) if first_words & set(text.split())
    }
    for before, after in pairwise(joined.chunks):
        following = next(chunk for chunk in chunks if chunk.split()[0] == after.split()[0])
        assert len(before.split()) + len(following.split()) > max_tokens, "the next chunk would have fitted"
