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

from bs4 import BeautifulSoup, Tag
from bs4.element import NavigableString

from core.ingest.limits import MAX_LIST_DEPTH, MAX_ORDERED_ITEMS
from core.ingest.markdown import LABEL
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
_NO_FIELDS = frozenset(["hidden", "radio", "checkbox", "button", "submit", "reset", "image"])
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
_STRIKING_STYLE = re.compile(r"text-decoration[\w-]*\s*:[^;]*line-through", re.IGNORECASE)
_STRIKING_NAMES = frozenset(["line-through", "strikethrough"])
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
_APART = frozenset(["span", "time", "mark", "small", "cite", "address", "a"])
_HEADINGS = frozenset(["h1", "h2", "h3", "h4", "h5", "h6"])
_TITLING = _HEADINGS | {"summary", "dt", "th", "legend", "caption"}
_CELLS = frozenset(["table", "thead", "tbody", "tfoot", "tr", "td", "th"])
_MAIN = frozenset(["article", "main"])
_BLOCKS = frozenset(
    [
        *("div", "section", "p", "ul", "ol", "dl", "table", "article", "form", "fieldset", "details"),
    ]
)
_NESTING = frozenset(["ul", "ol", "dl", "blockquote"])
_CONTROLS = frozenset(["a", "button", "label", "li", "summary", "h2", "h3", "h4", "div", "span"])
_REFERENCES = ("aria-controls", "data-target", "data-bs-target", "data-tab", "for", "onclick")
_WORD = re.compile(r"[\w-]{2,100}")
_EXPONENT = re.compile(r"(?!(?:st|nd|rd|th|er|re|e|tm|sm)$)[+\-−–]?\w{1,3}", re.IGNORECASE)
_TERM = re.compile(r"[\w+\-−*/=().,]{2,30}")
_SUBSCRIPTS = str.maketrans("0123456789+-−=()", "₀₁₂₃₄₅₆₇₈₉₊₋₋₌₍₎")
_SMALL = re.compile(r"[0-9+\-−=()]{1,10}")
_START = re.compile(r"[0-9]{1,9}")
_TEX_WRAPPING = re.compile(r"^\{\\displaystyle (.*)\}$", re.DOTALL)


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
    _keep_formulas(soup)
    _keep_pictured_cells(soup)
    struck = _struck_classes(soup)
    fields = set()
    unread = 0
    for tag in tags_named(soup, _DROPPED):
        is_typed = tag.name == "input" and str(tag.get("type", "")).lower() not in _NO_FIELDS
        if is_typed or tag.name in _FIELDS:
            fields.add(id(tag))
        if tag.name in _UNREAD:
            unread += _n_words([tag])
        hollow(tag)
    left_out = _Weeding(soup, fields, struck).drop(keep_side_matter=keep_side_matter or from_office)
    unwrap_layout_tables(soup, from_office=from_office)
    _simplify(soup)
    return replace(left_out, unread=unread)


def _keep_formulas(soup: BeautifulSoup) -> None:
    """Puts the TeX of a formula in its place: pages hide it behind an image."""
    for formula in tags_named(soup, ("math",)):
        tex = _TEX_WRAPPING.sub(r"\1", str(formula.get("alttext", "")).strip())
        hidden = formula.parent if formula.parent is not None and _is_hidden(formula.parent) else formula
        tex = " ".join((tex or formula.get_text(" ")).split())
        hollow(hidden)
        hidden.append(tex)


def _keep_pictured_cells(soup: BeautifulSoup) -> None:
    """In a table cell without text, a picture's description is the datum: a tick, a flag, a rating."""
    for cell in tags_named(soup, ("td", "th")):
        pictures = tags_named(cell, ("img",))
        if pictures and not cell.get_text(strip=True):
            for picture in pictures:
                picture.append(str(picture.get("alt", "")))
                picture.name = "span"


def _struck_classes(soup: BeautifulSoup) -> frozenset[str]:
    """Names of classes that a style sheet of the page strikes out."""
    rules = (
        rule.partition("{")
        for style in tags_named(soup, ("style",))
        for rule in style.get_text().split("}")
        if "line-through" in rule
    )
    return _STRIKING_NAMES | {
        match[1]
        for selectors, _, body in rules
        if _STRIKING_STYLE.search(body)
        for selector in selectors.split(",")
        if (match := _SIMPLE_CLASS.fullmatch(selector.strip()))
    }


class _Weeding:
    """The elements of a page with their sizes, and what is dropped of them."""

    def __init__(self, soup: BeautifulSoup, fields: set[int], struck: frozenset[str]) -> None:
        self._soup = soup
        self._struck = struck
        self._sizes = _sizes(soup, fields)
        self._by_id: dict[str, Tag] = {}
        self._referred: set[str] = set()
        for tag in soup.descendants:
            if isinstance(tag, Tag) and tag.attrs:
                self._note(tag)
        self._opened: set[int] = set()
        """Elements right behind a button or label that is content."""

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
                tag.name = "span" if place.titling else "div"
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
            if panel is not None and name and tab not in panel.descendants:
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
            or _is_tab(tag)
            or opens
            or (target is not None and self._is_opened(target))
            or (not place.form and len(tag.get_text(" ").split()) >= _QUESTION_WORDS)
        )
        if is_content and opens and opened is not None:
            self._opened.add(id(opened))
        return is_content

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
        if tag.name in _CELLS or tag.name in _HEADINGS:
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
        or tag.get("aria-hidden") == "true"
        or bool(_HIDING_STYLE.search(str(tag.get("style", ""))))
    )


def _simplify(soup: BeautifulSoup) -> None:
    """Removes what would only cost the converter: attributes, links, deep lists, numbers of long lists."""
    _set_apart(soup)
    for link in tags_named(soup, ("a",)):
        link.name = "span"
    for tag in tags_named(soup, ("sup", "sub", "rt", "rp")):
        _raise_or_lower(tag)
    for heading in tags_named(soup, _HEADINGS):
        if not heading.get_text(strip=True):
            heading.name = "span"
    for ordered in tags_named(soup, ("ol",)):
        if len(ordered.contents) > MAX_ORDERED_ITEMS:
            ordered.name = "ul"
    for tag in tags_named(soup, ("html", "body", "details", "dialog")):
        tag.name = "div"
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


def _raise_or_lower(tag: Tag) -> None:
    """Writes what stands higher or lower so that it does not run into the line: 10^6, H₂O, 漢 (kan)."""
    text = tag.get_text().strip()
    if tag.name == "rp":
        hollow(tag)
    elif tag.name == "rt" and text:
        tag.string = f" ({text})"
    elif tag.name == "sub" and _SMALL.fullmatch(text):
        tag.string = text.translate(_SUBSCRIPTS)
    elif _EXPONENT.fullmatch(text):
        tag.string = f"{'^' if tag.name == 'sup' else '_'}{text}"
    elif _TERM.fullmatch(text) and any(mark in text for mark in "+-−*/="):
        tag.string = f"{'^' if tag.name == 'sup' else '_'}({text})"


def _set_apart(soup: BeautifulSoup) -> None:
    """A blank between neighbours that only styles kept apart: `<time>17:24</time><span>Ann</span>`."""
    for tag in tags_named(soup, _APART):
        neighbour = tag.next_sibling
        if (
            not isinstance(neighbour, Tag)
            or neighbour.name not in _APART
            or tag.find_parent(["pre", "code"]) is not None
        ):
            continue
        if tag.get_text()[-1:].isalnum() and neighbour.get_text()[:1].isalnum():
            tag.append(" ")


def _cap_lists(soup: BeautifulSoup) -> None:
    """Lists and quotes below MAX_LIST_DEPTH others become plain blocks."""
    for tag in tags_named(soup, _NESTING):
        if sum(parent.name in _NESTING for parent in tag.parents) >= MAX_LIST_DEPTH:
            for part in [tag, *tags_named(tag, ("li", "dt", "dd"))]:
                part.name = "div"
