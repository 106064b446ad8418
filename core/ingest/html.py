"""An HTML page -> Markdown, title and JSON-LD.

The cleaned tree goes through markitdown's converter of pages, called directly: it opens neither files nor
addresses. The result is Markdown without links and images; asterisks and underscores of the text are not
escaped, since people and encoders read it.
"""

from __future__ import annotations

import io
import re

from bs4 import BeautifulSoup

from core.base.errors import BadDocument
from core.base.types import Notice
from core.ingest.clean import clean
from core.ingest.converted import Converted
from core.ingest.json_ld import parse_json_ld
from core.ingest.lean import import_markitdown
from core.ingest.limits import MAX_HTML_CHARACTERS, MAX_HTML_DEPTH, MAX_HTML_TAGS
from core.ingest.soup import parse_html, tags_named

_JSON_LD_TYPE = re.compile(r"^\s*application/ld\+json", re.IGNORECASE)
_BLANK_LINES = re.compile(r"\n(?:[ \t]*+\n)++")
_WIDE_GAP = re.compile(r"(?<!\s)\s{200,}+")
"""Trimming text before a longer gap costs the converter the square of its length."""


def check_size(html: str, name: str) -> int:
    """How many tags a page has at most, end tags included. Raises BadDocument when it is too large."""
    if len(html) > MAX_HTML_CHARACTERS:
        raise BadDocument(
            f"{name} is an HTML page of {len(html):,} characters, more than {MAX_HTML_CHARACTERS:,}; save its"
            " text and open that"
        )
    if (n_tags := html.count("<")) > MAX_HTML_TAGS:
        raise BadDocument(
            f"{name} is an HTML page with {n_tags:,} tags, more than {MAX_HTML_TAGS:,}; save its text and"
            " open that"
        )
    return n_tags


def read_html(html: str, name: str) -> Converted:
    """Cleans and converts a page. Raises BadDocument when it is too large."""
    check_size(html, name)
    soup, flattened = parse_html(
        html.replace("```", "` ` `")
    )  # in the text it would begin or end fenced code
    json_ld, notices = parse_json_ld(
        script.get_text()
        for script in tags_named(soup, ("script",))
        if _JSON_LD_TYPE.match(str(script.get("type", "")))
    )
    if flattened:
        notices = (
            *notices,
            Notice(f"Elements nested more than {MAX_HTML_DEPTH} levels deep became plain text."),
        )
    title = _title(soup)
    clean(soup)
    return Converted(_to_markdown(soup), title, notices, json_ld)


def _title(soup: BeautifulSoup) -> str:
    for name in ("title", "h1"):
        title_tag = next((tag for tag in tags_named(soup, (name,)) if tag.find_parent("svg") is None), None)
        if title_tag is not None and (text := " ".join(title_tag.get_text(" ").split())):
            return text
    return ""


def _to_markdown(soup: BeautifulSoup) -> str:
    """Raises RecursionError never: the tree is flat enough."""
    import_markitdown()  # when the first page is read, since it takes a moment
    from markitdown import StreamInfo
    from markitdown.converters import HtmlConverter

    stream = io.BytesIO(_WIDE_GAP.sub(_narrow, soup.decode(formatter="minimal")).encode())
    info = StreamInfo(mimetype="text/html", extension=".html", charset="utf-8")
    result = HtmlConverter().convert(
        stream,
        info,
        strict=True,
        escape_asterisks=False,
        escape_underscores=False,
        table_infer_header=True,
        bullets="-",
    )
    lines = "\n".join(line.rstrip() for line in result.markdown.replace("\r\n", "\n").split("\n"))
    return _BLANK_LINES.sub("\n\n", lines).strip()


def _narrow(gap: re.Match[str]) -> str:
    return "\n\n" if "\n" in gap[0] else gap[0][:200]
