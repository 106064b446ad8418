"""The words of a text, as search compares them.

A text is cut into tokens, and each gives the words under which it is found: whole and in parts, with accents
and without, numbers without separators. Scripts without blanks between words, and Korean, whose words carry
their particles, give pairs of characters. English stop words are dropped.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import pairwise

_UNSPACED = (
    "\u0e01-\u0e4e\u0e81-\u0ece\u1000-\u103f\u104c-\u108f\u109a-\u109f\uaa60-\uaa7f\u1780-\u17d3\u17dd"
    "\u3005-\u3007\u3031-\u3035\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
    "\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff\uffa0-\uffdc"
)
"""Thai to Khmer; kana; Han; Korean."""
_ALONE = re.compile("[\u3007\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\U00020000-\U000323af]")
"""Han and Korean: a character is a word, too."""
_INVISIBLE = "\u00ad\u034f\u061c\u0640\u180e\u200b-\u200f\u2060-\u2062\u2064\ufe00-\ufe0f\ufeff"
"""Soft hyphens, joiners, marks of direction, and what stretches Arabic words."""
_UNITS = "\u3300-\u33ff"
"""㎏ and the like, which are symbols to Unicode."""
_DROPPED = re.compile(f"[{_INVISIBLE}]")
_ACCENTS = re.compile(
    "[\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u1ab0-\u1aff"
    "\u1dc0-\u1dff\u20d0-\u20ff]"
)
"""Accents, and vowels of Hebrew and Arabic: people write the same word without. Not so in India."""
_BARE = str.maketrans({"ı": "i", "ł": "l", "ø": "o", "đ": "d", "ð": "d", "ħ": "h", "æ": "ae", "œ": "oe"})
_PLAIN = str.maketrans({"’": "'", "ʼ": "'", "‐": "-", "٬": ",", "٫": "."})
_RAISED = re.compile("(?<=\\d)(?=[\u00b2\u00b3\u00b9\u00bc-\u00be\u2070-\u2079\u2150-\u215f])")
"""Before digits that do not go on with the number: 10⁶ is not 106."""
_HUMP = re.compile(r"(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_ENDING = re.compile(r"'(?:s|t|d|m|ll|re|ve)$")
_ELIDED = re.compile(r"(?<!\w)[^\W\d]'(?=\w)")
_JOINS = str.maketrans("_.@&", "----")
_BETWEEN = re.compile(r"[-_@&]+|(?<!\d)[.,:' ]|[.,:' ](?!\d)")
_RUN = re.compile(r"\d+(?:[.,:' ]\d+)*|\D+")
_GROUPED = re.compile(
    r"(?P<whole>[1-9]\d{0,2}(?:(?P<mark>[,.' ])\d{3}(?:(?P=mark)\d{3})*|(?:,\d{2})+,\d{3}))"
    r"(?:[.,](?P<rest>\d+))?"
)
_DIGITS = re.compile(r"\d+")
_PROGRAM = re.compile(r"(\w+)(\+\+|#)(\d*)")


_GLUE = "\u2063"
"""In the place of a blank that belongs to a word. As it is invisible, a text that has it loses nothing."""
_NAMED_A = re.compile(r" A(?<=[^\W\d] A)(?![\w'’])")
"""As in "vitamin A"."""
_BEFORE_GROUP = re.compile(r" (?<=\d )(?=\d{3}(?!\d))")
_NARROW_BEFORE_GROUP = re.compile(r"[\u00a0\u2009\u202f](?<=\d.)(?=\d{3}(?!\d))")
_AROUND = ",:'_.&@-;!?\"()[]*…“”„‘’«»–—"
_BEFORE = _AROUND.replace(".", "#+")
"""Not the point of .NET."""
_BLANKED = bytes(c if c > 127 or chr(c).isalnum() or chr(c) in "_-.@&'#+,:" else 32 for c in range(256))
"""UTF-8 with blanks in the place of what is in no token."""
_SIGNS = (", ", ". ", "“", "”")
_CUT_WORD = re.compile(r"(?<=[^\W\d_])(?:-|\u00ad)\n(?=[^\W\d_A-Z])")
_LONGEST_KEPT = 64
"""Characters of a piece whose words are kept for the next time."""


@cache
def _token() -> re.Pattern[str]:
    """What is a token of a piece between blanks."""
    marks = "".join(chr(i) for i in range(0x300, 0x1F000) if unicodedata.category(chr(i))[0] == "M")
    letter, mark = rf"[^\W_{_UNSPACED}]", f"[{marks}{_INVISIBLE}{_UNITS}]"
    part = f"{letter}+(?:{mark}+{letter}*)*"
    join = r"(?:[-_.@&'’ʼ‐‑－＿．＠＆＇]|(?<=\d)[,:٬٫，：](?=\d))"
    number = rf"(?<![\d.,])[1-9]\d{{0,2}}(?:{_GLUE}\d{{3}})+(?:[.,]\d+)?"
    word = rf"(?:(?<![\w.])\.(?=[A-Za-z]))?{part}(?:{join}{part})*(?:[+＋]{{2}}\d*|[#＃](?!\w))?"
    run = f"[{_UNSPACED}](?:[{_UNSPACED}]|{mark})*"
    return re.compile(rf"{_GLUE}A|{number}|{word}|{run}|§")


def words_of(text: str) -> list[str]:
    """The words that count, in order, repeats included.

    >>> words_of("Where was the letter of Anna, the letter?")
    ['where', 'letter', 'anna', 'letter']
    >>> words_of("E-1003 costs 1,234 crowns")
    ['e1003', 'e', '1003', 'costs', '1234', '1.234', 'crowns']
    """
    return [word for piece in pieces_of(text) for word in words_in(piece)]


def identifiers(text: str) -> list[str]:
    """The words that are written as one of several parts: codes, file names, dates, joined names.

    >>> identifiers("Which secret is filed under E-1003 and mellow-reed-teapot, and who was at the café?")
    ['e1003', 'mellowreedteapot']
    """
    return [
        words[0] for start, end, words in located(text) if len(words) > 1 and not text[start:end].isalpha()
    ]


def content_words(text: str) -> list[str]:
    """Those of them that say what a text is about: no question words, pronouns or auxiliaries.

    >>> content_words("Who was it that Anna had written to, and which letter was hers?")
    ['anna', 'written', 'letter']
    """
    from bm25s.stopwords import STOPWORDS_EN_PLUS

    return [word for word in words_of(text) if word not in STOPWORDS_EN_PLUS]


def located(text: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """(start, end, its words) of each token of a text."""
    for piece in re.finditer(r"\S+", _glued(text)):
        for token in _token().finditer(piece[0]):
            blank = token[0].startswith(_GLUE)
            yield piece.start() + token.start() + blank, piece.start() + token.end(), _words(token[0])


def pieces_of(text: str) -> list[str]:
    """What stands between blanks and the commonest signs that are of no word, for `words_in`."""
    text = _glued(text).encode("utf-8", "surrogatepass").translate(_BLANKED).decode("utf-8", "surrogatepass")
    for sign in _SIGNS:
        text = text.replace(sign, " ")
    return text.split()


def _glued(text: str) -> str:
    """A text of the same length whose words have no blanks in them."""
    if "-\n" in text or "\u00ad\n" in text:  # a word goes on in the next line; soft hyphens are in none
        text = _CUT_WORD.sub(lambda cut: "\u00ad-" if cut[0] == "-\n" else "\u00ad\u00ad", text)
    text = _BEFORE_GROUP.sub(_GLUE, _NAMED_A.sub(_GLUE + "A", text))
    return text if text.isascii() else _NARROW_BEFORE_GROUP.sub(_GLUE, text)


def words_in(piece: str) -> tuple[str, ...]:
    """The words of a piece. Few texts have many different pieces, so they are quick to look up."""
    if piece.isascii() and piece.isalpha() and (piece.islower() or piece.istitle()):
        word = piece.lower()
        return () if word in _stop_words() else (word,)
    plain = piece.rstrip(_AROUND).lstrip(_BEFORE).replace("’", "'")
    if plain.isascii():
        has_hump = not (plain[1:].islower() or plain.isupper() or plain.istitle())
        word = (_HUMP.sub("_", plain) if has_hump else plain).lower()
        if "'" in word:
            word = _ENDING.sub("", word)
        if word.isalpha() or word.isdecimal():
            return () if word in _stop_words() else (word,)
        parts = word.translate(_JOINS).split("-")
        if all(map(str.isalpha, parts)):
            return _counted(["".join(parts), *parts])
    return _kept(piece) if len(piece) <= _LONGEST_KEPT else _read(piece)


def _read(piece: str) -> tuple[str, ...]:
    return tuple(word for token in _token().findall(piece) for word in _words(token))


_kept = lru_cache(maxsize=1 << 14)(_read)


def _words(token: str) -> tuple[str, ...]:
    return _counted(_found_as(token))


def _counted(words: list[str]) -> tuple[str, ...]:
    """Those of the words of a token that count, none twice."""
    return tuple([word for word in dict.fromkeys(words) if word not in _stop_words()])


@cache
def _stop_words() -> frozenset[str]:
    from bm25s.stopwords import STOPWORDS_EN  # brings scipy: when words are first asked for

    return frozenset(STOPWORDS_EN)


def _found_as(token: str) -> list[str]:
    if token in (f"{_GLUE}A", "§"):
        return [token[-1]]
    text = token
    if not token.isascii():
        parts = _RAISED.split(token)
        if len(parts) > 1:
            return [word for part in parts for word in _found_as(part)]
        text = unicodedata.normalize("NFKC", _DROPPED.sub("", token.replace(_GLUE, " "))).translate(_PLAIN)
        if text[0] >= _UNSPACED[0] and re.match(f"[{_UNSPACED}]", text):
            return _pairs(text)
        text = "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in text)
    program = _PROGRAM.fullmatch(text.casefold()) if "+" in text or "#" in text else None
    if program is not None:
        name, sign, version = program.groups()
        return [name + sign + version, name + sign, *filter(None, [version, name * (len(name) > 1)])]
    words = _whole_and_parts(_HUMP.sub("_", text).casefold())
    if text.startswith("."):
        words.append(text.casefold())
    return [form for word in words for form in _forms(word)]


def _whole_and_parts(text: str) -> list[str]:
    """
    >>> _whole_and_parts("harbour")
    ['harbour']
    >>> _whole_and_parts("e-1003"), _whole_and_parts("read_file"), _whole_and_parts("3.11.2")
    (['e1003', 'e', '1003'], ['readfile', 'read', 'file'], ['3.11.2', '3.11', '3', '11', '2'])
    """
    own = pieces = _BETWEEN.split(text)
    if "'" in text:
        text = _ENDING.sub("", text)
        pieces, own = _BETWEEN.split(text), _BETWEEN.split(_ELIDED.sub("", text))
    filled = [piece for piece in pieces if piece]
    words = ["".join(filled).replace(" ", "")] if len(filled) > 1 else []
    for piece in own:
        if piece.isalpha():
            words.append(piece)
            continue
        runs = _RUN.findall(piece)
        if len(runs) > 2:  # a hash: its parts say nothing
            words.append(piece)
        else:
            words += [piece] * (len(runs) == 2)
            words += [word for run in runs for word in (_number(run) if run[0].isdecimal() else (run,))]
    return words


def _number(text: str) -> list[str]:
    """
    >>> _number("1,234,567.5"), _number("1.234"), _number("3,14")
    (['1234567.5', '1234567'], ['1234', '1.234'], ['3.14', '3', '14'])
    """
    grouped = _GROUPED.fullmatch(text)
    plain = re.sub("[,' ]", ".", text)
    parts = _DIGITS.findall(text)
    if grouped is None or text[grouped.end("whole") :][:1] == grouped["mark"] is not None:
        longer = [".".join(parts[:n]) for n in range(len(parts) - 1, 1, -1)]
        return [plain, *longer, *parts] if len(parts) > 1 else parts
    whole, rest = "".join(_DIGITS.findall(grouped["whole"])), grouped["rest"]
    words = [f"{whole}.{rest}", whole] if rest else [whole]
    if grouped["mark"] == " ":  # perhaps two numbers
        return [*words, *parts]
    return [*words, plain] if len(parts) == 2 and grouped["mark"] != "'" else words


def _pairs(text: str) -> list[str]:
    """
    >>> _pairs("渡轮几"), _pairs("はし")
    (['渡轮', '轮几', '渡', '轮', '几'], ['はし'])
    """
    letters: list[str] = []
    for character in text:
        if letters and unicodedata.category(character)[0] == "M":
            letters[-1] += character
        else:
            letters.append(character)
    alone = letters if len(letters) == 1 else [letter for letter in letters if _ALONE.fullmatch(letter)]
    return [*map("".join, pairwise(letters)), *alone]


def _forms(word: str) -> tuple[str, ...]:
    """A word, and without its accents."""
    if word.isascii():
        return (word,)
    bare = _ACCENTS.sub("", unicodedata.normalize("NFD", word)).translate(_BARE)
    return (unicodedata.normalize("NFC", word), unicodedata.normalize("NFC", bare))
