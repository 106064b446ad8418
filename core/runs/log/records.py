"""What the log holds, as frozen data.

The state of the random generator is not kept: the agent draws each step from (seed, step), which suffice.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from functools import cached_property
from itertools import accumulate
from typing import Any, Literal, get_args

from core.base.config import MAX_SEED, EpisodeConfig
from core.base.errors import BadRequest, LogError, RunNotFound
from core.base.events import RunStarted, StepTaken, Stopped, StopReason, Trace, event_to_json, fold
from core.base.types import ChunkTable, Document, DocumentKind
from core.methods.sparc.events import EndReason
from core.methods.sparc.trace import SparcTrace

FinalStatus = Literal["complete", "cancelled", "failed"]
Status = Literal["running", "complete", "cancelled", "failed"]
DetailName = Literal["answer", "cited", "sparc", "set", "imported"]
"""What may lie beside a run's steps: what was answered from them, the trace of a SPARC run, the action of
a set of RES-RAG with the JSON-LD of its documents, and all that another retriever returned."""

MAX_PAGE = 1000

MAX_DETAIL_BYTES = 1_000_000
"""Longest JSON of one detail."""


def new_run_id() -> str:
    """128 random bits as 32 hex digits: not guessable, so an id may stand in a permalink."""
    return secrets.token_hex(16)


def now() -> datetime:
    """The present moment in UTC, to the microsecond that the log keeps."""
    return datetime.now(UTC)


def moment(text: str, *, end: bool = False) -> datetime:
    """A day or a time that a person typed, in the machine's time zone unless it names one; a day stands for
    its beginning, or its `end`. Raises BadRequest.
    """
    text = text.strip()
    try:
        try:
            day = date.fromisoformat(text) + timedelta(days=end)
        except ValueError:
            return datetime.fromisoformat(text).astimezone(UTC)
        return datetime.combine(day, time()).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise BadRequest(
            f"date {text[:40]!r} is none; write it as 2026-03-31, or with a time as 2026-03-31 14:30"
        ) from error


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """Everything about a run that is known when it starts."""

    run_id: str
    """32 hex digits, see `new_run_id`."""
    method: str
    query: str
    config: dict[str, Any]
    """`EpisodeConfig.to_json()`."""
    chunking: list[dict[str, Any]]
    """Per document: chunker and max_tokens."""
    checkpoint: str
    checkpoint_fingerprint: str
    vectors: str
    """Which vectors scored the run, for example `float16 <fingerprint>`."""
    document_hashes: tuple[str, ...]
    """`Document.sha256` in workspace order."""
    n_chunks: int
    seed: int
    owner: str | None = None
    """Hash of the visitor's key; None in local mode, and for anyone who reads another's shared run."""
    parent_run_id: str | None = None
    fork_step: int | None = None
    """Steps of the parent that this run keeps."""
    label: dict[str, Any] | None = None
    """What a labelled question knows, for example {"support": [chunk ids], "answer": "..."}."""

    def __post_init__(self) -> None:
        if len(self.run_id) != 32 or set(self.run_id) - set("0123456789abcdef"):
            raise LogError(
                f"run_id={self.run_id[:40]!r} must be 32 hex digits in lower case; make one with new_run_id()"
            )
        if not 0 <= self.seed <= MAX_SEED:
            raise LogError(
                f"seed={self.seed} must be between 0 and {MAX_SEED} to be logged; choose a smaller seed"
            )
        if (self.parent_run_id is None) != (self.fork_step is None):
            raise LogError(
                "parent_run_id and fork_step belong together; give both for a child run, neither otherwise"
            )

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self) | {"document_hashes": list(self.document_hashes)}


@dataclass(frozen=True)
class LoggedDocument:
    """A document of a run. `text` and `table` are None where they were not kept (exports without text)."""

    title: str
    sha256: str
    kind: DocumentKind
    text: str | None = None
    table: ChunkTable | None = None
    withheld: bool = False
    """The run came without its text, and must not show what the log has from elsewhere."""

    def document(self) -> Document:
        """The document again. Raises LogError when its text was not kept."""
        if self.text is None:
            raise LogError(
                f"the text of document {self.title[:80]!r} was not kept with the run; open the document"
                " itself again"
            )
        return Document(self.title, self.text, self.kind)


@dataclass(frozen=True, kw_only=True)
class LoggedRun:
    """A run in the log, or on its way into or out of it. `StepScores` without positions: choices, config and
    borders give them.
    """

    record: RunRecord
    documents: tuple[LoggedDocument, ...]
    """In workspace order; `RunReader.get` leaves out their texts and tables, `finished_run` has them."""
    created_at: datetime
    finished_at: datetime | None = None
    """None while it goes on."""
    status: Status = "running"
    message: str | None = None
    events: tuple[StepTaken | Stopped, ...] = ()
    """All but the first, in order."""
    details: Mapping[DetailName, dict[str, Any]] = field(default_factory=dict)
    """JSON objects. Whoever brought the run wrote them: check their shape before use."""
    shared: bool = False
    children: tuple[str, ...] = ()
    """Ids of the reader's own runs that forked from this one, oldest first."""

    @cached_property
    def trace(self) -> Trace:
        """The events, folded. Raises LogError for a configuration of another version."""
        record = self.record
        try:
            config = EpisodeConfig.from_json(record.config)
        except (TypeError, ValueError) as error:
            raise LogError(
                f"the configuration of run {record.run_id} does not fit this program ({error}); open it with"
                " the version that made it"
            ) from error
        started = RunStarted(record.query, record.method, record.checkpoint, record.n_chunks, config)
        return fold([started, *self.events])

    @property
    def n_steps(self) -> int:
        """Actions taken."""
        return len(self.trace.steps)

    @property
    def titles(self) -> tuple[str, ...]:
        """Of the documents, in workspace order."""
        return tuple(document.title for document in self.documents)

    def without_text(self) -> LoggedRun:
        """Without texts of documents and chunks, the known answer, chunk tables, which hold headings, and
        details, which quote; titles, the question and the ids of support stay.
        """
        documents = tuple(replace(document, text=None, table=None) for document in self.documents)
        events = tuple(
            replace(event, text="") if isinstance(event, StepTaken) else event for event in self.events
        )
        record = replace(self.record, label=label_of(support_of(self), "", marked=was_marked(self)))
        return replace(self, record=record, documents=documents, events=events, details={})

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values of everything but the arrays; times in ISO 8601."""
        return {
            "record": self.record.to_json(),
            "status": self.status,
            "message": self.message,
            "created_at": self.created_at.isoformat(),
            "finished_at": self.finished_at.isoformat() if self.finished_at else None,
            "shared": self.shared,
            "n_steps": self.n_steps,
            "children": list(self.children),
            "events": [event_to_json(event) for event in self.events],
            "details": dict(self.details),
        }


@dataclass(frozen=True)
class RunRow:
    """One line of a list of runs."""

    run_id: str
    created_at: datetime
    finished_at: datetime | None
    status: Status
    message: str | None
    method: str
    query: str
    checkpoint: str
    n_chunks: int
    n_steps: int
    titles: tuple[str, ...]
    parent_run_id: str | None
    shared: bool
    seed: int
    stop_reason: StopReason | EndReason | None
    """Of a SPARC run as its trace says it. None while a run goes on, and when it was cancelled or failed."""
    n_support: int | None
    """Support chunks of a labelled question; None where they are not known."""
    n_found: int | None
    answer: str | None = None
    """What was answered from its evidence, empty for no reliable answer; None where nothing was read."""
    confidence: float | None = None
    """That the answer is right; None where there is none, or its reader gave none."""
    known_answer: str = ""
    """Empty where nobody knows it."""
    preview: bool = False
    """It searched the chunks that were embedded when it was asked, not all."""

    @property
    def hit(self) -> bool | None:
        """Whether all support is among the chunks that were kept."""
        return None if self.n_support is None else self.n_found == self.n_support

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; times in ISO 8601."""
        return asdict(self) | {
            "titles": list(self.titles),
            "created_at": self.created_at.isoformat(),
            "finished_at": self.finished_at.isoformat() if self.finished_at else None,
        }


@dataclass(frozen=True)
class RunCurve:
    """Q along one run: of the chosen chunk at each step, and of the one that was refused when it stopped."""

    chosen: tuple[float, ...]
    refused: float | None


@dataclass(frozen=True)
class RunFacets:
    """What a reader's runs differ in, each in alphabetical order."""

    methods: tuple[str, ...]
    checkpoints: tuple[str, ...]


@dataclass(frozen=True)
class RunPage:
    """Some rows, and how many there are in all."""

    rows: tuple[RunRow, ...]
    total: int

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"total": self.total, "runs": [row.to_json() for row in self.rows]}


def detail_json(name: str, value: Mapping[str, Any]) -> str:
    """A detail as the log keeps it. Raises LogError unless named, a JSON object, at most MAX_DETAIL_BYTES."""
    if name not in get_args(DetailName):
        raise LogError(
            f"detail {name[:40]!r} of a run is unknown; choose one of {', '.join(get_args(DetailName))}"
        )
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
    except (TypeError, ValueError, RecursionError) as error:
        raise LogError(f"the detail {name!r} of a run can't be written as JSON ({error})") from error
    if len(text) > MAX_DETAIL_BYTES:
        raise LogError(
            f"the detail {name!r} of a run has {len(text):,} bytes, more than {MAX_DETAIL_BYTES:,}; leave"
            " something out of it"
        )
    return text.decode()


def not_recorded(run_id: str) -> RunNotFound:
    """What somebody hears who adds to a run that takes nothing."""
    return RunNotFound(
        f"run {run_id} is not being recorded: it was not started, or is finished, and a finished run never"
        " changes"
    )


def logged_documents(
    record: RunRecord, documents: Sequence[Document], tables: Sequence[ChunkTable] | None
) -> tuple[LoggedDocument, ...]:
    """Documents with their tables, without JSON-LD and notices. Raises ValueError unless they are those of the
    record.
    """
    if tuple(document.sha256 for document in documents) != record.document_hashes:
        raise ValueError("the documents given are not those of record.document_hashes, in that order")
    columns: Sequence[ChunkTable | None] = [None] * len(documents) if tables is None else tables
    return tuple(
        LoggedDocument(document.title, document.sha256, document.kind, document.text, table)
        for document, table in zip(documents, columns, strict=True)
    )


def support_of(run: LoggedRun) -> tuple[int, ...]:
    """The support chunks that the run's label names; none where it names nothing that could be a chunk."""
    named = (run.record.label or {}).get("support", ())
    if isinstance(named, list | tuple):
        return tuple(i for i in named if type(i) is int and 0 <= i < run.record.n_chunks)
    return ()


def known_answer_of(run: LoggedRun) -> str:
    """The known answer that the run's label names; empty where it names none."""
    named = (run.record.label or {}).get("answer", "")
    return named if isinstance(named, str) else ""  # logs are brought by strangers


def was_marked(run: LoggedRun) -> bool:
    """Whether its label is what the run's owner marked."""
    return (run.record.label or {}).get("marked") is True


def label_of(support: Sequence[int], answer: str, *, marked: bool = False) -> dict[str, Any] | None:
    """What the log keeps of a labelled question; None for one without support. marked: by the run's owner."""
    label = {"support": list(support), "answer": answer, "marked": marked}
    return {name: value for name, value in label.items() if value} if support else None


@dataclass(frozen=True)
class Place:
    """Where a chunk lies."""

    document: int
    start: int
    end: int
    heading_path: tuple[str, ...]


def borders_of(documents: Sequence[LoggedDocument], n_chunks: int) -> list[int]:
    """(documents + 1) first chunk ids; empty where the tables don't say."""
    sizes = [len(document.table) for document in documents if document.table is not None]
    whole = len(sizes) == len(documents) and sum(sizes) == n_chunks
    return [0, *accumulate(sizes)] if whole else []


def place_of(chunk_id: int, documents: Sequence[LoggedDocument], borders: Sequence[int]) -> Place | None:
    """The place of a chunk; None where the borders don't say."""
    for document, first in enumerate(borders[:-1]):
        table = documents[document].table
        if table is not None and first <= chunk_id < borders[document + 1]:
            row = chunk_id - first
            start, end = int(table.start[row]), int(table.end[row])
            return Place(document, start, end, table.heading_paths[table.heading_code[row]])
    return None


def sparc_trace_of(run: LoggedRun) -> SparcTrace | None:
    """The branches of a run; None for another method's or one without texts. Raises LogError for damage."""
    value = run.details.get("sparc")
    if value is None:
        return None
    try:
        trace = SparcTrace.from_json(value)
    except BadRequest as error:
        raise LogError(f"run {run.record.run_id} can't be drawn: {error}") from error
    n = run.record.n_chunks
    named = {*trace.pool, *trace.note.chunk_ids, *(trace.stopped.evidence if trace.stopped else ())}
    if trace.started.n_chunks != n or any(not 0 <= chunk_id < n for chunk_id in named):
        raise LogError(
            f"run {run.record.run_id} can't be drawn: its trace names chunks that its documents don't have"
        )
    return trace


def readable_branches(run: LoggedRun) -> SparcTrace | None:
    """The branches of a run where they can be read."""
    try:
        return sparc_trace_of(run)
    except LogError:
        return None
