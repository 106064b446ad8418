"""torch, imported when something is first done with it.

For modules that pages import: it takes 1.5 s. One that defines networks imports torch as usual, and is
imported where it is needed.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
else:

    class _Torch(ModuleType):
        def __getattr__(self, name: str) -> Any:
            return getattr(import_module("torch"), name)

    torch = _Torch("torch")

__all__ = ["torch"]
