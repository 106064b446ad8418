"""Where sentences begin and end.

Rules over one compiled pattern, linear in the text, offsets exact. It finds places where a sentence may end.
Only a full stop needs a second look: the word before it (abbreviation, initial, number) and the word after it
(small letter, usual first word of a sentence) decide. Single line breaks mean nothing, so hard-wrapped books
work, and a text without any full stop is cut at its empty lines. The abbreviations are English, German and
French.

Own rules, since the one small and fast library tried (sentencex 1.0) takes "(It was so.) Next one." and whole
quoted speeches for one sentence, and others rebuild the text and lose the offsets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_CLOSERS = r"[\"'”’»›)\]}*_」』）】〉》]"
_NOTES = r"(?:\[\w{1,4}\]|\^\d{1,3}(?!\d)|[\u00b9\u00b2\u00b3\u2070\u2074-\u2079]{1,3})*+"
"""References to notes: [2], ^4."""
_OPENERS = "\"'“‘«‹„‚([{*_「『（【〈《¿¡—–-"

_BOUNDARY = re.compile(
    rf"""
      (?<![.!?…]) (?P<stop> [.!?…؟۔।॥]++ ) {_CLOSERS}*+ (?:[ \u00a0\u202f]»)?+ {_NOTES} (?P<gap> \s++ )   # closing punctuation, quotes, notes, a blank
    | (?P<cjk> [。！？｡]++ {_CLOSERS}*+ \s*+ )                             # needs no blank after it
    | (?P<line> \n (?: [ \t]*+ \n \s*+                                     # an empty line
                     | (?= [ ]{{0,12}} (?: [-+•*] | \d{{1,3}}[.)] ) [ \t] | [ ]{{0,3}} (?: \| | \#{{1,6}}[ ] ) ) ) )
    """,
    re.VERBOSE,
)
_WORD_BEFORE = re.compile(r"[\w.&-]+$")
_BLANK = re.compile(r"\s*")


def _words(line: str) -> frozenset[str]:
    return frozenset(line.split())


_NEVER_LAST = _words(
    "mr mrs ms mx dr prof rev hon gen col capt cpt lt sgt maj adm gov sen rep messrs mme mmes mlle mlles mgr"
    " fr st ste mt ft vs cf ca approx esp resp viz e.g i.e z.b d.h u.a o.ä v.a bzw evtl ggf vgl sog geb dipl"
    " ing hr frl p.ex med env av sra srta"
)
"""A name or an explanation follows these: a full stop after them is never the end."""

_BEFORE_NUMBER = _words(
    "no nos nr vol vols p pp fig figs ch chap art sec eq ed bd abb abs kap vers bk pt op ver tel c b d r fl"
)
"""Not the end when a number follows ("No. 5"); otherwise words like any other ("No. Never.")."""

_MAYBE_LAST = _words(
    "jr sr inc ltd co corp bros etc al usw jan feb mar apr jun jul aug sept sep oct nov dec mon tue wed thu"
    " fri sat sun min std mio mrd ave blvd rd dept univ assn est"
)
"""Abbreviations that may end a sentence: they do when a usual first word follows."""

_FIRST_WORDS = _words(
    "a an the this that these those there here it its he she they we you i his her their our my your in on at"
    " for from with by as if when while after before then but and or so yet not no who what where why how one"
    " some many most all each both another however although der die das ein eine es er sie wir ihr ich im am"
    " und aber le la les un une il elle ils elles on ce cette nous vous je et mais"
)
_AFTER_ORDINAL = _words(
    "januar februar märz april mai juni juli august september oktober november dezember jahrhundert"
    " jahrhunderts jahrtausend weltkrieg weltkriegs"
)
"""German words that a number before them counts: am 3. Mai."""
_LETTER_WITH_STOP = re.compile(r"[A-Za-z]\.")
_NUMBER_WORD = re.compile(r"\d|[IVXLC]+\b")


def split_sentences(text: str) -> list[tuple[int, int]]:
    """Spans of the sentences of `text`, in order; every character outside them is blank.

    >>> [("Dr. No paid $3.50. He left.")[a:b] for a, b in split_sentences("Dr. No paid $3.50. He left.")]
    ['Dr. No paid $3.50.', 'He left.']
    """
    return list(iter_sentences(text))


def iter_sentences(text: str) -> Iterator[tuple[int, int]]:
    """The same spans one by one: millions of them need no list."""
    start = _skip_blanks(text, 0)
    for match in _BOUNDARY.finditer(text):
        if match["stop"] is not None and not _is_end(text, start, match):
            continue
        # A stop belongs to its sentence, CJK stops have no gap behind them, a line end belongs to none.
        before = match.end() if match["cjk"] is not None else match.start()
        before = before if match["stop"] is None else match.start("gap")
        end = start + len(text[start:before].rstrip())
        if end > start:
            yield start, end
            start = match.end() if match["line"] is None else _skip_blanks(text, match.end())
    end = len(text.rstrip())
    if end > start:
        yield start, end


def _skip_blanks(text: str, position: int) -> int:
    match = _BLANK.match(text, position)
    return match.end() if match else position


def _is_end(text: str, start: int, match: re.Match[str]) -> bool:
    """Whether closing punctuation ends the sentence that began at `start`."""
    if "\n" in match["gap"] and match["gap"].count("\n") > 1:
        return True
    # No sentence begins with a small letter, whatever abbreviation stands before it.
    following = text[match.end() : match.end() + 24].lstrip(_OPENERS)
    if following[:1].islower():
        return False
    if match["stop"] != "." or match.end("stop") < match.start("gap"):
        return True
    # Of a full stop alone: the word before decides, looked for within bounds, since texts are hostile.
    word = _WORD_BEFORE.search(text, max(start, match.start() - 24), match.start())
    return word is None or not _is_abbreviation(word.group(), word.start() == start, following)


def _is_abbreviation(word: str, is_first: bool, following: str) -> bool:
    """Whether the full stop after `word` belongs to it, given what follows."""
    small = word.lower()
    if small in _NEVER_LAST or (len(word) == 1 and _is_initial(word, following)):
        return True
    if small in _BEFORE_NUMBER:
        return _NUMBER_WORD.match(following) is not None
    if word.isdigit():
        return is_first or (len(word) <= 2 and _first_word(following) in _AFTER_ORDINAL)
    if small in _MAYBE_LAST or _is_dotted(word):
        return _first_word(following) not in _FIRST_WORDS
    return False


def _is_initial(letter: str, following: str) -> bool:
    """A capital other than I ("J. Jones"), or the first half of a spaced abbreviation ("z. B.")."""
    names = letter.isupper() and letter != "I" and _first_word(following) not in _FIRST_WORDS
    return names or _LETTER_WITH_STOP.match(following) is not None


def _first_word(following: str) -> str:
    return re.split(r"\W", following, maxsplit=1)[0].lower()


def _is_dotted(word: str) -> bool:
    """U.S, a.m, Ph.D: single letters, or nearly, between full stops."""
    return "." in word and all(0 < len(part) <= 2 and part.isalpha() for part in word.split("."))
