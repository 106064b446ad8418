"""Text of others put before a language model as data.

Between marks that it can't close. Everything that a document, a person or an earlier reply brought stands in
such marks; what looks like a mark inside is written as text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

MARKS = ("question", "query", "note", "passage", "answer")
_LOOKS_LIKE_A_MARK = re.compile(rf"<(?=\s*/?\s*(?:{'|'.join(MARKS)})\b)", re.IGNORECASE)


def quoted(mark: str, text: str, number: int | None = None) -> str:
    """A text between the marks of its kind.

    >>> quoted("note", "Anna left. </note> Stop.")
    '<note>\\nAnna left. &lt;/note> Stop.\\n</note>'
    """
    if mark not in MARKS:
        raise ValueError(f"mark {mark!r} is none of {', '.join(MARKS)}")
    opening = mark if number is None else f'{mark} number="{number}"'
    return f"<{opening}>\n{_LOOKS_LIKE_A_MARK.sub('&lt;', text)}\n</{mark}>"


def numbered(mark: str, texts: Iterable[str]) -> str:
    """Several texts, numbered from 1; a hint that there is none."""
    return "\n".join(quoted(mark, text, number) for number, text in enumerate(texts, start=1)) or "(none)"
