"""A cache for several threads that forgets the least recently used."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

V = TypeVar("V")


class Recent(Generic[V]):
    """A thread-safe map that drops the least recently used beyond a total weight; the newest always stays."""

    def __init__(
        self, most: int, weigh: Callable[[V], int], let_go: Callable[[V], object] = lambda _: None
    ) -> None:
        """most: bytes of all items together. let_go: is told of each that makes room."""
        self._most, self._weigh, self._let_go = most, weigh, let_go
        self._items: OrderedDict[str, V] = OrderedDict()
        self._lock = threading.RLock()

    def put(self, key: str, item: V) -> None:
        """Adds or replaces."""
        gone = []
        with self._lock:
            self._items[key] = item
            self._items.move_to_end(key)
            weight = sum(map(self._weigh, self._items.values()))
            while weight > self._most and len(self._items) > 1:
                _, oldest = self._items.popitem(last=False)
                weight -= self._weigh(oldest)
                gone.append(oldest)
        for oldest in gone:
            self._let_go(oldest)

    def update(self, key: str, change: Callable[[V], V]) -> V | None:
        """Replaces an item by what `change` makes of it, so that nothing is lost that another thread stores
        meanwhile; None where it is not (any more) there.
        """
        with self._lock:
            if key not in self._items:
                return None
            self.put(key, changed := change(self._items[key]))
            return changed

    def drop(self, key: str) -> None:
        """Forgets an item, if it is there."""
        with self._lock:
            self._items.pop(key, None)

    def get(self, key: str) -> V | None:
        """The item, now the most recently used; None when it is not (any more) there."""
        with self._lock:
            if key in self._items:
                self._items.move_to_end(key)
            return self._items.get(key)

    def made_once(self, key: str, make: Callable[[], V]) -> V:
        """The item, made where it is not (any more) there."""
        item = self.get(key)
        if item is None:
            self.put(key, item := make())
        return item

    def all(self) -> list[V]:
        """Every item, the least recently used first."""
        with self._lock:
            return list(self._items.values())
