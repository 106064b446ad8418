"""How much of a statement's content stands in a passage.

Lexical agreement, not entailment. Names and numbers count NAME_WEIGHT times, since a statement with one that
the passage lacks is rarely borne out by it. A word counts as found with another ending. It does not see who
did what to whom: a statement that swaps two names of a passage agrees with it fully.
"""

from __future__ import annotations

import re

_LITTLE_WORDS = (
    "a an and are as at be been but by did do does for from had has have he her hers him his how i in is it"
    " its me my no not of on or our she so than that the their them then there these they this those to was"
    " we were what when where which who whom whose why will with would you your"
)
_LITTLE = frozenset(_LITTLE_WORDS.split())
NAME_WEIGHT = 2.0
"""Weight of a name or number; other words weigh 1."""
_STEM = 4
"""Letters that two forms of a word have in common at least, less one where an ending is cut off."""
_WORD = re.compile(r"\w+(?:['’]\w+)?")


def agreement(statement: str, passage: str) -> float:
    """Weighted share of the statement's words that stand in the passage, 0 to 1; 0 for a statement without
    content.

    >>> agreement("The tower was painted in 1907.", "In 1907 they painted the old tower."), agreement(
    ...     "It opened in 1907.", "It opened in 1889.")
    (1.0, 0.3333333333333333)
    """
    stems = {stem(word) for word in _WORD.findall(passage.lower())}
    total = hits = 0.0
    for word in _WORD.findall(statement):
        if word.lower() in _LITTLE:
            continue
        weight = NAME_WEIGHT if word[0].isupper() or word[0].isdigit() else 1.0
        total += weight
        hits += weight * (stem(word.lower()) in stems)
    return hits / total if total else 0.0


def stem(word: str) -> str:
    """A word without its ending, crudely: enough to find "painted" for "paint" and "cities" for "city".

    >>> stem("cities") == stem("city"), stem("1907")
    (True, '1907')
    """
    for ending in ("'s", "’s", "ings", "ing", "ies", "ed", "es", "ly", "s", "y", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= _STEM - 1 and not word[0].isdigit():
            return word.removesuffix(ending)
    return word
