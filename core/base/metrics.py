"""Scores of what was retrieved and answered; over nothing None, never 0."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def fact_em(retrieved: Collection[int], support: Collection[int]) -> float:
    """1 when every support chunk was retrieved, else 0 (Q-RAG appendix H).

    >>> fact_em([4, 1, 9], [1, 4])
    1.0
    """
    return float(set(support) <= set(retrieved))


def fact_f1(retrieved: Collection[int], support: Collection[int]) -> float:
    """Harmonic mean of precision and recall; 0 for nothing retrieved. Raises ValueError without support.

    >>> fact_f1([1, 2, 3, 4], [3, 4, 7, 8])
    0.5
    """
    _check(support)
    return 2 * _hits(retrieved, support) / (len(set(retrieved)) + len(set(support)))


def fact_recall(retrieved: Collection[int], support: Collection[int]) -> float:
    """Share of the support that was retrieved. Raises ValueError when no support is known."""
    _check(support)
    return _hits(retrieved, support) / len(set(support))


def fact_precision(retrieved: Collection[int], support: Collection[int]) -> float | None:
    """Share of the retrieved chunks that are support; None when nothing was retrieved."""
    return _hits(retrieved, support) / len(set(retrieved)) if retrieved else None


def false_positive_rate(retrieved: Collection[int], support: Collection[int], n_chunks: int) -> float | None:
    """Share of the other chunks that were retrieved (Q-RAG appendix B); None when every chunk is support."""
    others = n_chunks - len(set(support))
    return len(set(retrieved) - set(support)) / others if others else None


def _hits(retrieved: Collection[int], support: Collection[int]) -> int:
    return len(set(retrieved) & set(support))


def _check(support: Collection[int]) -> None:
    if not support:
        raise ValueError("no support is known for this question, so its facts can't be scored")


RIGHT_FROM = 0.5
"""F1 from which on an answer counts as right: people put the answers of documents into words of their own."""
COVERED = 0.6
"""Share of a quote that evidence must hold to count as having found it."""


def share_covered(place: tuple[int, int], evidence: Iterable[tuple[int, int]]) -> float:
    """Share of a place's characters that the evidence holds, overlaps once; places: (first, behind the last).

    >>> share_covered((10, 20), [(0, 12), (11, 14), (18, 30)])
    0.6
    """
    first, end = place
    held, reached = 0, first
    for start, stop in sorted(evidence):
        start, stop = max(start, reached), min(stop, end)
        if stop > start:
            held, reached = held + stop - start, stop
    return held / (end - first)


def is_covered(place: tuple[int, int], evidence: Iterable[tuple[int, int]]) -> bool:
    """Whether the evidence holds enough of a place to have found it."""
    return share_covered(place, evidence) >= COVERED


def plain_answer(text: str) -> str:
    """An answer as SQuAD compares them: lower case, no punctuation, no English articles, single spaces.

    >>> plain_answer("The  Eiffel Tower.")
    'eiffel tower'
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def answer_em(answer: str, accepted: Collection[str]) -> float:
    """1 when the answer equals an accepted one as SQuAD compares. Raises ValueError when none is accepted."""
    return max(float(plain_answer(answer) == plain_answer(one)) for one in _not_empty(accepted))


def answer_f1(answer: str, accepted: Collection[str]) -> float:
    """F1 of the words shared with the nearest accepted answer; "yes", "no" and empty are right or wrong.

    >>> answer_f1("Paris, France", ["Paris"]), answer_f1("no", ["no relation"])
    (0.6666666666666666, 0.0)
    """
    return max(
        word_f1(plain_answer(answer).split(), plain_answer(one).split()) for one in _not_empty(accepted)
    )


def answer_accuracy(answer: str, accepted: Collection[str]) -> float:
    """1 when the answer contains an accepted one, word for word (SPARC-RAG section 4.1).

    >>> answer_accuracy("in Paris, France", ["paris"]), answer_accuracy("Parisian", ["paris"])
    (1.0, 0.0)
    """
    text = f" {plain_answer(answer)} "
    return max(
        float(bool(plain_answer(one)) and f" {plain_answer(one)} " in text) for one in _not_empty(accepted)
    )


def _not_empty(accepted: Collection[str]) -> Collection[str]:
    if not accepted:
        raise ValueError("no answer is known for this question, so an answer can't be scored")
    return accepted


def word_f1(words: Sequence[str], accepted: Sequence[str]) -> float:
    """`answer_f1` of plain words against those of one accepted answer."""
    whole = {" ".join(words), " ".join(accepted)}
    if len(whole) == 1 or whole & {"", "yes", "no"}:
        return float(len(whole) == 1)
    shared = sum((Counter(words) & Counter(accepted)).values())
    return 2 * shared / (len(words) + len(accepted))


def jaccard(first: Collection[int], second: Collection[int]) -> float | None:
    """Shared over all; None where both are empty.

    >>> jaccard([1, 2, 3], [3, 4])
    0.25
    """
    union = {*first, *second}
    return len({*first} & {*second}) / len(union) if union else None
