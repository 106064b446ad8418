"""What callers read of an operation's arguments.

An operation's docstring says what it alone takes. What a config's field says of itself is said there, and
what all operations take is said here.
"""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar, get_args

from core.base.config import setting_help, worded
from core.methods.registry import METHODS

_Operation = TypeVar("_Operation", bound=Callable[..., Any])

_OF_ALL = {
    "document_id": "Of an open document, see open_document.",
    "query": "The question.",
    "run_id": "32 hex digits, as run_agent and search_runs give it.",
    "llm": (
        "The language model to ask: empty the one that the app has for all, if any; none asks none; else the"
        " name that your page gave it. Never a key or address."
    ),
    "visitor": "Your key of 32 hex digits where the app is public; else empty.",
}


def described(*configs: type) -> Callable[[_Operation], _Operation]:
    """Completes an operation's Args, which Gradio reads off its docstring."""

    def complete(operation: _Operation) -> _Operation:
        text = inspect.getdoc(operation) or ""
        before, returns, after = text.partition("Returns:")
        about, _, own = before.partition("Args:\n")
        lines = _joined(own)
        names = {line.split(":")[0].strip() for line in lines}
        helps = {**_OF_ALL, **{k: v for config in configs for k, v in setting_help(config).items()}}
        for name, parameter in inspect.signature(operation).parameters.items():
            if name not in names and name in helps:
                lines.append(f"    {name}: {_as_json(helps[name], parameter.annotation)}")
        arguments = "\n".join(lines).replace("{methods}", ", ".join(METHODS))
        gives = " ".join(after.split())  # Gradio would put a comma between its lines
        operation.__doc__ = f"{about.rstrip()}\n\nArgs:\n{arguments}\n\n{returns}\n    {gives}"
        return operation

    return complete


def _joined(arguments: str) -> list[str]:
    """A line an argument, which is all that Gradio reads of one."""
    lines: list[str] = []
    for line in arguments.rstrip().splitlines():
        if line.startswith(5 * " "):
            lines[-1] += f" {line.strip()}"
        else:
            lines.append(line)
    return lines


def _as_json(text: str, kind: Any) -> str:
    """A text that names Python's constants, with what a caller sends for them."""
    null = '"none"' if any("none" in get_args(part) for part in get_args(kind)) else "null"
    return worded(text, {"None": null, "True": "true", "False": "false"})
