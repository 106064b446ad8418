"""HTML -> a tree that is safe to walk.

End tags that HTML implies are put in, and elements too deep become flat text. Python's HTML parser leaves
`<p>a<p>b` and `<li>a<li>b` nested in one another, so that an old page of a thousand paragraphs is a thousand
levels deep; here a start tag closes what HTML says it closes. Comments and declarations are gone.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from bs4 import BeautifulSoup, Tag
from bs4.element import NavigableString, PreformattedString
from bs4.exceptions import ParserRejectedMarkup

from core.ingest.limits import MAX_HTML_DEPTH

_BLOCKS = frozenset(
    [
        *(
            "address",
            "article",
            "aside",
            "blockquote",
            "details",
            "dialog",
            "dd",
            "div",
            "dl",
            "dt",
            "fieldset",
            "figcaption",
            "figure",
            "footer",
        ),
        *(
            "form",
            "h1",
            "h2",
            "h3",
            "h4",
            "h5",
            "h6",
            "header",
            "hr",
            "li",
            "main",
            "menu",
            "nav",
            "ol",
            "p",
            "pre",
            "section",
            "table",
            "td",
            "th",
        ),
        *("tr", "tbody", "thead", "tfoot", "ul"),
    ]
)
_CLOSED_BY: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "li": (frozenset({"li"}), frozenset({"ul", "ol", "menu"})),
    "dt": (frozenset({"dt", "dd"}), frozenset({"dl"})),
    "dd": (frozenset({"dt", "dd"}), frozenset({"dl"})),
    "td": (frozenset({"td", "th"}), frozenset({"tr", "table"})),
    "th": (frozenset({"td", "th"}), frozenset({"tr", "table"})),
    "tr": (frozenset({"tr"}), frozenset({"table"})),
    "tbody": (frozenset({"thead", "tbody", "tfoot"}), frozenset({"table"})),
    "tfoot": (frozenset({"thead", "tbody", "tfoot"}), frozenset({"table"})),
    "rt": (frozenset({"rt", "rp", "rb"}), frozenset({"ruby"})),
    "rp": (frozenset({"rt", "rp", "rb"}), frozenset({"ruby"})),
    "rb": (frozenset({"rt", "rp", "rb"}), frozenset({"ruby"})),
    "option": (frozenset({"option"}), frozenset({"select"})),
}
"""Start tag -> (elements it closes, elements beyond which it closes nothing)."""
_IN_HEAD = frozenset(
    ["title", "meta", "link", "base", "script", "style", "noscript", "template", "head", "object", "basefont"]
)
"""What may stand in a head; anything else ends it."""

_WIDE_GAP = re.compile(r"(?<!\s)\s{200,}+")
"""Trimming text before a longer gap costs the converter to Markdown the square of its length."""
_LOOK_BACK = 24
"""Open elements looked at for one to close; bounded, or deep nesting would cost the square of its depth."""


class _ClosingSoup(BeautifulSoup):
    """A soup whose start tags close what HTML says they close."""

    def handle_starttag(self, name: str, *args: Any, **kwargs: Any) -> Tag | None:
        if name not in _IN_HEAD and self._in_head():
            self.handle_endtag("head")
        if name in _CLOSED_BY:
            self._close(*_CLOSED_BY[name])
        elif name in _BLOCKS:
            self._close(frozenset({"p"}), _BLOCKS - {"p"} | {"button", "object", "caption"})
        return super().handle_starttag(name, *args, **kwargs)

    def handle_endtag(self, name: str, nsprefix: str | None = None) -> None:
        """The end of a line break or paragraph that is not open breaks the line, as in a browser."""
        open_tags = self.tagStack[-1:] if name == "br" else self.tagStack[-_LOOK_BACK:]
        if name in ("br", "p") and all(tag.name != name for tag in open_tags):
            name = "br"
            super().handle_starttag(name, None, None, {})
        super().handle_endtag(name, nsprefix)

    def pushTag(self, tag: Tag) -> None:
        """Blanks at the beginning of a line of code in a table are its indentation."""
        super().pushTag(tag)
        if tag.name == "td" and "blob-code" in str(tag.get("class", "")):
            self.preserve_whitespace_tag_stack.append(tag)

    def endData(self, containerClass: type[NavigableString] | None = None) -> None:
        if containerClass is not None and issubclass(containerClass, PreformattedString):
            # a comment or declaration: taking it out of the tree later would cost a search
            self.current_data = []
        else:
            if self._in_head() and any(map(str.strip, self.current_data)):
                self.popTag()
            if len(data := "".join(self.current_data)) > 200:
                self.current_data = [_WIDE_GAP.sub(_narrow, data)]
            super().endData(containerClass)

    def _in_head(self) -> bool:
        return self.currentTag is not None and self.currentTag.name == "head"

    def _close(self, closed: frozenset[str], borders: frozenset[str]) -> None:
        open_name = None
        for tag in reversed(self.tagStack[-_LOOK_BACK:]):
            if tag.name in borders:
                break
            if tag.name in closed:
                open_name = tag.name
                break
        if open_name is not None:
            self.handle_endtag(open_name)


def _narrow(gap: re.Match[str]) -> str:
    return "\n\n" if "\n" in gap[0] else gap[0][:200]


def parse_html(html: str) -> tuple[BeautifulSoup, bool]:
    """The tree of a page, and whether elements deeper than MAX_HTML_DEPTH were made flat text."""
    for opening, closing in (
        ("<!--", "-->"),
        ("<?", ">"),
    ):  # one left open makes the parser read the rest again and again
        head, mark, tail = html.rpartition(closing)
        html = head + mark + tail.replace(opening, "")
    head, mark, tail = html.rpartition(">")
    html = head + mark + tail.replace("<", "&lt;")  # the same for any tag: behind the last > there are none
    try:
        soup = _ClosingSoup(html, "html.parser")
    except ParserRejectedMarkup:
        soup = _ClosingSoup(
            html.replace("<![", "["), "html.parser"
        )  # the one thing it rejects: a broken marked section
    return soup, _flatten(soup)


def tags_named(root: Tag, names: Collection[str]) -> list[Tag]:
    """All elements below `root` of these names, in order; bs4's own search takes ten times as long."""
    return [node for node in root.descendants if isinstance(node, Tag) and node.name in names]


def hollow(tag: Tag) -> None:
    """Leaves an empty span of an element; taking it out would cost a search among its neighbours."""
    tag.clear()
    tag.attrs = {}
    tag.name = "span"


def _flatten(soup: BeautifulSoup) -> bool:
    flattened = False
    stack: list[tuple[Tag, int]] = [(soup, 0)]
    while stack:
        tag, depth = stack.pop()
        children = [child for child in tag.children if isinstance(child, Tag)]
        if depth < MAX_HTML_DEPTH:
            stack.extend((child, depth + 1) for child in children)
        elif children:
            text = tag.get_text("\n", strip=True)
            tag.clear()
            tag.append(NavigableString(text))
            flattened = True
    return flattened
