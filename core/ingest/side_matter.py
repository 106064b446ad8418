"""Side matter of a page: menus, banners, boxes, what is hidden.

An element is judged by where it stands, how much prose it holds and how much of it is links; a name such as
`consent` or `ads` never decides alone. What a button, label, summary or tab opens is content, and so are
they.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import islice, takewhile

from bs4 import BeautifulSoup, Tag
from bs4.element import NavigableString, PageElement

from core.ingest.fields import FIELDS, STATE, is_filled_in, labels_of_boxes
from core.ingest.hidden import STRIKING_STYLE, STRUCK_CLASS, beside, is_hidden, is_spoken
from core.ingest.inline import is_note
from core.ingest.soup import HEADINGS, LOOK_AROUND, class_of, elements, hollow, tags_named, whole_words
from core.ingest.tables import is_data_table

SIDE_MATTER, STRUCK = "Menus and side matter", "Struck-out text"
_NOTES = whole_words("(?:foot|end)-?notes?|references|bibliography")
_STRUCK_CLASSES = frozenset([STRUCK_CLASS, "strikethrough", "text-decoration-line-through"])
_CHROME_ROLES = frozenset(["navigation", "contentinfo", "search", "menu", "menubar", "toolbar", "tooltip"])
_CHROME_NAME = whole_words(
    r"cookies?|consent|gdpr|newsletters?|breadcrumbs?|share-?(?:bar|buttons?|links?|tools?|icons?)"
    r"|social-?(?:share|media|links?|icons?|bar|buttons?)|sharing|addthis|sharedaddy|ads?"
    r"|advert(?:s|isement|isements|ising)?|adsbygoogle|dfp|sponsored|skip-?(?:link|nav|to-content)|no-?print"
    r"|d-print-none|mw-editsection|visually-?hidden|sr-only|screen-?reader-text"
)
_CONSENT_NAME = whole_words("cookies?|consent|gdpr")
_TRACKING = re.compile(
    r"cookie|kakor|galletas|\bwe use\b|this (?:web)?site|our partners|your privacy", re.IGNORECASE
)
_AGREEING = re.compile(
    r"agree|accep|allow|reject|declin|refus|deny|got it|understand|manage|preferen|settings|opt[ -]out"
    r"|\b(?:ok|okay|yes|close|continue)\b|zustimm|akzept|ablehn|einverstanden|verstanden|acept|rechaz|accett"
    r"|rifiut|akkoord|weiger|samtyck|godkänn|avvisa",
    re.IGNORECASE,
)
"""Words of what agrees to cookies, or refuses."""
_BUTTON = re.compile(r"(?<![a-z])(?:btn|button)", re.IGNORECASE)
_FOOT_NAME = whole_words("footer")
_RIGHTS = re.compile(r"©|\bcopyright\b|\(c\)\s*\d{4}|all rights reserved", re.IGNORECASE)
_LIST_NAME = whole_words(
    r"nav(?:bar|igation|list|box)?|menus?|sub-?menu|header|footer|topbar|masthead|sidebar|related"
    r"|recommend(?:ed|ations?)|trending|popular|most-?read|tag-?(?:list|cloud)?s?|teasers?|pagination|pager"
    r"|languages?|login|account"
)
_ELSEWHERE = re.compile(r"related|recommend|trending|popular|most-?read|teasers", re.IGNORECASE)
"""Names of lists of other pages, with whatever stands beside each."""
_OPENED_NAME = whole_words(
    r"tab(?:s|-?(?:panes?|panels?|contents?))?|panes?|panels?|accordion[a-z]*|collaps(?:ed?|ible|able)"
    r"|toggled?|expand(?:ed|able)?|faq[a-z]*|answers?|details|spoilers?|more(?!-?info)"
)
_TAB_NAME = whole_words(r"tab(?:s|bed|-?(?:panes?|panels?|contents?))?")
_UNOPENED_NAME = whole_words("errors?|empty|loading|copied|hint|less|close|menu|only")
_QUESTION_NAME = re.compile(r"(?<![a-z])(?:accordion|collaps|faq|question)", re.IGNORECASE)
_ASKING_NAME = re.compile(r"question|title|head|trigger|button|toggle(?![\w-])", re.IGNORECASE)
_HOME = re.compile(r"(?:https?://[^/]{1,200})?(?:\.?/)?(?:(?:index|home)\.\w{3,5})?", re.IGNORECASE)
"""Where the name of a site leads to."""
_REACHED = re.compile(r"(?:tel|mailto):\s*[\w+]", re.IGNORECASE)
"""A link that is the datum itself: a number or an address."""
_COUNT = re.compile(r"\(\d{0,9}\)|\W")
"""Beside a link, what says no more than that there are more."""
_SENTENCE = re.compile(r"[^.…]([.!]|。)\s*\Z")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
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
"""Characters that what a click opens has at least where nothing but its place or name tells."""
_QUESTION_WORDS = 5
"""Words of a button that is more than a command."""
_LIST = 3
_SENTENCE_END = re.compile(r"[.!?…](?=\s|$)|[。！？]")
_TITLING = HEADINGS | {"summary", "dt", "th", "legend", "caption"}
_NAMING = _TITLING - {"th"} | {"dd", "figcaption"}
_HEAD_LINKS = 2
"""Most links of an item's head: its title or author, and its date."""
_CELLS = frozenset(["table", "thead", "tbody", "tfoot", "tr", "td", "th"])
_MAIN = frozenset(["article", "main"])
_PARTS = _MAIN | {"section", "body", "[document]"}
_BLOCKS = frozenset(
    ["div", "section", "p", "ul", "ol", "dl", "table", "article", "form", "fieldset", "details"]
)
_INLINE = frozenset(["span", "a", "b", "strong", "i", "em", "small"])
_WORDED = HEADINGS | {"p", "ul", "ol", "dl", "pre", "table", "blockquote"}
_CONTROLS = frozenset(["a", "button", "label", "li", "summary", "h2", "h3", "h4", "div", "span"])
_OPENING = ("aria-controls", "data-target", "data-bs-target", "data-tab")
_REFERENCES = (*_OPENING, "for", "onclick")
_WORD = re.compile(r"[\w-]{1,100}")


@dataclass(slots=True)
class _Size:
    """Characters of an element's text and of those within links; fields and buttons in it."""

    text: int = 0
    linked: int = 0
    n_fields: int = 0
    n_buttons: int = 0

    def add(self, inner: _Size) -> None:
        self.text += inner.text
        self.linked += inner.linked
        self.n_fields += inner.n_fields
        self.n_buttons += inner.n_buttons

    @property
    def unlinked(self) -> int:
        return self.text - self.linked

    def is_prose(self, least: int = _PROSE) -> bool:
        return self.unlinked >= least and self.linked <= _MAX_PROSE_LINKS * self.text


@dataclass(frozen=True, slots=True)
class _Place:
    """What an element stands in."""

    main: bool = False
    section: bool = False
    quote: bool = False
    titling: bool = False
    form: bool = False
    """A form with fields that isn't the whole page."""


class SideMatter:
    """The elements of a page with their sizes, and what is dropped of them."""

    def __init__(self, soup: BeautifulSoup) -> None:
        """To be made while fields are still in the page."""
        self._soup = soup
        self._ticked, self._choosing = labels_of_boxes(soup)
        self._fields = {id(tag) for tag in tags_named(soup, FIELDS) if is_filled_in(tag)}
        self._sizes: dict[int, _Size] = {}
        self._by_id: dict[str, Tag] = {}
        self._labelled: dict[str, Tag] = {}
        """Panels by the names of their tabs."""
        self._referred: set[str] = set()
        self._controlled: set[str] = set()
        """Names of what a control says that it opens; other links may lead to anything."""
        self._noted: set[str] = set()
        """Names of the notes that raised links lead to."""
        self._heading_panels: dict[int, bool] = {}
        """Whether a list names the boxes behind it, by its id."""
        self._opened: set[int] = set()
        """Elements right behind a button or label that opens them."""
        self._data_tables: dict[int, bool] = {}
        self._unnamed: dict[int, int] = {}
        """Characters of an element outside of the labels and buttons in it."""

    def _note(self, tag: Tag) -> None:
        if name := tag.get("id"):
            self._by_id.setdefault(str(name), tag)
        if tag.get("role") == "tabpanel" and (name := tag.get("aria-labelledby")):
            self._labelled.setdefault(str(name), tag)
        if tag.name in _CONTROLS:
            target = str(tag.get("href", ""))
            if target.startswith("#") and len(target) > 1:
                self._referred.add(target[1:])
                if tag.name == "a" and is_note(tag):
                    self._noted.add(target[1:])
            self._referred.update(_names_in(tag, _REFERENCES))
            self._controlled.update(_names_in(tag, _OPENING))

    def drop(self, *, keep_side_matter: bool) -> Counter[str]:
        """Takes out what is struck and, unless it is kept, side matter."""
        self._weigh()
        for tag in elements(self._soup.descendants):
            self._note(tag)
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
                is_datum = tag.name != "summary" and self._is_datum(tag, place, size)
                tag.name = "span" if place.titling or is_datum else "div"
                if tag.name == "span":
                    _set_off(tag)
            inner = self._within(tag, place, size, total)
            stack.extend((child, inner) for child in elements(reversed(tag.contents)))
        dropped = self._enough(dropped, total)
        left_out = Counter({SIDE_MATTER: n_words(dropped), STRUCK: n_words(struck)})
        for tag in (*dropped, *struck):
            hollow(tag)
        return left_out

    def _weigh(self) -> None:
        """Sizes of all elements; children come before their parents in the reversed order."""
        for node in reversed([self._soup, *self._soup.descendants]):
            if isinstance(node, Tag):
                size = self._sizes.setdefault(id(node), _Size())
                if node.name == "a":
                    size.linked = size.text
                size.n_fields += id(node) in self._fields
                size.n_buttons += node.name == "button" or node.get("role") == "button"
                if node.parent is not None:
                    self._sizes.setdefault(id(node.parent), _Size()).add(size)
            elif isinstance(node, NavigableString) and node.parent is not None:
                self._sizes.setdefault(id(node.parent), _Size()).text += len(node.strip())

    def _enough(self, dropped: list[Tag], total: _Size) -> list[Tag]:
        """What is dropped, without its prose where else little of the page would be left."""
        left = total.unlinked - sum(self._size(tag).unlinked for tag in dropped)
        if left >= _LEAST_KEPT * total.unlinked:
            return dropped
        kept = _alike([tag for tag in dropped if self._size(tag).unlinked > 0])
        return [tag for tag in dropped if not self._size(tag).is_prose() and id(tag) not in kept]

    def _name_panels(self) -> None:
        """Puts the name of a tab before what it opens, once, unless that begins with it."""
        given: dict[int, str] = {}
        tabs = [tag for tag in elements(self._soup.descendants) if self._is_tab(tag)]
        in_order = self._panels_in_order(tabs)
        for tab in tabs:
            near = (tab.previous_sibling, tab.next_sibling)
            if any(isinstance(node, NavigableString) and any(map(str.isalnum, node)) for node in near):
                continue
            panel = self._panel_of(tab) or in_order.get(id(tab))
            name = " ".join(tab.get_text(" ").split())
            if panel is None or not name or any(parent is panel for parent in tab.parents):
                continue
            if id(panel) not in given:
                given[id(panel)] = name
                first = next((text for text in panel.find_all(string=True) if text.strip()), None)
                if first is None or first.find_parent("pre") is not None or " ".join(first.split()) != name:
                    heading = next((box.name for box in (tab, *tab.parents) if box.name in HEADINGS), "p")
                    title = self._soup.new_tag(heading)
                    title.append(name)
                    panel.insert(0, title)
            if given[id(panel)] == name:
                hollow(tab)

    def _is_tab(self, tag: Tag) -> bool:
        """Whether an element is a tab: it says so, labels one of several radio buttons, opens what is called
        a tab, or leads, with all others of its list, to the boxes behind that.
        """
        if _is_tab(tag):
            return True
        if id(tag) in self._choosing:
            return any(_TAB_NAME.search(_names_of(box)) for box in islice(tag.parents, 2))
        if tag.name == "button" and any(near.name == "button" for near in beside(tag)):
            targets = (self._by_id.get(name) for name in _names_in(tag, _REFERENCES))
            return any(target is not None and _TAB_NAME.search(_names_of(target)) for target in targets)
        item = tag.parent
        if tag.name != "a" or item is None or item.name != "li" or item.parent is None:
            return False
        panel = self._by_id.get(str(tag.get("href", "")).removeprefix("#"))
        return panel is not None and panel.name == "div" and self._heads_panels(item.parent)

    def _heads_panels(self, menu: Tag) -> bool:
        """Whether a list holds nothing but links to the boxes right behind it, which have no headings."""
        if id(menu) not in self._heading_panels:
            names = [str(link.get("href", "")).removeprefix("#") for link in tags_named(menu, ("a",))]
            panels = list(islice(elements(menu.next_siblings), len(names)))
            is_all = len(names) > 1 and names == [str(panel.get("id", "")) for panel in panels]
            is_menu = is_all and self._size(menu).linked == self._size(menu).text
            self._heading_panels[id(menu)] = is_menu and all(panel.find(HEADINGS) is None for panel in panels)
        return self._heading_panels[id(menu)]

    def _panel_of(self, tab: Tag) -> Tag | None:
        """What a tab, or a panel of itself, says that it opens."""
        target = str(tab.get("aria-controls") or tab.get("href") or tab.get("data-bs-target") or "")
        names = (target.removeprefix("#"), *(_names_in(tab, _REFERENCES) if tab.name == "button" else ()))
        panels = (self._by_id.get(name) for name in names)
        return next(filter(None, panels), None) or self._labelled.get(str(tab.get("id", "")))

    def _panels_in_order(self, tabs: list[Tag]) -> dict[int, Tag]:
        """The panels of rows of tabs with as many boxes behind them, or in the box behind, by tabs' ids."""
        rows: dict[int, list[Tag]] = {}
        for tab in tabs:
            inner = tab
            while inner.parent is not None and inner.parent.name in ("li", "span"):
                inner = inner.parent
            if inner.parent is not None and (tab.get("role") == "tab" or id(tab) in self._choosing):
                rows.setdefault(id(inner.parent), []).append(tab)
        found: dict[int, Tag] = {}
        for row in rows.values():
            panels = self._boxes_behind(row) if len(row) > 1 else []
            if len(panels) == len(row) and all(panel.name in _BLOCKS for panel in panels):
                found.update((id(tab), panel) for tab, panel in zip(row, panels, strict=True))
        return found

    def _boxes_behind(self, row: list[Tag]) -> list[Tag]:
        """The panels behind a row of tabs that has a box to itself, or those in what stands behind it."""
        length = sum(self._size(tab).text for tab in row)
        box = row[0]
        while box.parent is not None and self._size(box.parent).text <= length:
            box = box.parent
        if self._size(box).text != length:
            return []
        boxes = self._worded(islice(box.next_siblings, 2 * len(row) + LOOK_AROUND))
        if boxes and boxes[0].get("role") != "tabpanel":
            return self._worded(boxes[0].children)
        return list(takewhile(lambda box: box.get("role") == "tabpanel", boxes))

    @staticmethod
    def _within(tag: Tag, place: _Place, size: _Size, total: _Size) -> _Place:
        if tag.name in _MAIN or tag.get("role") == "main":
            return replace(place, main=True, section=True)
        if tag.name in ("section", "dialog"):
            return replace(place, section=True)
        if tag.name == "blockquote":
            return replace(place, quote=True)
        if tag.name in _TITLING:
            return replace(place, titling=True)
        if tag.name == "form" and size.n_fields and 2 * size.text < total.text:
            return replace(place, form=True)
        return place

    def _is_struck(self, tag: Tag, size: _Size, total: _Size) -> bool:
        if tag.name not in ("del", "s", "strike"):
            is_styled = STRIKING_STYLE.search(str(tag.get("style", ""))) is not None
            if not is_styled and _STRUCK_CLASSES.isdisjoint(tag.get_attribute_list("class")):
                return False
        return size.text <= max(_PROSE, _MAX_STRUCK_SHARE * total.text)

    def _is_side_matter(self, tag: Tag, place: _Place, size: _Size, total: _Size) -> bool:
        """Whether an element goes, with all in it."""
        if tag.name in ("button", "label"):
            return not self._is_question(tag, place, size)
        if tag.name in HEADINGS - {"h1"} and is_spoken(tag) and self._names_side_matter(tag, place, total):
            return True
        if not size.text or tag.name in ("[document]", "html", "body", "main", "article"):
            return False
        share = self._droppable_share(tag, place, size)
        return bool(share) and size.text <= share * total.text and tag.find(["h1", "main", "article"]) is None

    def _names_side_matter(self, heading: Tag, place: _Place, total: _Size) -> bool:
        """Whether a heading for screen readers names a menu, or what is dropped."""
        behind = self._next_worded(heading.next_siblings)
        if behind is None or behind.name in HEADINGS:
            return False
        size = self._size(behind)
        return size.linked == size.text or self._is_side_matter(behind, place, size, total)

    def _is_question(self, tag: Tag, place: _Place, size: _Size) -> bool:
        """Whether a button or label names what stands below it: no command and no name of a field."""
        if not size.text:
            return False
        opened = next((node for node in elements(tag.next_siblings) if self._size(node).text), None)
        if opened is not None and self._opens(tag, opened, place):
            self._opened.add(id(opened))
            return True
        is_state = size.text <= _LABEL and STATE.search(tag.get_text(" ")) is not None
        return (
            place.titling
            or self._is_datum(tag, place, size)
            or _is_tab(tag)
            or (tag.name == "button" and (tag.get("role") == "radio" or is_state))
            or self._has_target(tag)
            or (not place.form and len(tag.get_text(" ").split()) >= _QUESTION_WORDS)
        )

    def _opens(self, tag: Tag, block: Tag, place: _Place) -> bool:
        """Whether a button or label opens the block behind it: one says so, or that has words enough."""
        is_control = tag.get("aria-expanded") is not None or _is_named_opened(tag) or _is_named_opened(block)
        is_question = _QUESTION_NAME.search(_names_of(tag)) or tag.get_text().rstrip().endswith("?")
        says = not place.form and (is_question or (is_control and is_hidden(block)))
        return block.name in _BLOCKS and self._is_opened(block, 1 if says else _OPENED)

    def _has_target(self, tag: Tag) -> bool:
        """Whether a button or label names an element that it opens or is the name of."""
        told = (tag.get("aria-controls"), tag.get("for"))
        for name in _names_in(tag, _REFERENCES):
            target = self._by_id.get(name)
            if target is not None and (name in told or is_hidden(target) or _is_named_opened(target)):
                is_sure = name in told or name in self._controlled or _is_named_opened(target)
                return self._is_opened(target, 1 if is_sure else _OPENED)
        return False

    def _is_datum(self, tag: Tag, place: _Place, size: _Size) -> bool:
        """Whether a button or label is an item to tick, the name of a value or row, a word of a sentence."""
        parent = tag.parent
        if parent is None or size.n_fields or not size.text:
            return False
        if tag.name == "label" and not tag.get("for") and self._names_value(tag):
            return True
        if place.form:
            return False
        if id(tag) in self._ticked:
            return True
        if tag.name == "label":
            parent = self._row_of(parent, size)
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
            parts = (part for part in elements(parent.children) if part.name in ("label", "button"))
            named_text = sum(self._size(part).text for part in parts)
            self._unnamed[id(parent)] = self._size(parent).text - named_text
        is_alone = parent.name in ("td", "th", "li", "dt") and self._size(parent).text == size.text
        return is_alone or self._unnamed[id(parent)] > 0

    def _names_value(self, label: Tag) -> bool:
        """Whether words stand behind a label, and no field before the next."""
        has_words = False
        for node in islice(label.next_siblings, LOOK_AROUND):
            if isinstance(node, Tag):
                if node.name in ("label", "button"):
                    break
                if self._size(node).n_fields:
                    return False
                has_words = has_words or self._size(node).unlinked > 0
            else:
                has_words = has_words or any(map(str.isalnum, node.get_text()))
        return has_words

    def _row_of(self, box: Tag, size: _Size) -> Tag:
        """What a label stands in, or that and its value where it has a box to itself."""
        row = box
        while row.name in ("div", "span") and row.parent is not None and self._size(row).text == size.text:
            row = row.parent
        return row if self._size(row).text <= size.text + _PROSE and row.name not in _PARTS else box

    def _is_opened(self, tag: Tag, least: int = _OPENED) -> bool:
        """Whether an element is something that a button opens: words, mostly outside of links."""
        size = self._size(tag)
        return not size.n_fields and size.text >= least and size.linked <= _MAX_ASIDE_LINKS * size.text

    def _size(self, tag: Tag) -> _Size:
        return self._sizes.get(id(tag)) or _Size()

    def _droppable_share(self, tag: Tag, place: _Place, size: _Size) -> float:
        """Up to which share of the page's text an element is dropped: 1 where tag, role or attribute say that
        it is no content, less where only its style or name do, 0 for content.
        """
        role = str(tag.get("role", "")).lower()
        few_links = size.linked <= _MAX_ASIDE_LINKS * size.text
        if tag.name == "aside" or role == "complementary":
            is_content = few_links and (place.section or self._follows_words(tag))
            return float(not is_content and not size.is_prose() and not self._holds_notes(tag))
        if tag.name == "header" or role == "banner":
            is_content = place.section or self._is_titled(tag, size) or self._names_next(tag, size)
            return float(not is_content and not size.is_prose())
        if tag.name == "footer" or role == "contentinfo":
            is_content = place.quote or (place.section and few_links)
            return float(not is_content and not self._holds_notes(tag))
        if tag.name == "nav" or role in _CHROME_ROLES:
            return float(tag.name == "nav" or not place.quote)
        if not tag.attrs and tag.name != "dialog":
            return 0.0
        names = _names_of(tag)
        is_named = _CHROME_NAME.search(names) is not None
        if is_hidden(tag) or tag.name == "dialog" or role in ("dialog", "alertdialog"):
            if not is_named and self._is_revealed(tag, role, size):
                return 0.0
            return 1.0 if tag.get("hidden") is not None or tag.name == "dialog" else _MAX_HIDDEN_SHARE
        if (is_named and self._is_box(tag, names, place, size)) or _is_legal_line(tag, names, size):
            return _MAX_NAMED_SHARE
        is_list = _LIST_NAME.search(names) is not None and size.linked > _MAX_LIST_LINKS * size.text
        return _MAX_NAMED_SHARE if is_list and not self._is_said(tag, size) else 0.0

    def _is_said(self, tag: Tag, size: _Size) -> bool:
        """Whether links with a menu's name are content: by where they stand, as in a cell of data, a term, a
        heading, the head of an item, a list with a heading of its own; or by the words beside each of them.
        """
        if tag.name in _CELLS:
            return self._is_in_data(tag)
        if tag.name in _NAMING:
            return not _leads_home(tag)
        if self._names_next(tag, size) or _is_reached(tag):
            return True
        is_own = _ELSEWHERE.search(_names_of(tag)) is None
        return is_own and (self._is_headed(tag) or _is_priced(tag))

    def _is_in_data(self, cell: Tag) -> bool:
        table = cell.find_parent("table")
        if table is None or cell.name == "table":  # whose cells are nearly all links
            return False
        if id(table) not in self._data_tables:
            has_header = table.find("th") is not None
            is_plain = not tags_named(table, _WORDED | {"div", "br"} - {"table"})
            self._data_tables[id(table)] = (has_header or is_plain) and is_data_table(table)
        return self._data_tables[id(table)]

    def _names_next(self, tag: Tag, size: _Size) -> bool:
        """Whether a box is the head of an item, not of the page: a heading alone, or what a small box begins
        with, before words that are no links.
        """
        parent, behind = tag.parent, self._next_worded(tag.next_siblings)
        if parent is None or behind is None or _leads_home(tag):
            return False
        if self._size(behind).linked > _MAX_PROSE_LINKS * self._size(behind).text:
            return False
        if any(self._size(title).text == size.text for title in tags_named(tag, HEADINGS - {"h1"})):
            return True
        is_first = not any(node.get_text(strip=True) for node in islice(tag.previous_siblings, LOOK_AROUND))
        is_item = is_first and 3 * self._size(parent).text < 2 * self._size(self._soup).text
        return is_item and len(tags_named(tag, ("a",))) <= _HEAD_LINKS

    def _is_headed(self, tag: Tag) -> bool:
        """Whether a heading that people see stands right before a list, among words."""
        heading = self._next_worded(tag.previous_siblings)
        if heading is None or heading.name not in HEADINGS - {"h1"} or is_spoken(heading):
            return False
        before = self._next_worded(heading.previous_siblings)
        if before is None or before.name in HEADINGS:
            return False
        around = self._size(tag.parent) if tag.parent is not None else _Size()
        return not self._size(heading).linked and around.linked <= _MAX_ASIDE_LINKS * around.text

    def _worded(self, nodes: Iterable[PageElement]) -> list[Tag]:
        return [node for node in elements(nodes) if self._size(node).text]

    def _next_worded(self, nodes: Iterable[PageElement], passed: str = "") -> Tag | None:
        """The first element with text among the next few, those of a name aside."""
        near = self._worded(islice(nodes, LOOK_AROUND))
        return next((node for node in near if node.name != passed), None)

    def _follows_words(self, tag: Tag) -> bool:
        """Whether boxes stand right behind words, and no name says that they are something else."""
        names = _names_of(tag)
        while (
            tag.parent is not None
            and tag.parent.name == "div"
            and self._size(tag.parent).text == self._size(tag).text
        ):
            tag = tag.parent
            names += f" {_names_of(tag)}"
        if _CHROME_NAME.search(names) is not None or _LIST_NAME.search(names) is not None:
            return False
        words = self._next_worded(tag.previous_siblings, passed="aside")
        size = _Size() if words is None else self._size(words)
        return words is not None and words.name in _WORDED and size.linked <= _MAX_PROSE_LINKS * size.text

    def _holds_notes(self, tag: Tag) -> bool:
        """Whether it holds notes or sources: by name, by what the text refers to, by numbered sentences."""
        parts = [tag, *elements(tag.descendants)]
        if any(_NOTES.search(kinds_of(part)) or str(part.get("id", "")) in self._noted for part in parts):
            return True
        items = (part for part in parts if part.name == "li" and part.parent and part.parent.name == "ol")
        sizes = [self._size(item) for item in items if _SENTENCE_END.search(item.get_text())]
        return sum(size.linked for size in sizes) < _MAX_ASIDE_LINKS * sum(size.text for size in sizes)

    def _is_titled(self, tag: Tag, size: _Size) -> bool:
        """Whether a header gives its page a title and words, and no menu."""
        titles = [title for title in tags_named(tag, HEADINGS) if self._size(title).text]
        linked = sum(self._size(title).linked for title in titles)
        is_menu = size.n_fields or size.linked > _MAX_PROSE_LINKS * size.text or tag.find("nav") is not None
        return bool(titles) and not linked and not is_menu

    def _is_revealed(self, tag: Tag, role: str, size: _Size) -> bool:
        """Whether a hidden element is content that a click shows."""
        name = str(tag.get("id", ""))
        is_dialog = tag.name == "dialog" or role in ("dialog", "alertdialog")
        is_referred = name in self._referred
        is_opened = role == "tabpanel" or name in self._controlled or id(tag) in self._opened
        is_inline = tag.name in _INLINE
        is_named = _is_named_opened(tag) and (not is_inline or _goes_on(tag))
        is_answer = is_named and (is_inline or is_referred or self._is_asked(tag))
        is_answer = is_answer or (is_referred and _SENTENCE.search(tag.get_text()) is not None)
        if not is_dialog and (is_opened or is_answer):
            return self._is_opened(tag, 1)
        if is_referred or is_named or is_opened or tag.get("aria-labelledby") is not None:
            return self._is_opened(tag)
        return size.is_prose() and not size.n_fields

    def _is_asked(self, tag: Tag) -> bool:
        """Whether a question or the head of a box stands right before an element."""
        before = self._next_worded(tag.previous_siblings)
        if before is None:
            return False
        is_head = before.name in _TITLING or _ASKING_NAME.search(_names_of(before)) is not None
        return is_head or before.get_text().rstrip().endswith("?")

    @staticmethod
    def _is_box(tag: Tag, names: str, place: _Place, size: _Size) -> bool:
        """Whether what a name calls a banner, an advertisement or the like looks like one."""
        if tag.name in _CELLS or tag.name in _NAMING:
            return False
        if size.linked > _MAX_ASIDE_LINKS * size.text or _asks_consent(tag, names, place, size):
            return True
        is_sentence = _SENTENCE_END.search(tag.get_text()) is not None
        if size.text <= _LABEL or (size.linked and size.unlinked <= _PROSE):
            return not is_sentence
        if size.n_fields:
            return not (place.main and size.is_prose(2 * _PROSE))
        return size.n_buttons > 0 and not place.section and tag.name not in ("section", "article")


def _leads_home(tag: Tag) -> bool:
    links = (tag, *tags_named(tag, ("a",)))
    return any(_HOME.fullmatch(str(link["href"])) for link in links if link.get("href"))


def _is_reached(tag: Tag) -> bool:
    links = [tag] if tag.name == "a" else tags_named(tag, ("a",))
    return all(_REACHED.match(str(link.get("href", ""))) for link in links)


def _is_priced(tag: Tag) -> bool:
    """Whether words or numbers stand beside the links of each of two items or more: dishes and prices."""
    holder = tag.find(["ul", "ol"]) if tag.name not in ("ul", "ol") else tag
    items = [part for part in elements((holder or tag).children) if part.name == "li"]
    if not items:
        near = (*islice(tag.previous_siblings, LOOK_AROUND), *islice(tag.next_siblings, LOOK_AROUND))
        alike = (node for node in elements(near) if node.name == tag.name)
        items = [tag, *(node for node in alike if node.get("class") == tag.get("class"))]
    if any(len(tags_named(item, ("a",))) > _HEAD_LINKS for item in items):
        return False
    return len(items) > 1 and all(_COUNT.sub("", _unlinked(item)) for item in items)


def _unlinked(tag: Tag) -> str:
    stack = [tag] * (tag.name != "a")
    words: list[str] = []
    while stack:
        for node in stack.pop().contents:
            if isinstance(node, Tag):
                stack.extend([node] * (node.name != "a"))
            elif isinstance(node, NavigableString):
                words.append(node)
    return "".join(words)


def kinds_of(tag: Tag) -> str:
    """What an element says that it is."""
    return f"{tag.get('epub:type', '')} {tag.get('role', '')} {tag.get('class', '')}"


def n_words(tags: Iterable[Tag]) -> int:
    """Words in all of these elements together."""
    return sum(len(tag.get_text(" ").split()) for tag in tags)


def _names_in(tag: Tag, attributes: Iterable[str]) -> list[str]:
    """Words of what a control refers to."""
    values = (str(tag[attribute])[:200] for attribute in attributes if attribute in tag.attrs)
    return [name for value in values for name in _WORD.findall(value)]


def _names_of(tag: Tag) -> str:
    return _CAMEL.sub("-", f"{class_of(tag)} {tag.get('id', '')}").replace("_", "-")


def _alike(boxes: list[Tag]) -> set[int]:
    """Ids of the boxes that are the items of a list: three or more of a kind side by side, all different."""
    lists: dict[tuple[int, str, str], list[Tag]] = {}
    for box in boxes:
        lists.setdefault((id(box.parent), box.name, str(box.get("class", ""))), []).append(box)
    alike = (items for items in lists.values() if len({item.get_text() for item in items}) >= _LIST)
    return {id(box) for items in alike for box in items}


def _asks_consent(tag: Tag, names: str, place: _Place, size: _Size) -> bool:
    """Whether a box asks to agree to cookies; cakes need no consent, and a chapter on them stands in the
    page's own text.
    """
    if _CONSENT_NAME.search(names) is None or size.text > (2 if place.main else 10) * _PROSE:
        return False
    parts = {part.name for part in elements(tag.descendants)}
    has_heading, within = not HEADINGS.isdisjoint(parts), place.main or place.section
    if within and ("table" in parts or (has_heading and "p" in parts)):
        return False
    buttons = [part for part in tags_named(tag, ("a", "button", "div", "span")) if _is_button(part)]
    # what agrees has a name in every language; a box beside the text, without a heading, is told by less
    agrees = any(_AGREEING.search(button.get_text()) for button in buttons)
    asks = agrees or bool(buttons and not within and not has_heading)
    return asks and _TRACKING.search(tag.get_text(" ")) is not None


def _is_button(tag: Tag) -> bool:
    is_link = tag.name == "a" and _BUTTON.search(class_of(tag)) is not None
    return tag.name == "button" or tag.get("role") == "button" or is_link


def _is_legal_line(tag: Tag, names: str, size: _Size) -> bool:
    """Whether the foot of a page says no more than whose it is."""
    is_foot = tag.name in ("div", "section", "p", "ul", "table") and _FOOT_NAME.search(names) is not None
    return is_foot and size.text <= _PROSE and _RIGHTS.search(tag.get_text(" ")) is not None


def _is_named_opened(tag: Tag) -> bool:
    """Whether a name says that a click opens an element, or that it opens one."""
    names = _names_of(tag)
    return _OPENED_NAME.search(names) is not None and _UNOPENED_NAME.search(names) is None


def _goes_on(tag: Tag) -> bool:
    """Whether an element goes on with a line and is no part of a control and no twin of its neighbour."""
    nodes = islice(tag.previous_siblings, LOOK_AROUND)
    before = next((node for node in nodes if node.get_text(strip=True)), None)
    is_block = isinstance(before, Tag) and before.name in _BLOCKS
    kind = _opened_names(tag)
    is_form = any(kind & _opened_names(near) for near in beside(tag) if near.name not in ("a", "button"))
    return before is not None and not is_block and not is_form and tag.find_parent(["a", "button"]) is None


def _opened_names(tag: Tag) -> set[str]:
    return set(_OPENED_NAME.findall(_names_of(tag).lower()))


def _set_off(tag: Tag) -> None:
    """A blank behind a label that words follow; scripts written without blanks get none."""
    behind = "" if tag.next_sibling is None else tag.next_sibling.get_text()[:1]
    if (behind.isalnum() and behind < "\u0e00") or behind in set("([$€£¥+"):
        tag.append(" ")


def _is_tab(tag: Tag) -> bool:
    opens = tag.get("data-toggle") or tag.get("data-bs-toggle")
    return tag.get("role") == "tab" or opens in ("tab", "pill")
