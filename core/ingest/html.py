"""An HTML page -> Markdown without links and images, title and JSON-LD."""

from __future__ import annotations

import re

from bs4 import BeautifulSoup

from core.base.errors import BadDocument
from core.base.types import Notice
from core.ingest.clean import clean
from core.ingest.converted import Converted
from core.ingest.json_ld import parse_json_ld
from core.ingest.limits import MAX_HTML_CHARACTERS, MAX_HTML_DEPTH, MAX_HTML_TAGS
from core.ingest.markdown import markdown_of
from core.ingest.soup import parse_html, tags_named
from core.ingest.tables import name_signs

_LINK_SIGNS = " ¶§🔗\u200b"
"""Beside a heading, what links to it."""
_JSON_LD_TYPE = re.compile(r"^\s*application/ld\+json", re.IGNORECASE)


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


def read_html(html: str, name: str, *, keep_side_matter: bool = False) -> Converted:
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
    name_signs(soup)
    notices = (*notices, *map(Notice, clean(soup, keep_side_matter=keep_side_matter).notices()))
    return Converted(markdown_of(soup), title, notices, json_ld)


def _title(soup: BeautifulSoup) -> str:
    for name in ("title", "h1"):
        title_tag = next((tag for tag in tags_named(soup, (name,)) if tag.find_parent("svg") is None), None)
        if title_tag is not None and (text := " ".join(title_tag.get_text(" ").split()).strip(_LINK_SIGNS)):
            return text
    return ""
