"""The JSON-LD blocks of a page, as values and as text.

Forgives what pages get wrong around the JSON, never inside it. Bounded in number, size and depth. Of
schema.org it knows the names `@type` and `@graph` alone.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from core.base.types import Notice
from core.ingest.limits import MAX_JSON_LD_BLOCKS, MAX_JSON_LD_CHARACTERS, MAX_JSON_LD_DEPTH

_OPENINGS = ("//<![CDATA[", "// <![CDATA[", "/*<![CDATA[*/", "/* <![CDATA[ */", "<![CDATA[", "<!--")
_CLOSINGS = ("//]]>", "// ]]>", "/*]]>*/", "/* ]]> */", "]]>", "-->", "//")
_LONGEST_TYPE = 40
_SURROGATE = re.compile("[\ud800-\udfff]")


def parse_json_ld(sources: Iterable[str]) -> tuple[tuple[Any, ...], tuple[Notice, ...]]:
    """The values of the blocks that parse, and a notice when some did not or were too many."""
    values: list[Any] = []
    n_bad = n_left_out = 0
    for source in sources:
        if len(values) >= MAX_JSON_LD_BLOCKS or len(source) > MAX_JSON_LD_CHARACTERS:
            n_left_out += 1
            continue
        try:
            values.append(_plain(json.loads(_unwrap(source), strict=False)))
        except (ValueError, RecursionError):
            n_bad += 1
    notices = [f"{n_bad} JSON-LD blocks of the page are not valid JSON."] if n_bad else []
    if n_left_out:
        notices.append(
            f"{n_left_out} JSON-LD blocks were left out: at most {MAX_JSON_LD_BLOCKS} are kept, of"
            f" {MAX_JSON_LD_CHARACTERS:,} characters each."
        )
    return tuple(values), tuple(map(Notice, notices))


def json_ld_text(values: Sequence[Any], most: int) -> str:
    """The blocks as JSON, one a line, cut after `most` characters.

    >>> json_ld_text([{"@type": "Recipe"}, {"name": "soup"}], 30)
    '{"@type": "Recipe"}\\n{"name": …'
    """
    return _joined((json.dumps(value, ensure_ascii=False) for value in values), most)


def json_ld_lines(values: Sequence[Any], most: int) -> str:
    """What the blocks say as "name: value" lines, for a reader of prose, cut after `most` characters. Names
    that begin with @ and addresses are left out.

    >>> json_ld_lines([{"@type": "Inn", "name": "Blue Anchor", "address": {"street": "Quay 3"}}], 100)
    'name: Blue Anchor\\naddress street: Quay 3'
    """
    leaves = (leaf for value in values for leaf in _leaves(value, ()))
    lines = ((names, " ".join(str(leaf).split())) for names, leaf in leaves)
    told = (
        f"{' '.join(names)}: {line}" if names else line
        for names, line in lines
        if line and not line.startswith(("http://", "https://"))
    )
    return _joined(told, most)


def _joined(lines: Iterable[str], most: int) -> str:
    text = ""
    for line in lines:
        text += ("\n" if text else "") + line
        if len(text) > most:
            return text[: most - 1] + "…"
    return text


def json_ld_types(values: Sequence[Any], most: int = 3) -> tuple[str, ...]:
    """The first different types of the blocks' own objects, not of what lies inside them.

    >>> json_ld_types([{"@graph": [{"@type": ["Article", "NewsArticle"]}]}, {"@type": "FAQPage"}])
    ('Article', 'NewsArticle', 'FAQPage')
    """
    types: dict[str, None] = {}
    for item in _objects(values):
        named = item.get("@type")
        for name in named if isinstance(named, list) else [named]:
            if isinstance(name, str) and name.strip():
                types[" ".join(name.split())[:_LONGEST_TYPE]] = None
        if len(types) >= most:
            break
    return tuple(types)[:most]


def _objects(values: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """Top-level objects, those of lists and graphs included."""
    for value in values:
        if isinstance(value, list):
            yield from _objects(value)
        elif isinstance(value, dict):
            graph = value.get("@graph")
            yield value
            if isinstance(graph, list):
                yield from _objects(graph)


def _leaves(value: Any, names: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """(names on the way, value) of everything that is no list and no object."""
    match value:
        case dict():
            for name, inner in value.items():
                if not name.startswith("@"):
                    yield from _leaves(inner, (*names, name[:_LONGEST_TYPE]))
                elif name == "@graph":
                    yield from _leaves(inner, names)
        case list():
            for inner in value:
                yield from _leaves(inner, names)
        case None | bool():
            return
        case _:
            yield names, value


def _unwrap(source: str) -> str:
    """The JSON without the comment or CDATA marks around it and the semicolon after it."""
    source = source.strip()
    for opening in _OPENINGS:
        source = source.removeprefix(opening).lstrip()
    for closing in _CLOSINGS:
        source = source.removesuffix(closing).rstrip()
    return source.rstrip(";")


def _plain(value: Any, depth: int = 0) -> Any:
    """The value without lone surrogates, which nothing stores. Raises ValueError when it is too deep, or has
    a number that JSON can't say: NaN, or 1e999, which is read as infinity.
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
        case float() if not math.isfinite(value):
            raise ValueError(f"{value} is not JSON")
        case _:
            return value
