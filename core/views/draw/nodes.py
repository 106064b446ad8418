"""Markup as plain data.

Built by a browser with text nodes (tree.js) or written as HTML. No element and no attribute loads or runs
anything. Text stays text in both.
"""

from __future__ import annotations

import re
from html import escape
from typing import Any

Node = str | list[Any]
"""Text, or [tag, attributes, children]."""


class Html(str):
    """Markup that was made here, as `html_of` writes it out; a browser's tree shows it as the text it is."""

    __slots__ = ()


_TAGS = (
    "div span p b strong em del mark small code pre h1 h2 h3 h4 ul ol li table thead tbody tr th td button"
    " details summary progress section header footer nav label hr dl dt dd blockquote svg path"
)
_ATTRIBUTES = (
    "class title role tabindex hidden open id lang dir scope colspan viewBox preserveAspectRatio height d"
    " disabled value max"
)
_ALLOWED_TAGS, _ALLOWED_ATTRIBUTES = frozenset(_TAGS.split()), frozenset(_ATTRIBUTES.split())
_SHARE = re.compile(r"\d{1,3}(\.\d+)?%")


def h(tag: str, attributes: dict[str, Any] | Node | None = None, *children: Node | None) -> Node:
    """One element. Its classes may stand behind the tag, attributes may be left out, and None among the
    children is.

    >>> h("p.qx-mut.qx-sm", {"title": "a greeting"}, "hello", None)
    ['p', {'class': 'qx-mut qx-sm', 'title': 'a greeting'}, ['hello']]
    >>> h("td", "7")
    ['td', {}, ['7']]
    """
    own: dict[str, Any] = {}
    if isinstance(attributes, dict):
        own = attributes
    else:
        children = (attributes, *children)
    tag, *classes = tag.split(".")
    if classes:
        own = {"class": " ".join(classes), **own}
    return [tag, own, [child for child in children if child is not None]]


def sends(kind: str, name: str, arg: object, *children: Node | None, **attributes: Any) -> Node:
    """A button that sends (name, arg) to whoever listens. `kind`: its classes.

    >>> sends("qx-btn.qx-on", "open", 7, "chunk 7", aria_pressed=True)[1]["aria-pressed"]
    'true'
    """
    own: dict[str, Any] = {"data-act": name, "data-arg": str(arg)}
    for key, value in attributes.items():
        is_word = isinstance(value, bool) and key != "disabled"
        own[key.replace("_", "-")] = str(value).lower() if is_word else value
    return h(f"button.{kind}", own, *children)


def act(name: str, arg: object, label: str, **attributes: Any) -> Node:
    """One that looks like a button."""
    return sends("qx-btn", name, arg, label, **attributes)


def link_to(name: str, arg: object, *words: Node | None, **attributes: Any) -> Node:
    """One that looks like a link."""
    return sends("qx-link", name, arg, *words, **attributes)


def chunk_link(chunk_id: int, **attributes: Any) -> Node:
    """One that opens a chunk to be read."""
    return link_to("open", chunk_id, f"chunk {chunk_id:,}", **attributes)


def tip(tag: str, sentence: str, *children: Node | None, **attributes: Any) -> Node:
    """An element with a sentence that a pointer and the keyboard bring up."""
    return h(tag, {"title": sentence, "tabindex": "0", **attributes}, *children)


def html_of(node: Node) -> str:
    """A node as markup. A place (`--x`) becomes `data-x`, which a script sets: a page whose policy forbids
    style attributes has no other way.

    >>> html_of(h("p", {"class": "qx-mut", "onclick": "x()", "hidden": False}, "1 < 2"))
    '<p class="qx-mut">1 &lt; 2</p>'
    """
    if isinstance(node, str):
        return node if isinstance(node, Html) else escape(node)
    tag, attributes, children = node
    tag = tag if tag in _ALLOWED_TAGS else "span"
    held = "".join(_attribute(name, value) for name, value in attributes.items())
    kind = ' type="button"' if tag == "button" else ""
    return f"<{tag}{kind}{held}>{''.join(map(html_of, children))}</{tag}>"


def _attribute(name: str, value: Any) -> str:
    if value is False or value is None:
        return ""
    if name in ("--x", "--y"):
        return f' data-{name[2:]}="{value}"' if _SHARE.fullmatch(str(value)) else ""
    if name not in _ALLOWED_ATTRIBUTES and not re.fullmatch(r"(aria|data)-[a-z-]+", name):
        return ""
    return f' {name}="{"" if value is True else escape(str(value))}"'
