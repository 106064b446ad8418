"""Runs of other retrievers, as their files have them.

A TREC run with its queries, passages and qrels; lines of JSON; OpenInference spans, as OTLP or as Phoenix
exports them. What a file is, is read off its first lines. Everything in it is untrusted: numbers of runs and
passages are bounded, fields have types.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import AliasChoices, BaseModel, Field, ValidationError, model_validator

from core.base.config import check_query
from core.base.errors import BadRequest, first_problem
from core.ingest import MAX_FILE_BYTES
from core.runs.log.bounds import MAX_FLOAT, MAX_MILLISECONDS

MAX_RUNS = 2_000
"""Runs of one import."""
MAX_RETURNED = 1_000
"""Passages of one call, as TREC has them."""
_Score = Annotated[float, Field(ge=-MAX_FLOAT, le=MAX_FLOAT)]
_ID_PATTERN = re.compile(r"[\w.@ +/-]{1,60}")


class ForeignPassage(BaseModel):
    """What says which passage was returned: its text, its place, or a name."""

    text: str = Field("", validation_alias=AliasChoices("text", "content", "page_content", "passage"))
    name: str = Field("", validation_alias=AliasChoices("name", "id", "_id", "docid", "title"))
    chunk_id: int | None = None
    document: int = 0
    """Among the opened ones, where a place is given."""
    start: int | None = None
    end: int | None = None
    score: _Score | None = Field(None, validation_alias=AliasChoices("score", "similarity"))

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        """A text, a chunk id or a pair of offsets alone."""
        if isinstance(value, str):
            return {"text": value}
        if type(value) is int:
            return {"chunk_id": value}
        if isinstance(value, list) and len(value) == 2:
            return {"start": value[0], "end": value[1]}
        if isinstance(value, dict) and isinstance(value.get("id"), int):
            return {**value, "id": str(value["id"])}
        return value


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
    """Name of the retriever."""
    answer: str | None = None
    """What was answered; None where nobody did."""
    gold: tuple[ForeignPassage, ...] = ()
    known_answer: str = ""


class _Line(BaseModel):
    """A run as a line of JSON; also by the names that Ragas and others have."""

    query: str = Field(validation_alias=AliasChoices("query", "question", "user_input"))
    retrieved: list[ForeignPassage] = Field(
        validation_alias=AliasChoices(
            "retrieved", "retrieved_contexts", "contexts", "passages", "documents", "chunks"
        ),
        max_length=MAX_RETURNED,
    )
    scores: list[_Score] | None = None
    method: str = ""
    answer: str | None = Field(None, validation_alias=AliasChoices("answer", "response"))
    gold: list[ForeignPassage] = Field(
        default=[],
        validation_alias=AliasChoices("gold", "support", "reference_contexts"),
        max_length=MAX_RETURNED,
    )
    known_answer: str = Field("", validation_alias=AliasChoices("known_answer", "reference", "ground_truth"))
    milliseconds: float = Field(0.0, ge=0, le=MAX_MILLISECONDS)


@dataclass
class _Texts:
    """Texts and gold by id, for the ids of a TREC run."""

    queries: dict[str, str] = field(default_factory=dict)
    passages: dict[str, str] = field(default_factory=dict)
    gold: dict[str, list[str]] = field(default_factory=dict)


def read_foreign(files: Mapping[str, bytes], method: str = "") -> list[ForeignRun]:
    """The runs that files hold, by the files' names. `method`: what made them; empty: as they say, else as
    the file is called. Raises BadRequest.
    """
    texts, runs, trec = _Texts(), list[ForeignRun](), list[tuple[str, list[list[str]]]]()
    for name, data in files.items():
        try:
            content = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise BadRequest(f"{name} is no UTF-8 text (byte {error.start}); save it as UTF-8") from error
        head = content[:2_000].lstrip()
        if not head:
            raise BadRequest(f"{name} is empty; give a file that holds runs")
        stem = name.rsplit(".", 1)[0]
        if head[0] in "[{":
            runs += _of_json(_objects(content, name), name, method or stem, texts)
        elif len(head.split("\n")[0].split()) == 6:
            trec.append((method or stem, [line.split() for line in content.splitlines() if line.strip()]))
        else:
            _take_columns(content, name, texts)
    for stem, lines in trec:
        runs += _of_trec(lines, method, stem, texts)
    if not runs:
        raise BadRequest(
            "no run is in what was given; give a TREC run, lines of JSON, or OpenInference spans"
        )
    if len(runs) > MAX_RUNS:
        raise BadRequest(f"{len(runs):,} runs are more than {MAX_RUNS:,}; import them in several files")
    return [_checked(run) for run in runs]


def files_of(paths: Sequence[Path]) -> dict[str, bytes]:
    """What files hold, by their names. Raises BadRequest."""
    return {path.name: file_bytes(path) for path in paths}


def file_bytes(path: Path) -> bytes:
    """Raises BadRequest for what can't be read or is too long."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise BadRequest(f"{path.name} has more than {MAX_FILE_BYTES:,} bytes; split it")
        return path.read_bytes()
    except OSError as error:
        raise BadRequest(f"{path} can't be read ({error.strerror}); name a readable file") from error


def is_export(path: Path) -> bool:
    """Whether a file begins as `runs export --format json` writes it."""
    with path.open("rb") as file:
        return file.read(100).lstrip().startswith(b'{"line":')


def _checked(run: ForeignRun) -> ForeignRun:
    """With a name that fits into lists. Raises BadRequest for a question that none can be."""
    name = "".join(_ID_PATTERN.findall(run.method))[:60].strip() or "retriever"
    return replace(run, query=check_query(run.query), method=name)


def _objects(content: str, name: str) -> list[Any]:
    """The JSON objects of a file: lines, a list, or one that holds them as Phoenix answers."""
    try:
        try:
            whole = json.loads(content)
        except ValueError:
            return [json.loads(line) for line in content.split("\n") if line.strip()]
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"{name} is no valid JSON ({str(error)[:100]}); correct it") from error
    if isinstance(whole, dict) and isinstance(whole.get("data"), list):
        return list(whole["data"])
    return whole if isinstance(whole, list) else [whole]


def _of_json(objects: Sequence[Any], name: str, stem: str, texts: _Texts) -> Iterator[ForeignRun]:
    spans: list[_Span] = []
    is_query_file = "quer" in name.lower()
    for number, value in enumerate(objects, start=1):
        if not isinstance(value, dict):
            raise BadRequest(f"entry {number} of {name} is no JSON object; correct it")
        if "resourceSpans" in value:
            spans += _of_otlp(value)
        elif "attributes" in value or any(key.startswith("attributes.") for key in value):
            spans.append(_of_phoenix(value))
        elif "_id" in value and "text" in value:
            by_id = texts.queries if is_query_file else texts.passages
            by_id[str(value["_id"])] = str(value["text"]).encode("utf-8", "replace").decode()
        else:
            yield _of_line(value, f"entry {number} of {name}", stem)
    yield from _of_spans(spans, stem)


def _of_line(value: dict[str, Any], where: str, stem: str) -> ForeignRun:
    try:
        line = _Line.model_validate(value)
    except ValidationError as error:
        raise BadRequest(
            f'{where}: {first_problem(error)}; a run has "query" and "retrieved", a list of texts,'
            " chunk ids or offsets"
        ) from error
    passages = line.retrieved
    if line.scores is not None:
        if len(line.scores) != len(passages):
            raise BadRequest(
                f"{where} has {len(line.scores)} scores for {len(passages)} passages; give as many"
            )
        passages = [
            passage.model_copy(update={"score": score})
            for passage, score in zip(passages, line.scores, strict=True)
        ]
    call = ForeignCall(line.query, tuple(passages), line.milliseconds)
    gold, method = tuple(line.gold), line.method or stem
    return ForeignRun(line.query, (call,), method, line.answer, gold, line.known_answer)


def _take_columns(content: str, name: str, texts: _Texts) -> None:
    """Qrels, with BEIR's head or without, and queries as lines of an id and a text. Raises BadRequest."""
    for number, line in enumerate(content.splitlines(), start=1):
        columns = line.split()
        if "quer" in name.lower() and "qrel" not in name.lower() and len(columns) > 1:
            texts.queries[columns[0]] = line.strip()[len(columns[0]) :].strip()
        elif len(columns) in (3, 4) and (columns[0] == "query-id" or columns[-1].lstrip("-").isdecimal()):
            if columns[-1].isdecimal() and columns[-1].strip("0"):
                texts.gold.setdefault(columns[0], []).append(columns[-2])
        elif columns:
            raise BadRequest(
                f"line {number} of {name} is no TREC run (6 columns), qrels (4 or 3) or JSON; correct it"
            )


def _of_trec(lines: list[list[str]], method: str, stem: str, texts: _Texts) -> Iterator[ForeignRun]:
    by_query: dict[str, list[tuple[int, str, float]]] = {}
    for number, columns in enumerate(lines, start=1):
        try:
            query_id, _, passage_id, rank, score, _ = columns
            if not abs(float(score)) <= MAX_FLOAT:
                raise ValueError(score)
            by_query.setdefault(query_id, []).append((int(rank), passage_id, float(score)))
        except ValueError as error:
            raise BadRequest(
                f"line {number} of {stem} needs query, Q0, passage, rank, score, name; correct it"
            ) from error

    def passage(name: str, score: float | None = None) -> ForeignPassage:
        return ForeignPassage.model_validate(
            {"name": name, "text": texts.passages.get(name, ""), "score": score}
        )

    for query_id, found in by_query.items():
        if query_id not in texts.queries:
            raise BadRequest(
                f"query {query_id[:80]!r} of {stem} has no words; give a file of queries beside it, named so,"
                ' a line {"_id", "text"} each'
            )
        query = texts.queries[query_id]
        returned = tuple(passage(name, score) for _, name, score in sorted(found)[:MAX_RETURNED])
        gold = tuple(passage(name) for name in texts.gold.get(query_id, ()))
        yield ForeignRun(query, (ForeignCall(query, returned),), method or lines[0][5], gold=gold)


# OpenInference


@dataclass(frozen=True)
class _Span:
    trace: str
    parent: str
    start: str
    """Sorts as its time."""
    attributes: Mapping[str, Any]
    milliseconds: float = 0.0

    @property
    def kind(self) -> str:
        return str(self.attributes.get("openinference.span.kind", ""))

    @property
    def asked(self) -> str:
        """The question, also where the input is JSON around it."""
        text = str(self.attributes.get("input.value", ""))
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return text
        named = [value.get(key) for key in ("query", "question", "input")] if isinstance(value, dict) else []
        return next((words for words in named if isinstance(words, str)), text)


def _of_otlp(value: Mapping[str, Any]) -> Iterator[_Span]:
    try:
        for resource in value["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                for span in scope["spans"]:
                    attributes = {
                        one["key"]: next(iter(one["value"].values()), "")
                        for one in span.get("attributes", ())
                    }
                    start, end = (int(span.get(f"{edge}TimeUnixNano", 0)) for edge in ("start", "end"))
                    took = min(max(0, end - start) / 1e6, MAX_MILLISECONDS)
                    parent = span.get("parentSpanId", "")
                    yield _Span(str(span["traceId"]), parent, f"{start:020}", attributes, took)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise BadRequest(f"the spans are no OTLP as JSON ({str(error)[:80]}); export them anew") from error


def _of_phoenix(value: Mapping[str, Any]) -> _Span:
    """A span as Phoenix answers over HTTP, or as a row of its data frame."""
    flat = dict(_flat(value))
    attributes = {
        key.removeprefix("attributes."): part for key, part in flat.items() if key.startswith("attributes.")
    }
    attributes.setdefault("openinference.span.kind", flat.get("span_kind", ""))
    start, parent = str(flat.get("start_time", "")), str(flat.get("parent_id") or "")
    return _Span(str(flat.get("context.trace_id", "")), parent, start, attributes)


def _flat(value: Any, name: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Every leaf by its path, parts joined by dots."""
    inner: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, dict):
        inner = value.items()
    elif isinstance(value, list):
        inner = enumerate(value)
    else:
        yield name, value
    for key, part in inner if depth < 12 else ():
        yield from _flat(part, f"{name}.{key}" if name else str(key), depth + 1)


_DOCUMENT = re.compile(r"retrieval\.documents\.(\d{1,5})\.document\.(id|content|score)")


def _of_spans(spans: Sequence[_Span], stem: str) -> Iterator[ForeignRun]:
    """A run a trace, a call a RETRIEVER span."""
    traces: dict[str, list[_Span]] = {}
    for span in sorted(spans, key=lambda span: span.start):
        traces.setdefault(span.trace, []).append(span)
    for trace in traces.values():
        calls = [_call(span) for span in trace if span.kind == "RETRIEVER"]
        if not calls:
            continue
        root = next((span for span in trace if not span.parent), None)
        query = (root.asked if root is not None else "") or calls[0].query
        answered = root is not None and any(span.kind == "LLM" for span in trace)
        answer = str(root.attributes.get("output.value", "")) if root is not None and answered else None
        yield ForeignRun(query, tuple(calls), stem, answer)


def _call(span: _Span) -> ForeignCall:
    documents: dict[int, dict[str, Any]] = {}
    for key, value in span.attributes.items():
        if match := _DOCUMENT.fullmatch(key):
            documents.setdefault(int(match[1]), {})[match[2]] = value
    try:
        returned = [ForeignPassage.model_validate(documents[i]) for i in sorted(documents)[:MAX_RETURNED]]
    except ValidationError as error:
        raise BadRequest(
            f"a retrieved document of the spans can't be read: {error.errors()[0]['msg']}"
        ) from error
    return ForeignCall(span.asked, tuple(returned), span.milliseconds)
