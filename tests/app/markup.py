"""What trees of plain data show, as elements of a page."""

from __future__ import annotations

from collections.abc import Iterable

from bs4 import BeautifulSoup

from core.views.draw.nodes import Node, html_of


def markup(tree: Iterable[Node]) -> BeautifulSoup:
    return BeautifulSoup(" ".join(map(html_of, tree)), "html.parser")


def words(tree: Iterable[Node], between: str = "") -> str:
    """All text, blanks as one. between: what stands between neighbours inside of a node."""
    return " ".join(markup(tree).get_text(between).split())
