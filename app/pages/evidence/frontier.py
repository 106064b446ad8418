"""Quality against cost: a line a method, a dot a setting."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from app.pages.evidence.view import choice
from app.pages.widgets.notices import notice
from core.base.config import RESRAG
from core.lab.studies.frontier import Curve
from core.methods.qrag.retriever import QRAG
from core.methods.registry import facts_of
from core.methods.sparc.retriever import SPARC
from core.methods.threshold import THRESHOLD
from core.views.draw.nodes import Node, act, h, sends
from core.views.draw.words import shorten

MEASURES = {"f1": "Answer F1", "recall": "Support recall"}
TASK_NAMES = {
    "hotpotqa": "Wikipedia, two facts",
    "nq": "Wikipedia, one fact",
    "conditionalqa": "Government pages",
    "natural": "Web pages",
    "natural-manuals": "Manuals",
}
"""Data sets, for people."""
_COLOURS = tuple(f"var(--qx-{name})" for name in ("acc", "s2", "s3", "s4", "s1", "s5", "s6", "s7"))
_EARLIER = "; methods of one look, RES-RAG with what was likelier than not"
"""Of rows from before Q-RAG and SPARC were among them."""
_TICKS = tuple(digit * 10**power for power in range(8) for digit in (1, 2, 5))
_SETTING = {THRESHOLD.name: "cosine", QRAG.name: "Q", SPARC: "depth", RESRAG: "budget"}


def frontier(curves: Sequence[Curve], task: str, measure: str, budget: int) -> list[Node]:
    """A line a method over mean tokens; the ring: RES-RAG at the budget that is set. Empty without curves."""
    tasks = list(dict.fromkeys(curve.task for curve in curves))
    if not tasks:
        return []
    task = task if task in tasks else tasks[0]
    measure = measure if measure in MEASURES else next(iter(MEASURES))
    own = sorted((curve for curve in curves if curve.task == task), key=lambda curve: curve.method != RESRAG)
    about = (
        f"means of {own[0].n} questions with 95 % intervals, answered by {own[0].reader}; measured by the"
        " project, not on your documents"
    ) + _EARLIER * all(curve.method != QRAG.name for curve in own)
    head = h(
        "div.qx-row",
        h("h3", "Quality against cost"),
        h("span.qx-sm.qx-mut", about),
        h("span.qx-grow"),
        choice(
            "Questions",
            *(act("task", one, TASK_NAMES.get(one, one), aria_pressed=one == task) for one in tasks),
        ),
        choice(
            "Measure",
            *(act("measure", name, words, aria_pressed=name == measure) for name, words in MEASURES.items()),
        ),
    )
    names = [
        h("span.qx-front-name", {"--c": _COLOURS[place % len(_COLOURS)]}, _name(curve))
        for place, curve in enumerate(own)
    ]
    dots = "A dot is a setting; it opens your own runs of that method."
    ring = "The ring is RES-RAG at the budget that is set."
    below = h("p.qx-sm.qx-mut", f"{dots} {ring}")
    return [head, h("p.qx-row", *names), _plot(own, measure, budget), below]


def _plot(curves: Sequence[Curve], measure: str, budget: int) -> Node:
    spent = [max(one, 1.0) for curve in curves for one in curve.tokens]
    values = [
        mean + half
        for curve in curves
        for mean, half in zip(getattr(curve, measure), _halves(curve, measure), strict=True)
    ]
    x0, x1 = math.log(min(spent) * 0.9), math.log(max(spent) * 1.1)
    y1 = 0.1 * math.ceil(10 * max(values) + 0.5)

    def across(n_tokens: float) -> float:
        return 100 * (math.log(max(n_tokens, 1.0)) - x0) / (x1 - x0)

    def down(value: float) -> float:
        return float(100 * (1 - value / y1))

    lines: list[Node] = []
    marks: list[Node] = []
    for tick in (one for one in _TICKS if x0 <= math.log(one) <= x1):
        marks.append(h("span.qx-front-x", {"--x": f"{across(tick):.1f}%"}, f"{tick:,}"))
    for tick in np.arange(0, y1 + 1e-9, 0.1 if y1 <= 0.6 else 0.2).tolist():
        lines.append(h("path.qx-half", {"d": f"M0 {3 * down(tick):.1f}H1000"}))
        marks.append(h("span.qx-front-y", {"--y": f"{down(tick):.1f}%"}, f"{tick:.1f}"))
    for place, curve in enumerate(curves):
        colour = _COLOURS[place % len(_COLOURS)]
        points = sorted(zip(curve.tokens, getattr(curve, measure), curve.settings, strict=True))
        path = "L".join(f"{10 * across(x):.1f} {3 * down(y):.1f}" for x, y, _ in points)
        lines.append(h("path.qx-front-line", {"--c": colour, "d": f"M{path}"}))
        ring = max((one for one in curve.settings if one <= budget), default=min(curve.settings))
        halves = dict(zip(curve.settings, _halves(curve, measure), strict=True))
        for x, y, setting in points:
            low, high = max(y - halves[setting], 0.0), min(y + halves[setting], y1)
            bar = f"M{10 * across(x):.1f} {3 * down(low):.1f}V{3 * down(high):.1f}"
            lines.append(h("path.qx-front-bar", {"--c": colour, "d": bar}))
            kind = "qx-front-dot" + ".qx-ring" * (curve.method == RESRAG and setting == ring)
            words = (
                f"{_name(curve)}, {_SETTING.get(curve.method, 'k')} {setting:g}: {x:,.0f} tokens,"
                f" {MEASURES[measure]} {y:.2f} [{low:.2f}, {high:.2f}]"
            )
            at = {"--x": f"{min(max(across(x), 0), 100):.1f}%", "--y": f"{min(max(down(y), 0), 100):.1f}%"}
            dot = {"--c": colour, **at, "title": words, "aria_label": words}
            marks.append(sends(kind, "runs", curve.method, **dot))
    size = {"viewBox": "0 0 1000 300", "preserveAspectRatio": "none", "height": "240"}
    svg = h("svg", {**size, "aria-hidden": "true"}, *lines)
    return h(
        "div.qx-front",
        {"role": "group", "aria-label": "Quality against cost, a dot a setting"},
        svg,
        *marks,
        h("span.qx-front-up", MEASURES[measure]),
        h("span.qx-front-across", "mean tokens of evidence, log scale"),
    )


def _halves(curve: Curve, measure: str) -> tuple[float, ...]:
    return getattr(curve, f"{measure}_half") or (0.0,) * len(curve.settings)


def _name(curve: Curve) -> str:
    label, policy = facts_of(curve.method).label, curve.policy
    return f"{label}, width {policy[1:]}" if curve.method == SPARC else f"{label} {policy}".strip()


def no_runs(method: str) -> list[Node]:
    """Where a dot leads nowhere."""
    return notice(f"No run of {shorten(method, 40)} is in your log yet; Compare makes some.", "info")
