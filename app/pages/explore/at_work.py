"""What a page shows while something is at work."""

from __future__ import annotations

from app.pages.widgets.notices import bar, notice, progress_bar
from app.services.in_view import OpenDocuments, RunInView
from app.services.session import Session
from app.services.underway import HowFar
from core.corpus.opening import OpenProgress
from core.views.draw.nodes import Node, act, h
from core.views.draw.words import counted, duration, percent

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


# A part of documents lies under the token that the whole of them will have: a page is told once


def part_progress(item: OpenProgress, again: bool) -> list[Node]:
    """The bar, how much is ready, and whether a run over it is made again at the end."""
    left = "" if item.seconds_left is None else f", {duration(item.seconds_left)} left"
    ready = percent(item.done / max(item.total, 1)).capitalize()
    words = f"{ready} ready{left}. You can ask now."
    title = "Once all is embedded, this run is made again over all chunks, by itself"
    toggle = act("at-end", "", "Run again at the end", title=title, aria_pressed=again)
    return [*bar(item, words), toggle]


def likeliest_first(documents: OpenDocuments | None) -> list[Node]:
    """What stands there until a question to a part has its first look."""
    if documents is None or not documents.searched:
        return []
    return notice("Embedding the chunks that share most words with the question", "info")


def part_standing(run: RunInView | None, documents: OpenDocuments | None, session: Session) -> list[Node]:
    """That the run in view was over a part, with the way to more; that the rest was left out."""
    if documents is None:
        return []
    rest = act("rest", "", "Embed the rest") if documents.searched and not session.filling else None
    if run is not None and run.config.searched:
        n_searched = run.config.n_searched(run.n_chunks)
        words = (
            f"Searched {n_searched:,} of {run.n_chunks:,} chunks, among them those that share most words with"
            " the question"
        )
        buttons = [rest] if rest else []
        if documents.n_searched > n_searched:
            words += f"; {'all' if not documents.searched else percent(documents.share)} are ready now"
            buttons.insert(0, act("again", "", "Run again"))
        badge = h("span.qx-chip.qx-chip-bad", "preview")
        return [badge, *notice(words, "partly", *buttons)]
    return notice(f"{percent(documents.share)} of the chunks are ready", "partly", rest) if rest else []
