"""A choice's card, and the line at which a run stops."""

from __future__ import annotations

from collections.abc import Sequence

from core.base.events import StepTaken, Trace
from core.views.draw.answers import marked
from core.views.draw.nodes import Node, chunk_link, h, sends
from core.views.draw.words import EXPLAIN, counted, number, step_class
from core.views.ending import end_sentence, review_sentence, told_apart
from core.views.quotes import Excerpt


def step_card(
    trace: Trace,
    step: StepTaken,
    *,
    gold: Sequence[int],
    scale: tuple[float, float],
    on: bool,
    score_name: str = "Q",
    acts: Sequence[Node] = (),
    below: Node | None = None,
    quote: Excerpt,
) -> Node:
    """A choice of a trace so far. quote: what counts in it. on: it is looked at. below: what follows."""
    marks = []
    if step.chosen_by == "person":
        marks.append(h("span.qx-mark", {"title": "A person chose this chunk, not the agent"}, "forced"))
    if gold:
        hit = step.chunk_id in gold
        marks.append(h("span.qx-mark" + ".qx-hit" * hit, "support" if hit else "not support"))
    if step.chunk_id in trace.taken_back:
        marks.append(h("span.qx-mark.qx-warn", {"title": EXPLAIN["review"]}, "taken back"))
    if step.n_state_tokens_dropped:
        cut = counted(step.n_state_tokens_dropped, "token")
        cut += " of question and chosen chunks did not fit the encoder's window and were cut"
        marks.append(h("span.qx-mark.qx-warn", {"title": cut}, "state cut"))
    lo, hi = min(scale[0], 0.0), scale[1]
    share = min(1.0, max(0.0, (step.q_value - lo) / ((hi - lo) or 1.0)))
    bar = h("span.qx-bar", {"--x": f"{100 * share:.1f}%"})
    badge = sends("qx-badge", "look", step.step, str(step.step), aria_label=f"Show step {step.step}")
    words = h("p.qx-quote", {"dir": "auto"}, *marked(quote, "em.qx-telling"))
    worth = h("span.qx-worth", number(score_name, f"{step.q_value:.2f}", "q"), bar)
    numbers: list[Node] = []
    if trace.started.config.temperature:
        numbers.append(number("p", f"{step.probability:.2f}", "p"))
    if step.position is not None:
        numbers.append(number("position ρ", f"{step.position:.2f}", "rho"))
    if trace.stopped is not None and step.chunk_id in trace.taken_back:
        beside = trace.stopped.review[step.step - 1]
        numbers.append(number("beside the others Q", f"{beside:.2f}", "review"))
    if step.n_tied > 1:
        numbers.append(number("tied", str(step.n_tied), "tied"))
    own_acts = h("span.qx-acts", *acts) if acts else None
    return h(
        f"div.qx-step.{step_class(step.step)}" + ".qx-on" * on,
        h("div.qx-step-top", badge, words, worth),
        h("div.qx-step-head.qx-sm", chunk_link(step.chunk_id), *marks, *numbers, own_acts),
        below,
    )


def stop_card(words: str, trace: Trace, tokens: int | None) -> Node:
    """Where the steps of a trace end. words: why. tokens: of its evidence, where anybody counted."""
    n_kept, reviewed = len(trace.evidence), review_sentence(trace)
    size = counted(n_kept, "chunk") + ("" if tokens is None else f", {counted(tokens, 'token')}")
    return h(
        "div.qx-stop",
        h("strong", "Stopped. " * (trace.stopped is not None) + words),
        f" {size}." if n_kept else "",
        h("p.qx-sm", reviewed) if reviewed else None,
    )


def decision(trace: Trace, cursor: int) -> str:
    """The stop decision at the cursor, in a sentence."""
    threshold = trace.started.config.stop_threshold
    if trace.stopped is not None and cursor == len(trace.steps):
        return end_sentence(trace)
    if cursor == 0 or threshold is None:
        return "Goes on: no stop threshold is set." if cursor else ""
    best, least = told_apart(trace.steps[cursor - 1].state_value, threshold)
    return f"Goes on: best Q {best} is not below {least}."
