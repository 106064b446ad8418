"""Bytes -> text.

Byte order marks, declared encodings, UTF-8, and a guess where none of these fits. Says what it had to change.
The text that comes out has `\\n` line ends only, no control characters but tab, line and page feed, and no
lone surrogates.
"""

from __future__ import annotations

import codecs
import re

from core.base.errors import BadDocument
from core.base.types import Notice

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_MAGIC = {
    b"\x1f\x8b": "a gzip archive",
    b"\x89PNG": "an image",
    b"GIF8": "an image",
    b"{\\rtf": "an RTF file",
    b"\xd0\xcf\x11\xe0": "an old office file",
    b"\x7fELF": "a program",
}
_REMEDY = "save it as HTML, Markdown or plain text and open that"
_CONTROL = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_MAX_CONTROL_SHARE = 0.02
_GUESS_BYTES = 200_000
_MAX_WESTERN_SHARE = 0.2
_BEYOND_ASCII = re.compile(rb"[\x80-\xff]+")
_XML_ENCODING = re.compile(rb"\s*+<\?xml\b[^<>]{0,200}\bencoding\s*=\s*[\"']([\w.:-]+)", re.ASCII)
_HTML_ENCODING = re.compile(rb"<\s*+meta\b[^<>]{0,1000}\bcharset\s*+=\s*+[\"']?\s*+([\w.:-]+)", re.IGNORECASE)
_UNREAD = re.compile(rb"<!--.{0,2000}?-->|<(script|style)\b.{0,5000}?</\1", re.DOTALL | re.IGNORECASE)
"""What names no encoding, whatever it says."""
_CLEANED_BYTES = 10_000
"""From the start, in which that is taken out: for each mark that is never closed thousands are read."""
_DECLARED_BYTES = 100_000
"""Where a page declares its encoding; browsers look at the first 1,024."""
_SAFE_ENCODING = re.compile(
    r"us-?ascii|iso-?8859-?\d+|latin-?\d|windows-?\d+|cp\d+|koi8-?[ru]|big5(-?hkscs)?|gb\d+k?|euc-\w+|s(hift)?-?jis|mac-?\w+",
    re.IGNORECASE,
)
"""Encodings but UTF-8 that a page may declare; others (utf-7, escapes) smuggle text past a reader."""


def decode(
    data: bytes, name: str, *, is_html: bool = False, encoding: str = ""
) -> tuple[str, tuple[Notice, ...]]:
    """The text of a file and notices on what was changed; `encoding` is that of bytes that are not UTF-8, if
    known. Raises BadDocument when the bytes are no text.
    """
    for mark, marked in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return _replacing(data[len(mark) :], marked, name)
    _check_is_text(data, name)
    if encoding and not _is_utf8(data):
        return _replacing(data, codec_of(encoding) or "utf-8", name)
    if is_html and not data.isascii() and _is_utf8(data):
        return _replacing(data, "utf-8", name)  # whatever the page declares
    declared = (_XML_ENCODING.match(data) or _HTML_ENCODING.search(_read_of(data))) if is_html else None
    named = codec_of(declared[1].decode("ascii")) if declared else None
    return _replacing(data, named, name) if named else _decode_undeclared(data, name)


def _read_of(data: bytes) -> bytes:
    """The beginning of a page, without comments and scripts in the first of it."""
    return _UNREAD.sub(b"", data[:_CLEANED_BYTES]) + data[_CLEANED_BYTES:_DECLARED_BYTES]


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def normalise(text: str, name: str) -> str:
    """Line ends as `\\n`, lone surrogates and controls replaced. Raises BadDocument if mostly controls."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if "\0" in text:
        raise BadDocument(f"{name} contains NUL characters and is no text file; {_REMEDY}")
    cleaned, n_control = _CONTROL.subn(" ", text)
    if n_control > max(8, _MAX_CONTROL_SHARE * len(text)):
        raise BadDocument(f"{name} is binary, not text ({n_control:,} control characters); {_REMEDY}")
    return _SURROGATE.sub("\ufffd", cleaned)


def _check_is_text(data: bytes, name: str) -> None:
    for magic, what in _MAGIC.items():
        if data.startswith(magic):
            raise BadDocument(f"{name} is {what}, not text; {_REMEDY}")
    if b"\0" in data:
        raise BadDocument(f"{name} is binary, not text (it has a NUL byte at {data.index(0):,}); {_REMEDY}")


def codec_of(declared: str) -> str | None:
    """Python's name of an encoding that a page may declare and a person choose; None for any other."""
    if not _SAFE_ENCODING.fullmatch(declared.replace("_", "-")):
        return None
    try:
        name = codecs.lookup(declared).name
    except LookupError:
        return None
    return "cp1252" if name in ("iso8859-1", "ascii") else name  # as browsers read these labels


def _replacing(data: bytes, encoding: str, name: str) -> tuple[str, tuple[Notice, ...]]:
    text = data.decode(encoding, "replace")
    broken = text.count("\ufffd")
    text = normalise(text, name)
    if not broken:
        return text, ()
    sentence = f"{broken:,} broken {encoding.upper()} characters were replaced by \ufffd."
    return text, (Notice(sentence, text.find("\ufffd")),)


def _decode_undeclared(data: bytes, name: str) -> tuple[str, tuple[Notice, ...]]:
    """UTF-8, unless more of it is broken than sound beyond ASCII: then the best guess."""
    text = data.decode("utf-8", "replace")
    broken = text.count("\ufffd")
    sound = len(text) - broken - len(text.encode("ascii", "ignore"))
    if broken > max(2, sound):
        guess = _guess(data)
        if guess is not None:
            guessed, notices = _replacing(data, guess, name)
            told = f"It is not UTF-8 and was read as {guess}, a guess: choose another if letters are wrong."
            return guessed, (Notice(told), *notices)
    return _replacing(data, "utf-8", name)


_SIGNS = "“”‘’„–—…«»€"
_WESTERN = "äöüßàâçèéêëîïôùœæøåñáíóúãìò"
_LATIN = {
    "cp1252": _WESTERN + _SIGNS,
    "mac_roman": _WESTERN + _SIGNS,
    "cp850": _WESTERN,
    "cp1250": "ąćęłńóśźżáčďéěíňřšťúůýžőűöüăâîşţđ" + _SIGNS,
    "cp1254": "çğıöşüİâ" + _SIGNS,
    "cp1257": "āčēģīķļņšūžąęėįųõäöü" + _SIGNS,
}
"""Code pages of the Latin script, with letters of the languages that are written in them and signs."""
_OTHER = {
    "cp1251": "оеаинтсрвлкмдпуіо",
    "koi8-r": "оеаинтсрвлкмдпуіо",
    "cp866": "оеаинтсрвлкмдпуіо",
    "cp1253": "αοιετσνηυρπκμςίόά",
    "cp1255": "יוהלאתרמבש",
    "cp1256": "الينمرتوبةدفعسك",
}
"""Those of other scripts, with their commonest letters."""
_KANA, _HANGUL = re.compile("[\u3041-\u30fe]"), re.compile("[\uac00-\ud7a3]")
_BEYOND = re.compile("[^\x00-\x7f]")
_TURNED_CASE = re.compile(r"[^\W\d_A-Z](?<=[а-яё])[А-ЯЁ]")
_LONE_RUN = 1.5
"""Bytes beyond ASCII that follow on each other, on average, in words of the Latin script."""
_LIKELY_LATIN = 0.8
"""Share of letters that fit, from which a text full of them is of the Latin script."""
_WESTERN_FIRST = 0.08
"""That another Latin code page must fit better by: most texts that are no UTF-8 are Western European."""


def _guess(data: bytes) -> str | None:
    """The encoding that makes the likeliest letters of the bytes beyond ASCII; charset-normalizer between
    the two of Chinese. None where nothing fits.
    """
    first = _BEYOND_ASCII.search(data)
    begin = max(0, (first.start() if first else 0) - _GUESS_BYTES // 2)
    data = data[begin : begin + _GUESS_BYTES]
    runs = b" ".join(_BEYOND_ASCII.findall(data))
    beyond, n_runs = len(runs) - runs.count(b" "), runs.count(b" ") + 1
    latin = {name: _share(runs, name, letters) for name, letters in _LATIN.items()}
    latin["cp1252"] += _WESTERN_FIRST
    best_latin = max(latin, key=latin.__getitem__)
    if beyond < max(_MAX_WESTERN_SHARE * len(data), _LONE_RUN * n_runs):
        return best_latin
    for name, script, least in (
        ("euc-jp", _KANA, 0.2),
        ("shift_jis", _KANA, 0.2),
        ("cp949", _HANGUL, 0.85),
    ):
        text = data.decode(name, "ignore")
        is_script = len(script.findall(text)) > least * max(1, len(_BEYOND.findall(text)))
        if is_script and _is_sound(data, name) and not (name == "cp949" and _is_rare_korean(data)):
            return name
    other = {name: _share(runs, name, letters) for name, letters in _OTHER.items()}
    best = max(other, key=other.__getitem__)
    if other[best] > _COMMON:
        return best
    if latin[best_latin] > _LIKELY_LATIN:
        return best_latin
    import charset_normalizer  # slow to import, rarely needed

    found = charset_normalizer.from_bytes(data, cp_isolation=["gb18030", "big5"]).best()
    return best_latin if found is None else found.encoding


_COMMON = 0.5
"""Share of the commonest letters in a text of their script, at least."""


def _share(runs: bytes, encoding: str, letters: str) -> float:
    """How many of the characters beyond ASCII are such letters; less where small letters go on with capitals,
    as in KOI8 read as Windows-1251.
    """
    text = runs.decode(encoding, "replace")
    beyond = _BEYOND.findall(text)
    wanted = frozenset(letters)
    return (sum(c in wanted for c in beyond) - 2 * len(_TURNED_CASE.findall(text))) / max(1, len(beyond))


def _is_rare_korean(data: bytes) -> bool:
    """Whether much of it is none of the syllables of EUC-KR, those in use."""
    text = data.decode("euc_kr", "replace")
    return text.count("\ufffd") > 0.5 * len(_HANGUL.findall(text))


def _is_sound(data: bytes, encoding: str) -> bool:
    """Whether nearly all of the bytes are of an encoding; a piece of a text may begin in a character."""
    return data.decode(encoding, "replace").count("\ufffd") <= 2
