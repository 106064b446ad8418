"""Fields of a page's forms, and the labels of those."""

from __future__ import annotations

import re

from bs4 import BeautifulSoup, Tag
from bs4.element import NavigableString

from core.ingest.hidden import is_hidden
from core.ingest.soup import elements, tags_named
from core.ingest.tables import is_data_table

FIELDS = frozenset(["input", "select", "textarea"])
_TICKED = frozenset(["radio", "checkbox"])
_NO_FIELDS = _TICKED | {"hidden", "button", "submit", "reset", "image"}
"""Types of input that nobody types into."""
_WRITTEN = frozenset(
    ["", "text", "email", "tel", "number", "date", "time", "month", "week", "datetime-local"]
)
"""Types of input whose value people see as it is."""
STATE = re.compile(
    r"sold[ -]?out|out of stock|(?:un|not )available|fully booked|discontinued|coming soon|ausverkauft"
    r"|vergriffen|ausgebucht|nicht verfügbar|épuisé|rupture de stock|indisponible|agotado|no disponible"
    r"|esaurit[oa]|non disponibile|esgotado|uitverkocht|niet leverbaar|slutsåld|fullbokad|udsolgt"
    r"|utsolgt|loppuunmyyty|wyprzedan|niedostępn|нет в наличии|売り切れ|售罄|缺货|품절",
    re.IGNORECASE,
)
"""Words of a button that is no command: nothing is to be had."""


def is_filled_in(field: Tag) -> bool:
    """Whether a field is there to be filled in, not to be ticked or pressed."""
    return field.name != "input" or _kind_of(field) not in _NO_FIELDS


def show_values(soup: BeautifulSoup) -> None:
    """Puts what a visible field holds in its place, where it is fixed, within words or alone in a cell."""
    out_of_sight: set[int] = set()
    data_tables: dict[int, bool] = {}
    for tag in list(elements(soup.descendants)):
        if id(tag.parent) in out_of_sight or is_hidden(tag):
            out_of_sight.add(id(tag))
        elif tag.name in FIELDS and (value := _value_of(tag)):
            near = (tag.previous_sibling, tag.next_sibling)
            is_within = all(
                isinstance(node, NavigableString) and any(map(str.isalnum, node)) for node in near
            )
            is_fixed = tag.has_attr("readonly") or tag.has_attr("disabled") or _is_state(tag)
            if is_within or is_fixed or _is_alone_in_cell(tag, data_tables):
                tag.string = value
                tag.name, tag.attrs = "span", {}


def _value_of(field: Tag) -> str:
    """What people see in a field; no secret, and no address for them to copy."""
    if field.name == "textarea":
        return field.get_text().strip()
    if field.name == "select":
        options = tags_named(field, ("option",))
        chosen = [option for option in options if option.has_attr("selected")]
        chosen = chosen or options[: field.has_attr("disabled")]
        return ", ".join(" ".join(option.get_text().split()) for option in chosen)
    value = str(field.get("value", "")).strip()
    is_shown = _kind_of(field) in _WRITTEN or _is_state(field)
    return value if is_shown and not value.startswith(("http:", "https:")) else ""


def _is_state(field: Tag) -> bool:
    is_button = field.name == "input" and _kind_of(field) in ("submit", "button")
    return is_button and STATE.search(str(field.get("value", ""))) is not None


def _is_alone_in_cell(field: Tag, data_tables: dict[int, bool]) -> bool:
    cell = field.parent
    if cell is None or cell.name not in ("td", "th") or len(cell.contents) > 3:
        return False
    table = cell.find_parent("table")
    if table is not None and id(table) not in data_tables:
        data_tables[id(table)] = is_data_table(table)
    is_data = table is not None and data_tables[id(table)]
    return is_data and cell.get_text(strip=True) == field.get_text(strip=True)


def labels_of_boxes(soup: BeautifulSoup) -> tuple[set[int], set[int]]:
    """Ids of the labels of what is ticked, as an ingredient, a task, an answer of a quiz may be; and of those
    that stand apart from the radio button that they choose, as tabs do.
    """
    labels = {str(label.get("for")): label for label in tags_named(soup, ("label",)) if label.get("for")}
    ticked, choosing = set(), set()
    for box in tags_named(soup, ("input",)):
        if (kind := _kind_of(box)) in _TICKED:
            label = labels.get(str(box.get("id")))
            if kind == "radio" and label is not None:
                choosing.add(id(label))
            if (label := label or box.find_parent("label")) is not None:
                ticked.add(id(label))
    return ticked, choosing


def _kind_of(box: Tag) -> str:
    return str(box.get("type", "")).lower()
