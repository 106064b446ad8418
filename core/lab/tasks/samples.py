"""The documents that ship with the app, and their questions.

Each file of sample_docs has a sidecar `<name>.questions.json`; support is written there as quotes, which
occur exactly once in the text that `core.ingest` reads from the file, so that hits can be shown whatever the
chunking.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from core.base.errors import BadRequest
from core.base.home import ROOT
from core.base.types import Workspace
from core.lab.tasks.documents import TextPlace

SAMPLE_FOLDER = ROOT / "sample_docs"
SAMPLE_FILES = ("river-chronicle.txt", "beacon-handbook.md", "harbour-almanac.html")


@dataclass(frozen=True, slots=True)
class SampleQuestion:
    """A question about one sample; `support` are quotes, in the order of the reasoning."""

    id: str
    question: str
    answer: str
    hops: int
    support: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """One document that ships with the app; `key` is its file name."""

    key: str
    title: str
    description: str
    path: Path
    questions: tuple[SampleQuestion, ...]


@cache
def list_samples() -> tuple[Sample, ...]:
    """All samples, the one for a first visit first."""
    return tuple(read_sample(SAMPLE_FOLDER / name) for name in SAMPLE_FILES)


def read_sample(path: Path) -> Sample:
    """A document with its sidecar, generated ones too. Raises OSError where either is missing."""
    values = json.loads(path.with_suffix(".questions.json").read_text(encoding="utf-8"))
    questions = tuple(
        SampleQuestion(**asked | {"support": tuple(asked["support"])}) for asked in values["questions"]
    )
    return Sample(path.name, values["title"], values["description"], path, questions)


def span_chunks(workspace: Workspace, document: int, spans: Iterable[TextPlace]) -> tuple[int, ...]:
    """Ids of chunks that hold a part of any span of a document, ascending; a border-crosser counts twice."""
    holding = (workspace.overlapping(document, *span) for span in spans)
    return tuple(sorted(set().union(*holding)))


def find_quote(text: str, quote: str) -> TextPlace:
    """Where `quote` first stands in `text`. Raises BadRequest when nowhere."""
    start = text.find(quote)
    if start < 0 or not quote:
        raise BadRequest(
            f"support {quote!r} is not in the document; quote its text as `ingest --text` prints it"
        )
    return start, start + len(quote)
