"""Finished runs as lines of JSON.

What exports, imports and the inbox are made of. A run is a `run` line, a `document` line for each text that
no earlier run of the file brought, its `event` and `detail` lines and an `end` line; arrays are base64 of
the log's own blobs, so nothing is lost. Whoever wrote a file is not trusted: every line has a bound, every
field a type, numbers and dates have bounds (`core.runs.log.bounds`), texts must fit their hashes, and nothing
is unpickled.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, fields
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, get_type_hints

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model

from core.base.config import ChunkConfig, EpisodeConfig
from core.base.errors import LogError, first_problem
from core.base.events import StepTaken, Stopped, event_to_json
from core.base.types import CHUNK_TYPES, Document, DocumentKind
from core.runs.log.blobs import MAX_CHUNKS, decode_table, encode_scores, encode_table, read_event
from core.runs.log.bounds import check_bounds
from core.runs.log.database import storable
from core.runs.log.records import DetailName, FinalStatus, LoggedDocument, LoggedRun, RunRecord, detail_json

MAX_LINE_BYTES = 512 << 20
"""Longest line read; a document of 10 million tokens takes some 60 MB."""

MAX_EVENTS = 100_000

MAX_TABLE_CHUNKS = 4_000_000
"""Most chunks of one document: sentences of five tokens in the longest that is read."""

MAX_SCORES = 1 << 28
"""Most Q-values of one run, 1 GiB unpacked: what is packed well could fill the memory otherwise."""

_STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class MalformedRuns(LogError):
    """A file that holds no runs, or broken ones."""


def _strict_model(cls: type, leave_out: set[str]) -> Any:
    """A checking twin of a dataclass, so that its fields are listed once."""
    hints = get_type_hints(cls)
    parts = [part for part in fields(cls) if part.name not in leave_out]
    needed = {part.name for part in parts if part.default is MISSING or part.name == "event"}
    kinds: dict[str, Any] = {
        part.name: (hints[part.name], ... if part.name in needed else part.default) for part in parts
    }
    return create_model(cls.__name__, __config__=_STRICT, **kinds)


if TYPE_CHECKING:  # made at run time, so a type checker can't follow
    _Record: TypeAlias = Any
    _Step: TypeAlias = Any
    _Stop: TypeAlias = Any
    _Chunking: TypeAlias = Any
else:
    _Record = _strict_model(RunRecord, {"owner"})
    _Step = _strict_model(StepTaken, {"scores"})
    _Stop = _strict_model(Stopped, {"scores"})
    _Chunking = _strict_model(ChunkConfig, set())


class _Checked(BaseModel):
    model_config = _STRICT


class _DocumentRef(_Checked):
    title: str
    sha256: str
    kind: DocumentKind
    table: str | None
    withheld: bool = False


class _RunLine(_Checked):
    line: Literal["run"]
    format: Literal[1]
    record: _Record
    owner: str | None
    documents: list[_DocumentRef]
    created_at: AwareDatetime


class _DocumentLine(_Checked):
    line: Literal["document"]
    sha256: str
    text: str


class _EventLine(_Checked):
    line: Literal["event"]
    event: Annotated[_Step | _Stop, Field(discriminator="event")]
    q_values: str | None


class _DetailLine(_Checked):
    line: Literal["detail"]
    name: DetailName
    value: dict[str, Any]


class _EndLine(_Checked):
    line: Literal["end"]
    status: FinalStatus
    message: str | None
    finished_at: AwareDatetime
    n_events: int


_Line: TypeAdapter[Any] = TypeAdapter(
    Annotated[_RunLine | _DocumentLine | _EventLine | _DetailLine | _EndLine, Field(discriminator="line")]
)


def run_lines(run: LoggedRun, texts_written: set[str], *, with_owner: bool = False) -> Iterator[str]:
    """The lines of a run that has ended, without texts whose hash is in `texts_written`; others are added."""
    assert run.finished_at is not None
    record = run.record.to_json()
    owner = record.pop("owner")
    yield _json(
        "run",
        format=1,
        record=record,
        owner=owner if with_owner else None,
        documents=[_reference(document) for document in run.documents],
        created_at=run.created_at.isoformat(),
    )
    for document in run.documents:
        if document.text is not None and document.sha256 not in texts_written:
            texts_written.add(document.sha256)
            yield _json("document", sha256=document.sha256, text=document.text)
    for event in run.events:
        scores = None if event.scores is None else _base64(encode_scores(event.scores.q_values))
        yield _json("event", event=event_to_json(event), q_values=scores)
    for name, value in run.details.items():
        yield _json("detail", name=name, value=value)
    ended = run.finished_at.isoformat()
    yield _json("end", status=run.status, message=run.message, finished_at=ended, n_events=len(run.events))


def _reference(document: LoggedDocument) -> dict[str, Any]:
    return {
        "title": document.title,
        "sha256": document.sha256,
        "kind": document.kind,
        "table": None if document.table is None else _base64(encode_table(document.table)),
        **({"withheld": True} if document.text is None else {}),
    }


def read_runs(path: Path, *, keep_owner: bool = False) -> Iterator[LoggedRun]:
    """The runs of a file, one by one. Raises MalformedRuns, naming the line, at the first fault."""
    pending: list[Any] = []
    brought: set[str] = set()
    number = 0
    try:
        with path.open("rb") as file:
            while line := file.readline(MAX_LINE_BYTES + 1):
                number += 1
                if len(line) > MAX_LINE_BYTES:
                    raise MalformedRuns(f"the line is longer than {MAX_LINE_BYTES:,} bytes")
                pending.append(_read(line))
                if len(pending) > MAX_EVENTS:
                    raise MalformedRuns(f"the run has more than {MAX_EVENTS:,} lines")
                if isinstance(pending[-1], _EndLine):
                    yield _finished(pending, keep_owner, brought)
                    pending = []
        if pending:
            raise MalformedRuns("the last run has no end; the file was cut short")
    except OSError as error:
        raise LogError(f"{path} can't be read ({error.strerror}); check the name") from error
    except (LogError, ValueError, TypeError) as error:
        why = first_problem(error) if isinstance(error, ValidationError) else error
        raise MalformedRuns(
            f"{path}, line {number}: {why}; only files written by 'runs export --format json' can be imported"
        ) from error
    if not number:
        raise MalformedRuns(f"{path} is empty; give a file that 'runs export --format json' wrote")


def check_lines(lines: Sequence[str]) -> None:
    """Raises MalformedRuns unless a run's lines can be read again: a log may hold what a file must not."""
    try:
        _finished([_read(line) for line in lines], True, set())
    except (LogError, ValueError, TypeError) as error:
        raise MalformedRuns(str(error)) from error


def _read(text: str | bytes) -> Any:
    line = _Line.validate_json(text)
    check_bounds(line.model_dump())
    return line


def _finished(lines: list[Any], keep_owner: bool, brought: set[str]) -> LoggedRun:
    """`brought`: hashes of texts that earlier runs of the file brought; those of this one are added."""
    head, end = lines[0], lines[-1]
    if not isinstance(head, _RunLine) or any(isinstance(line, _RunLine | _EndLine) for line in lines[1:-1]):
        raise MalformedRuns("the run does not begin with its run line")
    if head.owner is not None and not keep_owner:
        raise MalformedRuns("the run names an owner, which exports never do")
    record = RunRecord(**head.record.model_dump(), owner=head.owner)
    if not 0 < record.n_chunks <= MAX_CHUNKS:
        raise MalformedRuns(f"n_chunks={record.n_chunks} must be between 1 and {MAX_CHUNKS:,}")
    _check_record(record)
    texts = {line.sha256: line.text for line in lines if isinstance(line, _DocumentLine)}
    brought |= texts.keys() & set(record.document_hashes)
    documents = tuple(
        _document(named, texts.get(named.sha256), record.n_chunks, brought) for named in head.documents
    )
    if tuple(document.sha256 for document in documents) != record.document_hashes:
        raise MalformedRuns("the documents are not those of document_hashes, in that order")
    _check_tables(documents, record.n_chunks)
    event_lines = [line for line in lines if isinstance(line, _EventLine)]
    n_scores = record.n_chunks * sum(line.q_values is not None for line in event_lines)
    if n_scores > MAX_SCORES:
        raise MalformedRuns(f"the run has {n_scores:,} Q-values, more than {MAX_SCORES:,}")
    events = tuple(_event(line, record.n_chunks) for line in event_lines)
    _check_order(events, end.n_events, record)
    return LoggedRun(
        record=record,
        documents=documents,
        created_at=head.created_at.astimezone(UTC),
        finished_at=end.finished_at.astimezone(UTC),
        status=end.status,
        message=end.message,
        events=events,
        details=_details([line for line in lines if isinstance(line, _DetailLine)]),
    )


def _details(lines: list[_DetailLine]) -> dict[DetailName, dict[str, Any]]:
    details: dict[DetailName, dict[str, Any]] = {}
    for line in lines:
        if line.name in details:
            raise MalformedRuns(f"the run has two details {line.name!r}")
        detail_json(line.name, line.value)
        details[line.name] = line.value
    return details


def _check_record(record: RunRecord) -> None:
    """What the views rely on: a configuration, chunking and label that belong to the documents."""
    config, support = EpisodeConfig.from_json(record.config), (record.label or {}).get("support", [])
    if not isinstance(support, list) or not all(type(chunk_id) is int for chunk_id in support):
        raise MalformedRuns("label.support must be a list of chunk ids")
    for chunk_id in (*support, *config.forbidden, *(chunk_id for _, chunk_id in config.forced)):
        if not 0 <= chunk_id < record.n_chunks:
            raise MalformedRuns(f"chunk {chunk_id} must be between 0 and {record.n_chunks - 1}")
    plain = config.to_json()
    for name, setting in record.config.items():  # reading makes a number of "4", other readers don't
        if setting != plain[name]:
            raise MalformedRuns(f"config.{name} must be written {json.dumps(plain[name])}")
    config.check_searched(record.n_chunks)
    for values in record.chunking:
        if values != {"chunker": "given"}:
            ChunkConfig(**_Chunking(**values).model_dump())


def _check_tables(documents: tuple[LoggedDocument, ...], n_chunks: int) -> None:
    tables = [document.table for document in documents if document.table is not None]
    if len(tables) == len(documents) and sum(map(len, tables)) != n_chunks:
        raise MalformedRuns(f"the chunk tables have {sum(map(len, tables))} chunks instead of {n_chunks}")
    for document in documents:
        table = document.table
        if table is None or not len(table):
            continue
        starts, ends, headings = table.start, table.end, table.heading_code
        # else a short text could hold chunks without end
        apart = (starts <= ends).all() and (ends[:-1] <= starts[1:]).all()
        inside = starts.min() >= 0 and (document.text is None or ends.max() <= len(document.text))
        kinds = table.type_code.max() < len(CHUNK_TYPES) and table.n_tokens.min() >= 0
        if not (
            apart and inside and kinds and 0 <= headings.min() <= headings.max() < len(table.heading_paths)
        ):
            raise MalformedRuns(f"the chunk table of document {document.title[:80]!r} does not fit its text")


def _document(reference: _DocumentRef, text: str | None, n_chunks: int, brought: set[str]) -> LoggedDocument:
    if text is not None and Document(reference.title, text, reference.kind).sha256 != reference.sha256:
        raise MalformedRuns(f"the text of document {reference.title[:80]!r} does not fit its hash")
    most = min(n_chunks, MAX_TABLE_CHUNKS)
    table = None if reference.table is None else decode_table(_bytes(reference.table), most)
    withheld = reference.withheld or reference.sha256 not in brought
    return LoggedDocument(reference.title, reference.sha256, reference.kind, text, table, withheld)


def _event(line: _EventLine, n_chunks: int) -> StepTaken | Stopped:
    blob = None if line.q_values is None else _bytes(line.q_values)
    event = read_event(line.event.model_dump(), blob, n_chunks)
    if event.chunk_id is not None and not 0 <= event.chunk_id < n_chunks:
        raise MalformedRuns(f"chunk {event.chunk_id} must be between 0 and {n_chunks - 1}")
    return event


def _check_order(events: tuple[StepTaken | Stopped, ...], n_events: int, record: RunRecord) -> None:
    steps = [event.step for event in events if isinstance(event, StepTaken)]
    first = steps[0] if steps else 1
    if steps != list(range(first, first + len(steps))) or not 1 <= first <= (record.fork_step or 0) + 1:
        raise MalformedRuns("the steps are not numbered one after the other")
    if any(isinstance(event, Stopped) for event in events[:-1]) or n_events != len(events):
        raise MalformedRuns(
            f"there are {len(events)} events instead of {n_events}, or some after the end of the run"
        )
    if events and isinstance(events[-1], Stopped):
        _check_end(events[-1], steps[-1] if steps else record.fork_step or 0, record.n_chunks)


def _check_end(stopped: Stopped, n_steps: int, n_chunks: int) -> None:
    """All steps are counted, a review has a value a step, and nothing is taken back without one."""
    if stopped.n_steps != n_steps:
        raise MalformedRuns(f"the run stopped after {stopped.n_steps} steps instead of {n_steps}")
    inside = all(0 <= chunk_id < n_chunks for chunk_id in stopped.taken_back)
    if len(stopped.review) not in (0, n_steps) or len(stopped.taken_back) > len(stopped.review) or not inside:
        raise MalformedRuns(
            f"the review of {len(stopped.review)} choices, {len(stopped.taken_back)} taken back, does not fit"
            f" the {n_steps} steps"
        )


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise MalformedRuns(f"an array is no base64 ({error})") from error


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


_LINE_ENDS = ("\u0085", "\u2028", "\u2029")
"""What some readers take for the end of a line, and JSON doesn't escape by itself."""


def _json(line: str, **values: Any) -> str:
    text = storable(json.dumps({"line": line, **values}, ensure_ascii=False, allow_nan=False))
    for character in _LINE_ENDS:
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text + "\n"
