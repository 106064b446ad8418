"""What one tab asks another to show."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from core.runs.log import new_run_id


@dataclass(frozen=True)
class Request:
    """Something to show or do, asked by a click."""

    number: str = field(default_factory=new_run_id, kw_only=True)
    """Tells it from the same request made before."""


@dataclass(frozen=True)
class OpenRun(Request):
    """A logged run."""

    run_id: str
    n_kept: int | None = None
    """Steps to keep of it, to go on from there."""


@dataclass(frozen=True)
class OpenEpisode(Request):
    """The example of an evaluation's row, run as it was."""

    evaluation_id: str
    row: int


@dataclass(frozen=True)
class OpenChunk(Request):
    """A chunk of the documents that are open."""

    chunk_id: int


@dataclass(frozen=True)
class OpenSample(Request):
    """A document that ships with the app."""

    key: str


@dataclass(frozen=True)
class AskDocument(Request):
    """A question to a document that is opened for it."""

    path: Path
    question: str


@dataclass(frozen=True)
class UseAgent(Request):
    """Another agent for the documents that are open."""

    name: str


@dataclass(frozen=True)
class ForbidChunk(Request):
    """The run in view without a chunk."""

    chunk_id: int


@dataclass(frozen=True)
class TakeChunk(Request):
    """The run in view with this chunk next."""

    chunk_id: int


@dataclass(frozen=True)
class AllowSteps(Request):
    """The question again with so many steps, none of them saved by a stop."""

    steps: int


@dataclass(frozen=True)
class CutAt(Request):
    """The documents again in chunks of so many tokens, and the question again."""

    max_tokens: int


@dataclass(frozen=True)
class KeepAll(Request):
    """The question again without the review of what was chosen."""
