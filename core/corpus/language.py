"""Whether texts are in another language than English."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

_SAMPLE = 200
"""Texts that are looked at, evenly spread."""
_LEAST_WORDS = 30
_WORD = re.compile(r"[^\W\d_]{2,}")
_BEYOND_LATIN = re.compile("[\u0370-\u1cff\u2c80-\ua6ff\ua8e0-\uffdc]")
_MOST_BEYOND_LATIN = 0.5
"""Of the letters."""
_MOST_ENGLISH = 0.12
"""Share of the commonest words of English (a, the, of) from which a text is in English: prose has 0.2."""
_LEAST_OTHER = 0.15
"""Share of another language's commonest words, in a text of it."""
_OTHERS = "GERMAN DUTCH FRENCH SPANISH PORTUGUESE ITALIAN SWEDISH DANISH NORWEGIAN TURKISH"
"""Languages whose commonest words are known here."""
_LEAST_MARKED = 0.04
"""Share of letters with marks, in languages of which no words are known here; English has few."""


def is_not_english(texts: Sequence[str]) -> bool:
    """Only where its letters or commonest words show another language: tables and programs have neither.

    >>> is_not_english(["Der Hafen ist im Winter zu, und die Fähre fährt nicht. " * 4])
    True
    >>> is_not_english(["The harbour is shut in winter, and the ferry does not go. " * 4])
    False
    """
    if not texts:
        return False
    at = np.unique(np.linspace(0, len(texts) - 1, _SAMPLE).astype(int))
    sample = "\n".join(texts[i] for i in at.tolist())
    words = _WORD.findall(sample.lower())
    letters = sum(map(len, words))
    if letters and len(_BEYOND_LATIN.findall(sample)) > _MOST_BEYOND_LATIN * letters:
        return True
    if len(words) < _LEAST_WORDS:
        return False
    from bm25s import stopwords

    def share(known: Sequence[str]) -> float:
        some = frozenset(known)
        return sum(word in some for word in words) / len(words)

    if share(stopwords.STOPWORDS_EN) >= _MOST_ENGLISH:
        return False
    others = (getattr(stopwords, f"STOPWORDS_{name}") for name in _OTHERS.split())
    marked = sum(not word.isascii() and sum(letter > "\x7f" for letter in word) for word in words)
    return marked > _LEAST_MARKED * letters or max(map(share, others)) > _LEAST_OTHER
