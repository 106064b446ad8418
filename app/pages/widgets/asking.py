"""Around a question: the menu of those that are known, and the line of what is set."""

from __future__ import annotations

from collections.abc import Sequence

import gradio as gr

from app.components.tree import clicked
from app.in_view import Labelled, OpenDocuments
from core.draw.nodes import Node, h


def settings_toggle(panel: str, first: Node, words: Sequence[Node]) -> Node:
    """What is set, as one sentence that opens its panel over the page. `panel`: the panel's id."""
    attributes = {"data-toggle": panel, "aria-expanded": "false", "aria-controls": panel}
    said = (h("span", None, word) for word in words)
    more = h("span", {"class": "qx-set-more"}, "Settings ▾")
    return h("button", {"class": "qx-set-line", **attributes}, first, *said, more)


def known_questions(questions: Sequence[Labelled]) -> list[Node]:
    """The questions whose support is known, to be filled in; nothing where there are none."""
    if not questions:
        return []
    rows = [
        h(
            "li",
            None,
            h(
                "button",
                {"class": "qx-menu-row", "data-act": "known", "data-arg": str(place)},
                question_label(known),
            ),
        )
        for place, known in enumerate(questions)
    ]
    summary = h(
        "summary",
        {
            "class": "qx-menu-button",
            "title": "Questions whose support is known: it is marked, and the answer compared",
        },
        "Known questions ▾",
    )
    return [
        h(
            "details",
            {"class": "qx-menu"},
            summary,
            h("div", {"class": "qx-menu-panel"}, h("ul", None, *rows)),
        )
    ]


def known_question(documents: OpenDocuments | None, event: gr.EventData) -> str | None:
    """The question that was chosen in the menu. Arguments come from a browser: None when out of bounds."""
    _, argument = clicked(event)
    if documents is None or not argument.isdecimal() or int(argument) >= len(documents.questions):
        return None
    return documents.questions[int(argument)].question


def question_label(known: Labelled) -> str:
    """A known question in the list, with its hops where they are known."""
    return (
        known.question
        if not known.hops
        else f"{known.question}  ·  {known.hops} hop{'s' if known.hops > 1 else ''}"
    )
