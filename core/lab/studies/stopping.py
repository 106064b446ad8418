"""When the agent stops (Q-RAG appendix B).

The paper counts early, late and perfect stops over the episodes that ever hold all support, and F1, EM, TPR
and FPR over all; here stops are given over both. TPR is the mean share of an episode's support that was
taken, FPR the mean share of its other chunks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from core.base.errors import BadRequest
from core.base.metrics import fact_em, fact_f1, fact_recall, false_positive_rate
from core.base.rows import EpisodeRow, group_rows
from core.base.statistics import mean
from core.lab.evaluate.outcomes import completed_at, discounted_gains, oracle_steps, steps_taken, stop_class
from core.lab.studies.tables import Group, check_greedy, conditions, lines_of, subject_name
from core.views.charts import Chart, Line, Report, Table

THRESHOLDS = tuple(round(-0.1 + 0.1 * i, 1) for i in range(13))
"""Those of Q-RAG tables 4 and 5."""
BINS = 10


def early_stopping(rows: Sequence[EpisodeRow]) -> Report:
    """Tables 4 and 5, figures 4 and 5. Raises BadRequest for rows that no threshold can be read off."""
    check_greedy(rows)
    tables, charts, said = [], [], []
    for group in group_rows(rows):
        name, points = subject_name(group), [_at(group, threshold) for threshold in THRESHOLDS]
        tables.append(_table(name, group, points))
        charts += _charts(name, group, points)
        said.append(f"{name}: {_roc_note(group, points)} {conditions(group)}")
    return Report("early-stopping", tuple(tables), tuple(charts), tuple(said))


def _at(group: Group, threshold: float | None) -> dict[str, float | None]:
    """Every column at one threshold; None for the oracle, which stops when all support is in."""
    n_steps = [oracle_steps(row) if threshold is None else steps_taken(row, threshold) for row in group]
    chosen = list(zip([row.chosen[:n] for row, n in zip(group, n_steps, strict=True)], group, strict=True))
    if threshold is None:
        stops = Counter[str]("never" if completed_at(row) is None else "perfect" for row in group)
    else:
        stops = Counter[str](stop_class(row, threshold) for row in group)
    n_complete = len(group) - stops["never"]
    ends = ("early", "late", "perfect")
    return {
        **{name: stops[name] / len(group) for name in ends},
        "never complete": stops["never"] / len(group),
        **{f"{name}*": stops[name] / n_complete if n_complete else None for name in ends},
        "TPR": mean(fact_recall(ids, row.support) for ids, row in chosen),
        "FPR": mean(false_positive_rate(ids, row.support, row.n_chunks) for ids, row in chosen),
        "length": mean(map(float, n_steps)),
        "Fact EM": mean(fact_em(ids, row.support) for ids, row in chosen),
        "Fact F1": mean(fact_f1(ids, row.support) for ids, row in chosen),
    }


def _table(name: str, group: Group, points: Sequence[dict[str, float | None]]) -> Table:
    own, oracle = group[0].stop_threshold, _at(group, None)
    named = [(f"{threshold:.2f}", point) for threshold, point in zip(THRESHOLDS, points, strict=True)]
    if own is not None:
        named.append((f"own, {own:g}", _at(group, own)))
    lines = tuple((words, *point.values()) for words, point in [*named, ("oracle", oracle)])
    title = f"Early stopping, {name} (* over the episodes that ever hold all support, as in the paper)"
    return Table(title, ("threshold", *oracle), lines)


def _charts(name: str, group: Group, points: Sequence[dict[str, float | None]]) -> list[Chart]:
    oracle, roc = _at(group, None), (("thresholds", *point) for point in sorted(_roc(points)))

    def chart(title: str, y_title: str, *columns: str) -> Chart:
        lines = (
            Line(column.rstrip("*"), THRESHOLDS, tuple(point[column] for point in points))
            for column in columns
        )
        return Chart(f"{title}, {name}", "stop threshold", y_title, tuple(lines))

    end = Line("oracle stop", (oracle["FPR"] or 0.0,), (oracle["TPR"],), points_only=True)
    return [
        chart("Early and late stops", "share of completed episodes", "early*", "late*"),
        chart("Perfect stops", "share of completed episodes", "perfect*"),
        chart("Episode length", "chunks chosen", "length"),
        Chart(f"ROC of stopping, {name}", "FPR", "TPR", (*lines_of(roc), end)),
    ]


def _roc(points: Sequence[dict[str, float | None]]) -> list[tuple[float, float]]:
    """(FPR, TPR) of each threshold, and (0, 0): stopping at once."""
    return [(0.0, 0.0), *((point["FPR"] or 0.0, point["TPR"] or 0.0) for point in points)]


def areas(points: Sequence[tuple[float, float]]) -> tuple[float | None, float]:
    """(area up to the largest FPR reached divided by that FPR, None where it is 0; area with the last point
    joined to (1, 1)). The first gives the paper's 0.96 on its own table 4, the second 0.98.

    >>> areas([(0.0, 0.0), (0.0, 0.5), (0.5, 1.0)])
    (0.75, 0.875)
    """
    x, y = (np.array(column) for column in zip(*sorted(points), strict=True))
    within = float(np.trapezoid(y, x))
    rest = (1 - x[-1]) * (y[-1] + 1) / 2
    return (within / float(x[-1]) if x[-1] > 0 else None), within + float(rest)


def _roc_note(group: Group, points: Sequence[dict[str, float | None]]) -> str:
    oracle, (reached, joined) = _at(group, None), areas(_roc(points))
    first = "not defined, for no other chunk is ever taken" if reached is None else f"{reached:.3f}"
    return (
        "AUC over the FPR that is reached (the convention that gives the paper's 0.96 on its table 4):"
        f" {first}; with the last point joined to (1, 1): {joined:.3f}. Oracle stop: TPR"
        f" {oracle['TPR'] or 0:.3f}, FPR {oracle['FPR'] or 0:.2g}."
    )


def reliability(rows: Sequence[EpisodeRow], n_bins: int = BINS) -> Report:
    """Q of each choice against what was really still gained from there (see `outcomes.discounted_gains`), in
    bins of equal width. Raises BadRequest as `early_stopping`.
    """
    check_greedy(rows)
    tables, charts, said = [], [], []
    for group in group_rows(rows):
        name = subject_name(group)
        q_values = np.array([q for row in group for q in row.q_values])
        gains = np.array([gain for row in group for gain in discounted_gains(row)])
        if not len(q_values):
            raise BadRequest("the rows hold no choice; evaluate with a step budget of at least 1")
        edges = np.linspace(min(0.0, float(q_values.min())), max(1.0, float(q_values.max())), n_bins + 1)
        bins = np.clip(np.digitize(q_values, edges) - 1, 0, n_bins - 1)
        lines, error = [], 0.0
        for b in np.unique(bins):
            q, gain = q_values[bins == b], gains[bins == b]
            ends = f"{edges[b]:.2f} to {edges[b + 1]:.2f}"
            lines.append((ends, len(q), float(q.mean()), float(gain.mean()), float(gain.std())))
            error += len(q) * abs(float(q.mean()) - float(gain.mean())) / len(q_values)
        columns = ("Q", "choices", "mean Q", "mean gain", "sd of gain")
        tables.append(Table(f"Calibration of Q, {name}", columns, tuple(lines)))
        measured = Line("measured", tuple(line[2] for line in lines), tuple(line[3] for line in lines))
        whole = (float(edges[0]), float(edges[-1]))
        ideal = Line("Q = gain", whole, whole, dashed=True)
        charts.append(Chart(f"Reliability, {name}", "Q of the choice", "discounted gain", (measured, ideal)))
        choices = f"expected calibration error {error:.3f} over {len(q_values):,} choices"
        said.append(f"{name}: {choices}. {conditions(group)}")
    return Report("calibration", tuple(tables), tuple(charts), tuple(said))
