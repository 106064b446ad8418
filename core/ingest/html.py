"""An HTML page -> Markdown without links and images, title and JSON-LD."""

from __future__ import annotations

import re

from bs4 import BeautifulSoup, Tag

from core.base.types import Notice
from core.ingest.clean import clean, sentences_on
from core.ingest.converted import Converted
from core.ingest.json_ld import parse_json_ld
from core.ingest.limits import MAX_HTML_CHARACTERS, MAX_HTML_DEPTH, MAX_HTML_TAGS, MAX_OWN_TAGS, check_bound
from core.ingest.markdown import markdown_of
from core.ingest.soup import elements, hollow, parse_html, tags_named
from core.ingest.tables import name_signs

_MAX_INNER_PAGES = 2
"""Levels of pages within pages that are read."""
_LINK_SIGNS = " ¶🔗\u200b"
"""Beside a heading, what links to it; so does § behind it, before it that is a word."""
_JSON_LD_TYPE = re.compile(r"^\s*application/ld\+json", re.IGNORECASE)

_MAIL_CODE = re.compile(r"(?:[0-9a-f]{2}){4,200}", re.IGNORECASE)
_MAIL = re.compile(r"[^\s@<>`]+@[^\s@<>`]+")


def check_size(html: str, name: str) -> int:
    """How many tags a page has at most, end tags included. Raises BadDocument when it is too large."""
    remedy = "save its text and open that"
    check_bound(f"{name} is an HTML page of", len(html), MAX_HTML_CHARACTERS, "characters", remedy)
    n_tags = html.count("<")
    check_bound(f"{name} is an HTML page with", n_tags, MAX_HTML_TAGS, "tags", remedy)
    return n_tags


def read_html(html: str, name: str, *, keep_side_matter: bool = False) -> Converted:
    """Cleans and converts a page. Raises BadDocument when it is too large."""
    check_size(html, name)
    soup, flattened = parse_html(html)
    for _ in range(_MAX_INNER_PAGES):
        if not _open_inner(soup):
            break
        soup, is_deep = parse_html(str(soup))  # so that all of it is as deep as a page may be
        flattened = flattened or is_deep
    json_ld, notices = parse_json_ld(
        script.get_text()
        for script in tags_named(soup, ("script",))
        if _JSON_LD_TYPE.match(str(script.get("type", "")))
    )
    if flattened:
        told = f"Elements nested more than {MAX_HTML_DEPTH} levels deep became plain text."
        notices = (*notices, Notice(told))
    for tag in [tag for tag in elements(soup.descendants) if "data-cfemail" in tag.attrs]:
        if address := _address(str(tag["data-cfemail"])):
            tag.string = address
    title = _title(soup)
    name_signs(soup)
    left_out = clean(soup, keep_side_matter=keep_side_matter)
    notices = (*notices, *map(Notice, sentences_on(left_out)))
    return Converted(markdown_of(soup), title, notices, json_ld)


def _open_inner(soup: BeautifulSoup) -> bool:
    """Makes boxes of pages in attributes and parts in templates that people see; whether there were some."""
    inner = [
        tag
        for tag in tags_named(soup, ("iframe", "template"))
        if tag.get("srcdoc" if tag.name == "iframe" else "shadowrootmode")
    ]
    if not inner or sum(str(tag.get("srcdoc", "")).count("<") for tag in inner) > MAX_OWN_TAGS:
        return False
    opened: set[int] = set()
    for tag in inner:
        page: Tag = tag
        if tag.name == "iframe":
            page, _ = parse_html(str(tag["srcdoc"]))
        if opened.isdisjoint(map(id, tag.parents)):
            for part in tags_named(page, ("head", "title", "style")):  # its styles hold for itself alone
                hollow(part)
        opened.add(id(tag))
        if page is not tag:
            tag.clear()
            tag.extend((page.find("body") or page).contents[:])
        tag.name = "div"
        tag.attrs = {name: value for name, value in tag.attrs.items() if name != "srcdoc"}
    return True


def _address(code: str) -> str:
    """A mail address that Cloudflare hides from robots: hexadecimal bytes, all crossed with the first."""
    if not _MAIL_CODE.fullmatch(code):
        return ""
    key, *crossed = bytes.fromhex(code)
    address = bytes(byte ^ key for byte in crossed).decode("utf-8", "replace")
    return address if _MAIL.fullmatch(address) else ""


def _title(soup: BeautifulSoup) -> str:
    for name in ("title", "h1"):
        title_tag = next((tag for tag in tags_named(soup, (name,)) if tag.find_parent("svg") is None), None)
        words = "" if title_tag is None else " ".join(title_tag.get_text(" ").split())
        if title := words.lstrip(_LINK_SIGNS).rstrip(f"§{_LINK_SIGNS}"):
            return title
    return ""
