"""HTML -> a tree that is safe to walk.

End tags that HTML implies are put in, and elements too deep become flat text. Python's HTML parser leaves
`<p>a<p>b` and `<li>a<li>b` nested in one another, so that an old page of a thousand paragraphs is a thousand
levels deep; here a start tag closes what HTML says it closes. Comments and declarations are gone.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from bs4 import BeautifulSoup, Tag
from bs4.element import NavigableString, PageElement, PreformattedString
from bs4.exceptions import ParserRejectedMarkup

from core.ingest.limits import MAX_HTML_DEPTH

HEADINGS = frozenset(["h1", "h2", "h3", "h4", "h5", "h6"])
_BLOCKS = HEADINGS | frozenset(
    [
        *("address", "article", "aside", "blockquote", "details", "dialog", "dd", "div", "dl", "dt"),
        *("fieldset", "figcaption", "figure", "footer", "form", "header", "hr", "li", "main", "menu", "nav"),
        *("ol", "p", "pre", "section", "table", "td", "th", "tr", "tbody", "thead", "tfoot", "ul"),
    ]
)
LOOK_AROUND = 12
"""Nodes looked at for what stands beside one."""
_CLOSED_BY = {
    name: (frozenset(closed.split()), frozenset(borders.split()))
    for names, closed, borders in (
        ("li", "li", "ul ol menu"),
        ("dt dd", "dt dd", "dl"),
        ("td th", "td th", "tr table"),
        ("tr", "tr", "table"),
        ("tbody tfoot", "thead tbody tfoot", "table"),
        ("rt rp rb", "rt rp rb", "ruby"),
        ("option", "option", "select"),
    )
    for name in names.split()
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
                self.current_data = [
                    _WIDE_GAP.sub(lambda gap: "\n\n" if "\n" in gap[0] else gap[0][:200], data)
                ]
            super().endData(containerClass)

    def _in_head(self) -> bool:
        return self.currentTag is not None and self.currentTag.name == "head"

    def _close(self, closed: frozenset[str], borders: frozenset[str]) -> None:
        for tag in reversed(self.tagStack[-_LOOK_BACK:]):
            if tag.name in borders:
                return
            if tag.name in closed:
                self.handle_endtag(tag.name)
                return


def parse_html(html: str) -> tuple[BeautifulSoup, bool]:
    """The tree of a page, and whether elements deeper than MAX_HTML_DEPTH were made flat text."""
    html = html.replace("```", "` ` `")  # in the text it would begin or end fenced code
    # one left open makes the parser read the rest again and again
    for opening, closing in (("<!--", "-->"), ("<?", ">")):
        head, mark, tail = html.rpartition(closing)
        html = head + mark + tail.replace(opening, "")
    head, mark, tail = html.rpartition(">")
    html = head + mark + tail.replace("<", "&lt;")  # the same for any tag: behind the last > there are none
    try:
        soup = _ClosingSoup(html, "html.parser")
    except ParserRejectedMarkup:  # the one thing it rejects: a broken marked section
        soup = _ClosingSoup(html.replace("<![", "["), "html.parser")
    return soup, _flatten(soup)


def elements(nodes: Iterable[PageElement]) -> Iterator[Tag]:
    """Those of the nodes that are no text."""
    return (node for node in nodes if isinstance(node, Tag))


def tags_named(root: Tag, names: Collection[str]) -> list[Tag]:
    """All elements below `root` of these names, in order; bs4's own search takes ten times as long."""
    return [node for node in root.descendants if isinstance(node, Tag) and node.name in names]


def class_of(tag: Tag) -> str:
    """The names of an element's classes, with blanks between."""
    return " ".join(str(name) for name in tag.get_attribute_list("class") if name)


def whole_words(words: str) -> re.Pattern[str]:
    """What finds words in the names of classes: whole ones, parted by anything but letters."""
    return re.compile(rf"(?<![a-z])(?:{words})(?![a-z])", re.IGNORECASE)


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
        children = list(elements(tag.children))
        if depth < MAX_HTML_DEPTH:
            stack.extend((child, depth + 1) for child in children)
        elif children:
            text = tag.get_text("\n", strip=True)
            tag.clear()
            tag.append(NavigableString(text))
            flattened = True
    return flattened
