"""Compressed arrays and texts: nothing is lost, and damage is seen."""

from __future__ import annotations

import contextlib
import zlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from core.base.errors import LogError
from core.runs.log.blobs import (
    decode_scores,
    decode_table,
    decode_text,
    encode_scores,
    encode_table,
    encode_text,
    inflate,
)
from tests.core.runs.log.recording import chunk_table


@given(hnp.arrays(np.float32, st.integers(0, 200), elements=st.floats(width=32)))
def test_scores_come_back_bit_for_bit(scores: np.ndarray) -> None:
    assert decode_scores(encode_scores(scores), len(scores)).tobytes() == scores.tobytes()


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_texts_come_back(text: str) -> None:
    assert decode_text(encode_text(text)) == text


@pytest.mark.parametrize("n_chunks", [0, 1, 7])
def test_tables_come_back(n_chunks: int) -> None:
    table = chunk_table(n_chunks)
    copy = decode_table(encode_table(table))
    for column in ("start", "end", "n_tokens", "type_code", "heading_code"):
        np.testing.assert_array_equal(getattr(copy, column), getattr(table, column))
        assert getattr(copy, column).dtype == getattr(table, column).dtype
    assert copy.heading_paths == table.heading_paths


@pytest.mark.parametrize("n_chunks", [9, 11])
def test_scores_of_another_length_are_refused(n_chunks: int) -> None:
    with pytest.raises(LogError):
        decode_scores(encode_scores(np.ones(10, np.float32)), n_chunks)


@given(st.binary(max_size=60))
def test_garbage_is_refused(blob: bytes) -> None:
    for decode in (decode_table, decode_text, lambda data: decode_scores(data, 10)):
        with pytest.raises(LogError):
            decode(blob)


@given(st.data())
def test_a_flipped_bit_never_gives_other_scores(data: st.DataObject) -> None:
    scores = np.linspace(-1, 1, 40, dtype=np.float32)
    blob = bytearray(encode_scores(scores))
    blob[data.draw(st.integers(0, len(blob) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with contextlib.suppress(LogError):
        assert decode_scores(bytes(blob), 40).tobytes() == scores.tobytes()


def test_a_table_whose_header_is_a_bomb_is_not_parsed() -> None:
    header = b'{"n":0,"heading_paths":[' + b"[]," * 30_000 + b"[]]}"
    with pytest.raises(LogError, match="its header is too long for its chunks"):
        decode_table(zlib.compress(header + b"\n"), 100)
    with pytest.raises(LogError, match="longer than"):
        decode_table(encode_table(chunk_table(900_000)), 100)
    table = replace(chunk_table(3), heading_paths=(("a heading of a whole page " * 4_000,),))
    assert decode_table(encode_table(table)).heading_paths == table.heading_paths, (
        "the log keeps what the project itself made"
    )


def test_a_bomb_is_not_unpacked() -> None:
    with pytest.raises(LogError, match="longer than"):
        inflate(zlib.compress(bytes(10_000_000)), 1000)
