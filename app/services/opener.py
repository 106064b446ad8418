"""Where documents come from in the app.

Everything here may be hostile: files are read from the folder Gradio put them in, under the name the visitor
gave for display only.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from app.services.explorer import Explorer
from app.services.in_view import Labelled, OpenDocuments
from app.services.library import Library
from app.services.session import Session
from core.base.config import CHUNKERS
from core.base.errors import BadDocument, BadRequest
from core.base.progress import reported
from core.base.types import Document, Workspace
from core.corpus.opening import Opening, OpenProgress, Progress
from core.ingest import (
    MAX_FILE_BYTES,
    Converter,
    OnPart,
    ReadingConfig,
    default_chunker,
    read_document,
    read_documents,
    read_pasted,
)
from core.lab.tasks.documents import TextPlace
from core.lab.tasks.narrative import NarrativeQuestion, generate_narrative
from core.lab.tasks.samples import SampleQuestion, find_quote, list_samples, span_chunks
from core.runs.whatif.cuts import chunks_of

GENERATED_LENGTHS = (10_000, 100_000, 1_000_000, 10_000_000)
_STORY = "story-"
"""Before the length of a generated story, in an address."""
_PIECE = 1_000_000
"""Characters that are searched without a pause."""
MAX_FILES = 50
"""Files opened together."""
_ONE_SAMPLE = threading.Lock()
"""Who comes while the start opens the first sample finds it embedded, instead of embedding it beside it."""

R = TypeVar("R")


@dataclass(frozen=True)
class Opener:
    """What every way of opening documents needs to know; each comes to the session that has them open."""

    explorer: Explorer
    session: Session
    agent: str
    chunker: str = ""
    """Empty: as each document's kind wants."""
    max_tokens: float | None = None
    """Of a chunk; None: as the agent was trained."""
    reading: ReadingConfig = field(default_factory=ReadingConfig)
    beside: OpenDocuments | None = None
    """What new documents lie behind, and whose known questions stay; None where they replace what is open."""

    @property
    def _library(self) -> Library:
        return self.explorer.services.library

    def sample(self, key: str) -> Opening[Session]:
        """One of the documents that ship with the app. Raises BadRequest for another key."""
        began = time.perf_counter()
        samples = {sample.key: sample for sample in list_samples()}
        if key not in samples:
            raise BadRequest(f"sample {key[:80]!r} does not exist; choose one of {', '.join(samples)}")
        sample = samples[key]

        def label(workspace: Workspace) -> tuple[Labelled, ...]:
            text = workspace.documents[0].text
            return tuple(
                _labelled(q, workspace, [find_quote(text, quote) for quote in q.support])
                for q in sample.questions
            )

        document = replace(read_document(sample.path.read_bytes(), sample.path.name), title=sample.title)
        opening = self._open([self._library.ours(document, key)], began, label)
        # beside documents of a visitor's own it may take long
        with _ONE_SAMPLE if self.beside is None else nullcontext():
            return (yield from opening)

    def files(self, paths: Sequence[Path | str] | None) -> Opening[Session]:
        """Uploaded files, as one list of documents. Raises BadDocument."""
        began = time.perf_counter()
        if not paths:
            raise BadDocument("no file is chosen; drop one or more files first")
        if len(paths) > MAX_FILES:
            raise BadDocument(f"{len(paths)} files are more than {MAX_FILES}; open fewer at once")

        def read(converter: Converter, on_part: OnPart) -> list[Document]:
            documents: list[Document] = []
            for done, path in enumerate(map(Path, paths)):
                on_part(done, len(paths))
                if (size := path.stat().st_size) > MAX_FILE_BYTES:
                    most = f"{MAX_FILE_BYTES:,}"
                    raise BadDocument(f"{path.name} has {size:,} bytes, more than {most}; split it")

                def of_all(*_: int, done: int = done) -> None:
                    on_part(done, len(paths))

                # a single file tells what it consists of
                on_own = on_part if len(paths) == 1 else of_all
                documents.extend(read_documents(path.read_bytes(), path.name, converter, on_own).values())
            return documents

        return (yield from self._open((yield from self._read(read)), began))

    def content(self, data: bytes, name: str) -> Opening[Session]:
        """The bytes of one file; `name` is shown, and tells the kind where they don't. Raises BadDocument."""
        began = time.perf_counter()
        documents = yield from self._read(
            lambda converter, on_part: [*read_documents(data, name, converter, on_part).values()]
        )
        return (yield from self._open(documents, began))

    def pasted(self, text: str) -> Opening[Session]:
        """Raises BadDocument when it is blank."""
        began = time.perf_counter()
        document = yield from self._read(
            lambda converter, on_part: read_pasted(text or "", converter=converter, on_part=on_part)
        )
        return (yield from self._open([document], began))

    def generated(self, length: int) -> Opening[Session]:
        """A generated story of about `length` tokens, with questions of one to three hops."""
        if length not in GENERATED_LENGTHS:
            offered = ", ".join(f"{n:,}" for n in GENERATED_LENGTHS)
            raise BadRequest(f"length={length} is not on offer; choose one of {offered}")
        yield OpenProgress("reading", 0, 1)
        began = time.perf_counter()
        narrative = generate_narrative(length)

        def label(workspace: Workspace) -> tuple[Labelled, ...]:
            return tuple(_labelled(q, workspace, q.support) for q in narrative.questions)

        document = Document(f"Generated story, {length:,} tokens", narrative.text, "text")
        return (yield from self._open([self._library.ours(document, f"{_STORY}{length}")], began, label))

    def named(self, name: str) -> Opening[Session]:
        """What a page's address names: what is or was open, or what the project makes. Raises BadRequest."""
        try:
            return (yield from self.explorer.open_again(self.session, name))
        except BadRequest:
            origin = name.rpartition(".")[0]
            if origin in (sample.key for sample in list_samples()):
                return (yield from self.sample(origin))
            for length in GENERATED_LENGTHS:
                if origin == f"{_STORY}{length}":
                    return (yield from self.generated(length))
            raise

    def _read(self, read: Callable[[Converter, OnPart], R]) -> Opening[R]:
        """What is read of files; the time that it takes counts against the visitor's day."""
        take_time = partial(self._library.allowance.take_time, self.session.owner)

        def work(report: Progress) -> R:
            with Converter(take_time, self.reading) as converter:
                return read(converter, lambda done, total: report(OpenProgress("reading", done, total)))

        return reported(work)

    def _open(
        self,
        documents: Sequence[Document],
        began: float,
        label: Callable[[Workspace], tuple[Labelled, ...]] = lambda _: (),
    ) -> Opening[Session]:
        """Documents that were read since `began`, by the performance counter."""
        if self.beside is not None:
            before = self.beside.workspace.documents
            hashes = {document.sha256 for document in before}
            new = [document for document in documents if document.sha256 not in hashes]
            if not new:
                raise BadDocument("all of that is open already; choose something else to add")
            documents, label = [*before, *new], partial(_cut_anew, self.beside.questions)
        spent = {"reading": 1000 * (time.perf_counter() - began)}
        agents = self.explorer.services.agents
        agent = self.agent if self.session.agent_chosen else agents.choice_for(documents).checkpoint
        spec = agents.load(agent).spec
        max_tokens = None if self.max_tokens is None else int(self.max_tokens)
        chunker = next((name for name in CHUNKERS if name == self.chunker), None)
        chunkers = [chunker or default_chunker(document.kind) for document in documents]
        configs = [spec.chunk_config(one, max_tokens) for one in chunkers]
        return (yield from self.explorer.open(self.session, documents, agent, configs, label, spent))


def _labelled(
    question: SampleQuestion | NarrativeQuestion, workspace: Workspace, support: Sequence[TextPlace]
) -> Labelled:
    """A question about the first document."""
    spans = tuple((0, *span) for span in support)
    chunks = span_chunks(workspace, 0, support)
    return Labelled(question.question, question.answer, question.hops, chunks, spans)


def open_recut(explorer: Explorer, session: Session, max_tokens: int) -> Opening[Session]:
    """What is open in chunks of another size, under the same agent."""
    now = explorer.documents(session)
    spec, workspace = now.agent.spec, now.workspace
    chunkers = [
        config.chunker if config else default_chunker(document.kind)
        for config, document in zip(workspace.configs, workspace.documents, strict=True)
    ]
    configs = [spec.chunk_config(chunker, max_tokens) for chunker in chunkers]
    label = partial(_cut_anew, now.questions)
    return (yield from explorer.open(session, workspace.documents, spec.name, configs, label))


def _cut_anew(questions: Sequence[Labelled], workspace: Workspace) -> tuple[Labelled, ...]:
    """Known questions with the chunks that hold their support now."""
    return tuple(replace(one, support=chunks_of(workspace, one.spans)) for one in questions if one.spans)


def find_chunk(workspace: Workspace, wanted: str, after: int | None) -> tuple[int, str]:
    """(chunk id, which matches it holds) of a text's next place behind chunk `after`, from the top again at
    the end; "#12" is chunk 12. Raises BadRequest when there is none.
    """
    wanted = wanted.strip()
    if re.fullmatch(r"#[\d,. ]+", wanted):
        chunk_id = int(re.sub(r"\D", "", wanted) or 0)
        last = len(workspace) - 1
        if chunk_id > last:
            raise BadRequest(f"chunk {chunk_id:,} does not exist; choose between 0 and {last:,}")
        return chunk_id, ""
    if not wanted:
        raise BadRequest("type the text to find, or # and the number of a chunk")
    sought = _folded(wanted[:200])
    texts = [document.text for document in workspace.documents]
    document, row = workspace.locate(after) if after is not None else (0, -1)
    for turn in range(len(texts) + 1):  # the document that was begun in comes again last, from its top
        index = (document + turn) % len(texts)
        start = int(workspace.tables[index].end[row]) if turn == 0 and row >= 0 else 0
        at = _find(texts[index], sought, start)
        chunks = workspace.overlapping(index, at, at + len(sought)) if at >= 0 else ()
        if chunks:
            counts = [_count(text, sought) for text in texts]
            end = workspace[chunks[0]].end + len(sought) - 1  # also of one that begins in the chunk
            first, last = (sum(counts[:index]) + _count(texts[index], sought, to) for to in (at, end))
            which = f"Match {first + 1:,}" if last <= first + 1 else f"Matches {first + 1:,} to {last:,}"
            again = ", from the top again" if turn and index <= document else ""
            return chunks[0], f"{which} of {sum(counts):,}{again}."
    raise BadRequest(f"{wanted[:60]!r} does not occur in what is open; try fewer words")


def _find(text: str, sought: str, start: int) -> int:
    """Where a folded text occurs next, whatever its case, or -1. Piece by piece, so that a long text is not
    copied whole and others get their turn.
    """
    for begin in range(start, len(text), _PIECE):
        at = _folded(text[begin : begin + _PIECE + len(sought) - 1]).find(sought)
        if at >= 0:
            return begin + at
    return -1


def _count(text: str, sought: str, end: int | None = None) -> int:
    """How often a folded text occurs before `end`, whatever its case."""
    end = len(text) if end is None else end
    ends = ((begin, min(begin + _PIECE + len(sought) - 1, end)) for begin in range(0, end, _PIECE))
    return sum(_folded(text[begin:last]).count(sought) for begin, last in ends)


def _folded(text: str) -> str:
    """In lower case, of the same length; a final sigma is any sigma, since a piece may end inside a word."""
    lower = text.lower()
    if len(lower) != len(text):
        lower = "".join(character.lower()[0] for character in text)
    return lower.replace("ς", "σ")
