"""A DOCX -> Markdown, by mammoth over prepared parts.

mammoth leaves out what it does not know, so that is put into words that it does: numbers of clauses, fields,
equations, text boxes, notes and comments beside their paragraph, page headers and footers at the start.
Struck and deleted text is left out. What is left out, and formulas without words, are told.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement
from xml.sax.handler import ContentHandler

import mammoth
from bs4 import BeautifulSoup, Tag
from bs4.element import NavigableString
from defusedxml import DefusedXmlException  # type: ignore[import-untyped]
from defusedxml import ElementTree as SafeTree
from defusedxml import sax as safe_sax

from core.base.errors import BadDocument
from core.base.types import Notice
from core.ingest.archive import Archive, stored
from core.ingest.clean import clean
from core.ingest.converted import Converted
from core.ingest.formulas import M, equation_line
from core.ingest.limits import MAX_COLUMNS, MAX_XML_DEPTH, MAX_XML_ELEMENTS
from core.ingest.markdown import LABEL, markdown_of
from core.ingest.numbering import BULLET, Numbering, Styles, W, is_on, value_of, whole
from core.ingest.soup import parse_html, tags_named

_TITLE = "{http://purl.org/dc/elements/1.1/}title"
_MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_RELATION = "{http://schemas.openxmlformats.org/package/2006/relationships}Relationship"
_DIAGRAM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}relIds"
_V = "{urn:schemas-microsoft-com:vml}"
_XML_SPACE = "{http://www.w3.org/XML/1998/namespace}space"
_STRICT = (
    (b"http://purl.oclc.org/ooxml/wordprocessingml/main", W[1:-1].encode()),
    (b"http://purl.oclc.org/ooxml/officeDocument/math", M[1:-1].encode()),
    (b"http://purl.oclc.org/ooxml/officeDocument/relationships", _R[1:-1].encode()),
)
"""Namespaces of the strict form of the format, and those that readers know."""
_GROUP = f"{W}smartTag"
"""An element of whose children mammoth reads all."""
_READ_THROUGH = frozenset(
    W + name for name in ("fldSimple", "hyperlink", "dir", "bdo", "ruby", "rubyBase", "rt")
)
_INSTEAD = {f"{W}cr": f"{W}br", f"{W}ptab": f"{W}tab"}
_DRAWN = frozenset(W + name for name in ("drawing", "pict", "object"))
_NOTES = {f"{W}footnoteReference": "footnotes", f"{W}endnoteReference": "endnotes"}
_STYLE_MAP = "p[style-name='Title'] => h1:fresh"
_HEADING_NAME = re.compile(r"heading ([1-9])", re.IGNORECASE)
_DEEP_LIST = re.compile(r"list (?:bullet|number) ([2-5])", re.IGNORECASE)
_MOST_HEADING = 6
_MARK = re.compile("\ue000(\\d)\ue001([^\ue002]*)\ue002")
"""What a numbered paragraph begins with until lists are built: level and label."""
_LIST_LABEL = re.compile(r"-|\d{1,9}[.)]")
_FORMULA = "[formula]"
_STRUCK = "Struck-out text left out: {} word{s}."
_HIDDEN = "Hidden text left out: {} word{s}."
_DELETED = "Tracked deletions left out: {} word{s}."
_PICTURES = "Pictures left out: {}."
_DIAGRAMS = "Diagrams (SmartArt) left out, with their words: {}."
_EMBEDDED = "Embedded objects left out: {}."
_UNREAD = f"Formulas that can't be read: {{}}, each shown as {_FORMULA}."
_LEFT_OUT = (_STRUCK, _HIDDEN, _DELETED, _PICTURES, _DIAGRAMS, _EMBEDDED, _UNREAD)
"""In the order in which they are told."""


def read_docx(data: bytes, name: str) -> Converted:
    """Raises BadDocument when it is too large or without text, and what libraries raise on damaged parts."""
    parts = Archive(data, name).repacked(lambda part: part.lower().endswith((".xml", ".rels")))
    check = _XmlCheck(name)
    package = _Package({part: content for part, content in parts.items() if check.is_sound(content)})
    html = mammoth.convert_to_html(
        stored(package.prepared()), style_map=_STYLE_MAP, include_embedded_style_map=False
    ).value
    soup, _ = parse_html(html)
    _build_lists(soup)
    for box in tags_named(soup, ("input",)):
        box.replace_with("[x] " if box.has_attr("checked") else "[ ] ")
    clean(soup, from_office=True)
    markdown = markdown_of(soup)
    if not markdown.strip():
        raise BadDocument(f"{name} has no text; open one that has")
    return Converted(markdown, package.title, tuple(map(Notice, package.notices())))


class _XmlCheck(ContentHandler):
    """Counts the elements of all parts of a file, and how deep they lie."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.depth = 0
        self.n_elements = 0

    def is_sound(self, xml: bytes) -> bool:
        """Whether a part can be parsed. Raises DefusedXmlException, BadDocument when too deep or large."""
        self.depth = 0
        try:
            safe_sax.parseString(xml, self, forbid_dtd=True)
        except (BadDocument, DefusedXmlException):
            raise
        except Exception:  # parsers fail on broken files in more ways than they name
            return False
        return True

    def startElement(self, name: str, attrs: Any) -> None:  # noqa: ARG002 - the interface's
        self.depth += 1
        self.n_elements += 1
        if self.depth > MAX_XML_DEPTH:
            raise BadDocument(
                f"{self.name} is nested more than {MAX_XML_DEPTH} levels deep; save it as PDF, HTML or plain"
                " text and open that"
            )
        if self.n_elements > MAX_XML_ELEMENTS:
            raise BadDocument(
                f"{self.name} has more than {MAX_XML_ELEMENTS:,} XML elements; split it and open the parts,"
                " or save it as plain text"
            )

    def endElement(self, name: str) -> None:  # noqa: ARG002 - the interface's
        self.depth -= 1


class _Package:
    """The parts of a file, and what was left out of them."""

    def __init__(self, parts: dict[str, bytes]) -> None:
        self._parts = parts
        self._main = next(self._related("", "officeDocument"), "word/document.xml")
        document = self._root(self._main)
        if document is None:
            raise ValueError("no main part")
        self._document = document
        self._styles = Styles.read(self._part("styles"))
        self._numbering = Numbering(self._part("numbering"), self._styles)
        self._notes: dict[str, dict[str, str]] = {}
        self._comments: dict[str, str] = {}
        """By id, without those that stand beside their paragraph already."""
        self._beside: list[str] = []
        """Notes and comments of the paragraph that is being read."""
        self._n_notes = 0
        self._left_out: Counter[str] = Counter()
        """How much of what, by the sentences of _LEFT_OUT."""
        self._chosen = ""
        """In a dropdown of a form, until a text shows it."""

    @property
    def title(self) -> str:
        properties = self._root("docProps/core.xml")
        return "" if properties is None else properties.findtext(f".//{_TITLE}") or ""

    def prepared(self) -> dict[str, bytes]:
        """What mammoth is given: the text with everything in it, and the styles."""
        for kind in ("footnotes", "endnotes"):
            self._notes[kind] = dict(self._texts_by_id(kind))
        self._comments = dict(self._texts_by_id("comments"))
        body = self._document.find(f"{W}body")
        if body is not None:
            margins = list(self._margins())
            _join_drop_caps(body)
            self._walk(body)
            for text in reversed(margins):
                body.insert(0, _paragraph(text))
            body.extend(map(_paragraph, self._comments.values()))
        styles = self._part("styles")
        given = {"word/document.xml": ElementTree.tostring(self._document)}
        if styles is not None:
            given["word/styles.xml"] = ElementTree.tostring(_mended(styles))
        return given

    def notices(self) -> Iterator[str]:
        """A sentence on everything that was left out."""
        for text in _LEFT_OUT:
            if n := self._left_out[text]:
                yield text.format(f"{n:,}", s="s" * (n > 1))

    def _root(self, name: str) -> Element | None:
        content = self._parts.get(name)
        if content is None:
            return None
        for strict, known in _STRICT:
            content = content.replace(strict, known)
        root: Element = SafeTree.fromstring(content)
        return root

    def _related(self, source: str, kind: str) -> Iterator[str]:
        """Names of the parts of a kind that a part refers to."""
        return (target for _, target in self._relations(source, kind))

    def _relations(self, source: str, kind: str) -> Iterator[tuple[str, str]]:
        folder, _, file = source.rpartition("/")
        root = self._root(posixpath.join(folder, "_rels", f"{file}.rels"))
        for relation in () if root is None else root.iter(_RELATION):
            target = posixpath.normpath(posixpath.join("/", folder, relation.get("Target", ""))).lstrip("/")
            if relation.get("Type", "").endswith(f"/{kind}") and target in self._parts:
                yield relation.get("Id", ""), target

    def _part(self, kind: str) -> Element | None:
        return self._root(next(self._related(self._main, kind), f"word/{kind}.xml"))

    def _texts_by_id(self, kind: str) -> Iterator[tuple[str, str]]:
        """Notes or comments: (id, text)."""
        root = self._part(kind)
        for note in () if root is None else root:
            self._walk(note)
            text = _words(note)
            author = " ".join(note.get(f"{W}author", "").split())
            if kind == "comments":
                text = f"[Comment{f' by {author}' if author else ''}: {text}]"
            yield note.get(f"{W}id", ""), text

    def _margins(self) -> Iterator[str]:
        """What stands at the head and foot of pages, each text once."""
        seen = set()
        for kind in ("header", "footer"):
            targets = dict(self._relations(self._main, kind))
            for reference in self._document.iter(f"{W}{kind}Reference"):
                root = self._root(targets.get(reference.get(f"{_R}id", ""), ""))
                if root is None:
                    continue
                self._walk(root)
                text = _words(root)
                if any(map(str.isalpha, text)) and (kind, text) not in seen:
                    seen.add((kind, text))
                    yield f"Page {kind}: {text}"

    def _walk(self, parent: Element) -> None:
        """Prepares all that lies in an element, in the order of the text."""
        children: list[Element] = []
        for child in list(parent):
            children += self._prepared(child, parent)
        parent[:] = children

    def _prepared(self, element: Element, parent: Element) -> list[Element]:
        tag = element.tag
        if tag == f"{W}p":
            return [element, *self._prepare_paragraph(element)]
        if tag == f"{W}r":
            return self._run(element)
        if tag in (f"{M}oMath", f"{M}oMathPara"):
            text = self._formula(element)
            return [_paragraph(text) if parent.tag == f"{W}body" else _run(text)]
        if tag == f"{_MC}AlternateContent":
            return self._alternative(element)
        if tag in _DRAWN:
            return self._drawn(element)
        if tag == f"{W}altChunk":  # a file of another format within the text
            self._left_out[_EMBEDDED] += 1
        if tag in (f"{W}del", f"{W}moveFrom") and parent.tag not in (f"{W}rPr", f"{W}trPr", f"{W}pPr"):
            texts = (text.text or "" for text in element.iter(f"{W}delText"))
            self._left_out[_DELETED] += sum(len(text.split()) for text in texts)
            return []
        if tag == f"{W}commentReference":
            if text := self._comments.pop(element.get(f"{W}id", ""), ""):
                self._beside.append(text)
            return []
        if tag in _NOTES:
            return self._note(element)
        if tag == f"{W}sdt" and is_on(element.find(f"{W}sdtPr"), "showingPlcHdr"):
            # "Click here to enter text"
            return [one for cell in _emptied(element) for one in self._prepared(cell, parent)]
        if tag == f"{W}tr":
            _fill_row(element)
            self._walk(element)
        elif tag == f"{W}tcPr":
            for span in element.findall(f"{W}gridSpan"):
                span.set(f"{W}val", str(min(max(1, whole(span.get(f"{W}val"), 1)), MAX_COLUMNS)))
        elif tag == f"{W}fldChar":
            return self._field_mark(element)
        elif tag == f"{W}sym":
            code = element.get(f"{W}char", "")
            return [element] if re.fullmatch(r"[0-9A-Fa-f]{1,5}", code) else []
        elif tag != f"{W}sectPr":
            self._chosen = "" if tag == f"{W}t" and (element.text or "").strip() else self._chosen
            self._walk(element)
            if tag == f"{W}br":  # one of a page or column breaks a line, too
                element.attrib.pop(f"{W}type", None)
            if tag in _READ_THROUGH:
                _read_through(element)
            element.tag = _INSTEAD.get(element.tag, element.tag)
        return [element]

    def _prepare_paragraph(self, paragraph: Element) -> list[Element]:
        """Returns what is to stand behind it: notes of a heading, which are none of its words."""
        outer, self._beside = self._beside, []
        properties = paragraph.find(f"{W}pPr")
        is_deleted = properties is not None and properties.find(f"{W}rPr/{W}del") is not None
        label = self._numbering.label(properties) if _has_text(paragraph) and not is_deleted else None
        self._walk(paragraph)
        beside, self._beside = self._beside, outer
        if label is not None and label[1]:
            level = label[0] or self._depth_of(properties)
            mark = _run(f"\ue000{level}\ue001{label[1].replace(chr(0xE002), '')}\ue002")
            paragraph.insert(0 if properties is None else 1 + list(paragraph).index(properties), mark)
        if self._mark_heading(properties):
            return [_paragraph(text) for text in beside]
        paragraph.extend(_run(f" {text}") for text in beside)
        return []

    def _depth_of(self, properties: Element | None) -> int:
        """How deep the style of a list says that its items are: "List Bullet 2" one level."""
        named = next((style.name for _, style in self._styles.chain(value_of(properties, "pStyle"))), "")
        deep = _DEEP_LIST.fullmatch(named)
        return int(deep[1]) - 1 if deep else 0

    def _mark_heading(self, properties: Element | None) -> bool:
        """Gives a paragraph that its outline level makes a heading the style of one; whether it is."""
        if properties is None:
            return False
        level = value_of(properties, "outlineLvl")
        for _, style in self._styles.chain(value_of(properties, "pStyle")):
            if level is not None:
                break
            named = _HEADING_NAME.fullmatch(style.name)
            level = str(int(named[1]) - 1) if named else value_of(style.properties, "outlineLvl")
        depth = whole(level, 9) + 1
        if depth <= _MOST_HEADING:
            for style_name in properties.findall(f"{W}pStyle"):
                properties.remove(style_name)
            properties.insert(0, Element(f"{W}pStyle", {f"{W}val": f"Heading{depth}"}))
        return depth <= _MOST_HEADING

    def _run(self, run: Element) -> list[Element]:
        properties = run.find(f"{W}rPr")
        for reason, *marks in ((_STRUCK, "strike", "dstrike"), (_HIDDEN, "vanish")):
            if self._has_mark(properties, *marks):
                self._left_out[reason] += len(_words(run).split())
                return []
        self._walk(run)
        return [run]

    def _field_mark(self, mark: Element) -> list[Element]:
        """With what is chosen in a dropdown of a form, where the field holds no text that shows it."""
        chosen = ""
        if mark.get(f"{W}fldCharType") == "end":
            chosen, self._chosen = self._chosen, ""
        choices = mark.find(f"{W}ffData/{W}ddList")
        if choices is not None:
            entries = [entry.get(f"{W}val", "") for entry in choices.findall(f"{W}listEntry")]
            at = whole(value_of(choices, "result") or value_of(choices, "default"), 0)
            self._chosen = entries[at] if 0 <= at < len(entries) else ""
        return [mark, _text(chosen)] if chosen else [mark]

    def _has_mark(self, properties: Element | None, *marks: str) -> bool:
        """Whether a run has one of these marks, by itself or, where it says nothing of them, by its style."""
        if properties is None:
            return False
        if any(properties.find(f"{W}{mark}") is not None for mark in marks):
            return any(is_on(properties, mark) for mark in marks)
        style = value_of(properties, "rStyle")
        return style is not None and any(
            not one.marks.isdisjoint(marks) for _, one in self._styles.chain(style)
        )

    def _formula(self, element: Element) -> str:
        try:
            lines = element.iter(f"{M}oMath") if element.tag == f"{M}oMathPara" else [element]
            text = " ".join(filter(None, map(equation_line, lines)))
        except Exception:  # whatever a writer put there, the rest of the document is read
            text = " ".join("".join(element.itertext()).split())
        if not text:
            self._left_out[_UNREAD] += 1
        return text or _FORMULA

    def _alternative(self, element: Element) -> list[Element]:
        """The form with words, the older one first."""
        branches = [*element.findall(f"{_MC}Fallback"), *element.findall(f"{_MC}Choice")]
        chosen = next((one for one in branches if _has_text(one)), None) or next(iter(branches), None)
        if chosen is None:
            return []
        self._walk(chosen)
        return list(chosen)

    def _drawn(self, element: Element) -> list[Element]:
        """The text boxes of a drawing."""
        boxes = [box for box in element.iter(f"{W}txbxContent") if _has_text(box)]
        if not boxes:
            is_object = element.tag == f"{W}object"
            is_diagram = element.find(f".//{_DIAGRAM}") is not None
            self._left_out[_EMBEDDED] += is_object
            self._left_out[_DIAGRAMS] += is_diagram
            self._left_out[_PICTURES] += not (is_object or is_diagram)
            return []
        picture = Element(f"{W}pict")
        SubElement(picture, f"{_V}textbox").extend(boxes)
        self._walk(picture[0])
        return [picture]

    def _note(self, reference: Element) -> list[Element]:
        text = self._notes[_NOTES[reference.tag]].get(reference.get(f"{W}id", ""), "") if self._notes else ""
        if not text:
            return []
        self._n_notes += 1
        self._beside.append(f"[Note {self._n_notes}: {text}]")
        return [_text(f"[{self._n_notes}]")]


def _text(text: str) -> Element:
    element = Element(f"{W}t", {_XML_SPACE: "preserve"})
    element.text = text
    return element


def _run(text: str) -> Element:
    run = Element(f"{W}r")
    run.append(_text(text))
    return run


def _paragraph(text: str) -> Element:
    paragraph = Element(f"{W}p")
    paragraph.append(_run(text))
    return paragraph


def _has_text(element: Element) -> bool:
    texts = (child for tag in (f"{W}t", f"{M}t", f"{W}sym") for child in element.iter(tag))
    return any(child.text or child.tag == f"{W}sym" for child in texts)


def _words(element: Element) -> str:
    """What an element says, on one line."""
    written: list[str] = []
    for child in element.iter():
        if child.tag == f"{W}t":
            written.append(child.text or "")
        elif child.tag in (f"{W}p", f"{W}br", f"{W}tab"):
            written.append(" ")
    return " ".join(_MARK.sub(r"\2 ", "".join(written)).split())


def _read_through(element: Element) -> None:
    """Makes mammoth read what is in a field, a link or a ruby; the reading stands behind its word."""
    if element.tag == f"{W}rt":
        element.insert(0, _run(" ("))
        element.append(_run(")"))
    elif element.tag == f"{W}ruby":
        element[:] = sorted(element, key=lambda child: child.get("reading", ""))
    element.set("reading", "1" if element.tag == f"{W}rt" else "")
    element.tag = _GROUP


def _join_drop_caps(body: Element) -> None:
    """Puts a large first letter, which has a paragraph of its own, before the rest of its word."""
    children: list[Element] = []
    for element in body:
        is_rest = element.tag == f"{W}p" and not _is_drop_cap(element)
        if is_rest and children and _is_drop_cap(children[-1]):
            at = int(element.find(f"{W}pPr") is not None)
            element[at:at] = [part for part in children.pop() if part.tag != f"{W}pPr"]
        children.append(element)
    body[:] = children


def _is_drop_cap(element: Element) -> bool:
    frame = element.find(f"{W}pPr/{W}framePr")
    return frame is not None and frame.get(f"{W}dropCap", "none") != "none"


def _emptied(control: Element) -> list[Element]:
    """The cells or rows in a control that waits for text, without words."""
    held = [cell for tag in ("tr", "tc") for cell in control.findall(f"{W}sdtContent/{W}{tag}")]
    for parent in (inner for cell in held for inner in cell.iter()):
        parent[:] = [child for child in parent if child.tag != f"{W}r"]
    return held


def _fill_row(row: Element) -> None:
    """An empty cell where a row begins further right."""
    n_before = whole(value_of(row, "trPr", "gridBefore"), 0)
    if 0 < n_before <= MAX_COLUMNS:
        cell = Element(f"{W}tc")
        SubElement(SubElement(cell, f"{W}tcPr"), f"{W}gridSpan", {f"{W}val": str(n_before)})
        cell.append(Element(f"{W}p"))
        first = next((at for at, child in enumerate(row) if child.tag == f"{W}tc"), len(row))
        row.insert(first, cell)


def _mended(styles: Element) -> Element:
    """Without styles that nothing can name; one without a type is a paragraph's, as the format says."""
    for style in styles.findall(f"{W}style"):
        if style.get(f"{W}styleId") is None:
            styles.remove(style)
        elif style.get(f"{W}type") is None:
            style.set(f"{W}type", "paragraph")
    return styles


def _build_lists(soup: BeautifulSoup) -> None:
    """Lists of marked paragraphs; the label of what Markdown knows as no item stands before its words."""
    items: list[tuple[Tag, int, str]] = []
    for tag in tags_named(soup, ("p", "h1", "h2", "h3", "h4", "h5", "h6")):
        first = next((node for node in tag.descendants if isinstance(node, NavigableString)), None)
        match = _MARK.match(first) if first is not None else None
        if first is None or match is None:
            continue
        level, label, rest = int(match[1]), match[2], first[match.end() :]
        if tag.name == "p":
            first.replace_with(rest)
            items.append((tag, level, label))
        else:
            first.replace_with(rest if label == BULLET else f"{label} {rest}")
    open_lists: list[tuple[int, Tag]] = []
    last: Tag | None = None
    for tag, level, label in items:
        if last is None or tag.previous_sibling is not last:
            open_lists = []
        while len(open_lists) > 1 and level < open_lists[-1][0]:
            open_lists.pop()
        is_outer = not open_lists or level <= open_lists[0][0]
        if not open_lists or (is_outer and not _LIST_LABEL.fullmatch(label)):
            if not _LIST_LABEL.fullmatch(label):
                tag.insert(0, f"{label} ")
                open_lists, last = [], None
                continue
            last = soup.new_tag("ul")
            tag.insert_before(last)
            open_lists = [(level, last)]
        elif level > open_lists[-1][0]:
            inner = soup.new_tag("ul")
            upper = open_lists[-1][1].contents[-1]
            assert isinstance(upper, Tag)  # lists hold items
            upper.append(inner)
            open_lists.append((level, inner))
        item = soup.new_tag("li")
        item[LABEL] = label
        item.extend(list(tag.contents))
        tag.extract()
        open_lists[-1][1].append(item)
