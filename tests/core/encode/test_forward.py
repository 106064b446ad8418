"""Rows and batches of tokens: nothing lost, nothing twice, nothing beyond the window."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from core.encode.checkpoint import CheckpointSpec
from core.encode.forward import (
    batches_by_length,
    chunk_row,
    join_state,
    padded_rows,
    padded_width,
    pooled_vectors,
)
from core.encode.tokens import FastTokenizer

Parts = list[list[int]]


@pytest.fixture(scope="module")
def tokenizer(reference: Path) -> FastTokenizer:
    return FastTokenizer(reference / "tiny-bert")


@given(st.lists(st.integers(1, 600), max_size=60), st.integers(1, 4000))
def test_batches_hold_every_row_once_within_the_budget(lengths: list[int], budget: int) -> None:
    batches = list(batches_by_length(lengths, budget))
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= budget
    for batch, following in pairwise(batches):
        assert min(lengths[i] for i in batch) >= max(lengths[i] for i in following)
        assert (len(batch) + 1) * lengths[batch[0]] > budget  # a batch is closed because it is full


def spec_of(**fields: int) -> CheckpointSpec:
    return CheckpointSpec(name="made", trained=False, **fields)


parts = st.lists(st.integers(0, 120).map(lambda n: list(range(10, 10 + n))), min_size=1, max_size=20)


@given(parts, st.integers(8, 100), st.integers(41, 200))
def test_a_state_keeps_within_the_window_and_cuts_no_more_than_it_must(
    tokenizer: FastTokenizer, parts: Parts, most: int, window: int
) -> None:
    state = join_state(parts, spec_of(max_state_part_tokens=most), tokenizer, window)
    assert len(state.ids) <= window
    kept = rows_of(state.ids, tokenizer)
    assert len(kept) == len(parts)
    assert all(part[: len(row)] == row for part, row in zip(parts, kept, strict=True))
    assert state.n_dropped == sum(map(len, parts)) - sum(map(len, kept))
    wished = [part[: most - 2] for part in parts]
    if 1 + sum(len(row) + 1 for row in wished) <= window:
        assert kept == wished
    else:
        cap = max(map(len, kept))
        assert kept == [row[:cap] for row in wished]
        assert 1 + sum(min(len(row), cap + 1) + 1 for row in wished) > window


def rows_of(ids: list[int], tokenizer: FastTokenizer) -> Parts:
    assert ids[0] == tokenizer.cls_id
    rows: Parts = [[]]
    for token in ids[1:]:
        if token == tokenizer.sep_id:
            rows.append([])
        else:
            rows[-1].append(token)
    assert rows[-1] == []
    return rows[:-1]


@given(st.integers(0, 300), st.integers(8, 200), st.integers(8, 200))
def test_a_chunk_keeps_within_window_and_maximum(
    tokenizer: FastTokenizer, n: int, most: int, window: int
) -> None:
    part = list(range(10, 10 + n))
    row = chunk_row(part, spec_of(max_chunk_tokens=most), tokenizer, window)
    n_kept = min(n, most - 2, window - 2)
    assert row == [tokenizer.cls_id, *part[:n_kept], tokenizer.sep_id]


def test_half_precision_comes_in_few_widths_and_padding_says_nothing() -> None:
    from transformers import BertConfig, BertModel  # takes seconds: not for every worker that collects

    sizes = {
        "hidden_size": 16,
        "intermediate_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "max_position_embeddings": 40,
    }
    tower = BertModel(BertConfig(vocab_size=50, **sizes)).eval()
    assert [padded_width(n, tower, 16) for n in (1, 16, 17, 33, 40)] == [1, 16, 17, 33, 40]
    tower = tower.to(torch.bfloat16)
    assert [padded_width(n, tower, 16) for n in (1, 16, 17, 33, 40)] == [16, 16, 32, 40, 40]
    rows = [[2, 7, 9, 3], [2, 8, 3]]
    padded, tight = (pooled_vectors(tower, spec_of(), *padded_rows(rows, tower, 0, step)) for step in (16, 1))
    assert torch.allclose(padded, tight, atol=0.02)
