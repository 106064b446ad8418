"""Marks and marked questions as trees of plain data: pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from app.pages.widgets.notices import notice
from app.services.session import Session
from core.runs.log.marks import MarkedQuestion
from core.views.draw.nodes import Node, act, h
from core.views.draw.words import counted, shorten

BELONGS, DOES_NOT = "belongs", "belongs-not"
"""What the two buttons beside a chunk ask for."""
_SHOWN_LEFT_OUT = 5


def mark_buttons(chunk_id: int, session: Session, *, short: bool = False) -> list[Node]:
    """Whether a chunk belongs to the answer; pressed again, it is taken back. `short`: without words."""
    marked = dict(session.marks).get(chunk_id)
    buttons = (
        (BELONGS, "✓" if short else "Belongs", True, "This chunk belongs to the answer"),
        (DOES_NOT, "✗" if short else "Doesn't", False, "This chunk doesn't belong to the answer"),
    )
    shown = []
    for action, words, value, title in buttons:
        told = {"title": f"{title}; your questions are listed below", "aria_pressed": marked is value}
        shown.append(act(action, chunk_id, words, **told, aria_label=f"{title}: chunk {chunk_id:,}"))
    return shown


def heading(n: int) -> str:
    """Of the card, which is closed until somebody looks for what was marked."""
    return f"Questions of my own · {n:,}" if n else "Questions of my own"


def own_questions(questions: Sequence[MarkedQuestion], open_hashes: Sequence[str]) -> list[Node]:
    """The list, newest first."""
    if not questions:
        words = (
            "Does a chunk belong to the answer? Mark it with ✓ or ✗ above. The question is kept here with"
            " its marks; ten make a benchmark of your own."
        )
        return [h("p.qx-empty", words)]
    n = sum(bool(question.support) for question in questions)
    head = h("p.qx-mut", f"{counted(len(questions), 'question')}, {n} with a passage.")
    return [head, h("ul.qx-own-list", *(_line(one, open_hashes) for one in questions))]


def _line(question: MarkedQuestion, open_hashes: Sequence[str]) -> Node:
    rejected = len(question.marks) - len(question.support)
    facts = [
        question.document,
        counted(len(question.support), "passage") if question.support else "no passage yet",
        *([f"{rejected} that don't belong"] if rejected else []),
        f"answer: {shorten(question.answer, 80)}" if question.answer else "no answer given",
    ]
    name = question.question[:80]
    buttons = [
        act("own-edit", question.question_id, "Edit answer", aria_label=f"Edit answer: {name}"),
        act("own-delete", question.question_id, "Delete", aria_label=f"Delete {name}"),
    ]
    if question.sha256 in open_hashes:
        buttons.insert(0, act("own-ask", question.question_id, "Ask", title="Put it into the question box"))
    asked = h("strong", {"dir": "auto"}, question.question)
    about = h("p.qx-mut.qx-sm", {"dir": "auto"}, " · ".join(facts))
    return h("li.qx-row", h("div.qx-grow", asked, about), *buttons)


def exported(lines: str, n: int, left_out: Sequence[str]) -> list[Node]:
    """The file to keep, and why questions are not in it."""
    button = act("download", lines, f"Download {counted(n, 'question')}", data_name="questions.jsonl")
    return [*([h("p", button)] if n else []), *reasons(left_out)]


def taken_in(n: int, left_out: Sequence[str]) -> list[Node]:
    """What a file brought."""
    return [*notice(f"{counted(n, 'question')} taken in.", "info"), *reasons(left_out)]


def reasons(left_out: Sequence[str]) -> list[Node]:
    """Why questions are left out, the first few of them."""
    more = len(left_out) - _SHOWN_LEFT_OUT
    sentences = [*left_out[:_SHOWN_LEFT_OUT], *([f"{more} more were left out"] if more > 0 else [])]
    return [node for sentence in sentences for node in notice(f"{sentence}.", "info")]
