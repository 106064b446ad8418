"""Documents that are opened and asked about without a page."""

from __future__ import annotations

from app.services.explorer import Explorer
from app.services.in_view import Labelled, OpenDocuments, RunInView
from app.services.library import OpenOrder
from app.services.opener import Opener
from app.services.session import Session
from app.services.shared import Services
from core.base.config import EpisodeConfig
from core.base.progress import finish

NAMES, PLACES = ("john", "mary", "sandra", "daniel"), ("hallway", "garden", "office", "bathroom", "kitchen")
FORTY_DAYS = "\n\n".join(f"{NAMES[i % 4]} travelled to the {PLACES[i % 5]} on day {i} ." for i in range(40))
"""As many chunks of twelve tokens."""
LETTER_QUESTION, LETTER_SUPPORT = "where did anna hide the letter ?", (3, 7)


def letter_chunks() -> list[str]:
    """Thirty, two of which say where the letter lies."""
    names, places = ("anna", "peter", "mary", "john"), ("hallway", "garden", "office", "mill", "kitchen")
    chunks = [f"{names[i % 4]} went to the {places[i % 5]} on day {i} ." for i in range(30)]
    chunks[3], chunks[7] = "anna took the letter to the mill .", "there anna hid the letter under the stone ."
    return chunks


def pasted(
    services: Services,
    text: str,
    max_tokens: int = 12,
    *,
    chunker: str = "sentences",
    owner: str | None = None,
) -> Session:
    """A page that has it open, under the agent of a first visit."""
    explorer, agent = Explorer(services), services.agents.default_checkpoint
    return finish(Opener(explorer, Session(owner=owner), agent, chunker, max_tokens).pasted(text))


def pasted_documents(services: Services, text: str, max_tokens: int = 12) -> OpenDocuments:
    return Explorer(services).documents(pasted(services, text, max_tokens))


def with_label(services: Services, opened: OpenDocuments, label: Labelled) -> OpenDocuments:
    """The same documents, with a question whose answer and support are known."""
    order = OpenOrder(opened.agent, opened.owner, lambda _: (label,))
    return finish(services.library.reopen(order, opened.workspace))


def ask(
    explorer: Explorer, session: Session, query: str, config: EpisodeConfig, steps: int | None = None
) -> tuple[Session, RunInView]:
    """The page once the run is over, or has made so many steps."""
    *_, ended = explorer.advance(session, query, config, steps)
    run = explorer.run_of(ended)
    assert run is not None
    return ended, run
