"""Words, names and sentences of English text, by rules."""

from __future__ import annotations

import re
from collections.abc import Iterator

from core.corpus.words import words_of
from core.ingest.sentences import iter_sentences


def _listed(text: str) -> frozenset[str]:
    return frozenset(text.split())


WH_WORDS = _listed("what which who whom whose when where why how whether")
"""Left out of lexical queries, as the paper does (appendix A.3)."""

_EMPTY = WH_WORDS | _listed(
    "a about above after again against all also although am among an and another any are as at be because"
    " been before being below between both but by can could did do does doing done down during each either"
    " else ever every few following for former from further get give given had has have having he her here"
    " hers him his i if in including into is it its itself just last later least less located made make many"
    " may me might more most much must my name named near nearly neither next no nor not of off on once one"
    " only or other our out over own per please same shall she should so some such than that the their them"
    " then there these they this those through thus to too under until up upon us very via was we were while"
    " will with within without would yet you your"
)
"""Words that say nothing about what is asked."""

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_CAPITAL = (
    r"(?:(?:St|Mt|Dr|Mr|Mrs|Ms|Jr|Sr)\.|[^\W\d_a-zß-öø-ÿ](?:\.(?:[A-Z]\.)*|[\w\-]*(?:['’](?!s\b)[\w\-]+)*))"
)
_NAME = re.compile(
    rf"{_CAPITAL}(?:(?:\s+(?:of|the|and|de|la|van|von|for|in|at|du|di|&))?(?:\s+the)?\s+(?:{_CAPITAL}|\d+\b))*"
)
_BRACKETS = re.compile(r"\s*\([^)]*\)")
MAX_TITLE_WORDS = 14


def words(text: str) -> list[str]:
    """Lower-case words that say something, in order.

    >>> words("Who wrote the book of the year?")
    ['wrote', 'book', 'year']
    """
    return [word for word in _lowered(text) if word not in _EMPTY]


def _lowered(text: str) -> Iterator[str]:
    return (match.group().lower().replace("’", "'") for match in _WORD.finditer(text))


def counted_words(text: str) -> list[str]:
    """The same as BM25 counts them."""
    return [word for word in words_of(text) if word not in _EMPTY]


def without_wh(query: str) -> str:
    """A query for lexical search: wh-words left out, unless nothing else is left.

    >>> without_wh("In which year was Ada Lovelace born?")
    'In year was Ada Lovelace born?'
    """
    rest = " ".join(word for word in query.split() if word.lower().strip("?,.:;'\"") not in WH_WORDS)
    return rest if words(rest) else query


_CHOICE = _listed("or between both either")


def repeats(question: str, answer: str) -> bool:
    """Whether an answer says nothing that the question doesn't, unless it is one of its choices.

    >>> repeats("Where was the blanket before the chapel?", "the chapel"), repeats(
    ...     "Which is older, the mill or the chapel?", "the chapel")
    (True, False)
    """
    question_words, answer_words = plain(question).split(), words(answer)
    return bool(answer_words) and {*answer_words} <= {*question_words} and not _CHOICE & {*question_words}


def names(text: str) -> list[str]:
    """Runs of capitalised words, each once, in order; single words that say nothing are none.

    >>> names("The poet Emily Bronte was born in Thornton. She lived in the West Riding of Yorkshire.")
    ['Emily Bronte', 'Thornton', 'West Riding of Yorkshire']
    """
    names_in_order: dict[str, None] = {}
    for match in _NAME.finditer(text):
        name = match.group().rstrip(" .,-'’")
        first, _, rest = name.partition(" ")
        while rest and first.lower() in _EMPTY:
            name = rest
            first, _, rest = name.partition(" ")
        if len(name) > 2 and name.lower() not in _EMPTY:
            names_in_order.setdefault(name)
    return list(names_in_order)


def title(chunk: str) -> str:
    """What stands before the first colon of a chunk, if it can be a title; "" otherwise.

    >>> title("Scheria: A region in Greek mythology."), title("It was late.")
    ('Scheria', '')
    """
    head, colon, _ = chunk.partition(": ")
    return head if colon and len(head.split()) <= MAX_TITLE_WORDS and "\n" not in head else ""


def plain(text: str) -> str:
    """Lower-case words between blanks, one at either end, to look for phrases in; without bracketed parts.

    >>> plain("Vitellius (emperor), A.D. 69")
    ' vitellius a d 69 '
    """
    return f" {' '.join(_lowered(_BRACKETS.sub('', text)))} "


def mentions(text: str, name: str) -> bool:
    """Whether a text (as of `plain`) holds a name as a phrase. Names below three characters don't count."""
    phrase = plain(name)
    return len(phrase) > 4 and phrase in text


def sentences(text: str) -> Iterator[str]:
    """The sentences of a chunk, its title left with the first one."""
    return (text[start:end] for start, end in iter_sentences(text))
