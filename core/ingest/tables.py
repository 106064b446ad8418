"""Tables of a page: data as plain rows, layout as blocks.

A table holds data when it has two rows of two cells or more and nothing says otherwise: its role, a table
inside it, or, without header cells and caption, a cell as long as an article, or most of its text in cells
such as pages have and no labels before them. A header cell or caption makes a small one data, too. A cell
that spans rows or columns stands in each of them, so that every value is in its column; a table inside a
table of data becomes words of its cell.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import islice

from bs4 import BeautifulSoup, Tag
from bs4.element import NavigableString, PageElement

from core.ingest.hidden import beside, described, is_spoken
from core.ingest.inline import ITEM_LABEL
from core.ingest.limits import MAX_CELL_CHARACTERS, MAX_COLUMNS, MAX_REPEATED_CHARACTERS, MAX_SPANNED_CELLS
from core.ingest.listings import read_listings
from core.ingest.soup import HEADINGS, LOOK_AROUND, class_of, elements, hollow, tags_named

_TABLE_PARTS = frozenset(["caption", "thead", "tbody", "tfoot", "tr", "td", "th", "colgroup", "col"])
_CELLS = frozenset(["td", "th"])
_ROLES = {"row": "tr", "cell": "td", "gridcell": "td", "columnheader": "th", "rowheader": "th"}
"""Parts of a table that is made of other elements."""
_TABLE_ROLES = ("table", "grid", "treegrid")
_TOLD = frozenset(
    [
        *("img", "svg", "math", "script", "style", "link", "meta", "template"),
        *("input", "select", "textarea", "button", "iframe", "video", "audio"),
    ]
)
"""What is described otherwise, or says what a person may do."""
_TEXT_BLOCKS = frozenset(["p", "ul", "ol", "dl", "blockquote"])
_BLOCKS = frozenset(["ul", "ol", "dl", "pre", "blockquote"])
_LINES = frozenset(["li", "td", "th", "dd", "p", "div"])
"""What a sign says yes or no to."""
_OVER = HEADINGS | {"p", "div", "ul", "form", "table"}
"""Over what a cross closes it."""
_COMMANDS = HEADINGS | {"a", "button", "select", "nav", "summary", "pre"}
_SIGNS = frozenset(["img", "svg", "i", "span", "input"])
_LISTS = frozenset(["table", "ul", "ol"])
_SIGN = re.compile(r"[✓✔✗✘✅❌❎☑☐☒⛔🚫]\ufe0f?")
_NAMED_SIGN = re.compile(
    r"(?:(?:green|red|gr[ae]y|black|white) )?(?:(check(?: ?mark|ed)?|tick)|cross(?: ?mark)?|x|unchecked)",
    re.IGNORECASE,
)
_ANSWER = re.compile(
    r"(?:yes|no|(?:not |un)?(?:included|available|allowed|permitted|supported|offered)|excluded)\s?:?",
    re.IGNORECASE,
)
_ICON = re.compile(
    r"(?:e-)?([a-z]{1,12}-)?(?:(?:circle|square)-)?(?:(check(?:-?mark)?|tick|ok|yes)|times|xmark|x|cross|remove|no|close)"
    r"(?:-(?:circle|square|lg|alt|o|fill))*+",
    re.IGNORECASE,
)
"""Classes of signs that a font or style sheet draws."""
_BOX = re.compile(r"\bcheckbox-o(?:n|ff)\b")
"""Classes of boxes that are drawn ticked or empty."""
_TASKS = re.compile(r"task|todo|to-do|check", re.IGNORECASE)
_BULLETS = frozenset("•–—-")
_LABEL_CHARACTERS = 40
_INNER_CHARACTERS = 300
"""Of a table inside a table of data."""


class _Spans:
    """What the spans of one page may still add."""

    def __init__(self) -> None:
        self._left = MAX_SPANNED_CELLS

    def take(self, n_cells: int) -> int:
        """How many of these cells may be added."""
        taken = min(n_cells, self._left)
        self._left -= taken
        return taken


def unwrap_layout_tables(soup: BeautifulSoup, *, from_office: bool = False) -> None:
    """Turns every layout table into blocks, listings into code, and data tables into plain rows."""
    read_listings(soup)
    spans = _Spans()
    for table in tags_named(soup, ("table",)):
        if table.name != "table":  # it stood in one of data
            continue
        if is_data_table(table, from_office=from_office):
            for inner in tags_named(table, ("table",)):
                _flatten(inner)
            _tidy(soup, table, spans)
        else:
            for row in _own_parts(table, table, ("tr",)):
                _label(_own_parts(table, row, _CELLS))
            for part in [table, *_own_parts(table, table, _TABLE_PARTS)]:
                part.name = "div"


def _label(cells: list[Tag]) -> None:
    """Puts the number of a clause that stands in a cell of its own before its words."""
    label = cells[0].get_text().strip() if len(cells) == 2 else ""
    if ITEM_LABEL.fullmatch(label) or label in _BULLETS:
        words = next((text for text in cells[1].find_all(string=True) if text.strip()), None)
        if words is not None and words.find_parent("pre") is None:
            words.insert_before(f"{label} ")
            hollow(cells[0])


def name_signs(soup: BeautifulSoup) -> None:
    """Gives cells without words what their signs are called, and cells and lines the signs of yes and no.

    Boxes say so only in tables and lists where one is ticked or fixed.
    """
    _read_roles(soup)
    boxes = [box for box in tags_named(soup, ("input",)) if _is_checkbox(box)]
    told = (_around(box, _LISTS) for box in boxes if box.has_attr("checked") or box.has_attr("disabled"))
    fixed = {id(parent) for parent in told if parent is not None}
    for cell in reversed(tags_named(soup, _CELLS)):
        if cell.get_text(strip=True) or cell.find("table") is not None:
            continue
        for sign in [*elements(cell.descendants), cell]:
            words = str(sign.get("aria-label") or sign.get("title") or "")
            if _is_checkbox(sign) and id(_around(sign, _LISTS)) in fixed:
                sign.string = "✓" if sign.has_attr("checked") else "✗"
                sign.name, sign.attrs = "span", {}
            elif (
                words
                and not tags_named(sign, _TOLD)
                and not (sign.name in _TOLD or sign.get_text(strip=True))
            ):
                sign.name = sign.name if sign is cell else "span"
                sign.string = words
    for tasks in tags_named(soup, ("ul", "ol")):
        _tick_items(tasks)
    for sign in tags_named(soup, _SIGNS):
        if sign.name in _SIGNS:  # not within another one
            _show_sign(soup, sign, fixed)


def _read_roles(soup: BeautifulSoup) -> None:
    """Makes tables of elements that say that they are one, its rows and its cells."""
    by_root: dict[int, list[Tag]] = {}
    for part in [tag for tag in elements(soup.descendants) if tag.get("role") in _ROLES]:
        root = next((parent for parent in part.parents if parent.get("role") in _TABLE_ROLES), None)
        if root is not None and root.name != "table":
            by_root.setdefault(id(root), [root]).append(part)
    for root, *parts in by_root.values():
        rows = {id(part) for part in parts if part["role"] == "row"}
        cells = [part for part in parts if id(part) not in rows]
        holders = (next(near for near in cell.parents if near is root or id(near) in rows) for cell in cells)
        if len(rows) > 1 and len(cells) >= 2 * len(rows) and all(holder is not root for holder in holders):
            root.name = "table"
            for part in parts:
                part.name = _ROLES[str(part["role"])]


def _around(tag: Tag, names: Collection[str]) -> Tag | None:
    """The nearest element around one; bs4's own search takes several times as long."""
    return next((parent for parent in tag.parents if parent.name in names), None)


def _is_checkbox(tag: Tag) -> bool:
    return tag.name == "input" and str(tag.get("type", "")).lower() == "checkbox"


def _tick_items(tasks: Tag) -> None:
    """Marks the items of a list that are ticked by an attribute or a class, and those that are not."""
    items = [item for item in elements(tasks.contents) if item.name == "li"]
    states = [str(item.get("data-checked", "")) for item in items]
    boxes = [
        box for item in items if (box := next(elements(item.contents), None)) and _BOX.search(class_of(box))
    ]
    if boxes and len(boxes) == len(items):
        states = [str("checkbox-on" in class_of(box)).lower() for box in boxes]
        for box in boxes:
            box.name = "span"
    elif _TASKS.search(class_of(tasks)) and not any(states):
        ticked = ["checked" in item.get_attribute_list("class") for item in items]
        states = [str(is_ticked).lower() for is_ticked in ticked]
    is_told = bool(boxes) or "true" in states
    for item, state in zip(items, states, strict=True):
        if is_told and state in ("true", "false") and item.find("input") is None:
            item.insert(0, "✓ " if state == "true" else "✗ ")


def _show_sign(soup: BeautifulSoup, sign: Tag, fixed: set[int]) -> None:
    """Writes a sign before its words; a box stays within it, for its label."""
    if sign.name in ("i", "span") and _first_words(sign) and not is_spoken(sign):
        return
    behind = _beside(sign, is_behind=True)
    mark = _ticked(sign, behind, fixed) if sign.name == "input" else _answer(sign, behind)
    line = _around(sign, _LINES | _COMMANDS) if mark else None
    if line is None or line.name not in _LINES:
        return
    before = _beside(sign, is_behind=False)
    if before is not None and not _ends_in_colon(before):
        return
    if before is behind is None and line.name not in _CELLS:
        cell = _around(line, _CELLS)
        if cell is None or _first_words(cell):
            return
    colon = ":" if behind is not None and _ANSWER.fullmatch(mark) else ""
    near = sign.next_sibling
    is_apart = behind is None or (isinstance(near, NavigableString) and near[:1].isspace())
    name, attributes = sign.name, sign.attrs
    sign.name, sign.attrs = "span", {}
    sign.string = mark.rstrip(": ") + colon + ("" if is_apart else " ")
    if name == "input":
        box = soup.new_tag("input")
        box.attrs = attributes
        sign.append(box)


def _ticked(box: Tag, behind: PageElement | None, fixed: set[int]) -> str:
    """The mark of a box that shows what is so, not one that opens the element behind it."""
    is_worded = isinstance(behind, NavigableString) or _around(box, {"label"}) is not None
    if not (is_worded or box.has_attr("disabled")):
        return ""
    is_checked = box.has_attr("checked")
    if _is_checkbox(box):
        return "" if id(_around(box, _LISTS)) not in fixed else "✓" if is_checked else "✗"
    return "✓" if is_checked and str(box.get("type", "")).lower() == "radio" else ""


def _answer(sign: Tag, behind: PageElement | None) -> str:
    """What a picture or icon without words of its own says, or words for screen readers: yes or no."""
    is_told = is_spoken(sign)
    if sign.has_attr("hidden") or "display:none" in str(sign.get("style", "")).replace(" ", ""):
        return ""
    if isinstance(behind, Tag) and any(map(is_spoken, elements([behind, *behind.contents[:1]]))):
        return ""
    words = sign.get_text() if is_told else described(sign)
    if sign.get_text().strip() not in ("", words.strip()):  # words in a drawing
        return ""
    words = " ".join((words or str(sign.get("title", "")) * sign.has_attr("class"))[:100].split())
    if _SIGN.fullmatch(words):
        return words
    if named := _NAMED_SIGN.fullmatch(words):
        return "✓" if named[1] else "✗"
    if _ANSWER.fullmatch(words):
        is_twin = behind is not None and _first_words(behind).casefold().startswith(words.casefold())
        return "" if is_twin else words
    drawn = sign.find("use") if sign.name == "svg" else None
    sprite = "" if drawn is None else str(drawn.get("href") or drawn.get("xlink:href")).rpartition("#")[2]
    for name in () if is_told else (*sign.get_attribute_list("class"), sprite):
        icon = _ICON.fullmatch(str(name))
        is_over_block = isinstance(behind, Tag) and behind.name in _OVER and not (icon and icon[2])
        if icon and not is_over_block and ((icon[1] and not str(name).endswith("close")) or behind is None):
            is_near_box = any(near.name == "input" for near in beside(sign))
            is_box = is_near_box or _around(sign, {"label"}) is not None
            return "" if is_box else "✓" if icon[2] else "✗"
    return ""


def _beside(sign: Tag, *, is_behind: bool) -> PageElement | None:
    """The nearest node with words before or behind a sign in its line."""
    node: PageElement = sign
    for _ in range(LOOK_AROUND):
        near = node.next_sibling if is_behind else node.previous_sibling
        if near is None:
            if node.parent is None or node.parent.name in _LINES:
                return None
            node = node.parent
        elif isinstance(near, Tag) and near.name == "br":
            return None
        elif _first_words(near):
            return near
        else:
            node = near
    return None


def _first_words(node: PageElement) -> str:
    """The first words of a node, if they stand near its beginning."""
    nodes = islice(node.descendants, LOOK_AROUND) if isinstance(node, Tag) else [node]
    texts = (str(text)[:_LABEL_CHARACTERS].strip() for text in nodes if isinstance(text, NavigableString))
    return next(filter(None, texts), "")


def _ends_in_colon(node: PageElement) -> bool:
    while isinstance(node, Tag) and node.contents:
        node = node.contents[-1]
    return isinstance(node, NavigableString) and node[-_LABEL_CHARACTERS:].rstrip().endswith(":")


def _flatten(table: Tag) -> None:
    """A small table as words: cells with commas, rows with semicolons."""
    rows = (
        ", ".join(filter(None, (" ".join(cell.get_text(" ").split()) for cell in tags_named(row, _CELLS))))
        for row in tags_named(table, ("tr",))
    )
    words = "; ".join(filter(None, rows))
    hollow(table)
    table.append(f" {words} ")


def _tidy(soup: BeautifulSoup, table: Tag, spans: _Spans) -> None:
    """Caption first, rows right below, all as wide as the widest: the rule row depends on all three."""
    for rule in tags_named(table, ("hr",)):
        rule.name = "br"
    caption = table.find("caption")
    rows = list(_grid(soup, table, spans))
    width = max(map(len, rows), default=0)
    above = [caption] if isinstance(caption, Tag) else []
    above += _stray(soup, table)
    while len(rows) > 1 and width > 1 and len(rows[0]) == 1:
        above += rows.pop(0)
    if rows:
        rows[0].extend(soup.new_tag("td") for _ in range(width - len(rows[0])))
    inner = soup.new_tag("table")
    table.clear()
    table.name = "div"
    for words in above:
        words.name = words.name if words.name in HEADINGS else "p"
        table.append(words)
    for cells in rows:
        row = soup.new_tag("tr")
        row.extend(cells)
        inner.append(row)
    table.append(inner)


def _stray(soup: BeautifulSoup, table: Tag) -> Iterator[Tag]:
    """Words that stand in a table, but in no cell; a browser shows them above."""
    for holder in [table, *tags_named(table, _TABLE_PARTS - _CELLS - {"caption"})]:
        for node in holder.contents:
            is_part = isinstance(node, Tag) and (
                node.name in _TABLE_PARTS or bool(tags_named(node, _TABLE_PARTS))
            )
            words = "" if is_part else " ".join(node.get_text(" ").split())
            if any(map(str.isalnum, words)):
                name = node.name if isinstance(node, Tag) and node.name in HEADINGS else "p"
                stray = soup.new_tag(name)
                stray.append(words)
                yield stray


def _grid(soup: BeautifulSoup, table: Tag, spans: _Spans) -> Iterator[list[Tag]]:
    """The rows that hold text, a cell a column; one that spans all columns stands alone."""
    in_order = sorted(tags_named(table, ("tr",)), key=_part_of)
    rows = [tags_named(row, _CELLS) for row in in_order]
    widths = (sum(_span(cell, "colspan") for cell in cells) for cells in rows)
    width = min(MAX_COLUMNS, max(widths, default=0))
    from_above: dict[int, tuple[Tag, int]] = {}
    for cells in rows:
        if len(cells) == 1 and not from_above and 1 < width <= _span(cells[0], "colspan"):
            if cells[0].get_text(strip=True):
                yield cells
            continue
        has_text = any(cell.get_text(strip=True) for cell in cells)
        line: list[Tag] = []
        below: dict[int, tuple[Tag, int]] = {}
        waiting = cells[::-1]
        last = max(from_above, default=-1)
        while waiting or len(line) <= last:
            spanning = from_above.get(len(line))
            if spanning is not None and not spans.take(1):
                from_above, last = {}, -1
                continue
            if spanning is not None:
                cell, n_rows = spanning
                if n_rows > 1:
                    below[len(line)] = cell, n_rows - 1
                line.append(_again(soup, cell))
                continue
            if not waiting:
                line.append(soup.new_tag("td"))
                continue
            cell = waiting.pop()
            n_more = min(_span(cell, "colspan"), max(1, MAX_COLUMNS - len(line))) - 1
            n_rows = min(_span(cell, "rowspan"), len(rows)) - 1
            for column in range(spans.take(n_more) + 1):
                if n_rows:
                    below[len(line)] = cell, n_rows
                line.append(_again(soup, cell) if column else cell)
        from_above = below
        if has_text:
            yield line


def _part_of(row: Tag) -> int:
    """Where a row is shown: those of a head first, those of a foot last, wherever the page has them."""
    name = "" if row.parent is None else row.parent.name
    return {"thead": 0, "tfoot": 2}.get(name, 1)


def _span(cell: Tag, attribute: str) -> int:
    value = str(cell.get(attribute, "")).strip()
    if attribute == "rowspan" and value == "0":  # to the end of the table
        return MAX_SPANNED_CELLS
    return max(1, int(value)) if value.isascii() and value.isdigit() and len(value) < 7 else 1


def _again(soup: BeautifulSoup, cell: Tag) -> Tag:
    """A cell where another one goes on."""
    again = soup.new_tag("td")
    words = " ".join(cell.get_text(" ").split())
    if len(words) <= MAX_REPEATED_CHARACTERS:
        again.append(words)
    return again


def _names_in(cell: Tag) -> set[str]:
    return {part.name for part in elements(cell.descendants)}


def _is_laid_out(cell: Tag) -> bool:
    """Whether a cell without header cells beside it holds what stands in pages, not in tables."""
    names = _names_in(cell)
    if not HEADINGS.isdisjoint(names) and not _TEXT_BLOCKS.isdisjoint(names):
        return True
    titles = "".join(title.get_text() for title in tags_named(cell, ("h1", "h2")))
    if titles and titles.split() != cell.get_text().split():
        return True
    if "p" in names and not names.isdisjoint(("ul", "ol")):
        return True
    return any("\n" in code.get_text().strip() for code in tags_named(cell, ("pre",)))


def _is_label(cell: Tag) -> bool:
    """Whether a cell names its row: a few words, and no menu."""
    is_short = 0 < len(cell.get_text(strip=True)) <= _LABEL_CHARACTERS
    is_inline = is_short and _BLOCKS.isdisjoint(_names_in(cell)) and not _is_laid_out(cell)
    return is_inline and len(tags_named(cell, ("a",))) < 2


def _is_page(table: Tag, rows: list[list[Tag]]) -> bool:
    """Whether a table without header cells lays out a page; without a border one part of a page is enough."""
    if table.get("border") == "0":
        return any(_is_laid_out(cell) or tags_named(cell, ("h1", "h2", "hr")) for row in rows for cell in row)
    n_all = n_laid_out = n_labelled = n_unlabelled = 0
    for row in rows:
        laid_out = [cell for cell in row if _is_laid_out(cell)]
        n_all += sum(len(cell.get_text(strip=True)) for cell in row)
        n_laid_out += sum(len(cell.get_text(strip=True)) for cell in laid_out)
        if laid_out:
            is_titled = any(tags_named(cell, ("h1",)) for cell in laid_out)
            is_labelled = not is_titled and _is_label(row[0])
            n_labelled += is_labelled
            n_unlabelled += not is_labelled
    return 2 * n_laid_out > n_all and n_unlabelled >= n_labelled


def _own_parts(table: Tag, within: Tag, names: Collection[str]) -> list[Tag]:
    """Parts of a table, not of one inside it."""
    return [part for part in tags_named(within, names) if part.find_parent("table") is table]


def is_data_table(table: Tag, *, from_office: bool = False) -> bool:
    """Whether a table holds data, not layout."""
    own = [row for row in _own_parts(table, table, ("tr",)) if row.get_text(strip=True)]
    rows = [_own_parts(table, row, _CELLS) for row in own]
    if table.get("role") in ("presentation", "none"):
        return False
    is_short = all(len(cell.get_text()) <= MAX_CELL_CHARACTERS for row in rows for cell in row)
    if from_office:
        return is_short and any(len(row) > 1 for row in rows)
    has_header = any(cell.name == "th" for row in rows for cell in row)
    inner = table.find_all("table")
    if inner:
        return has_header and all(len(part.get_text()) <= _INNER_CHARACTERS for part in inner)
    if has_header or table.find("caption") is not None:
        return sum(len(row) for row in rows) > 1
    if _is_page(table, rows):
        return False
    reaches_down = [any(_span(cell, "rowspan") > 1 for cell in row) for row in rows]
    n_wide = sum(len(row) > 1 or reached for row, reached in zip(rows, [False, *reaches_down], strict=False))
    return is_short and n_wide >= 2
