"""Keeps Gradio from writing stubs for editors."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def without_stubs() -> Iterator[None]:
    """Within, Gradio is imported in two thirds of the time.

    For each of its eighty classes of components it parses the source twice and compares it with a stub beside
    it, whenever it is imported. It does without where a class has no file.
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
