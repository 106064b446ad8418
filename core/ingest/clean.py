"""A page's tree without its low-signal elements.

What is left is what a reader came for. Scripts, styles, media and fields to fill in are no text, and most
side matter is none. Struck text is left out, so that it never runs into what replaces it. Links and images
lose their markup, anchor text stays. Attributes are dropped at the end, so nothing of them reaches the
converter.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from bs4 import BeautifulSoup

from core.ingest.fields import show_values
from core.ingest.formulas import write_formulas
from core.ingest.hidden import join_cut_off, keep_only_words, mark_hidden
from core.ingest.inline import name_lifted
from core.ingest.markdown import simplify
from core.ingest.side_matter import SIDE_MATTER, STRUCK, SideMatter, kinds_of, n_words
from core.ingest.soup import hollow, tags_named
from core.ingest.tables import unwrap_layout_tables

_DROPPED = frozenset(
    [
        *("script", "style", "noscript", "template", "svg", "iframe", "object", "embed", "applet"),
        *("canvas", "audio", "video", "source", "track", "datalist", "meter", "progress", "option"),
        *("map", "area", "link", "meta", "base", "param", "img", "picture", "head", "frameset"),
        *("input", "select", "textarea"),
    ]
)
_UNREAD_NAMES = frozenset(["option", "textarea", "svg", "map"])
"""Those of them whose words people see."""
_UNREAD = "Drawings and fields of forms"
_PAGE_MARK = re.compile(r"page-?break(?![\w-])|\bpage-?n(?:um(?:ber)?|o)\b", re.IGNORECASE)
_PAGE_NUMBER = re.compile(
    r"[\s\[({]*(?:p(?:g|age|\.)?\.?\s*)?(?:\d{1,5}|[ivxlc]{1,8})?[\s\])}]*", re.IGNORECASE
)


def clean(soup: BeautifulSoup, *, keep_side_matter: bool = False, from_office: bool = False) -> Counter[str]:
    """Drops low-signal elements and all attributes, in place; how many words of what were left out. Office
    files and chapters of books have no side matter.
    """
    _drop_page_marks(soup)
    write_formulas(soup)
    name_lifted(soup)
    mark_hidden(soup)
    join_cut_off(soup)
    keep_only_words(soup)
    show_values(soup)
    side_matter = SideMatter(soup)
    left_out = Counter[str]()
    for tag in tags_named(soup, _DROPPED):
        if tag.name in _UNREAD_NAMES:
            left_out[_UNREAD] += n_words([tag])
        hollow(tag)
    left_out += side_matter.drop(keep_side_matter=keep_side_matter or from_office)
    unwrap_layout_tables(soup, from_office=from_office)
    simplify(soup)
    return left_out


def sentences_on(left_out: Mapping[str, int]) -> list[str]:
    """One on each kind of words that were left out."""
    kinds = ((SIDE_MATTER, "; they can be kept"), (STRUCK, ""), (_UNREAD, ""))
    counts = ((kind, left_out.get(kind, 0), more) for kind, more in kinds)
    return [f"{kind} left out: {n:,} word{'s' * (n > 1)}{more}." for kind, n, more in counts if n]


def _drop_page_marks(soup: BeautifulSoup) -> None:
    """The numbers and lists of pages that an e-book has from its print: they stand in the midst of words."""
    for tag in tags_named(soup, ("span", "a", "div", "p", "nav")):
        kinds = kinds_of(tag)
        is_list = tag.name == "nav" and ("page-list" in kinds or "landmarks" in kinds)
        if is_list or (_PAGE_MARK.search(kinds) and _PAGE_NUMBER.fullmatch(tag.get_text())):
            hollow(tag)
