"""What one tab asks another to show."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from core.runs.log import new_run_id


@dataclass(frozen=True)
class PageRequest:
    """Something to show or do, asked by a click."""

    number: str = field(default_factory=new_run_id, kw_only=True)
    """Tells it from the same request made before."""


@dataclass(frozen=True)
class OpenRun(PageRequest):
    """A logged run."""

    run_id: str
    n_kept: int | None = None
    """Steps to keep of it, to go on from there."""


@dataclass(frozen=True)
class OpenEpisode(PageRequest):
    """The example of an evaluation's row, run as it was."""

    evaluation_id: str
    row: int


@dataclass(frozen=True)
class OpenChunk(PageRequest):
    """A chunk of the documents that are open."""

    chunk_id: int


@dataclass(frozen=True)
class OpenSample(PageRequest):
    """A document that ships with the app."""

    key: str


@dataclass(frozen=True)
class OpenGenerated(PageRequest):
    """A generated story of so many tokens."""

    length: int


@dataclass(frozen=True)
class AskDocument(PageRequest):
    """A question to a document that is opened for it."""

    path: Path
    question: str


@dataclass(frozen=True)
class UseAgent(PageRequest):
    """Another agent for the documents that are open."""

    name: str


@dataclass(frozen=True)
class ChangeRun(PageRequest):
    """The question in view again: without a chunk ("forbid"), with one next ("take"), with so many steps and
    no stop ("longer"), in chunks of so many tokens ("cut"), without a review ("keep").
    """

    way: str
    value: int
