"""What a page shows while a run is at work."""

from __future__ import annotations

from app.pages.widgets.notices import progress_bar
from app.services.in_view import OpenDocuments, RunInView
from app.services.underway import HowFar
from core.views.draw.nodes import Node, h
from core.views.draw.words import counted

AT_ONCE, SOON = 0.06, 0.25
"""Seconds after Run and after Step in which an end is waited for, before work is told of."""


def first_question(documents: OpenDocuments) -> str:
    """What stands in the box once documents are open: the first known question of the most hops."""
    if not documents.questions:
        return ""
    return max(documents.questions, key=lambda labelled: labelled.hops).question


def earlier(run: RunInView | None) -> list[Node]:
    """Whose result still stands there, pale, until a new run or document takes its place."""
    if run is None:
        return []
    question = h("q", {"dir": "auto"}, run.trace.started.query)
    return [h("p.qx-earlier", "Earlier question: ", question)]


def run_progress(now: HowFar, budget: int, n_steps: int, n_chunks: int) -> list[Node]:
    """The step that a run is at, and what it does there."""
    step = f"Step {min(n_steps + 1, budget)} of {budget}"
    if now.n_to_read:
        words = f"{step}: reading the best chunks again, {now.n_read:,} of up to {now.n_to_read:,}"
        return progress_bar(words, "Reading again", now.n_read, now.n_to_read)
    first = "" if n_steps else " (a first run loads the models)"
    return progress_bar(f"{step}: scoring {counted(n_chunks, 'chunk')}{first}", "Scoring")


def reading_answer(n_chunks: int) -> list[Node]:
    """Between the last step and the answer."""
    where = f" in {counted(n_chunks, 'chunk')}" if n_chunks else ""
    return progress_bar(f"Reading the answer{where}", "Reading the answer")
