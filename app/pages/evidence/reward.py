"""The reward of a set as steps that add up; its action."""

from __future__ import annotations

import json

import numpy as np

from app.services.evidence_sets import SetInView
from core.methods.resrag.action import action_json, action_of
from core.methods.resrag.reward import RewardConfig
from core.methods.resrag.sets import RewardTerms
from core.views.draw.nodes import Node, act, h
from core.views.draw.words import counted, shorten

_LONGEST_ACTION = 4_000
"""Characters of an action that are shown; the export has all of it."""


def reward(view: SetInView) -> list[Node]:
    """The reward of the set as a bar that adds up, for a question whose answer and support are known."""
    terms = view.reward
    head = h("h3", "Reward of this set")
    if terms is None:
        way = "choose one of the known questions"
        if not view.run.documents.questions:
            way = "mark the passages of this one in Explore, and give its answer there"
        words = f"It takes a question whose answer and support are known: {way}."
        if view.answer is None and view.run.gold:
            words = "The set is being read…"
        return [head, h("p.qx-sm.qx-mut", words)]
    about = h("span.qx-sm.qx-mut", "what training would give it (RES-RAG eq. 14); brown takes away")
    table = h("table.qx-terms", h("tbody", *_terms(terms)))
    return [h("div.qx-row", head, about), _waterfall(terms), table]


def _terms(terms: RewardTerms) -> list[Node]:
    reward, config = terms.reward, terms.config
    beyond = "No document above √N"
    if terms.n_beyond:
        beyond = f"{counted(terms.n_beyond, 'document')} above √N, mean {terms.mean_penalty:.2f}"
    answer = ("No answer", "fixed")
    if terms.f1 is not None:
        answer = (f"Answer, F1 {terms.f1:.2f}", f"{config.answer_weight:g} × F1 with the known answer")
    clipped = f"clipped to {config.least:g} … {config.most:g}".replace("-", "−")
    rows = [
        ("answer", *answer, signed(reward.answer)),
        (
            "consistency",
            f"Agreement with the support, F1 {terms.consistency:.2f}",
            f"{config.consistency_weight:g} × F1, mean of the documents",
            signed(reward.consistency),
        ),
        ("penalty", beyond, f"length penalty, at most {config.penalty_weight:g}", signed(-reward.penalty)),
        ("total", "Reward", clipped, f"{reward.total:.2f}".replace("-", "−")),
    ]
    return [
        h(
            f"tr.qx-term-{kind}" + ".qx-falls" * value.startswith("−"),
            h("th", {"scope": "row"}, label),
            h("td.qx-mut.qx-sm", formula),
            h("td.qx-term-value", value),
        )
        for kind, label, formula, value in rows
    ]


def signed(value: float) -> str:
    """Two places, with a sign where it is not nothing.

    >>> signed(2.0), signed(-0.5), signed(-0.001)
    ('+2.00', '−0.50', '0.00')
    """
    return f"{value:+.2f}".replace("-", "−") if round(value, 2) else "0.00"


def _waterfall(terms: RewardTerms) -> Node:
    """Three steps, each beginning where the one before ends; the line is where they end."""
    steps = [
        ("answer", terms.reward.answer),
        ("consistency", terms.reward.consistency),
        ("penalty", -terms.reward.penalty),
    ]
    ends = np.cumsum([0.0, *(value for _, value in steps)])
    usual = RewardConfig()
    hi = max(usual.answer_weight + usual.consistency_weight, float(ends.max()))
    lo = min(0.0, float(ends.min()))

    def at(value: float) -> float:
        return 1000 * (value - lo) / (hi - lo)

    row, gap = 14, 4
    height = len(steps) * (row + gap)
    drawing = [h("path.qx-half", {"d": f"M{at(0.0):.1f} 0V{height}"})]
    for place, (kind, value) in enumerate(steps):
        left, right = sorted((at(float(ends[place])), at(float(ends[place + 1]))))
        top = place * (row + gap)
        if right > left:
            shape = {"d": f"M{left:.1f} {top}H{right:.1f}v{row}H{left:.1f}Z"}
            drawing.append(h(f"path.qx-step-{kind}" + ".qx-falls" * (value < 0), shape))
    total = at(float(ends[-1]))
    drawing.append(h("path.qx-total", {"d": f"M{total:.1f} 0V{height}"}))
    words = ", ".join(f"{kind} {signed(value)}" for kind, value in steps)
    attributes = {"viewBox": f"0 0 1000 {height}", "preserveAspectRatio": "none", "height": str(height)}
    return h(
        "div.qx-waterfall",
        h("svg", {**attributes, "role": "img", "aria-label": f"{words}: {terms.reward.total:.2f}"}, *drawing),
    )


def action(view: SetInView) -> list[Node]:
    """The set as the JSON object of the paper."""
    words = json.dumps(action_json(action_of(view.taken, view.run.documents.workspace.borders)))
    text = shorten(words, _LONGEST_ACTION)
    copy = act("copy", words, "Copy") if text == words else None
    about = "as in the paper, the chunks of each document are counted from 1; likeliest first"
    return [
        h("div.qx-row", h("h3", "The action"), h("span.qx-sm.qx-mut", about), h("span.qx-grow"), copy),
        h("pre.qx-pre", {"tabindex": "0"}, text),
    ]
