"""Which words of a quote are learned as the answer that a person gave in other words."""

from __future__ import annotations

import numpy as np
import pytest

from core.base.types import ChunkTable
from core.lab.tasks.natural import holding_chunks, shared_spans


@pytest.mark.parametrize(
    ("text", "answer", "words"),
    [
        ("uh probably a two hundred foot range .", "two hundred feet", ["two hundred"]),
        ("will raise a `WebSocketDisconnect` exception", "WebSocketDisconnect", ["WebSocketDisconnect"]),
        ("Guy Fawkes, sort of; an infantine Guy Fawkes.", "Guy Fawkes", ["Guy Fawkes", "Guy Fawkes"]),
        ("in the old mill, beside the mill race", "the mill race", ["mill race"]),
        ("nothing of the kind", "Paris", []),
        ("", "Paris", []),
    ],
)
def test_the_words_that_share_most(text: str, answer: str, words: list[str]) -> None:
    assert [text[start:end] for _, start, end in shared_spans(text, answer)] == words


def test_f1_is_that_of_the_words() -> None:
    assert shared_spans("the Sulu pirates", "the Sulu pirates") == [(1.0, 4, 16)]
    [(f1, _, _)] = shared_spans("half of a bottle", "half a bottle of genever")
    assert f1 == pytest.approx(2 * 3 / (3 + 4))


def test_the_fewest_chunks_hold_the_quotes() -> None:
    start, end = np.array([0, 10, 20, 30]), np.array([10, 20, 30, 40])
    zeros = np.zeros(4, dtype=np.int32)
    table = ChunkTable(
        start=start,
        end=end,
        n_tokens=zeros,
        type_code=zeros,
        heading_code=zeros,
        heading_paths=((),),
        n_duplicates=0,
    )
    assert holding_chunks(table, [(31, 39), (2, 9)]) == (0, 3)
    assert holding_chunks(table, [(5, 15)]) == (0, 1)
    assert holding_chunks(table, [(8, 20)]) == (1,), "it holds enough of it"
    assert holding_chunks(table, []) == ()
