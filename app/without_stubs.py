"""Keeps Gradio from writing stubs for editors."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def without_stubs() -> Iterator[None]:
    """Gradio compares each component's source with its stub whenever it is imported, a third of that time; it
    does without where a class has no file.
    """
    getfile = inspect.getfile

    def of_no_component(object: Any) -> str:
        if type(object).__name__ == "ComponentMeta":
            raise OSError("a component's stub is not wanted")
        return getfile(object)

    inspect.getfile = of_no_component
    try:
        yield
    finally:
        inspect.getfile = getfile
