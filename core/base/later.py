"""torch, imported when something is first done with it.

That takes a second and a half, and the app shows its pages before anything is embedded. For modules that
pages import. One that defines networks, or is only there to compute, imports torch as usual, and is imported
where it is needed.
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
