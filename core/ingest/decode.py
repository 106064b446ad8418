"""Bytes -> text.

Byte order marks, declared encodings, UTF-8, and a guess where none of these fits. Says what it had to change.
The text that comes out has `\\n` line ends only, no control characters but tab, line and page feed, and no
lone surrogates.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Iterator
from operator import itemgetter

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
_TERMINAL = re.compile(r"\x1b(?:\[[0-?]{0,30}[ -/]{0,5}[@-~]|\][^\x07\x1b\n]{0,500}(?:\x07|\x1b\\))")
"""Colours, moves and links of a terminal."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_MAX_CONTROL_SHARE = 0.02
_GUESS_BYTES = 200_000
_BEYOND_ASCII = re.compile(rb"[\x80-\xff]+")
_XML_ENCODING = re.compile(rb"\s*+<\?xml\b[^<>]{0,200}\bencoding\s*=\s*[\"']([\w.:-]+)", re.ASCII)
_HTML_ENCODING = re.compile(rb"<\s*+meta\b[^<>]{0,1000}\bcharset\s*+=\s*+[\"']?\s*+([\w.:-]+)", re.IGNORECASE)
_UNREAD = re.compile(rb"<!--.{0,2000}?-->|<(script|style)\b.{0,5000}?</\1", re.DOTALL | re.IGNORECASE)
"""What names no encoding, whatever it says."""
_CLEANED_BYTES = 10_000
"""From the start, in which that is taken out: for each mark that is never closed thousands are read."""
_DECLARED_BYTES = 100_000
"""Where a page declares its encoding; browsers look at the first 1,024."""
_SAFE_CODEC = re.compile(
    r"ascii|iso8859-\d+|cp\d+|koi8-\w|big5(hkscs)?|gb\w+|euc_\w+|shift_jis\w*|iso2022_jp|mac-\w+|tis-620"
)
"""Codecs but UTF-8 that a page may declare; others (utf-7, escapes) smuggle text past a reader."""
_LABEL_LENGTH = 40
_OTHER_NAMES = (
    (re.compile(r"^(x-)+|(?<=\d)-?[ie]$|:\d{4}$"), ""),  # x-sjis; iso-8859-8-i: in the order of reading
    (re.compile(r"^(windows|win|dos|ms|cp)-?(?=\d)"), "cp"),
    (re.compile(r"^(cs)?iso-?8859-?(?=\d)"), "iso8859-"),
    (re.compile("^cp31j$"), "cp932"),
    (re.compile("^(cs)?gb-?2312(-80)?$"), "gb2312"),
    (re.compile("^cn-big5$"), "big5"),
    (re.compile("^cseucpkdfmtjapanese$"), "euc-jp"),
    (re.compile("^(cs)?ks-?c-?5601(-?19..)?$|^cseuckr$"), "euc-kr"),
    (re.compile("^koi8?$"), "koi8-r"),
    (re.compile("^(cs)?mac(intosh)?$"), "mac-roman"),
)
"""What Python calls otherwise than browsers and people do."""
_WIDER = {
    **dict.fromkeys(("ascii", "iso8859-1"), "cp1252"),
    **dict.fromkeys(("gb2312", "gbk"), "gb18030"),
    **dict.fromkeys(("tis-620", "iso8859-11"), "cp874"),
    "iso8859-9": "cp1254",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "big5": "big5hkscs",
    "iso2022_jp": "iso2022_jp_ext",
}
"""Codecs with which browsers read what is declared as another: they have its characters and more."""
_AS_BROWSERS = {"big5hkscs": str.maketrans("•､‾∼♁☉¥¢£￭", "‧﹑¯～⊕⊙￥￠￡▓")}
"""Signs of Big5 that browsers read otherwise."""
_MOST_VENDORS = 300_000
"""Characters that are looked for among those of vendors, each of which costs a call."""
_JIS_ESCAPE = re.compile(rb"\x1b\$[@B]")
"""Begins what is not ASCII in ISO-2022-JP, each byte of which is."""


def decode(
    data: bytes, name: str, *, is_html: bool = False, encoding: str = ""
) -> tuple[str, tuple[Notice, ...]]:
    """Text, and notices on changes. `encoding`: of what is not UTF-8. Raises BadDocument for no text."""
    for mark, marked in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return _replacing(data[len(mark) :], marked, name)
    _check_is_text(data, name)
    flaw = _flaw(data)
    if encoding and (flaw is not None or _is_jis(data)):
        return _replacing(data, codec_of(encoding) or "utf-8", name)
    if is_html and not data.isascii() and flaw is None:
        return _replacing(data, "utf-8", name)  # whatever the page declares
    declared = (_XML_ENCODING.match(data) or _HTML_ENCODING.search(_read_of(data))) if is_html else None
    named = codec_of(declared[1].decode("ascii")) if declared else None
    return _replacing(data, named, name) if named else _decode_undeclared(data, name, flaw, is_html=is_html)


def _read_of(data: bytes) -> bytes:
    """The beginning of a page, without comments and scripts in the first of it."""
    return _UNREAD.sub(b"", data[:_CLEANED_BYTES]) + data[_CLEANED_BYTES:_DECLARED_BYTES]


def _flaw(data: bytes) -> UnicodeDecodeError | None:
    """The first that keeps bytes from being UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return error
    return None


def _is_jis(data: bytes) -> bool:
    return data.isascii() and _JIS_ESCAPE.search(data) is not None


def normalise(text: str, name: str) -> str:
    """Line ends as `\\n`, lone surrogates and controls replaced. Raises BadDocument if mostly controls."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if "\0" in text:
        raise BadDocument(f"{name} contains NUL characters and is no text file; {_REMEDY}")
    text = _TERMINAL.sub("", text)
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
    label = declared.lower().replace("_", "-")
    for pattern, as_python in _OTHER_NAMES:
        label = pattern.sub(as_python, label)
    try:
        name = codecs.lookup(label).name if len(label) <= _LABEL_LENGTH else ""
    except (LookupError, ValueError):  # a NUL in it
        return None
    return _WIDER.get(name, name) if _SAFE_CODEC.fullmatch(name) else None


def _as_vendors(error: UnicodeError) -> tuple[str, int]:
    """What browsers read where Python's codec knows no character: one that vendors added."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    pair = error.object[error.start : error.start + 2]
    try:
        if error.encoding == "euc_jp":
            row, cell = (byte - 0xA1 for byte in pair)
            trail = cell + (0x9F if row % 2 else 0x40 if cell < 63 else 0x41)
            pair = bytes([row // 2 + (0x81 if row < 62 else 0xC1), trail])  # as in Shift JIS
            return pair.decode("cp932"), error.start + 2
        return pair.decode("cp950"), error.start + 2
    except ValueError:
        return "\ufffd", error.end


codecs.register_error("core.ingest.vendors", _as_vendors)


def _decoded(data: bytes, encoding: str) -> str:
    """Text of a codec as browsers read it, what is broken replaced."""
    text = data.decode(encoding, "replace")
    if encoding in ("euc_jp", "big5hkscs") and 0 < text.count("\ufffd") <= _MOST_VENDORS:
        text = data.decode(encoding, "core.ingest.vendors")
    return text.translate(_AS_BROWSERS[encoding]) if encoding in _AS_BROWSERS else text


def _replacing(data: bytes, encoding: str, name: str) -> tuple[str, tuple[Notice, ...]]:
    text = _decoded(data, encoding)
    broken = text.count("\ufffd")
    text = normalise(text, name)
    if not broken:
        return text, ()
    sentence = f"{broken:,} broken {encoding.upper()} characters were replaced by \ufffd."
    return text, (Notice(sentence, text.find("\ufffd")),)


def _decode_undeclared(
    data: bytes, name: str, flaw: UnicodeDecodeError | None, *, is_html: bool
) -> tuple[str, tuple[Notice, ...]]:
    """UTF-8, unless none of it is sound beyond ASCII, or more is broken than sound: then the best guess. A
    last character of which two bytes or more are left is no reason for one.
    """
    text = data.decode("utf-8", "replace")
    broken = text.count("\ufffd")
    sound = len(text) - broken - len(text.encode("ascii", "ignore"))
    is_cut = flaw and flaw.reason == "unexpected end of data" and flaw.start < len(data) - 1
    if (broken > (max(2, sound) if sound else 0) and not is_cut) or _is_jis(data):
        guess = _guess(data, is_html=is_html)
        guessed, notices = _replacing(data, guess, name)
        told = f"It is not UTF-8 and was read as {guess}, a guess: choose another if letters are wrong."
        return guessed, (Notice(told), *notices)
    return _replacing(data, "utf-8", name)


_TAG = re.compile(rb"<[^<>]*+>")
_SIGNS = "“”‘’„‚‹›–—…•«»€£§°©®™·±×µ½¼¾²³¿¡ªº\xa0\xad"
_WESTERN = "äöüßàâçèéêëîïôùœæøåñáíóúãìò"
_OF_WESTERN = ("cp1252", "iso8859-15", "mac_roman", "cp850")
_OF_EASTERN = ("cp1250", "iso8859-2")
_LATIN = {
    _WESTERN: _OF_WESTERN,
    "àâçèéêëîïôùûœ": _OF_WESTERN[:2],  # French
    "àáâãçéêíóôõúü": _OF_WESTERN[:2],  # Portuguese
    "äõöü": _OF_WESTERN,  # Estonian
    "ąćęłńóśźż": _OF_EASTERN,  # Polish
    "áčďéěíňóřšťúůýž": _OF_EASTERN,  # Czech
    "áäčďéíĺľňóôŕšťúýž": _OF_EASTERN,  # Slovak
    "áéíóöőúüű": _OF_EASTERN,  # Hungarian
    "çğıöşü": ("cp1254",),  # Turkish
    "ăâîşţ": _OF_EASTERN,  # Romanian
    "áðéíóúýþæö": _OF_WESTERN,  # Icelandic
    "čćđšž": _OF_EASTERN,  # Croatian
    "ąčęėįšųūž": ("cp1257",),  # Lithuanian
    "āčēģīķļņšūž": ("cp1257",),  # Latvian
}
"""Letters of languages of the Latin script, likelier ones first, and code pages in which they are written."""
_OTHER = {
    "оеаинтсрвлкмдпуіїє": ("cp1251", "koi8-r", "koi8-u", "cp866", "iso8859-5"),
    "αοιετσνηυρπκμςίόάέ": ("cp1253", "iso8859-7"),
    "יוהלאתרמבשנחםע": ("cp1255",),
    "الينمرتوبةدفعسكهح": ("cp1256", "iso8859-6"),
    "านรอกเงมยลวดทสตะปบคหจแพใไชขีั้ิ่็ุูึืำ์": ("cp874",),
}
"""The commonest letters of other scripts, likewise."""
_WIDE = (
    ("euc_jp", "euc_jp", "\xa1-\xa5\xb0-\xcf"),
    ("cp932", "shift_jis", "\x81-\x83\x88-\x97"),
    ("cp949", "euc_kr", "\xa1-\xa3\xb0-\xc8"),
    ("gb18030", "gb2312", "\xa1-\xa3\xb0-\xd7"),
    ("big5hkscs", "big5", "\xa1-\xa3\xa4-\xc6"),
)
"""Encodings with two bytes a character; the part of each that is in use; first bytes of its common ones."""
_WORDS = re.compile(rb"[A-Za-z]*+[\x80-\xff][A-Za-z\x80-\xff]*+")
_MOST_OF_WORDS = 20_000
_REPEATED = re.compile(rb"(.)\1+", re.DOTALL)
_BEYOND = re.compile("[^\x00-\x7f]++")
_NO_CHARACTER = re.compile("[\x80-\xa0\ue000-\uf8ff]")
"""What wide encodings have only where they are none: controls, and characters for private use."""
_KANA = re.compile("[\u3041-\u30fe]")
_SMALL = "".join(c for c in map(chr, range(0x530)) if c.islower())
_CAPITAL = "".join(c for c in map(chr, range(0x80, 0x530)) if c.isupper())
_LETTER = r"[^\W\d_]"
_ODD = re.compile(
    rf"(?<=[{_SMALL}])[{_CAPITAL}]|(?<=[{_SMALL}])(?<![a-z])[A-Z]"
    rf"|(?<={_LETTER})[^\w\s’'·\xad\u0e31-\u0e4e-](?={_LETTER})"
    rf"|(?<={_LETTER})[¿¡„‚±]|[½¼¾ªº²³¹](?={_LETTER})"
    r"|(?<![\u0e01-\u0e4e])[\u0e31\u0e34-\u0e3a\u0e47-\u0e4e]|[\x80-\x9f]"
)
"""What no word has: a capital behind a small letter, a sign between letters or at the wrong end of them, a
Thai vowel over nothing, controls.
"""
_SHOUTED = re.compile(f"[A-Z{_CAPITAL}]([{_CAPITAL}]++)([{_SMALL}]?)")
"""Capitals behind another: rare before a small letter, and all there is of Hebrew read as KOI8."""
_LONE_RUN = 1.5
"""Bytes beyond ASCII that follow on each other, on average, in words of the Latin script."""
_SHORT_RUN = 2.5
"""So many, and they are hardly of it, though quotes stand beside letters and a few letters in a row."""
_COMMON = 0.5
"""Share of common letters in a text of another script, at least."""
_MIN_KANA = 0.2
_MOST_BROKEN = 2
"""Characters that may be broken: a piece of a text may begin and end in one."""
_WESTERN_FIRST = 0.04
"""That others must fit better by than those of Western Europe: most texts are of it."""


def _guess(data: bytes, *, is_html: bool) -> str:
    """The encoding that makes the likeliest letters of the bytes beyond ASCII."""
    first = _BEYOND_ASCII.search(data)
    begin = max(0, (first.start() if first else 0) - _GUESS_BYTES // 2)
    data = data[begin : begin + _GUESS_BYTES]
    if first is None:
        return "iso2022_jp_ext"
    if is_html:
        data = _TAG.sub(b" ", data)
    words = b" ".join(_WORDS.findall(data))[:_MOST_OF_WORDS]
    runs = _BEYOND_ASCII.findall(_REPEATED.sub(rb"\1", words))
    run = sum(map(len, runs)) / max(1, len(runs))
    wide = [(share, one[0]) for one in _WIDE if (share := _share_of_wide(data, *one)) > 0]
    other = [*_shares(words, _OTHER), *wide] if run >= _LONE_RUN else wide
    best = max((*wide, *_shares(words, _LATIN), *other), key=itemgetter(0))
    best_other = max(other, key=itemgetter(0), default=(0.0, ""))
    return best_other[1] if run >= _SHORT_RUN and best_other[0] > _COMMON else best[1]


def _shares(words: bytes, pages: dict[str, tuple[str, ...]]) -> Iterator[tuple[float, str]]:
    """How many of the characters beyond ASCII are such letters, less what is odd; for each code page."""
    counted: dict[str, tuple[Counter[str], float]] = {}
    for letters, names in pages.items():
        wanted = {*letters, *letters.upper(), *(_SIGNS if pages is _LATIN else "")}
        for name in names:
            if name not in counted:
                text = words.decode(name, "replace")
                shouted = sum(len(run) * (0.5 if small else 0.05) for run, small in _SHOUTED.findall(text))
                odd = 2 * len(_ODD.findall(text)) + shouted
                counted[name] = Counter("".join(_BEYOND.findall(text))), odd
            beyond, odd = counted[name]
            share = (sum(beyond[c] for c in wanted) - odd) / max(1, beyond.total())
            yield share + (letters == _WESTERN and name in _OF_WESTERN[:2]) * _WESTERN_FIRST, name


def _share_of_wide(data: bytes, name: str, in_use: str, first_bytes: str) -> float:
    """How many of the characters are common ones; less where they are broken or stand alone in other text."""
    text = _decoded(data, name)
    broken = text.count("\ufffd") + len(_NO_CHARACTER.findall(text))
    stretches = _BEYOND.findall(text)
    beyond = Counter("".join(stretches))
    if broken > _MOST_BROKEN or not beyond:
        return 0.0
    if name == "euc_jp" and sum(beyond[c] for c in beyond if _KANA.match(c)) < _MIN_KANA * beyond.total():
        return 0.0
    added = data.decode(name, "replace").count("\ufffd") - text.count("\ufffd") if name == "euc_jp" else 0
    if 8 * added > beyond.total():  # so many of a vendor's characters are letters of another encoding
        return 0.0
    is_common = re.compile(f"[{first_bytes}]".encode("latin-1")).match
    common = sum(n for c, n in beyond.items() if is_common(c.encode(in_use, "ignore")))
    return (common - 5 * broken - 0.5 * sum(len(one) == 1 for one in stretches)) / beyond.total()
