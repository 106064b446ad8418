"""A question and its passages as rows of tokens.

    [CLS] question [SEP] passage [SEP] passage [SEP] ...
Passages follow each other in the order given, as many as fit in a window; one that fits in none is read in
pieces that overlap. So an answer that needs two passages has both before it where they are short enough.
Halves of characters are read as "unknown": offsets stay those of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from core.answer.borders import in_word
from core.encode.tokens import FastTokenizer

QUESTION_TOKENS = 64
"""Most tokens of the question, which takes half a window at most."""
OVERLAP = 32
"""Tokens that two pieces of one passage share, at most a quarter of a piece."""
MOST_CHARACTERS = 200_000
"""Of all passages of a question: as much as a few hundred paragraphs have."""
NOWHERE = -1
"""Passage of a token that belongs to none: the question and the marks between."""

_HALF = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, eq=False, slots=True)
class Window:
    """One row of T tokens."""

    ids: list[int]
    n_question: int
    """Tokens up to and with the mark behind the question."""
    passages: np.ndarray
    """(T,) which passage each token belongs to, or NOWHERE."""
    starts: np.ndarray
    """(T,) code point in its passage at which each token starts."""
    ends: np.ndarray
    may_begin: np.ndarray
    """(T,) bool: an answer may begin here, because a word does."""
    may_end: np.ndarray


@dataclass(frozen=True, slots=True)
class _Piece:
    """Some tokens of one passage."""

    passage: int
    ids: list[int]
    spans: list[tuple[int, int]]


def without_halves(text: str) -> str:
    """A text of the same length that can be encoded.

    >>> without_halves("a" + chr(0xD800) + "b")
    'a\ufffdb'
    """
    return _HALF.sub("\ufffd", text)


def read_windows(
    tokenizer: FastTokenizer, question: str, passages: Sequence[str], window: int
) -> list[Window]:
    """Rows of at most `window` tokens that hold all passages; none where no passage has a token."""
    texts = _bounded(passages)
    [(question_ids, _), *pieces] = tokenizer.pieces([without_halves(question), *texts])
    question_ids = question_ids[: min(QUESTION_TOKENS, window // 2)]
    room = window - len(question_ids) - 2
    rows: list[list[_Piece]] = [[]]
    left = room
    for passage, (ids, spans) in enumerate(pieces):
        for piece in _pieces(_Piece(passage, ids, spans), room - 1):
            if len(piece.ids) + 1 > left:
                rows.append([])
                left = room
            rows[-1].append(piece)
            left -= len(piece.ids) + 1
    return [_window(tokenizer, question_ids, row, texts) for row in rows if row]


def _bounded(passages: Sequence[str]) -> list[str]:
    """The passages, cut where all that is read has been read."""
    texts, left = [], MOST_CHARACTERS
    for passage in passages:
        texts.append(without_halves(passage[:left]))
        left -= len(texts[-1])
    return texts


def _pieces(whole: _Piece, most: int) -> Iterator[_Piece]:
    """A passage, in overlapping pieces where longer than `most` tokens; nothing for one without tokens."""
    stride = most - min(OVERLAP, most // 4)
    for first in range(0, max(1, len(whole.ids) - (most - stride)), stride):
        if whole.ids:
            yield _Piece(whole.passage, whole.ids[first : first + most], whole.spans[first : first + most])


def _window(
    tokenizer: FastTokenizer, question_ids: list[int], pieces: Sequence[_Piece], texts: Sequence[str]
) -> Window:
    ids = [tokenizer.cls_id, *question_ids, tokenizer.sep_id]
    n_question = len(ids)
    columns: list[tuple[int, int, int, bool, bool]] = [(NOWHERE, 0, 0, False, False)] * n_question
    for piece in pieces:
        text = texts[piece.passage]
        columns += [
            (piece.passage, start, end, not _splits(text, start), not _splits(text, end))
            for start, end in piece.spans
        ]
        columns.append((NOWHERE, 0, 0, False, False))
        ids += [*piece.ids, tokenizer.sep_id]
    token_ids, starts, ends, begins, stops = (np.array(column) for column in zip(*columns, strict=True))
    return Window(ids, n_question, token_ids, starts, ends, begins, stops)


def _splits(text: str, at: int) -> bool:
    """Whether a place lies within a word or number."""
    return 0 < at < len(text) and in_word(text[at - 1]) and in_word(text[at])
