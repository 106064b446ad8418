"""Lexical agreement: what it sees, and what it can't."""

from __future__ import annotations

import pytest

from core.answer.agreement import agreement, stem

PASSAGE = "Ruth Ade painted the old tower in 1907, before the cities grew."


@pytest.mark.parametrize(
    ("statement", "least", "most"),
    [
        ("The tower was painted in 1907.", 1.0, 1.0),
        ("Ruth Ade paints towers.", 1.0, 1.0),
        ("The tower was painted in 1911.", 0.4, 0.6),
        ("It was.", 0.0, 0.0),
    ],
)
def test_agreement(statement: str, least: float, most: float) -> None:
    assert least <= agreement(statement, PASSAGE) <= most


def test_what_it_can_not_see_and_hostile_texts() -> None:
    assert agreement("Bo gave Ruth the milk.", "Ruth gave Bo the milk.") == 1.0, "who did what"
    assert agreement("\ud800 \udfff", "\ud800") == 0.0
    assert 0 <= agreement("a" * 100_000, "b" * 1_000_000) <= 1
    assert stem("cities") == stem("city")
