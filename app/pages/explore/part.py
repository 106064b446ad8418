"""What a page shows while documents are embedded, and asked already.

Documents that are embedded in part
lie under the token that the whole of them will have, so that a page only has to be told once.
"""

from __future__ import annotations

from app.pages.widgets.notices import bar, notice
from app.services.in_view import OpenDocuments, RunInView
from app.services.session import Session
from core.corpus.opening import OpenProgress
from core.views.draw.nodes import Node, act, h
from core.views.draw.words import duration, percent


def part_progress(item: OpenProgress, again: bool) -> list[Node]:
    """The bar, how much is ready, and whether a run over it is made again at the end."""
    left = "" if item.seconds_left is None else f", {duration(item.seconds_left)} left"
    ready = percent(item.done / max(item.total, 1)).capitalize()
    words = f"{ready} ready{left}. You can ask now."
    toggle = act(
        "at-end",
        "",
        "Run again at the end",
        title="Once all is embedded, this run is made again over all chunks, by itself",
        aria_pressed=again,
    )
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
