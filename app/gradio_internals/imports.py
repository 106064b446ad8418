"""Gradio's import without what a process that only serves does not need.

While it is imported, Gradio writes a type stub beside the source of each of its components, or parses both to
find it up to date: a third of the import, 1.4 CPU seconds of each start. Leans on Gradio's `component_meta`
(6.31).
"""

from __future__ import annotations

import importlib.abc
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

_WRITES_STUBS = "gradio.component_meta"


class WithoutStubs(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the one module, and loads it as it is but for the function that writes."""

    _loader: Any = None

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != _WRITES_STUBS or (spec := PathFinder.find_spec(name, path, target)) is None:
            return None
        self._loader, spec.loader = spec.loader, self
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        module.create_or_modify_pyi = lambda *_: None  # type: ignore[attr-defined]


def import_gradio() -> None:
    """Imports Gradio for a process that only serves."""
    finder = WithoutStubs()
    sys.meta_path.insert(0, finder)
    try:
        import gradio  # noqa: F401
    finally:
        sys.meta_path.remove(finder)
