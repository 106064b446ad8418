"""Needles: what is asked can be read off the haystack, training and evaluation share nothing."""

from __future__ import annotations

import re
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.base.errors import BadRequest
from core.encode.tokens import FastTokenizer
from core.lab.tasks.example import Example, Noise
from core.lab.tasks.ruler import (
    LEAST_LENGTH,
    MAX_NEEDLE_TOKENS,
    RANDOM_IDS,
    VARIANTS,
    hay_of,
    long_qa,
    needle_example,
    needle_examples,
    needle_hay,
)

LABEL = re.compile(r"\b[a-z]+-[a-z]+-[a-z]+\b|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")


def asked_labels(example: Example) -> set[str]:
    return set(LABEL.findall(example.question))


def label_of(needle: str) -> str | None:
    """The label a needle files its value under; a UUID that is a value comes second."""
    found = LABEL.findall(needle)
    return found[0] if "ecret" in needle and found else None


def examples_of(variant: str, prose: Noise, tokenizer: FastTokenizer, n: int = 6) -> tuple[Example, ...]:
    return needle_examples(variant, 1500, n, 0, hay_of(variant, lambda: prose, 1500, 0, tokenizer), tokenizer)


@pytest.mark.parametrize("variant", VARIANTS)
def test_support_is_every_chunk_filed_under_an_asked_label(
    variant: str, prose: Noise, tokenizer: FastTokenizer
):
    kinds = VARIANTS[variant]
    for example in examples_of(variant, prose, tokenizer):
        labels = asked_labels(example)
        assert len(labels) == kinds.n_asked
        holding = [chunk_id for chunk_id, chunk in enumerate(example.chunks) if label_of(chunk) in labels]
        assert tuple(holding) == example.support
        assert len(holding) == kinds.n_asked * kinds.n_values
        assert all(
            value in "".join(example.chunks[chunk_id] for chunk_id in holding)
            for value in example.answers[0].split(", ")
        )
        n_filed = sum(label_of(chunk) is not None for chunk in example.chunks)
        assert n_filed == (
            len(example.chunks) if example.kind == RANDOM_IDS else kinds.n_labels * kinds.n_values
        )
        counts = tokenizer.count(list(example.chunks))
        assert counts.max() <= MAX_NEEDLE_TOKENS
        assert 1500 - MAX_NEEDLE_TOKENS < counts.sum() <= 1500


@given(st.sampled_from(list(VARIANTS)), st.integers(0, 500))
def test_training_draws_labels_and_values_of_its_own(tokenizer: FastTokenizer, variant: str, seed: int):
    rng = Random(seed)
    train_hay, test_hay = (needle_hay(rng, variant, 30, tokenizer, use) for use in ("train", "test"))
    train = needle_example(rng, variant, train_hay, 40)
    test = needle_examples(variant, LEAST_LENGTH, 1, seed, test_hay, tokenizer)[0]
    words = [
        set(re.findall(r"[0-9a-f]{8}-[0-9a-f-]{27}|[a-z]+-[a-z]+-[a-z]+|\d{7}", " ".join(example.chunks)))
        for example in (train, test)
    ]
    assert words[0].isdisjoint(words[1])
    assert all(words)
    assert len(train.chunks) == 40


def test_labels_in_a_hay_are_distinct_and_never_asked(tokenizer: FastTokenizer):
    hay = needle_hay(Random(0), "multikey-2", 2000, tokenizer, "test")
    labels = [label_of(text) for text in hay.texts]
    assert len(set(labels)) == 2000
    examples = needle_examples("multikey-2", 500, 300, 0, hay, tokenizer)
    assert set().union(*map(asked_labels, examples)).isdisjoint(labels)


def test_what_cannot_be_asked(prose: Noise, tokenizer: FastTokenizer):
    with pytest.raises(BadRequest, match="needle task 'single-9' does not exist"):
        needle_examples("single-9", 1000, 1, 0, prose, tokenizer)
    with pytest.raises(BadRequest, match="does not hold the 4 needles of multiquery"):
        needle_examples("multiquery", 20, 1, 0, prose, tokenizer)


def questions(n: int, n_chunks: int) -> list[Example]:
    """Questions whose second and last paragraphs support them; every paragraph ten tokens, one of them common
    to all.
    """
    return [
        Example(
            f"e{row}",
            "t",
            f"Question {row}?",
            (*(f"p{row} c{i} " + "river " * 6 for i in range(n_chunks - 1)), "shared " * 10),
            (1, n_chunks - 2),
        )
        for row in range(n)
    ]


def test_long_haystacks_keep_support_and_fill_up(prose: Noise, tokenizer: FastTokenizer):
    short = questions(5, 6)
    n_pool = int(tokenizer.count(list({text for example in short for text in example.chunks})).sum())
    for budget in (120, n_pool, n_pool + 900):
        examples, left_out = long_qa(short, budget, prose, 0, tokenizer, "t-long")
        assert left_out == 0
        for example, was in zip(examples, short, strict=True):
            chunks = list(example.chunks)
            assert {chunks[chunk_id] for chunk_id in example.support} == {
                was.chunks[chunk_id] for chunk_id in was.support
            }
            assert set(was.chunks) <= set(chunks)
            assert len(set(chunks) - set(prose.texts)) == len(
                [chunk for chunk in chunks if chunk not in prose.texts]
            )
            total = int(tokenizer.count(chunks).sum())
            assert budget - 64 < total <= budget
            assert any(chunk in prose.texts for chunk in chunks) == (budget > n_pool)
