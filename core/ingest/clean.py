"""A page's tree without its low-signal elements.

What is left is what a reader came for. Dropped: scripts, styles, media, form controls, navigation, page
headers and footers, hidden elements, what its class or id calls a cookie banner, advertisement, share bar,
newsletter box or breadcrumb, and menus and teasers: named so, and little but links. Kept: the element that
holds a main heading or an article, the header of an article and its footer unless that is links, and what has
a large share of the page's text, unless its tag or a `hidden` attribute says it is none. Links and images
lose their markup, anchor text stays. Attributes are dropped at the end, so nothing of them reaches the
converter.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bs4 import BeautifulSoup, Tag
from bs4.element import NavigableString

from core.ingest.limits import MAX_LIST_DEPTH, MAX_ORDERED_ITEMS
from core.ingest.soup import hollow, tags_named
from core.ingest.tables import unwrap_layout_tables

_DROPPED = frozenset(
    [
        *(
            "script",
            "style",
            "noscript",
            "template",
            "svg",
            "iframe",
            "object",
            "embed",
            "applet",
            "canvas",
            "audio",
            "video",
            "source",
            "track",
        ),
        *(
            "input",
            "select",
            "textarea",
            "button",
            "datalist",
            "label",
            "meter",
            "progress",
            "option",
            "map",
            "area",
            "link",
            "meta",
            "base",
            "param",
        ),
        *("img", "picture", "head", "frameset", "dialog", "nav"),
    ]
)
_CHROME_ROLES = frozenset(
    [
        "navigation",
        "banner",
        "contentinfo",
        "search",
        "dialog",
        "alertdialog",
        "menu",
        "menubar",
        "toolbar",
        "complementary",
        "tooltip",
        "tablist",
    ]
)
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
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_HIDING_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_MAX_NAMED_SHARE = 0.3
_MAX_HIDDEN_SHARE = 0.8
_MAX_ASIDE_LINKS = 0.5
_MAX_LIST_LINKS = 0.7
_APART = frozenset(["span", "time", "mark", "small", "cite", "address", "a"])
_HEADINGS = frozenset(["h1", "h2", "h3", "h4", "h5", "h6"])
_NESTING = frozenset(["ul", "ol", "dl", "blockquote"])
_EXPONENT = re.compile(r"(?!(?:st|nd|rd|th|er|re|e|tm|sm)$)[+\-−–]?\w{1,3}", re.IGNORECASE)
_TEX_WRAPPING = re.compile(r"^\{\\displaystyle (.*)\}$", re.DOTALL)


@dataclass(slots=True)
class _Size:
    """Characters of an element's text, and of those within links."""

    text: int = 0
    linked: int = 0


def clean(soup: BeautifulSoup) -> None:
    """Drops low-signal elements and all attributes, in place."""
    _keep_formulas(soup)
    _keep_pictured_cells(soup)
    for tag in tags_named(soup, _DROPPED):
        hollow(tag)
    _drop_chrome(soup)
    unwrap_layout_tables(soup)
    _simplify(soup)


def _keep_formulas(soup: BeautifulSoup) -> None:
    """Puts the TeX of a formula in its place: pages hide it behind an image."""
    for formula in tags_named(soup, ("math",)):
        tex = _TEX_WRAPPING.sub(r"\1", str(formula.get("alttext", "")).strip())
        hidden = formula.parent if formula.parent is not None and _is_hidden(formula.parent) else formula
        tex = tex or formula.get_text(" ")
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


def _drop_chrome(soup: BeautifulSoup) -> None:
    sizes = _sizes(soup)
    total = sizes[id(soup)].text
    for tag in list(soup.descendants):
        if not isinstance(tag, Tag) or tag.name in ("html", "body", "main", "article"):
            continue
        share = _droppable_share(tag, sizes[id(tag)])
        if share and sizes[id(tag)].text <= share * total and tag.find(["h1", "main", "article"]) is None:
            hollow(tag)


def _sizes(soup: BeautifulSoup) -> dict[int, _Size]:
    """Sizes of all elements by id, each text counted once per level; MAX_HTML_DEPTH bounds the levels."""
    sizes: dict[int, _Size] = {id(soup): _Size()}
    for node in soup.descendants:
        if isinstance(node, Tag):
            sizes[id(node)] = _Size()
        elif isinstance(node, NavigableString) and (length := len(node.strip())):
            parents = list(node.parents)
            linked = length if any(parent.name == "a" for parent in parents) else 0
            for parent in parents:
                sizes[id(parent)].text += length
                sizes[id(parent)].linked += linked
    return sizes


def _droppable_share(tag: Tag, size: _Size) -> float:
    """Up to which share of the page's text an element is dropped: 1 where tag, role or attribute
    say that it is no content, less where only its style or name do, 0 for content.
    """
    role = str(tag.get("role", "")).lower()
    if tag.name == "aside" or role == "complementary":
        return float(not _is_in_article(tag) or size.linked > _MAX_ASIDE_LINKS * size.text)
    if tag.name == "header" or role == "banner":
        return float(not _is_in_article(tag))
    if tag.name == "footer" or role in _CHROME_ROLES:
        is_content = (
            tag.name == "footer" and _is_in_article(tag) and size.linked <= _MAX_ASIDE_LINKS * size.text
        )  # sources, notes
        return float(tag.find_parent("blockquote") is None and not is_content)
    if _is_hidden(tag):
        return 1.0 if tag.get("hidden") is not None else _MAX_HIDDEN_SHARE
    names = _CAMEL.sub(
        "-", f"{' '.join(map(str, tag.get_attribute_list('class')))} {tag.get('id', '')}"
    ).replace("_", "-")
    is_list = _LIST_NAME.search(names) is not None and size.linked > _MAX_LIST_LINKS * size.text
    return _MAX_NAMED_SHARE if is_list or _CHROME_NAME.search(names) else 0.0


def _is_in_article(tag: Tag) -> bool:
    return any(parent.name in ("article", "main") or parent.get("role") == "main" for parent in tag.parents)


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
    for power in tags_named(soup, ("sup",)):
        if _EXPONENT.fullmatch(power.get_text()):
            power.insert(0, "^")
    for heading in tags_named(soup, _HEADINGS):
        if not heading.get_text(strip=True):
            heading.name = "span"
    for ordered in tags_named(soup, ("ol",)):
        if len(ordered.contents) > MAX_ORDERED_ITEMS:
            ordered.name = "ul"
    for tag in tags_named(soup, ("html", "body")):
        tag.name = "div"
    _cap_lists(soup)
    for node in soup.descendants:
        if isinstance(node, Tag):
            node.attrs = {}


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
