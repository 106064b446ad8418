"""The JSON-LD blocks of a page, as plain values. Forgives what pages get wrong around the JSON, never inside
it.

Keeps blocks in page order, and only those that parse. Bounded in number, size and depth. Knows nothing of
schema.org.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from core.ingest.limits import MAX_JSON_LD_BLOCKS, MAX_JSON_LD_CHARACTERS, MAX_JSON_LD_DEPTH

_OPENINGS = ("//<![CDATA[", "// <![CDATA[", "/*<![CDATA[*/", "/* <![CDATA[ */", "<![CDATA[", "<!--")
_CLOSINGS = ("//]]>", "// ]]>", "/*]]>*/", "/* ]]> */", "]]>", "-->", "//")
_SURROGATE = re.compile("[\ud800-\udfff]")


def parse_json_ld(sources: Iterable[str]) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    """The values of the blocks that parse, and a notice when some did not or were too many."""
    values: list[Any] = []
    n_bad = n_left_out = 0
    for source in sources:
        if len(values) >= MAX_JSON_LD_BLOCKS or len(source) > MAX_JSON_LD_CHARACTERS:
            n_left_out += 1
            continue
        try:
            values.append(_plain(json.loads(_unwrap(source), strict=False, parse_constant=_refuse)))
        except (ValueError, RecursionError):
            n_bad += 1
    notices = [f"{n_bad} JSON-LD blocks of the page are not valid JSON."] if n_bad else []
    if n_left_out:
        notices.append(
            f"{n_left_out} JSON-LD blocks were left out: at most {MAX_JSON_LD_BLOCKS} are kept, of"
            f" {MAX_JSON_LD_CHARACTERS:,} characters each."
        )
    return tuple(values), tuple(notices)


def _unwrap(source: str) -> str:
    """The JSON without the comment or CDATA marks around it and the semicolon after it."""
    source = source.strip()
    for opening in _OPENINGS:
        source = source.removeprefix(opening).lstrip()
    for closing in _CLOSINGS:
        source = source.removesuffix(closing).rstrip()
    return source.rstrip(";")


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _plain(value: Any, depth: int = 0) -> Any:
    """The value without lone surrogates, which no file or database takes. Raises ValueError when it is too
    deep.
    """
    if depth > MAX_JSON_LD_DEPTH:
        raise ValueError(f"nested deeper than {MAX_JSON_LD_DEPTH} levels")
    match value:
        case str():
            return _SURROGATE.sub("\ufffd", value)
        case list():
            return [_plain(item, depth + 1) for item in value]
        case dict():
            return {_plain(key): _plain(item, depth + 1) for key, item in value.items()}
        case _:
            return value
