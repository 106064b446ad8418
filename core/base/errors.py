"""The few errors that a person can cause, each with one sentence.

The value, the bound, the remedy. Callers at the edge (command line, app, HTTP) catch `UserError` and show its
text; anything else is a bug and keeps its traceback.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError

_LONGEST_QUOTE = 200
"""Characters of another machine's words in a sentence."""


class UserError(ValueError):
    """Something the person can put right; `str(error)` is the sentence to show."""


class BadDocument(UserError):
    """A document that can't be read: empty, binary, too large, without text."""


class BadCheckpoint(UserError):
    """A checkpoint that is missing, incomplete, unsafe or of an unsupported kind."""


class BadRequest(UserError):
    """Arguments of a run or a command that don't fit together."""


class LogError(UserError):
    """The experiment log can't be opened, read or written."""


class RunNotFound(LogError):
    """No run of that id that this visitor may see."""


class Cancelled(Exception):
    """Raised inside long work when its caller asked it to stop; what is finished has been kept."""


def quoted(words: str, secrets: Iterable[str] = ()) -> str:
    """What another machine said, to stand behind a clause: one short printable line in brackets, every secret
    blotted out; nothing for no words.

    >>> quoted("no such\\nmodel.")
    ' (no such model)'
    """
    line = "".join(character if character.isprintable() else " " for character in words)
    for secret in secrets:
        line = line.replace(secret, "***")
    line = " ".join(line.split()).rstrip(".;")
    return f" ({line if len(line) <= _LONGEST_QUOTE else line[: _LONGEST_QUOTE - 1] + '…'})" if line else ""


def first_problem(error: ValidationError) -> str:
    """What a check of fields found first, behind the place where it is."""
    problem = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part)[:80] for part in problem["loc"])
    told = str(problem["msg"]).removeprefix("Value error, ")
    return f"{place}: {told}" if place else told
