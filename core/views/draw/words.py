"""Words, numbers and colours that pages show alike."""

from __future__ import annotations

from core.views.draw.nodes import Node, h, tip

EXPLAIN = {
    "q": (
        "Q: the value the agent expects from adding this chunk now (Q-RAG eq. 1); for a trained agent not a"
        " similarity"
    ),
    "chance": "How likely the policy takes this chunk, given question, document, neighbours and budget",
    "taken": "1: the language model took this chunk, 0: it read and left it, -1: the chunk did not fit",
    "p": "p: probability of this choice under the Boltzmann policy (Q-RAG eq. 3)",
    "rho": "Position: how far the chunk lies before or after those already chosen (Q-RAG eq. 6)",
    "tied": "Chunks with the same Q; the first in document order was taken",
    "review": "Q of this choice beside the others, at the end; below the review threshold it is taken back",
    "ms": "Wall clock of the step: embedding the state, scoring all chunks, choosing",
    "tokens": "Length of the chunk in tokens of the agent's encoder",
}


def counted(n: int, noun: str) -> str:
    """ "1 chunk", "1,203 chunks", "2 branches"."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}{'es' if noun.endswith('ch') else 's'}"


def percent(share: float) -> str:
    """A share in whole per cent, never all of it while something is missing.

    >>> percent(0.997), percent(0.004), percent(0.29)
    ('99 %', 'below 1 %', '29 %')
    """
    return "below 1 %" if 0 < share < 0.01 else f"{int(round(100 * share, 9))} %"


def tenths(share: float) -> str:
    """A share as people count.

    >>> tenths(0.17)
    '2 of 10'
    """
    return f"{10 * share:.0f} of 10"


def step_class(step: int) -> str:
    """CSS class of a step's colour."""
    return f"qx-c{(step - 1) % 8 + 1}"


def number(label: str, value: str, explain: str) -> Node:
    """A labelled number with its sentence."""
    return tip("span.qx-kv", EXPLAIN[explain], h("span.qx-mut", f"{label} "), value)


def figure_title(title: str, words: str = "") -> list[Node]:
    """A heading over a figure, and what it says in words."""
    return [h("h3", title), h("p.qx-mut.qx-sm", words) if words else ""]


def shorten(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def two_ends(text: str, most: int) -> tuple[str, str]:
    """A text in two, of which the second has its last words, `most` characters at most: what is cut between
    them still differs where texts begin alike.

    >>> two_ends("Where was the lamp before the cellar?", 16)
    ('Where was the lamp before ', 'the cellar?')
    """
    border = text.find(" ", len(text) - most - 1) + 1 if len(text) > most else 0
    return (text[:border], text[border:]) if border else (text, "")


def shorten_between(text: str, most: int) -> str:
    """Cut to `most` characters before its last words.

    >>> shorten_between("Where was the lamp before the cellar?", 24)
    'Where was th…the cellar?'
    """
    begin, end = two_ends(text, most // 2)
    return text if len(text) <= most else shorten(begin, most - len(end)) + end


def duration(seconds: float) -> str:
    """As people say it.

    >>> duration(42), duration(1500), duration(9000)
    ('42 s', '25 min', '2 h 30 min')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"
