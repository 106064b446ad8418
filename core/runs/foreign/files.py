"""Runs of other retrievers, as their files have them.

A TREC run with its queries, passages and qrels; lines of JSON; OpenInference spans, as OTLP or as Phoenix
exports them. What a file is, is read off its first lines. Everything in it is untrusted: numbers of runs and
passages are bounded, fields have types. What can't be read is left out and told, run by run.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

from pydantic import AliasChoices, BaseModel, Field, ValidationError, model_validator

from core.base.config import MAX_QUERY_CHARACTERS, check_query
from core.base.errors import BadRequest, first_problem
from core.ingest import MAX_FILE_BYTES
from core.runs.log.bounds import MAX_FLOAT, MAX_MILLISECONDS

MAX_RUNS = 2_000
"""Also of lines, spans and runs that are left out."""
MAX_RETURNED = 1_000
"""Passages of one call, as TREC has them."""
_Score = Annotated[float, Field(ge=-MAX_FLOAT, le=MAX_FLOAT, allow_inf_nan=False)]
_ID_PATTERN = re.compile(r"[\w.@ +/-]{1,60}")
_TEXT = ("text", "content", "page_content", "passage", "passage_text", "contents", "body", "chunk")
_NAME = ("name", "id", "_id", "id_", "docid", "doc_id", "node_id", "title")
_SOURCE = ("title", "source", "file_name", "file_path", "doc_id")
_INSIDE = tuple(
    f"{inside}.{name}"
    for inside in ("metadata", "meta")
    for name in ("source", "file_name", "file_path", "title")
)
"""Where LangChain, LlamaIndex and Haystack say of which document a passage is."""
_TEXT_INSIDE = tuple(f"metadata.{name}" for name in _TEXT)
"""Where Pinecone has it."""
_AT = ("start_char_idx", "metadata.start_index", "split_idx_start", "meta.split_idx_start")
"""Where LlamaIndex, LangChain and Haystack say at which character a passage begins."""
_PLACE = ("chunk_id", "start", "end")
_SCORE = ("score", "similarity", "relevance_score", "_score")
_SAYS_WHICH = frozenset((*_TEXT, *_TEXT_INSIDE, *_NAME, "chunk_id", "start"))
_WRAPPING = re.compile(r"^(?:(?:node|document|kwargs|payload|_source)\.)+")
_REPR = re.compile(r"<?(?:NodeWithScore|Document)\(")
"""How a passage begins that a tracer wrote as Python prints it."""
_INK = re.compile(r"\S")
_EXPORT = re.compile(r'\s*\{"line": ?"run"')
"""How a file begins that `runs export --format json` wrote."""


class ForeignPassage(BaseModel):
    """What says which passage was returned: its text, its place, or a name."""

    text: str = Field("", validation_alias=AliasChoices(*_TEXT, *_TEXT_INSIDE))
    name: str = Field("", validation_alias=AliasChoices(*_NAME), coerce_numbers_to_str=True)
    title: str = Field("", validation_alias=AliasChoices(*_SOURCE, *_INSIDE), coerce_numbers_to_str=True)
    """Of the document, or the path of its file."""
    chunk_id: int | None = None
    document: int | None = None
    """Among the opened ones; None: the first, where a place is given."""
    start: int | None = None
    end: int | None = None
    score: _Score | None = Field(None, validation_alias=AliasChoices(*_SCORE, "distance"))
    is_distance: bool = False
    """Whether the score is one, and less is better."""

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        """An object of a text, a chunk id, a pair of offsets, or a pair of passage and score; of an object
        what it wraps, without what is empty.
        """
        if isinstance(value, str):
            return {"chunk_id": int(value)} if value.isdecimal() and len(value) < 9 else {"text": value}
        if type(value) is int:
            return {"chunk_id": value}
        if isinstance(value, list) and len(value) == 2 and not isinstance(value[1], str | list | dict):
            if not isinstance(value[0], str | dict):
                return {"start": value[0], "end": value[1]}
            value = {**(value[0] if isinstance(value[0], dict) else {"text": value[0]}), "score": value[1]}
        if isinstance(value, list):
            raise ValueError(
                f"{str(value)[:80]} is a list of {len(value)}, not a pair of offsets or of a text and its"
                " score; give each passage by itself"
            )
        if not isinstance(value, dict):
            raise ValueError(f"{str(value)[:80]} must be a text, a chunk id, a pair of offsets or an object")
        flat: dict[str, Any] = {}
        leaves = dict(_flat(value, with_lists=False))
        for key in sorted(leaves, key=lambda key: bool(_WRAPPING.match(key))):  # its own before what it wraps
            name = _WRAPPING.sub("", key)
            flat[name] = leaves[key] if flat.get(name) in (None, "") else flat[name]
        if _SAYS_WHICH.isdisjoint(flat) and not isinstance(flat.get("document"), str):
            raise ValueError(f"an object of {', '.join(flat)[:80]} names no text, id or place")
        return _placed({key: part for key, part in flat.items() if part is not None and part != ""})

    @model_validator(mode="after")
    def _forward(self) -> ForeignPassage:
        if self.start is not None and self.end is not None and self.start >= self.end:
            raise ValueError(f"offsets {self.start} to {self.end} hold no text")
        return self


def _placed(flat: dict[str, Any]) -> dict[str, Any]:
    """With what frameworks say of a passage's document and place, and whether its score is a distance."""
    named, text = flat.get("document"), next((flat[name] for name in _TEXT if name in flat), None)
    if isinstance(named, str) and not named.isdecimal():
        flat.setdefault("text" if text is None and flat.keys().isdisjoint(_PLACE) else "title", named)
        del flat["document"]
    at = next((flat[name] for name in _AT if name in flat), None)
    if isinstance(text, str) and type(at) is int and at >= 0 and flat.keys().isdisjoint(_PLACE):
        flat |= {"start": at, "end": at + len(text)}
    flat["is_distance"] = "distance" in flat and flat.keys().isdisjoint(_SCORE)
    return flat


@dataclass(frozen=True)
class ForeignCall:
    """One call of a retriever: what it was asked, and what it returned, best first."""

    query: str
    passages: tuple[ForeignPassage, ...]
    milliseconds: float = 0.0


@dataclass(frozen=True)
class ForeignRun:
    """A question and the calls that were made for it."""

    query: str
    calls: tuple[ForeignCall, ...]
    method: str
    answer: str | None = None
    gold: tuple[ForeignPassage, ...] = ()
    known_answer: str = ""


_Passages = Annotated[list[ForeignPassage], Field(max_length=MAX_RETURNED)]
_RETRIEVED = ("retrieved", "retrieved_contexts", "contexts", "passages", "documents", "chunks")


class _Line(BaseModel):
    """A run as a line of JSON; also by the names that Ragas and others have."""

    query: str = Field(validation_alias=AliasChoices("query", "question", "user_input"))
    retrieved: _Passages = Field(validation_alias=AliasChoices(*_RETRIEVED))
    scores: list[_Score | None] | None = None
    method: str = ""
    answer: str | None = Field(None, validation_alias=AliasChoices("answer", "response"))
    gold: _Passages = Field([], validation_alias=AliasChoices("gold", "support", "reference_contexts"))
    known_answer: str = Field("", validation_alias=AliasChoices("known_answer", "reference", "ground_truth"))
    milliseconds: float = Field(0.0, ge=0, le=MAX_MILLISECONDS, allow_inf_nan=False)


@dataclass
class _Parts:
    """What runs are put together from: texts and gold by id, for the ids of a TREC run; spans."""

    queries: dict[str, str] = field(default_factory=dict)
    passages: dict[str, str] = field(default_factory=dict)
    gold: dict[str, list[str]] = field(default_factory=dict)
    spans: list[_Span] = field(default_factory=list)
    n_left_out: int = 0
    fault: BadRequest | None = None
    """Why the first of those was left out."""

    def leave_out(self, fault: BadRequest) -> None:
        """Raises BadRequest where too much was."""
        self.n_left_out += 1
        self.fault = self.fault or fault
        if self.n_left_out > MAX_RUNS:
            raise self.fault

    @contextmanager
    def leaving_out(self) -> Iterator[None]:
        """For a line, a span or a run: it is left out where BadRequest is raised."""
        try:
            yield
        except BadRequest as fault:
            self.leave_out(fault)


def read_foreign(
    files: Mapping[str, bytes], method: str = "", on_fault: Callable[[str], object] | None = None
) -> list[ForeignRun]:
    """The runs of files by their names. `method`: what made them; empty: as they or the file's name say.
    `on_fault`: gets a sentence on the lines, spans and runs that can't be read, if others can; without it
    nothing is left out. Raises BadRequest.
    """
    parts, runs, trec = _Parts(), list[ForeignRun](), dict[str, str]()
    for name, data in files.items():
        try:
            content = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise BadRequest(f"{name} is no UTF-8 text (byte {error.start}); save it as UTF-8") from error
        head = content[:2_000].lstrip()
        if not head:
            raise BadRequest(f"{name} is empty; give a file that holds runs")
        if _EXPORT.match(head):
            raise BadRequest(f"{name} was written by runs export; take it in with runs import")
        first = head.split("\n")[0].split()
        if head[0] in "[{":
            runs += _of_json(_objects(content, name, parts), name, method or name.rsplit(".", 1)[0], parts)
        elif len(first) == 6 and (first[1].upper() == "Q0" or not _are_queries(name)):
            trec[name] = content
        else:
            _take_columns(content, name, parts)
    for name, content in trec.items():
        runs += _of_trec(content, name, method, parts)
    runs += _of_spans(parts)
    if len(runs) > MAX_RUNS:
        raise BadRequest(f"{len(runs):,} runs are more than {MAX_RUNS:,}; import them in several files")
    read = list[ForeignRun]()
    for run in runs:
        with parts.leaving_out():
            read.append(checked_run(run))
    if parts.fault is not None and (on_fault is None or not read):
        raise parts.fault
    if not read:
        raise BadRequest(
            "no run is in what was given; give a TREC run, lines of JSON, or OpenInference spans"
        )
    if parts.fault is not None and on_fault is not None:
        on_fault(f"Entries that can't be read, left out: {parts.n_left_out:,}; the first: {parts.fault}.")
    return read


def files_of(paths: Sequence[Path]) -> dict[str, bytes]:
    """What files hold, by their names. Raises BadRequest, also for two of one name."""
    for name, count in Counter(path.name for path in paths).items():
        if count > 1:
            raise BadRequest(f"{count} files are called {name}, by which runs are told apart; rename them")
    return {path.name: file_bytes(path) for path in paths}


def file_bytes(path: Path) -> bytes:
    """Raises BadRequest for what can't be read or is too long."""
    try:
        if (size := path.stat().st_size) > MAX_FILE_BYTES:
            raise BadRequest(f"{path.name} has {size:,} bytes, more than {MAX_FILE_BYTES:,}; split it")
        return path.read_bytes()
    except OSError as error:
        raise BadRequest(f"{path} can't be read ({error.strerror}); name a readable file") from error


def is_export(path: Path) -> bool:
    """Whether `runs export --format json` wrote a file."""
    with path.open("rb") as file:
        return bool(_EXPORT.match(file.read(100).decode(errors="replace")))


def checked_run(run: ForeignRun) -> ForeignRun:
    """With a name that fits into lists, and no blank answer. Raises BadRequest for too many passages, and for
    a question that is none.
    """
    name = "".join(_ID_PATTERN.findall(run.method))[:60].strip() or "retriever"
    if (most := max((len(call.passages) for call in run.calls), default=0)) > MAX_RETURNED:
        raise BadRequest(
            f"{run.query[:80]!r} has {most:,} passages of {name}, more than {MAX_RETURNED:,}; keep the best"
        )
    query = check_query(run.query)
    return replace(run, query=query, method=name, answer=(run.answer or "").strip() or None)


def _question(query: str, where: str) -> str:
    """As `check_query`, with the place in its sentence. Raises BadRequest."""
    try:
        return check_query(query)
    except BadRequest as error:
        words = str(error).replace("; type one", "; give one in the file, or leave this out of it")
        raise BadRequest(f"{where}: {words}") from error


def _problem(error: ValidationError) -> str:
    return first_problem(error).replace("Value error, ", "").replace("Input should", "must")


def _are_queries(name: str) -> bool:
    """Whether a file is called as one of queries."""
    return bool(re.search("quer|topic", name.lower())) and "qrel" not in name.lower()


def _read(text: str) -> Any:
    """What a text is as JSON; itself where it's none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _objects(content: str, name: str, parts: _Parts) -> list[Any]:
    """The JSON objects of a file: one behind another, in lists, or in what Phoenix answers, page by page;
    behind what is no JSON, those that have a line to themselves.
    """
    found, at = list[Any](), 0
    try:
        while ink := _INK.search(content, at):
            at = ink.start()
            value, at = json.JSONDecoder().raw_decode(content, at)
            found.append(value)
    except (ValueError, RecursionError) as error:
        fault = BadRequest(f"{name} is no valid JSON ({str(error)[:100]}); correct it")
        for line in filter(str.strip, content[at:].split("\n")):
            if isinstance(value := _read(line), dict):
                found.append(value)
            else:
                parts.leave_out(fault)
        if not found:
            raise fault from error
    if isinstance(found[0], dict) and _is_frame(found[0]):
        raise BadRequest(
            f'{name} is a data frame by columns or index; write it with to_json(orient="records")'
        )
    objects = list[Any]()
    for value in found:
        is_page = isinstance(value, dict) and value.keys().isdisjoint(_RETRIEVED)
        inside = value.get("data") if is_page else value
        objects += inside if isinstance(inside, list) else [value]
    return objects


def _is_frame(value: dict[str, Any]) -> bool:
    """Whether spans are a data frame's columns or rows by name, as pandas writes them if not told how."""
    if "columns" in value and "data" in value:
        return True
    rows = [value, next(iter(value.values()), None)]
    return all(isinstance(part, dict) for part in value.values()) and any(
        isinstance(row, dict) and any(key.startswith("attributes.") for key in row) for row in rows
    )


def _of_json(objects: Sequence[Any], name: str, stem: str, parts: _Parts) -> Iterator[ForeignRun]:
    for number, value in enumerate(objects, start=1):
        where = f"entry {number} of {name}"
        with parts.leaving_out():
            if not isinstance(value, dict):
                raise BadRequest(f"{where} is no JSON object; correct it")
            if not (value.keys().isdisjoint(_RETRIEVED) and _take_part(value, where, name, stem, parts)):
                yield _of_line(value, where, stem)


def _take_part(value: dict[str, Any], where: str, name: str, stem: str, parts: _Parts) -> bool:
    """Spans, a query or a passage; False for what is none of them. Raises BadRequest."""
    if "resourceSpans" in value:
        with _otlp(where):
            scopes = [scope for resource in value["resourceSpans"] for scope in resource["scopeSpans"]]
            spans = [span for scope in scopes for span in scope["spans"]]
        for number, span in enumerate(spans, start=1):
            with parts.leaving_out(), _otlp(f"span {number} of {where}"):
                parts.spans.append(_of_otlp(span, stem))
    elif isinstance(value.get("attributes"), list) and not value.keys().isdisjoint(("traceId", "trace_id")):
        with _otlp(where):  # Phoenix has names with underscores
            parts.spans.append(_of_otlp({_camel(key): part for key, part in value.items()}, stem))
    elif "attributes" in value or any(key.startswith("attributes.") for key in value):
        parts.spans.append(_of_phoenix(value, stem))
    elif "_id" in value and "text" in value:
        by_id = parts.queries if _are_queries(name) else parts.passages
        by_id[str(value["_id"])] = str(value["text"]).encode("utf-8", "replace").decode()
    else:
        return False
    return True


def _joined(value: dict[str, Any]) -> dict[str, Any]:
    """With what the component put out that found documents, as pipelines of Haystack name it; not of two."""
    found = [part for part in value.values() if isinstance(part, dict) and "documents" in part]
    return {**found[0], **value} if len(found) == 1 else value


def _of_line(value: dict[str, Any], where: str, stem: str) -> ForeignRun:
    try:
        line = _Line.model_validate({key: part for key, part in _joined(value).items() if part is not None})
    except ValidationError as error:
        raise BadRequest(
            f'{where}: {_problem(error)}; a run has "query" and "retrieved", a list of texts,'
            " chunk ids or offsets"
        ) from error
    passages = line.retrieved
    if line.scores is not None:
        if len(line.scores) != len(passages):
            raise BadRequest(
                f"{where} has {len(line.scores)} scores for {len(passages)} passages; give as many"
            )
        pairs = zip(passages, line.scores, strict=True)
        passages = [passage.model_copy(update={"score": score}) for passage, score in pairs]
    call = ForeignCall(line.query, tuple(passages), line.milliseconds)
    query, gold, method = _question(line.query, where), tuple(line.gold), line.method or stem
    return ForeignRun(query, (call,), method, line.answer, gold, line.known_answer)


_HEADS = ("query-id", "query_id", "qid", "topic")


def _take_columns(content: str, name: str, parts: _Parts) -> None:
    """Qrels, with BEIR's head or without, and queries as lines of an id and a text. Raises BadRequest."""
    for number, line in enumerate(content.split("\n"), start=1):
        columns = line.split()
        if _are_queries(name) and len(columns) > 1:
            parts.queries[columns[0]] = line.strip()[len(columns[0]) :].strip()
        elif len(columns) in (3, 4) and re.fullmatch(r"-?\d+(\.\d*)?", columns[-1]):
            if float(columns[-1]) > 0:
                parts.gold.setdefault(columns[0], []).append(columns[-2])
        elif columns and (number > 1 or columns[0].lower() not in _HEADS):
            told = "is no TREC run (6 columns), qrels (4 or 3) or JSON; correct it"
            parts.leave_out(BadRequest(f"line {number} of {name} {told}"))


def _of_trec(content: str, name: str, method: str, parts: _Parts) -> Iterator[ForeignRun]:
    """A run a tag and query, by rank, then score. Raises BadRequest."""
    calls: dict[tuple[str, str], list[tuple[float, float, str]]] = {}
    for number, line in enumerate(content.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            query_id, _, passage_id, *numbers, tag = line.split()
            rank, score = map(float, numbers)
            if not (abs(rank) <= MAX_FLOAT and abs(score) <= MAX_FLOAT):
                raise ValueError(rank, score)
            calls.setdefault((tag, query_id), []).append((rank, -score, passage_id))
        except ValueError:
            told = "needs query, Q0, passage, rank, score, name; correct it"
            parts.leave_out(BadRequest(f"line {number} of {name} {told}"))

    def passage(name: str, score: float | None = None) -> ForeignPassage:
        told = {"name": name, "text": parts.passages.get(name, ""), "score": score}
        return ForeignPassage.model_validate(told)

    for (tag, query_id), found in calls.items():
        where = f"query {query_id[:80]!r} of {name}"
        with parts.leaving_out():
            if query_id not in parts.queries:
                raise BadRequest(
                    f"{where} has no words; give its file of queries, too, with quer or topic in its name"
                    f' (queries.jsonl, say) and a line {{"_id": "{query_id[:80]}", "text": "..."}} each'
                )
            query = _question(parts.queries[query_id], where)
            returned = tuple(passage(name, -score) for _, score, name in sorted(found))
            gold = tuple(passage(name) for name in parts.gold.get(query_id, ()))
            yield ForeignRun(query, (ForeignCall(query, returned),), method or tag, gold=gold)


# OpenInference

_SAYS = ("messages", "message", "content", "text", "kwargs")
_QUESTION = ("query", "question", "input", "user_input", "query_str", "query_bundle", *_SAYS)
_ANSWER = ("answer", "output", "response", "result", *_SAYS)


@dataclass(frozen=True)
class _Span:
    trace: str
    name: str
    """By which others call it their parent."""
    parent: str
    start: str
    """Sorts as its time."""
    attributes: Mapping[str, Any]
    """Leaves by their paths."""
    stem: str
    milliseconds: float = 0.0

    @property
    def kind(self) -> str:
        return self.raw("openinference.span.kind")

    def raw(self, key: str) -> str:
        """An attribute as it is; empty where there is none."""
        return str(self.attributes.get(key, ""))

    def words(self, key: str, names: Sequence[str]) -> str:
        """What it says, also where it is JSON around that; empty where the JSON has none of the names."""
        value = _read(self.raw(key))
        try:
            return _said(value, names) if isinstance(value, str | list | dict) else self.raw(key)
        except RecursionError:
            return ""


def _said(value: Any, names: Sequence[str]) -> str:
    """The first text under one of the names, in objects within objects, or under "data", where Haystack has
    an object a component; of a list, its last entry's.
    """
    if isinstance(value, list):
        return _said(value[-1], names) if value else ""
    if isinstance(value, dict):
        data = value.get("data")
        parts = chain(map(value.get, names), data.values() if isinstance(data, dict) else ())
        return next(filter(None, (_said(part, names) for part in parts)), "")
    return value if isinstance(value, str) else ""


@contextmanager
def _otlp(where: str) -> Iterator[None]:
    """For what should be OTLP. Raises BadRequest where it isn't."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise BadRequest(f"{where} is no OTLP as JSON ({str(error)[:80]}); export it anew") from error


def _of_otlp(span: Mapping[str, Any], stem: str) -> _Span:
    attributes = {one["key"]: _plain(one["value"]) for one in span.get("attributes", ())}
    start, end = (int(span.get(f"{edge}TimeUnixNano") or 0) for edge in ("start", "end"))
    took = min(max(0, end - start) / 1e6, MAX_MILLISECONDS)
    own, parent = (_id(span.get(name)) for name in ("spanId", "parentSpanId"))
    return _Span(str(span["traceId"]), own, parent, f"{start:020}", _leaves(attributes), stem, took)


def _id(value: Any) -> str:
    """Of a span; one of zeros is none."""
    return str(value or "").strip("0")


def _camel(name: str) -> str:
    return re.sub("_([a-z])", lambda match: match[1].upper(), name)


def _plain(value: Mapping[str, Any]) -> Any:
    """A value of OTLP without its type."""
    inner: Any = next(iter(value.values()), None)
    kind = _camel(next(iter(value), ""))
    if kind == "arrayValue":
        return [_plain(one) for one in inner.get("values", ())]
    if kind == "kvlistValue":
        return {one["key"]: _plain(one["value"]) for one in inner.get("values", ())}
    return float(inner) if kind == "doubleValue" else inner  # "NaN" is a text there


def _of_phoenix(value: Mapping[str, Any], stem: str) -> _Span:
    """A span as Phoenix answers over HTTP, or as a row of its data frame."""
    flat = _leaves(value)
    attributes = {
        key.removeprefix("attributes."): part for key, part in flat.items() if key.startswith("attributes.")
    }
    attributes.setdefault("openinference.span.kind", flat.get("span_kind", ""))
    trace, start = (str(flat.get(key, "")) for key in ("context.trace_id", "start_time"))
    own, parent = (_id(flat.get(key)) for key in ("context.span_id", "parent_id"))
    took = _milliseconds(flat.get("start_time"), flat.get("end_time"))
    return _Span(trace, own, parent, start, attributes, stem, took)


def _milliseconds(start: Any, end: Any) -> float:
    """Between two times in ISO 8601, or in milliseconds as data frames write them; 0 where they are none."""
    try:
        if isinstance(start, str):
            took = (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds() * 1000
        else:
            took = float(end) - float(start)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return min(max(0.0, took), MAX_MILLISECONDS)


def _leaves(value: Any) -> dict[str, Any]:
    """As `_flat`, without what is None or no number, as in data frames; of retrieved documents it's None."""
    leaves = (
        (key, None if isinstance(part, float) and not math.isfinite(part) else part)
        for key, part in _flat(value)
    )
    return {key: part for key, part in leaves if part is not None or _DOCUMENT.search(key)}


def _flat(value: Any, name: str = "", depth: int = 0, with_lists: bool = True) -> Iterator[tuple[str, Any]]:
    """Every leaf by its path, parts joined by dots; also of documents and metadata that are JSON as text."""
    inner: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, str) and name.endswith((_DOCUMENTS, "metadata")):
        value = _read(value)
    if isinstance(value, dict):
        inner = value.items()
    elif isinstance(value, list):
        inner = enumerate(value) if with_lists else ()
    else:
        yield name, value
    for key, part in inner if depth < 12 else ():
        yield from _flat(part, f"{name}.{key}" if name else str(key), depth + 1, with_lists)


_DOCUMENTS = "retrieval.documents"
_DOCUMENT = re.compile(r"retrieval\.documents\.(\d{1,5})(?:\.(.+))?")


def _of_spans(parts: _Parts) -> Iterator[ForeignRun]:
    traces: dict[str, list[_Span]] = {}
    for span in sorted(parts.spans, key=lambda span: span.start):
        traces.setdefault(span.trace, []).append(span)
    for name, trace in traces.items():
        with parts.leaving_out():
            if calls := _calls(trace):
                yield _of_trace(name, trace, calls)


def _of_trace(name: str, trace: Sequence[_Span], calls: Sequence[ForeignCall]) -> ForeignRun:
    """A run a trace, a call a RETRIEVER span. Raises BadRequest."""
    root = next((span for span in trace if not span.parent), None)
    query = _question(_asked(root, calls, trace), f"trace {name[:80]!r}")
    calls = [replace(call, query=call.query or query) for call in calls]
    models = [span for span in trace if span.kind == "LLM" and not _fills_a_template(span)]
    said = {*filter(None, map(_generated, models))}
    answer = root.words("output.value", _ANSWER) if root else ""
    if not answer and len(said) == 1:
        [answer] = said
    # a retriever may ask a model for other questions
    is_answered = models and not (root and root.kind == "RETRIEVER")
    return ForeignRun(query, tuple(calls), trace[0].stem, answer if is_answered else None)


def _asked(root: _Span | None, calls: Sequence[ForeignCall], trace: Sequence[_Span]) -> str:
    """The question: the root's, a call's, one that was embedded; else what a retriever got, if no vector."""
    asked = [root.words("input.value", _QUESTION) if root else "", *(call.query for call in calls)]
    for span in trace if not any(asked) else ():
        if span.kind == "EMBEDDING":
            text = span.raw("embedding.embeddings.0.embedding.text")
            asked.append(text or span.words("input.value", _QUESTION))
    raw = (span.raw("input.value") for span in trace if span.kind == "RETRIEVER")
    asked += [words for words in raw if "embedding" not in words]
    return next((words for words in asked if 0 < len(words.strip()) <= MAX_QUERY_CHARACTERS), asked[0])


def _fills_a_template(span: _Span) -> bool:
    """As a prompt builder of Haystack, which its tracer takes for a model."""
    is_model = span.raw("llm.model_name") or any(map(span.raw, _GENERATED))
    return "llm.prompt_template.template" in span.attributes and not is_model


_MESSAGE = "llm.output_messages.0.message"
_GENERATED = (f"{_MESSAGE}.content", f"{_MESSAGE}.contents.0.message_content.text")
"""What a model said, whole or as the first of several parts."""


def _generated(span: _Span) -> str:
    said = next(filter(None, map(span.raw, _GENERATED)), "")
    return said or span.words("output.value", _ANSWER) or span.raw("output.value")


def _calls(trace: Sequence[_Span]) -> list[ForeignCall]:
    """Of retrievers within others (LlamaIndex' _retrieve, an ensemble's), the outermost with documents."""
    known = {span.name for span in trace}
    inside: dict[str, list[_Span]] = {}
    for span in trace:
        inside.setdefault(span.parent if span.parent in known else "", []).append(span)
    found = list[tuple[_Span, ForeignCall]]()
    without: dict[str, tuple[_Span, ForeignCall]] = {}
    waiting = [(span, "") for span in inside.pop("", ())]
    for span, above in waiting:  # grows; `above` is the outermost retriever so far, which had no documents
        if span.kind == "RETRIEVER":
            call = _call(span)
            if call.passages:
                found.append((span, call))
                without.pop(above, None)
                continue
            if not above:
                above = span.name or f"no name {len(without)}"
                without[above] = span, call
        waiting += [(one, above) for one in inside.pop(span.name, ())]
    return [call for _, call in sorted([*found, *without.values()], key=lambda one: one[0].start)]


def _call(span: _Span) -> ForeignCall:
    """Raises BadRequest for documents that can't be read."""
    leaves, where = span.attributes, f"the retrieved documents of trace {span.trace[:80]!r} can't be read"
    if not any(key.startswith(_DOCUMENTS) for key in leaves):
        output = _read(span.raw("output.value"))  # where tracers of LangChain leave them
        listed = _joined(output).get("documents") if isinstance(output, dict) else output
        listed = listed if isinstance(listed, list) else []
        told = [one for one in listed if not (isinstance(one, str) and _REPR.match(one))]
        leaves = _leaves({_DOCUMENTS: told})
    documents: dict[int, dict[str, Any]] = {}
    for key, value in leaves.items():
        if match := _DOCUMENT.fullmatch(key):
            documents.setdefault(int(match[1]), {})[match[2] or "text"] = value
    if not documents and any(key.startswith(_DOCUMENTS) for key in leaves):
        raise BadRequest(f"{where}; export the spans as OTLP in JSON, or from Phoenix")
    try:
        returned = [ForeignPassage.model_validate(documents[i]) for i in sorted(documents)]
    except ValidationError as error:
        raise BadRequest(f"{where} ({_problem(error)}); correct it, or leave the trace out") from error
    return ForeignCall(span.words("input.value", _QUESTION), tuple(returned), span.milliseconds)
