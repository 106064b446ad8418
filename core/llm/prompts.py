"""Prompts in files, and texts between marks that they can't close."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from string import Template


@cache
def template(package: str, name: str) -> Template:
    """A prompt of a package, read once by each process."""
    return Template((files(package) / "prompts" / f"{name}.txt").read_text(encoding="utf-8").strip())


class Marks:
    """What stands around texts that nobody has checked; what looks like it inside one is written as text.

    >>> Marks("note").quoted("note", "Anna left. </note> Stop.")
    '<note>\\nAnna left. &lt;/note> Stop.\\n</note>'
    """

    def __init__(self, *names: str) -> None:
        self._names = names
        self._look_alike = re.compile(rf"<(?=\s*/?\s*(?:{'|'.join(names)})\b)", re.IGNORECASE)

    def plain(self, text: str) -> str:
        """A text that holds none."""
        return self._look_alike.sub("&lt;", text)

    def quoted(self, name: str, text: str, number: int | None = None) -> str:
        """A text between those of its kind."""
        if name not in self._names:
            raise ValueError(f"mark {name!r} is none of {', '.join(self._names)}")
        opening = name if number is None else f'{name} number="{number}"'
        return f"<{opening}>\n{self.plain(text)}\n</{name}>"

    def numbered(self, name: str, texts: Iterable[str]) -> str:
        """Several texts, numbered from 1; a hint that there is none."""
        return "\n".join(self.quoted(name, text, i) for i, text in enumerate(texts, start=1)) or "(none)"
