"""One visitor's place in the explorer: small, frozen, held by gr.State.

Everything large is found through its tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Session:
    """Where a visitor is."""

    corpus: str = ""
    """Token of the open documents."""
    run: str = ""
    """Token of the run in view."""
    cursor: int = 0
    """Steps of that run that are kept: Back lowers it; a change from there forks a child run."""
    look: int = 1
    """1-based look whose Q-values are shown."""
    chunk_id: int | None = None
    """Chunk marked in the reading pane."""
    anchor: int | None = None
    """Chunk around which the reading pane's page lies, where that is not the marked one."""
    reads: Literal["evidence", "text"] = "text"
    """What the reading pane shows: the evidence in its places, or the whole text around the marked chunk."""
    forbidden: tuple[int, ...] = ()
    """Chunks that the next run must not choose."""
    marks: tuple[tuple[int, bool], ...] = ()
    """Chunks that the person marked for the question in view, and whether each belongs to its answer."""
    opening: str = ""
    """Names the opening under way, if any: a run started now would be over what is about to go."""
    filling: str = ""
    """Names the opening that still embeds what is open, if any: what is there by now can be asked."""
    underway: str = ""
    """Names what drives a run for the page, if anything does."""
    agent_chosen: bool = False
    """The person chose the agent themselves: opening a document of another kind keeps it."""
    ran: bool = False
    """Something was run over what is open: what acts on a run is shown from then on."""
    draws: bool = False
    """Figures below the text are drawn: they bring a megabyte of script, and few scroll so far."""
    owner: str | None = None
    """Hash of the visitor's key; None in local mode, where there is one person."""
    llm: str = ""
    """Token of the language model that the visitor gives, there from the first load on."""

    @property
    def awaits(self) -> bool:
        """Whether nothing is open yet and something will be: a page that loads opens a document."""
        return not self.corpus and bool(self.opening or not self.llm)

    @property
    def tokens(self) -> tuple[str, ...]:
        """Of the documents and runs that must stay in memory for it, and of its language model."""
        return (self.corpus, self.run, self.llm)
