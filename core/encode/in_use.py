"""Models that are in use.

Who asks for one that somebody still holds gets the same. Holds none itself, so that a model's memory goes
with whoever used it last. A folder whose files changed since is loaded anew.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar
from weakref import WeakValueDictionary

from core.base.later import torch

Model = TypeVar("Model")
_Key = tuple[Path, "torch.device", frozenset[tuple[Path, int, int]]]


class InUse(Generic[Model]):
    """The models of one kind that are in use in this process."""

    def __init__(self, load: Callable[[Path, torch.device], Model]) -> None:
        self._load = load
        self._models: WeakValueDictionary[_Key, Model] = WeakValueDictionary()
        self._loading = threading.Lock()

    def get(self, folder: Path, device: torch.device) -> Model:
        """The model of a folder on a device, never to be changed. Raises what loading raises."""
        with self._loading:
            key = (folder.resolve(), device, _as_written(folder.resolve()))
            model = self._models.get(key)
            if model is None:
                model = self._models[key] = self._load(folder, device)
            return model


class MadeOnce(cached_property[Model]):
    """A cached property that later threads wait for: from Python 3.12 on each would make one of its own."""

    def __init__(self, make: Callable[[Any], Model]) -> None:
        super().__init__(make)
        self._making = threading.RLock()

    def __get__(self, instance: object, owner: type[Any] | None = None) -> Model:  # type: ignore[override]  # asked of objects alone
        with self._making:
            return super().__get__(instance, owner)


def _as_written(folder: Path) -> frozenset[tuple[Path, int, int]]:
    """Path, time of change in nanoseconds and size of each file of a folder, and of the folders in it."""
    files = set()
    # which passes over folders that go meanwhile
    for parent, folders, names in os.walk(folder, followlinks=True):
        for path in map(Path(parent).joinpath, (*folders, *names)):
            with suppress(OSError):  # a training that is under way renames files
                stat = path.stat()
                files.add((path, stat.st_mtime_ns, stat.st_size))
        if Path(parent) != folder:
            folders.clear()
    return frozenset(files)
