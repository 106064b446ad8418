"""What a study yields: tables and charts as plain data and Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.base.statistics import PairedTest, interval, mean

Cell = str | int | float | None


@dataclass(frozen=True)
class Table:
    """Rows under columns. Floats are shown with three decimals, None as a dash."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError(f"a row of table {self.title!r} has not {len(self.columns)} cells")


@dataclass(frozen=True)
class Line:
    """One series of a chart; None breaks a line."""

    name: str
    x: tuple[float, ...]
    y: tuple[float | None, ...]
    points_only: bool = False
    dashed: bool = False
    """For what is no measurement: a diagonal, or what the line before it is to reach."""


@dataclass(frozen=True)
class Chart:
    """Lines over two axes."""

    title: str
    x_title: str
    y_title: str
    lines: tuple[Line, ...]
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True)
class Report:
    """A study's result."""

    name: str
    tables: tuple[Table, ...]
    charts: tuple[Chart, ...] = ()
    notes: tuple[str, ...] = ()
    """Sentences without which the numbers mislead."""


def markdown(report: Report) -> str:
    """The report as Markdown: each table under its title, then the notes.

    >>> table = Table("T", ("a", "b"), ((1, 0.5), ("y|z", None)))
    >>> print(markdown(Report("x", (table,), notes=("Mind this.",))))
    **T**
    <BLANKLINE>
    | a | b |
    |---|---|
    | 1 | 0.500 |
    | y\\|z | - |
    <BLANKLINE>
    - Mind this.
    <BLANKLINE>
    """
    blocks = []
    for table in report.tables:
        rows = [[cell_text(cell).replace("|", "\\|") for cell in row] for row in (table.columns, *table.rows)]
        head, *lines = [f"| {' | '.join(row)} |" for row in rows]
        rule = f"|{'---|' * len(table.columns)}"
        blocks.append("\n".join([f"**{table.title}**\n", head, rule, *lines]))
    if report.notes:
        blocks.append("\n".join(f"- {note}" for note in report.notes))
    return "\n\n".join(blocks) + "\n"


def cell_text(cell: Cell) -> str:
    """A cell as text.

    >>> cell_text(0.5), cell_text("y|z"), cell_text(None)
    ('0.500', 'y|z', '-')
    """
    if cell is None:
        return "-"
    return f"{cell:.3f}" if isinstance(cell, float) else str(cell)


def mean_with_interval(values: Sequence[float | None]) -> str | None:
    """A mean with its confidence interval, None where it was not measured.

    >>> mean_with_interval([0.5] * 9), mean_with_interval([None])
    ('0.500 [0.500, 0.500]', None)
    """
    value, ends = mean(values), interval(values)
    if value is None:
        return None
    return f"{value:.3f}" if ends is None else f"{value:.3f} [{ends[0]:.3f}, {ends[1]:.3f}]"


def with_p(test: PairedTest | None) -> str | None:
    """A paired difference with its p-value, None where nothing was compared.

    >>> with_p(PairedTest(9, 0.0512, None, 0.0123))
    '+0.051 (p = 0.012)'
    """
    return None if test is None else f"{test.difference:+.3f} (p = {test.p_value:.2g})"
