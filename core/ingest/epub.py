"""An EPUB -> Markdown: chapters in the order of its spine.

One that begins without a heading gets the name that the book's contents have for it.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterator
from urllib.parse import unquote
from xml.etree.ElementTree import Element, ParseError

from bs4 import BeautifulSoup, Tag
from bs4.element import NavigableString
from defusedxml import DefusedXmlException  # type: ignore[import-untyped]
from defusedxml import ElementTree as SafeTree

from core.base.errors import BadDocument
from core.base.types import Notice
from core.ingest.archive import Archive
from core.ingest.clean import clean, sentences_on
from core.ingest.converted import Converted
from core.ingest.decode import decode
from core.ingest.html import check_size
from core.ingest.markdown import markdown_of
from core.ingest.naming import clip, printable
from core.ingest.soup import parse_html, tags_named

_CONTAINER = "META-INF/container.xml"
_RIGHTS = "META-INF/encryption.xml"
_DC = "{http://purl.org/dc/elements/1.1/}"
_CIPHER = "{http://www.w3.org/2001/04/xmlenc#}CipherReference"
_METADATA = ("title", "creator", "language", "publisher", "date", "description", "identifier")
_SHOWN = {"creator": "Authors"}
_MEDIA = re.compile(
    r"\.(?:jpe?g|png|gif|webp|svg|bmp|tiff?|css|js|ttf|otf|woff2?|mp[34]|m4[abv]|ogg|wav|aac|webm|pdf|smil|pls)$",
    re.IGNORECASE,
)
_NCX = "application/x-dtbncx+xml"
_HEADING = re.compile(r"^#{1,6} ", re.MULTILINE)
_HEAD = 600
"""Characters of a chapter in which its heading is looked for."""
_MOST_OF_NAME = 3
"""Paragraphs at the start of a chapter that its name may stand in: a number, a name, another."""
_PAGES = ("application/xhtml+xml", "text/html", "text/x-oeb1-document", "application/xml", "")


def read_epub(data: bytes, name: str) -> Converted:
    """Raises BadDocument when it is protected or without text, and what libraries raise on damaged parts."""
    archive = Archive(data, name)
    parts = archive.repacked(lambda part: _MEDIA.search(part) is None)
    package_path = _package_path(parts)
    package = SafeTree.fromstring(parts[package_path])
    folder = posixpath.dirname(package_path)
    chapters, labels = list(_chapters(package, folder)), _labels(package, folder, parts)
    rights = parts.get(_RIGHTS)
    if rights is not None and _hides(rights, {path for chapter in chapters for path in chapter}):
        raise BadDocument(
            f"{name} is protected against reading by other programs (DRM); open a copy without protection"
        )
    texts: list[str] = []
    read: set[str] = set()
    notices: dict[Notice, None] = {}
    n_again = n_missing = 0
    left_out = Counter[str]()
    for candidates in chapters:
        path = next((path for path in candidates if path in parts), None)
        if path is None:
            n_missing += 1
        elif path in read:
            n_again += 1
        else:
            read.add(path)
            html, about = decode(parts[path], f"{printable(path)} in {name}", is_html=True)
            notices |= dict.fromkeys(Notice(notice.sentence) for notice in about)
            text, left = _chapter(html, f"{printable(path)} in {name}", labels.get(path, []))
            texts.append(text)
            left_out += left
    if not any(texts):
        raise BadDocument(f"{name} has no text in its chapters; open one that has")
    if n_again:
        told = f"Its list of chapters names some again, {n_again:,} times; each was read once."
        notices[Notice(told)] = None
    if n_missing:
        notices[Notice(f"Chapters that the book names but does not hold: {n_missing:,}.")] = None
    about_book = "\n".join(_metadata(package))
    return Converted(
        "\n\n".join(filter(None, [about_book, *texts])),
        package.findtext(f".//{_DC}title") or "",
        (*notices, *map(Notice, sentences_on(left_out))),
    )


def _package_path(parts: dict[str, bytes]) -> str:
    container = SafeTree.fromstring(parts[_CONTAINER])
    return next(str(root.get("full-path")) for root in container.iter() if _local(root) == "rootfile")


def _local(element: Element) -> str:
    return str(element.tag).rpartition("}")[2].rpartition(":")[2]


def _chapters(package: Element, folder: str) -> Iterator[tuple[str, ...]]:
    """For each chapter the names that it may have in the archive, the likeliest first."""
    items = {
        str(item.get("id")): item
        for item in package.iter()
        if _local(item) == "item" and item.get("media-type", "").lower() in _PAGES
    }
    for reference in package.iter():
        item = items.get(str(reference.get("idref"))) if _local(reference) == "itemref" else None
        if item is not None:
            href = item.get("href", "")
            plain = href.partition("#")[0].partition("?")[0]
            paths = (posixpath.join(folder, one) for one in (unquote(plain), plain, unquote(href), href))
            yield tuple(dict.fromkeys(posixpath.normpath(path).lstrip("/") for path in paths))


def _labels(package: Element, folder: str, parts: dict[str, bytes]) -> dict[str, list[tuple[str, str]]]:
    """What the book's contents call places in its files: for each file (fragment, name)."""
    labels: dict[str, list[tuple[str, str]]] = {}
    for item in (element for element in package.iter() if _local(element) == "item"):
        path = posixpath.normpath(posixpath.join(folder, unquote(item.get("href", ""))))
        is_nav, is_ncx = "nav" in item.get("properties", "").split(), item.get("media-type") == _NCX
        if path not in parts or not (is_nav or is_ncx):
            continue
        try:
            named = list(_named_by_ncx(parts[path]) if is_ncx else _named_by_nav(parts[path], path))
        except (ParseError, DefusedXmlException):  # the chapters are there without their names
            continue
        for href, label in named:
            file, _, fragment = map(unquote, href.partition("#"))
            place = posixpath.normpath(posixpath.join(posixpath.dirname(path), file))
            labels.setdefault(place, []).append((fragment, clip(" ".join(label.split()))))
    return labels


def _named_by_ncx(content: bytes) -> Iterator[tuple[str, str]]:
    for point in SafeTree.fromstring(content).iter():
        if _local(point) == "navPoint":
            inner = {_local(element): element for element in reversed(list(point.iter()))}
            if "content" in inner and "text" in inner:
                yield inner["content"].get("src", ""), "".join(inner["text"].itertext())


def _named_by_nav(content: bytes, path: str) -> Iterator[tuple[str, str]]:
    soup, _ = parse_html(decode(content, path, is_html=True)[0])
    for link in tags_named(soup, ("a",)):
        nav = link.find_parent("nav")
        if nav and "toc" in str(nav.get("epub:type", "toc")).split():  # no list of pages, no landmarks
            yield str(link.get("href", "")), link.get_text(" ")


def _named(text: str, label: str) -> str:
    """A chapter under its name, unless it begins with a heading of its own."""
    if not (label and text) or _HEADING.search(text, 0, _HEAD):
        return text
    paragraphs = text.split("\n\n", _MOST_OF_NAME)
    for n in range(1, _MOST_OF_NAME + 1):
        if _letters("".join(paragraphs[:n])) == _letters(label):
            text = "\n\n".join(paragraphs[n:])
            break
    return f"# {label}\n\n{text}"


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text)).casefold()


def _chapter(html: str, name: str, labels: list[tuple[str, str]]) -> tuple[str, Counter[str]]:
    check_size(html, name)
    soup, _ = parse_html(html)
    inside = _behind_text(soup)
    label = next((label for fragment, label in labels if fragment not in inside), "")
    left_out = clean(soup, keep_side_matter=True)
    return _named(markdown_of(soup), label), left_out


def _behind_text(soup: BeautifulSoup) -> set[str]:
    """Ids of the places in a chapter that have text before them."""
    ids: set[str] = set()
    has_text = False
    for node in (soup.body or soup).descendants:
        if isinstance(node, Tag):
            if has_text:
                ids.update(str(node.get(key)) for key in ("id", "name") if node.get(key))
        elif type(node) is NavigableString:
            has_text = has_text or bool(node.strip())
    return ids


def _metadata(package: Element) -> Iterator[str]:
    for name in _METADATA:
        found = ("".join(element.itertext()).split() for element in package.iter(f"{_DC}{name}"))
        if values := [" ".join(words) for words in found if words]:
            text = ", ".join(values) if name == "creator" else values[0]
            yield f"**{_SHOWN.get(name, name.capitalize())}:** {text}"


def _hides(rights: bytes, chapters: set[str]) -> bool:
    """Whether chapters are encrypted; fonts often are, and do no harm."""
    references = SafeTree.fromstring(rights).iter(_CIPHER)
    return any(unquote(str(reference.get("URI", ""))).lstrip("/") in chapters for reference in references)
