"""Charts as one small SVG file, for documents.

No script, no font file, colours that light and dark pages both carry. Pages on code hosts show SVG images but
neither HTML nor plotly figures, and plotly writes static images only through a browser, so the few shapes
that a line chart needs are written here. Interactive figures of the same charts are made in
`core.views.figures`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from core.base.batches import batches
from core.views.charts import Chart, Line
from core.views.figures import INK, LINE, line_colours

WIDTH, HEIGHT = 460, 320
"""Of one panel, in pixels."""
LEFT, RIGHT, TOP, BOTTOM = 58, 14, 34, 46
COLUMNS = 2
LEGEND_LINE = 16


def svg(charts: Sequence[Chart]) -> str:
    """The charts as panels, two a row. Raises ValueError for none, or a value that fits no axis."""
    if not charts:
        raise ValueError("there is no chart to draw")
    columns = min(COLUMNS, len(charts))
    heights = [HEIGHT + LEGEND_LINE * _n_legend(chart) for chart in charts]
    row_heights = [max(row) for row in batches(heights, columns)]
    panels = []
    for i, chart in enumerate(charts):
        row, column = divmod(i, columns)
        panels.append(
            f'<g transform="translate({column * WIDTH} {sum(row_heights[:row])})">{_panel(chart)}</g>'
        )
    width, height = columns * WIDTH, sum(row_heights)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width}'
        f' {height}" role="img"'
    )
    title = escape("; ".join(chart.title for chart in charts))
    return (
        f'{head} font-family="system-ui, sans-serif" font-size="11" fill="{INK}"><title>{title}</title>\n'
        + "\n".join(panels)
        + "\n</svg>\n"
    )


def _n_legend(chart: Chart) -> int:
    return len(chart.lines) if len(chart.lines) > 1 else 0


def _panel(chart: Chart) -> str:
    points = [(x, y) for line in chart.lines for x, y in zip(line.x, line.y, strict=True) if y is not None]
    title = f'<text x="{LEFT}" y="18" font-size="13" font-weight="600">{escape(chart.title)}</text>'
    if not points:
        return f'{title}<text x="{LEFT}" y="{TOP + 20}">nothing was measured</text>'
    across = _Axis([x for x, _ in points], LEFT, WIDTH - RIGHT, chart.log_x)
    up = _Axis([y for _, y in points], HEIGHT - BOTTOM, TOP, chart.log_y)
    parts = [title]
    for value in across.ticks:
        x = across.at(value)
        parts.append(f'<path d="M{x:.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="{LINE}"/>')
        parts.append(
            f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 15}" text-anchor="middle">{_tick(value)}</text>'
        )
    for value in up.ticks:
        y = up.at(value)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="{LINE}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{_tick(value)}</text>')
    parts.append(
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 12}"'
        f' text-anchor="middle">{escape(chart.x_title)}</text>'
    )
    middle = (TOP + HEIGHT - BOTTOM) / 2
    parts.append(
        f'<text transform="translate(14 {middle:.0f}) rotate(-90)"'
        f' text-anchor="middle">{escape(chart.y_title)}</text>'
    )
    for i, (line, colour) in enumerate(zip(chart.lines, line_colours(chart.lines), strict=True)):
        parts.append(_drawn(line, across, up, colour))
        if len(chart.lines) > 1:
            y = HEIGHT + LEGEND_LINE * i
            dot = f'<circle cx="{LEFT + 9}" cy="{y - 4}" r="4" fill="{colour}"/>'
            dash = f'<path d="M{LEFT} {y - 4}h18" stroke="{colour}" stroke-width="2"'
            parts.append(dot if line.points_only else f"{dash}{_dashes(line)}/>")
            parts.append(f'<text x="{LEFT + 24}" y="{y}">{escape(line.name)}</text>')
    return "".join(parts)


def _drawn(line: Line, across: _Axis, up: _Axis, colour: str) -> str:
    """Path and points; a missing value breaks the path."""
    path, parts, pen_down = "", [], False
    for x, y in zip(line.x, line.y, strict=True):
        if y is None:
            pen_down = False
            continue
        path += f"{'L' if pen_down else 'M'}{across.at(x):.1f} {up.at(y):.1f}"
        pen_down = True
        if not line.dashed:
            parts.append(
                f'<circle cx="{across.at(x):.1f}" cy="{up.at(y):.1f}" r="{4 if line.points_only else 2.5}"'
                f' fill="{colour}"/>'
            )
    if not line.points_only:
        parts.insert(0, f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.8"{_dashes(line)}/>')
    return "".join(parts)


def _dashes(line: Line) -> str:
    return ' stroke-dasharray="5 4"' if line.dashed else ""


class _Axis:
    """From values to pixels, with round ticks, powers of ten on a logarithmic axis. Raises ValueError."""

    def __init__(self, values: Sequence[float], first: float, last: float, log: bool) -> None:
        lo, hi = min(values), max(values)
        if log and lo <= 0:
            raise ValueError(f"{lo} can't stand on a logarithmic axis")
        self._log = log
        if log:
            self.ticks = [
                10.0**power for power in range(math.floor(math.log10(lo)), math.ceil(math.log10(hi)) + 1)
            ]
        else:
            step = _round_step((hi - lo) or abs(hi) or 1.0)
            self.ticks = [
                round(step * i, 10)
                for i in range(math.floor(lo / step + 1e-9), math.ceil(hi / step - 1e-9) + 1)
            ]
        if len(self.ticks) == 1:
            self.ticks.append(self.ticks[0] * 10 if log else self.ticks[0] + 1)
        lo, hi = self._scaled(self.ticks[0]), self._scaled(self.ticks[-1])
        self._first, self._slope, self._lo = first, (last - first) / (hi - lo), lo

    def at(self, value: float) -> float:
        """Pixel of a value."""
        return self._first + (self._scaled(value) - self._lo) * self._slope

    def _scaled(self, value: float) -> float:
        return math.log10(value) if self._log else value


def _round_step(span: float) -> float:
    """1, 2 or 5 times a power of ten that cuts `span` into four to nine parts.

    >>> _round_step(1.2), _round_step(0.07), _round_step(6)
    (0.2, 0.01, 1.0)
    """
    power: float = 10.0 ** math.floor(math.log10(span / 4))
    return next(round(factor * power, 12) for factor in (5, 2, 1) if span / (factor * power) >= 4)


def _tick(value: float) -> str:
    """A number as short as it can be written.

    >>> _tick(0.2), _tick(1_000_000.0), _tick(5.0), _tick(20_000.0)
    ('0.2', '1M', '5', '20K')
    """
    for unit, size in (("M", 1_000_000), ("K", 1_000)):
        if abs(value) >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"
