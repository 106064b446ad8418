"""A page's tree without its low-signal elements.

What is left is what a reader came for. Scripts, styles, media and form fields are no text. Menus, page
headers and footers, banners, boxes and hidden elements are side matter, judged by where they stand, how much
prose they hold and how much of it is links; a name such as `consent` or `ads` never decides alone. What a
button, label, summary or tab opens is content, and so are they. Struck text is left out, so that it never
runs into what replaces it. Links and images lose their markup, anchor text stays. Attributes are dropped at
the end, so nothing of them reaches the converter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import takewhile

from bs4 import BeautifulSoup, Tag
from bs4.element import NavigableString

from core.ingest.inline import HEADINGS, name_lifted, set_apart, set_marks
from core.ingest.limits import MAX_LIST_DEPTH, MAX_ORDERED_ITEMS
from core.ingest.markdown import LABEL
from core.ingest.mathml import write_formulas
from core.ingest.numbering import written
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
_FIELDS = frozenset(["select", "textarea"])
_UNREAD = frozenset(["option", "textarea", "svg", "map"])
"""Those of them whose words people see."""
_TICKED = frozenset(["radio", "checkbox"])
_NO_FIELDS = _TICKED | {"hidden", "button", "submit", "reset", "image"}
"""Types of input that nobody types into."""
_CHROME_ROLES = frozenset(["navigation", "contentinfo", "search", "menu", "menubar", "toolbar", "tooltip"])
_CHROME_NAME = re.compile(
    r"(?<![a-z])(?:cookies?|consent|gdpr|newsletters?|breadcrumbs?|share-?(?:bar|buttons?|links?|tools?|icons?)|social-?(?:share|media|links?|icons?|bar|buttons?)"
    r"|sharing|addthis|sharedaddy|ads?|advert(?:s|isement|isements|ising)?|adsbygoogle|dfp|sponsored|skip-?(?:link|nav|to-content)|no-?print|d-print-none|mw-editsection|visually-?hidden|sr-only|screen-?reader-text)"
    r"(?![a-z])",
    re.IGNORECASE,
)
_LIST_NAME = re.compile(
    r"(?<![a-z])(?:nav(?:bar|igation|list|box)?|menus?|sub-?menu|header|footer|topbar|masthead|sidebar|related|recommend(?:ed|ations?)|trending|popular|most-?read"
    r"|tag-?(?:list|cloud)?s?|teasers?|pagination|pager|languages?|login|account)(?![a-z])",
    re.IGNORECASE,
)
_OPENED_NAME = re.compile(
    r"(?<![a-z])(?:tab|pane|accordion|collaps|toggle|expand|faq|answer|details|spoiler)", re.IGNORECASE
)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_HIDING_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_SHOWING_STYLE = re.compile(r"display\s*+:\s*+(?!none)|visibility\s*:\s*visible", re.IGNORECASE)
_HIDDEN = "\ue000hidden"
"""Attribute of an element that a style sheet of the page hides."""
_STRIKING_STYLE = re.compile(r"text-decoration[\w-]{0,20}\s{0,20}:[^;]{0,100}?line-through", re.IGNORECASE)
_STRIKING_NAMES = frozenset(["line-through", "strikethrough"])
_CLASS = re.compile(r"\.(-?[_a-z][\w-]*)", re.IGNORECASE)
_CSS_PART = re.compile(r"([^{}]*+)([{}])")
_SIMPLE_CLASS = re.compile(r"[a-z]*\d?\.(-?[_a-z][\w-]*)", re.IGNORECASE)
_MAX_NAMED_SHARE = 0.3
_MAX_HIDDEN_SHARE = 0.8
_MAX_STRUCK_SHARE = 0.2
"""Of a page's text; more of it is a tag that was never closed."""
_MAX_ASIDE_LINKS = 0.5
_MAX_LIST_LINKS = 0.7
_MAX_PROSE_LINKS = 0.3
_LEAST_KEPT = 0.25
"""Of a page's words outside of links; where less is left, prose among what was dropped stays."""
_PROSE = 200
"""Characters outside of links from which a box is something to read."""
_LABEL = 40
"""Characters up to which a text without a full stop says no more than `Advertisement`."""
_OPENED = 20
"""Characters that what a button opens has at least."""
_QUESTION_WORDS = 5
"""Words of a button that is more than a command."""
_SENTENCE_END = re.compile(r"[.!?…](?=\s|$)|[。！？]")
_TITLING = HEADINGS | {"summary", "dt", "th", "legend", "caption"}
_CELLS = frozenset(["table", "thead", "tbody", "tfoot", "tr", "td", "th"])
_MAIN = frozenset(["article", "main"])
_BLOCKS = frozenset(
    [
        *("div", "section", "p", "ul", "ol", "dl", "table", "article", "form", "fieldset", "details"),
    ]
)
_PLAIN_BLOCKS = frozenset(
    [
        *("html", "body", "details", "dialog", "center", "fieldset", "legend", "hgroup", "address", "form"),
        *("header", "footer", "nav", "aside", "figure", "main", "search", "output", "listing", "xmp"),
    ]
)
"""Blocks that the converter does not know as such."""
_HOLDERS = HEADINGS | {"ul", "ol", "table", "blockquote", "pre"}
_INLINE = frozenset(["b", "strong", "i", "em", "u", "span", "font", "small", "big", "a", "code", "mark"])
_ITEM_LABELS = {"a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman"}
"""Formats of numbers by the type of a list."""
_NESTING = frozenset(["ul", "ol", "dl", "blockquote"])
_PAGE_MARK = re.compile(r"page-?break(?![\w-])|\bpage-?n(?:um(?:ber)?|o)\b", re.IGNORECASE)
_PAGE_NUMBER = re.compile(
    r"[\s\[({]*(?:p(?:g|age|\.)?\.?\s*)?(?:\d{1,5}|[ivxlc]{1,8})?[\s\])}]*", re.IGNORECASE
)
_CONTROLS = frozenset(["a", "button", "label", "li", "summary", "h2", "h3", "h4", "div", "span"])
_REFERENCES = ("aria-controls", "data-target", "data-bs-target", "data-tab", "for", "onclick")
_WORD = re.compile(r"[\w-]{2,100}")
_START = re.compile(r"[0-9]{1,9}")


@dataclass(slots=True)
class _Size:
    """Characters of an element's text and of those within links; fields and buttons in it."""

    text: int = 0
    linked: int = 0
    n_fields: int = 0
    n_buttons: int = 0

    def is_prose(self, least: int = _PROSE) -> bool:
        return self.text - self.linked >= least and self.linked <= _MAX_PROSE_LINKS * self.text


@dataclass(frozen=True, slots=True)
class _Place:
    """What an element stands in."""

    main: bool = False
    section: bool = False
    quote: bool = False
    titling: bool = False
    form: bool = False
    """A form with fields that isn't the whole page."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Words that are not in the text."""

    side_matter: int = 0
    struck: int = 0
    unread: int = 0
    """Of drawings and fields."""

    def __add__(self, other: LeftOut) -> LeftOut:
        return LeftOut(
            self.side_matter + other.side_matter, self.struck + other.struck, self.unread + other.unread
        )

    def notices(self) -> tuple[str, ...]:
        """A sentence on each kind that there is."""
        told = (
            ("Menus and side matter", self.side_matter, "; they can be kept"),
            ("Struck-out text", self.struck, ""),
            ("Drawings and fields of forms", self.unread, ""),
        )
        return tuple(f"{kind} left out: {n:,} word{'s' * (n > 1)}{more}." for kind, n, more in told if n)


def clean(soup: BeautifulSoup, *, keep_side_matter: bool = False, from_office: bool = False) -> LeftOut:
    """Drops low-signal elements and all attributes, in place. Office files and chapters of books have no side
    matter.
    """
    _drop_page_marks(soup)
    write_formulas(soup, _is_hidden)
    name_lifted(soup)
    _keep_pictured_cells(soup)
    struck = _STRIKING_NAMES | _styled_classes(soup, _STRIKING_STYLE)
    _mark_hidden(soup)
    ticked = _ticked_labels(soup)
    fields = set()
    unread = 0
    for tag in tags_named(soup, _DROPPED):
        is_typed = tag.name == "input" and _kind_of_input(tag) not in _NO_FIELDS
        if is_typed or tag.name in _FIELDS:
            fields.add(id(tag))
        if tag.name in _UNREAD:
            unread += _n_words([tag])
        hollow(tag)
    left_out = _Weeding(soup, fields, struck, ticked).drop(keep_side_matter=keep_side_matter or from_office)
    unwrap_layout_tables(soup, from_office=from_office)
    _simplify(soup)
    return replace(left_out, unread=unread)


def _drop_page_marks(soup: BeautifulSoup) -> None:
    """The numbers and lists of pages that an e-book has from its print: they stand in the midst of words."""
    for tag in tags_named(soup, ("span", "a", "div", "p", "nav")):
        kinds = f"{tag.get('epub:type', '')} {tag.get('role', '')} {tag.get('class', '')}"
        is_list = tag.name == "nav" and ("page-list" in kinds or "landmarks" in kinds)
        if is_list or (_PAGE_MARK.search(kinds) and _PAGE_NUMBER.fullmatch(tag.get_text())):
            hollow(tag)


def _keep_pictured_cells(soup: BeautifulSoup) -> None:
    """In a table cell without text, a picture's description is the datum: a tick, a flag, a rating."""
    for cell in tags_named(soup, ("td", "th")):
        pictures = tags_named(cell, ("img",))
        if pictures and not cell.get_text(strip=True):
            for picture in pictures:
                picture.append(str(picture.get("alt", "")))
                picture.name = "span"


def _rules(soup: BeautifulSoup) -> Iterator[tuple[str, str, bool]]:
    """(selectors, what they are styled like, whether always) of all rules in the style sheets of a page."""
    for sheet in tags_named(soup, ("style",)):
        opened: list[str] = []
        code, *commented = sheet.get_text().split("/*")
        code += "".join(comment.partition("*/")[2] for comment in commented)
        last = max(code.rfind("{"), code.rfind("}"))  # behind it, each character would be a start to try
        for part in _CSS_PART.finditer(code, 0, last + 1):
            if part[2] == "{":
                opened.append(part[1].strip())
            elif opened and not (selectors := opened.pop()).startswith("@"):
                yield selectors, part[1], not any(outer.startswith("@") for outer in opened)


def _styled_classes(soup: BeautifulSoup, style: re.Pattern[str]) -> frozenset[str]:
    """Names of classes whose elements a page styles so, in print and on all screens."""
    return frozenset(
        match[1]
        for selectors, body, always in _rules(soup)
        if always and style.search(body)
        for selector in selectors.split(",")
        if (match := _SIMPLE_CLASS.fullmatch(selector.strip()))
    )


def _mark_hidden(soup: BeautifulSoup) -> None:
    """Marks elements of classes that a page hides and nowhere shows, as on wide screens or once opened."""
    hidden = _styled_classes(soup, _HIDING_STYLE)
    if not hidden:
        return
    hidden -= {
        name
        for selectors, body, _ in _rules(soup)
        if _SHOWING_STYLE.search(body)
        for name in _CLASS.findall(selectors)
    }
    for tag in soup.descendants:
        if isinstance(tag, Tag) and not hidden.isdisjoint(tag.get_attribute_list("class")):
            tag[_HIDDEN] = ""


def _ticked_labels(soup: BeautifulSoup) -> set[int]:
    """Ids of the labels of boxes and buttons that are ticked: an ingredient, a task, an answer of a quiz."""
    named = {str(label.get("for")): label for label in tags_named(soup, ("label",)) if label.get("for")}
    boxes = (box for box in tags_named(soup, ("input",)) if _kind_of_input(box) in _TICKED)
    labels = (named.get(str(box.get("id"))) or box.find_parent("label") for box in boxes)
    return {id(label) for label in labels if label is not None}


def _kind_of_input(box: Tag) -> str:
    return str(box.get("type", "")).lower()


class _Weeding:
    """The elements of a page with their sizes, and what is dropped of them."""

    def __init__(
        self, soup: BeautifulSoup, fields: set[int], struck: frozenset[str], ticked: set[int]
    ) -> None:
        self._soup = soup
        self._struck = struck
        self._ticked = ticked
        self._sizes = _sizes(soup, fields)
        self._by_id: dict[str, Tag] = {}
        self._referred: set[str] = set()
        for tag in soup.descendants:
            if isinstance(tag, Tag) and tag.attrs:
                self._note(tag)
        self._opened: set[int] = set()
        """Elements right behind a button or label that is content."""
        self._unnamed: dict[int, int] = {}
        """Characters of an element outside of the labels and buttons in it."""

    def _note(self, tag: Tag) -> None:
        if name := tag.get("id"):
            self._by_id.setdefault(str(name), tag)
        if tag.name in _CONTROLS:
            target = str(tag.get("href", ""))
            if target.startswith("#") and len(target) > 1:
                self._referred.add(target[1:])
            for attribute in _REFERENCES:
                if value := tag.get(attribute):
                    self._referred.update(_WORD.findall(str(value)[:200]))

    def drop(self, *, keep_side_matter: bool) -> LeftOut:
        """Takes out what is struck and, unless it is kept, side matter."""
        self._name_panels()
        total = self._sizes[id(self._soup)]
        dropped: list[Tag] = []
        struck: list[Tag] = []
        stack: list[tuple[Tag, _Place]] = [(self._soup, _Place())]
        while stack:
            tag, place = stack.pop()
            size = self._sizes.get(id(tag))
            if size is None:  # the name of a panel
                continue
            if self._is_struck(tag, size, total):
                struck.append(tag)
                continue
            if not keep_side_matter and self._is_side_matter(tag, place, size, total):
                dropped.append(tag)
                continue
            if tag.name in ("button", "label", "summary"):
                tag.name = "span" if place.titling or self._is_datum(tag, place, size) else "div"
            inner = self._within(tag, place, size, total)
            stack.extend((child, inner) for child in reversed(tag.contents) if isinstance(child, Tag))
        dropped = self._enough(dropped, total)
        left_out = LeftOut(_n_words(dropped), _n_words(struck))
        for tag in (*dropped, *struck):
            hollow(tag)
        return left_out

    def _enough(self, dropped: list[Tag], total: _Size) -> list[Tag]:
        """What is dropped, without its prose where else little of the page would be left."""
        sizes = [self._sizes[id(tag)] for tag in dropped]
        left = total.text - total.linked - sum(size.text - size.linked for size in sizes)
        if left >= _LEAST_KEPT * (total.text - total.linked):
            return dropped
        return [tag for tag, size in zip(dropped, sizes, strict=True) if not size.is_prose()]

    def _name_panels(self) -> None:
        """Puts the name of a tab before what it opens."""
        for tab in list(self._soup.descendants):
            if not isinstance(tab, Tag) or not _is_tab(tab):
                continue
            target = str(tab.get("aria-controls") or tab.get("href") or tab.get("data-bs-target") or "")
            panel = self._by_id.get(target.removeprefix("#"))
            name = " ".join(tab.get_text(" ").split())
            if panel is not None and name and all(parent is not panel for parent in tab.parents):
                title = self._soup.new_tag("p")
                title.append(name)
                panel.insert(0, title)
                hollow(tab)

    @staticmethod
    def _within(tag: Tag, place: _Place, size: _Size, total: _Size) -> _Place:
        """What the children of a tag stand in."""
        if tag.name in _MAIN or tag.get("role") == "main":
            return replace(place, main=True, section=True)
        if tag.name == "section" or tag.name == "dialog":
            return replace(place, section=True)
        if tag.name == "blockquote":
            return replace(place, quote=True)
        if tag.name in _TITLING:
            return replace(place, titling=True)
        if tag.name == "form" and size.n_fields and 2 * size.text < total.text:
            return replace(place, form=True)
        return place

    def _is_struck(self, tag: Tag, size: _Size, total: _Size) -> bool:
        named = tag.attrs and (
            _STRIKING_STYLE.search(str(tag.get("style", "")))
            or not self._struck.isdisjoint(tag.get_attribute_list("class"))
        )
        if tag.name not in ("del", "s", "strike") and not named:
            return False
        return size.text <= max(_PROSE, _MAX_STRUCK_SHARE * total.text)

    def _is_side_matter(self, tag: Tag, place: _Place, size: _Size, total: _Size) -> bool:
        """Whether an element goes, with all in it."""
        if tag.name in ("button", "label"):
            return not self._is_question(tag, place, size)
        if not size.text or tag.name in ("[document]", "html", "body", "main", "article"):
            return False
        share = self._droppable_share(tag, place, size)
        return bool(share) and size.text <= share * total.text and tag.find(["h1", "main", "article"]) is None

    def _is_question(self, tag: Tag, place: _Place, size: _Size) -> bool:
        """Whether a button or label names what stands below it: no command and no name of a field."""
        if not size.text:
            return False
        behind = (node for node in tag.next_siblings if isinstance(node, Tag))
        opened = next((node for node in behind if self._size(node).text), None)
        opens = opened is not None and opened.name in _BLOCKS and self._is_opened(opened)
        target = self._by_id.get(str(tag.get("aria-controls") or tag.get("for") or ""))
        is_content = (
            place.titling
            or self._is_datum(tag, place, size)
            or _is_tab(tag)
            or opens
            or (target is not None and self._is_opened(target))
            or (not place.form and len(tag.get_text(" ").split()) >= _QUESTION_WORDS)
        )
        if is_content and opens and opened is not None:
            self._opened.add(id(opened))
        return is_content

    def _is_datum(self, tag: Tag, place: _Place, size: _Size) -> bool:
        """Whether a button or label is a part of what stands beside it: an item to tick, the name of a value
        or a row, a word of a sentence.
        """
        parent = tag.parent
        if parent is None or place.form or size.n_fields or not size.text:
            return False
        if id(tag) in self._ticked:
            return True
        row = (tag.find_parent("tr") if parent.name in _CELLS else None) or parent
        if self._size(row).n_fields:
            return False
        if tag.name == "button":
            beside = (tag.previous_sibling, tag.next_sibling)
            if all(type(node) is NavigableString and node.strip() for node in beside):
                return True
            opens = tag.get("aria-expanded") is not None or tag.get("aria-controls") is not None
            return (
                opens and parent.name in ("td", "th") and parent.find_previous_sibling(["td", "th"]) is None
            )
        if id(parent) not in self._unnamed:
            named = (child for child in parent.children if isinstance(child, Tag))
            named_text = sum(self._size(child).text for child in named if child.name in ("label", "button"))
            self._unnamed[id(parent)] = self._size(parent).text - named_text
        is_alone = parent.name in ("td", "th", "li", "dt") and self._size(parent).text == size.text
        return is_alone or self._unnamed[id(parent)] > 0

    def _is_opened(self, tag: Tag) -> bool:
        """Whether an element is something that a button opens: words, mostly outside of links."""
        size = self._size(tag)
        return not size.n_fields and size.text >= _OPENED and size.linked <= _MAX_ASIDE_LINKS * size.text

    def _size(self, tag: Tag) -> _Size:
        return self._sizes.get(id(tag)) or _Size()

    def _droppable_share(self, tag: Tag, place: _Place, size: _Size) -> float:
        """Up to which share of the page's text an element is dropped: 1 where tag, role or attribute
        say that it is no content, less where only its style or name do, 0 for content.
        """
        role = str(tag.get("role", "")).lower()
        few_links = size.linked <= _MAX_ASIDE_LINKS * size.text
        if tag.name == "aside" or role == "complementary":
            return float(not (place.section and few_links) and not size.is_prose())
        if tag.name == "header" or role == "banner":
            return float(not place.section and not size.is_prose())
        if tag.name == "footer" or role == "contentinfo":
            return float(not place.quote and not (place.section and few_links))  # sources, notes
        if tag.name == "nav" or role in _CHROME_ROLES:
            return float(tag.name == "nav" or not place.quote)
        if not tag.attrs and tag.name != "dialog":
            return 0.0
        names = f"{' '.join(map(str, tag.get_attribute_list('class')))} {tag.get('id', '')}"
        names = _CAMEL.sub("-", names).replace("_", "-")
        is_named = _CHROME_NAME.search(names) is not None
        if _is_hidden(tag) or tag.name == "dialog" or role in ("dialog", "alertdialog"):
            if not is_named and self._is_revealed(tag, role, names, size):
                return 0.0
            return 1.0 if tag.get("hidden") is not None or tag.name == "dialog" else _MAX_HIDDEN_SHARE
        if is_named and self._is_box(tag, place, size):
            return _MAX_NAMED_SHARE
        is_list = _LIST_NAME.search(names) is not None and size.linked > _MAX_LIST_LINKS * size.text
        return _MAX_NAMED_SHARE if is_list else 0.0

    def _is_revealed(self, tag: Tag, role: str, names: str, size: _Size) -> bool:
        """Whether a hidden element is content that a click shows."""
        is_target = (
            role == "tabpanel"
            or id(tag) in self._opened
            or str(tag.get("id", "")) in self._referred
            or tag.get("aria-labelledby") is not None
            or _OPENED_NAME.search(names) is not None
        )
        return self._is_opened(tag) if is_target else size.is_prose() and not size.n_fields

    @staticmethod
    def _is_box(tag: Tag, place: _Place, size: _Size) -> bool:
        """Whether what a name calls a banner, an advertisement or the like looks like one."""
        if tag.name in _CELLS or tag.name in HEADINGS:
            return False
        if size.linked > _MAX_ASIDE_LINKS * size.text:
            return True
        is_sentence = _SENTENCE_END.search(tag.get_text()) is not None
        if size.text <= _LABEL or (size.linked and size.text - size.linked <= _PROSE):
            return not is_sentence
        if size.n_fields:
            return not (place.main and size.is_prose(2 * _PROSE))
        return size.n_buttons > 0 and not place.section and tag.name not in ("section", "article")


def _n_words(tags: list[Tag]) -> int:
    return sum(len(tag.get_text(" ").split()) for tag in tags)


def _sizes(soup: BeautifulSoup, fields: set[int]) -> dict[int, _Size]:
    """Sizes of all elements by id; children come before their parents in the reversed order."""
    sizes: dict[int, _Size] = {}
    for node in reversed([soup, *soup.descendants]):
        if isinstance(node, Tag):
            size = sizes.setdefault(id(node), _Size())
            if node.name == "a":
                size.linked = size.text
            size.n_fields += id(node) in fields
            size.n_buttons += node.name == "button" or node.get("role") == "button"
            if node.parent is not None:
                parent = sizes.setdefault(id(node.parent), _Size())
                parent.text += size.text
                parent.linked += size.linked
                parent.n_fields += size.n_fields
                parent.n_buttons += size.n_buttons
        elif isinstance(node, NavigableString) and node.parent is not None and (length := len(node.strip())):
            sizes.setdefault(id(node.parent), _Size()).text += length
    return sizes


def _is_tab(tag: Tag) -> bool:
    opens = tag.get("data-toggle") or tag.get("data-bs-toggle")
    return tag.get("role") == "tab" or opens in ("tab", "pill")


def _is_hidden(tag: Tag) -> bool:
    hidden = tag.get("hidden")
    return (
        (hidden is not None and hidden != "until-found")
        or _HIDDEN in tag.attrs
        or tag.get("aria-hidden") == "true"
        or bool(_HIDING_STYLE.search(str(tag.get("style", ""))))
    )


def _simplify(soup: BeautifulSoup) -> None:
    """Removes what would only cost the converter: attributes, links, deep lists, numbers of long lists."""
    for tag in soup.descendants:
        if isinstance(tag, Tag) and tag.get("role") == "heading" and tag.name in ("div", "p", "span"):
            level = str(tag.get("aria-level", "2"))
            tag.name = f"h{level}" if f"h{level}" in HEADINGS else "h2"
    set_apart(soup)
    set_marks(soup)
    for link in tags_named(soup, ("a",)):
        link.name = "span"
    for heading in tags_named(soup, HEADINGS):
        if not heading.get_text(strip=True):
            heading.name = "span"
        elif any(parent.name in ("td", "th") for parent in heading.parents):
            heading.name = "p"
    for ordered in tags_named(soup, ("ol",)):
        _number(ordered)
    for tag in tags_named(soup, _PLAIN_BLOCKS):
        tag.name = "div"
    for tag in tags_named(soup, ("menu", "dir")):
        tag.name = "ul"
    for block in tags_named(soup, _HOLDERS):
        for parent in takewhile(lambda parent: parent.name == "div" or parent.name in _INLINE, block.parents):
            parent.name = "div"
    _cap_lists(soup)
    for node in soup.descendants:
        if isinstance(node, Tag) and node.attrs:
            node.attrs = dict(_kept_attributes(node))


def _kept_attributes(tag: Tag) -> Iterator[tuple[str, str]]:
    """The number at which a list begins, and an item's own label."""
    if LABEL in tag.attrs:
        yield LABEL, str(tag[LABEL])
    start = str(tag.get("start", ""))
    if tag.name == "ol" and _START.fullmatch(start):
        yield "start", start


def _number(ordered: Tag) -> None:
    """Gives items the labels that a page shows where they don't just count up; Markdown has no letters for
    items, so those stand before the words.
    """
    items = [item for item in ordered.contents if isinstance(item, Tag) and item.name == "li"]
    kind, falls = str(ordered.get("type", "1")), ordered.get("reversed") is not None
    if not falls and kind not in _ITEM_LABELS and all(item.get("value") is None for item in items):
        ordered.name = "ul" if len(ordered.contents) > MAX_ORDERED_ITEMS else "ol"
        return
    start = str(ordered.get("start", ""))
    number = int(start) if _START.fullmatch(start) else len(items) if falls else 1
    for item in items:
        value = str(item.get("value", ""))
        number = int(value) if _START.fullmatch(value) else number
        label = f"{written(number, _ITEM_LABELS.get(kind, 'decimal'))}."
        if kind in _ITEM_LABELS:
            item.insert(0, f"{label} ")
            label = "-"
        item[LABEL] = label
        number += -1 if falls else 1


def _cap_lists(soup: BeautifulSoup) -> None:
    """Lists and quotes below MAX_LIST_DEPTH others become plain blocks."""
    for tag in tags_named(soup, _NESTING):
        if sum(parent.name in _NESTING for parent in tag.parents) >= MAX_LIST_DEPTH:
            for part in [tag, *tags_named(tag, ("li", "dt", "dd"))]:
                part.name = "div"
