"""Charts as one small SVG file, for documents.

No script, no font file, colours that light and dark pages both carry. Pages on code hosts show SVG images but
no plotly figures (`core.views.figures`), which become static images only through a browser, so the few shapes
that a line chart needs are written here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape

from core.base.batches import batches
from core.views.charts import Chart, Line
from core.views.figures import INK, LINE, line_colours

WIDTH, HEIGHT = 460, 320
"""Of one panel, in pixels."""
LEFT, RIGHT, TOP, BOTTOM = 58, 14, 34, 46
COLUMNS = 2
LEGEND_LINE = 16
At = Callable[[float], float]
"""From a value to its pixel."""


def svg(charts: Sequence[Chart]) -> str:
    """The charts as panels, two a row. Raises ValueError for none, or a value that fits no axis."""
    if not charts:
        raise ValueError("there is no chart to draw")
    columns, height, panels = min(COLUMNS, len(charts)), 0, []
    for row in batches(charts, columns):
        for column, chart in enumerate(row):
            panels.append(f'<g transform="translate({column * WIDTH} {height})">{_panel(chart)}</g>\n')
        n_legend = max(len(chart.lines) for chart in row)
        height += HEIGHT + LEGEND_LINE * (n_legend if n_legend > 1 else 0)
    width, title = columns * WIDTH, escape("; ".join(chart.title for chart in charts))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width}'
        f' {height}" role="img" font-family="system-ui, sans-serif" font-size="11" fill="{INK}">'
        f"<title>{title}</title>\n{''.join(panels)}</svg>\n"
    )


def _panel(chart: Chart) -> str:
    points = [(x, y) for line in chart.lines for x, y in zip(line.x, line.y, strict=True) if y is not None]
    title = f'<text x="{LEFT}" y="18" font-size="13" font-weight="600">{escape(chart.title)}</text>'
    if not points:
        return f'{title}<text x="{LEFT}" y="{TOP + 20}">nothing was measured</text>'
    of_x = [x for x, _ in points]
    counts = 1.0 if all(float(x).is_integer() for x in of_x) else 0.0  # there is no step 1.5
    x_ticks, across = _axis(of_x, LEFT, WIDTH - RIGHT, chart.log_x, counts)
    y_ticks, up = _axis([y for _, y in points], HEIGHT - BOTTOM, TOP, chart.log_y)
    parts, middle, foot = [title], 'text-anchor="middle"', HEIGHT - BOTTOM
    for value in x_ticks:
        x = across(value)
        parts.append(f'<path d="M{x:.1f} {TOP}V{foot}" stroke="{LINE}"/>')
        parts.append(f'<text x="{x:.1f}" y="{foot + 15}" {middle}>{_tick(value)}</text>')
    for value in y_ticks:
        y = up(value)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="{LINE}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{_tick(value)}</text>')
    x, y = (LEFT + WIDTH - RIGHT) / 2, (TOP + foot) / 2
    turned = f'transform="translate(14 {y:.0f}) rotate(-90)"'
    parts.append(f'<text x="{x:.0f}" y="{HEIGHT - 12}" {middle}>{escape(chart.x_title)}</text>')
    parts.append(f"<text {turned} {middle}>{escape(chart.y_title)}</text>")
    for i, (line, colour) in enumerate(zip(chart.lines, line_colours(chart.lines), strict=True)):
        parts.append(_drawn(line, across, up, colour))
        if len(chart.lines) > 1:
            y = HEIGHT + LEGEND_LINE * i
            dot = f'<circle cx="{LEFT + 9}" cy="{y - 4}" r="4" fill="{colour}"/>'
            dash = f'<path d="M{LEFT} {y - 4}h18" stroke="{colour}" stroke-width="2"'
            parts.append(dot if line.points_only else f"{dash}{_dashes(line)}/>")
            parts.append(f'<text x="{LEFT + 24}" y="{y}">{escape(line.name)}</text>')
    return "".join(parts)


def _drawn(line: Line, across: At, up: At, colour: str) -> str:
    """Path and points; a missing value breaks the path."""
    path, parts, pen = "", [], "M"
    for x, y in zip(line.x, line.y, strict=True):
        if y is None:
            pen = "M"
            continue
        at_x, at_y = f"{across(x):.1f}", f"{up(y):.1f}"
        path, pen = f"{path}{pen}{at_x} {at_y}", "L"
        if not line.dashed:
            radius = 4 if line.points_only else 2.5
            parts.append(f'<circle cx="{at_x}" cy="{at_y}" r="{radius}" fill="{colour}"/>')
    if not line.points_only:
        parts.insert(0, f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.8"{_dashes(line)}/>')
    return "".join(parts)


def _dashes(line: Line) -> str:
    return ' stroke-dasharray="5 4"' if line.dashed else ""


def _axis(
    values: Sequence[float], first: float, last: float, log: bool, least_step: float = 0.0
) -> tuple[list[float], At]:
    """Round ticks, powers of ten on a logarithmic axis, and from values to pixels. Raises ValueError."""
    lo, hi, scaled = min(values), max(values), math.log10 if log else float
    if log and lo <= 0:
        raise ValueError(f"{lo} can't stand on a logarithmic axis")
    if log:
        first_tick, last_tick = math.floor(math.log10(lo)), math.ceil(math.log10(hi))
        ticks = [10.0**power for power in range(first_tick, last_tick + 1)]
    else:
        step = max(_round_step((hi - lo) or abs(hi) or 1.0), least_step)
        first_tick, last_tick = math.floor(lo / step + 1e-9), math.ceil(hi / step - 1e-9)
        ticks = [round(step * i, 10) for i in range(first_tick, last_tick + 1)]
    if len(ticks) == 1:
        ticks.append(ticks[0] * 10 if log else ticks[0] + 1)
    least, slope = scaled(ticks[0]), (last - first) / (scaled(ticks[-1]) - scaled(ticks[0]))
    return ticks, lambda value: first + (scaled(value) - least) * slope


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
