"""Rows to tables and lines, and paired tests."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from core.base.errors import BadRequest
from core.base.statistics import PairedTest, mean, paired_test
from core.views.charts import Cell, Line, Table

T = TypeVar("T")


def filled(title: str, columns: Mapping[str, Callable[[T], Cell]], items: Iterable[T]) -> Table:
    """A line an item. `columns`: what stands in the item's line, by title."""
    rows = tuple(tuple(cell(item) for cell in columns.values()) for item in items)
    return Table(title, tuple(columns), rows)


def lines_of(points: Iterable[tuple[str, float, float | None]]) -> tuple[Line, ...]:
    """A line a name, through its points (name, x, y) in their order."""
    by_name: dict[str, list[tuple[float, float | None]]] = {}
    for name, x, y in points:
        by_name.setdefault(name, []).append((x, y))
    return tuple(
        Line(name, tuple(x for x, _ in own), tuple(y for _, y in own)) for name, own in by_name.items()
    )


def check_any(groups: Sequence[object], remedy: str = "evaluate at least one example") -> None:
    """Raises BadRequest where there is nothing to study."""
    if not groups:
        raise BadRequest(f"there are no rows to study; {remedy}")


def paired(
    first: Sequence[T],
    second: Sequence[T],
    key: Callable[[T], Hashable],
    score: Callable[[T], float | None],
) -> PairedTest | None:
    """First minus second on the questions that both have."""
    theirs = {key(row): row for row in second}
    common = [row for row in first if key(row) in theirs]
    return paired_test([score(row) for row in common], [score(theirs[key(row)]) for row in common])


def shown_mean(values: Iterable[float | None], digits: int) -> str | None:
    """A mean with so many decimals; None where nothing was measured."""
    value = mean(values)
    return None if value is None else f"{value:.{digits}f}"
