"""What a command works on: questions over documents, chunks or episodes."""

from __future__ import annotations

import argparse
import json
import math
import time
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from core.answer.evidence import EvidenceAnswer
from core.base.config import SEEDS_OF_MODELS, EpisodeConfig, check_query
from core.base.errors import BadRequest, Cancelled
from core.base.events import Trace
from core.base.progress import finish
from core.base.types import Document, Workspace, workspace_of_chunks
from core.cli.common import count_printer, progress_printer, say
from core.cli.flags import reading_of
from core.corpus.index import Corpus
from core.corpus.opening import Embedded, OpenProgress, chunk_documents, index_of, index_workspace
from core.encode.cache import embed_chunks
from core.encode.checkpoint import CheckpointSpec, find_checkpoint, read_spec, shipped_checkpoints
from core.encode.encoder import DualEncoder, load_encoder
from core.ingest import Converter, ReadingConfig, read_documents
from core.ingest.naming import printable
from core.lab.tasks.data import checked_question
from core.methods.choice import choose
from core.runs.again.records import log_trace
from core.runs.foreign.files import file_bytes
from core.runs.log import RunLog
from core.views.draw.words import percent


@dataclass(eq=False)
class Question:
    """One query over one workspace, indexed for each encoder that asks."""

    id: str | int | None
    query: str
    workspace: Workspace
    config: EpisodeConfig
    timings: dict[str, float] = field(default_factory=dict)
    """Milliseconds of the stages before the run."""
    label: dict[str, Any] | None = None
    """What a file of episodes knows of it: `support` (chunk ids) and `answers`, as logs take it."""
    within: float | None = None
    """Seconds that embedding may take before what is there is asked; None: as long as it takes."""
    names: tuple[str, ...] = ()
    """Of the documents, as they were named; none for given chunks."""
    _corpora: dict[str, Corpus] = field(default_factory=dict)

    def corpus(self, encoder: DualEncoder) -> Corpus:
        """The workspace under an encoder, embedded when first asked for; a batch's is not cached on disk."""
        key = encoder.fingerprint
        if key not in self._corpora and self.id is None:
            self._corpora[key] = self._indexed(encoder)
        elif key not in self._corpora:
            began = time.perf_counter()
            vectors = embed_chunks(encoder, self.workspace.texts(), None)
            self._corpora[key] = Corpus(self.workspace, index_of(encoder, vectors))
            self._spend("embedding", 1000 * (time.perf_counter() - began))
        return self._corpora[key]

    def _indexed(self, encoder: DualEncoder) -> Corpus:
        """All chunks, or, once the time is over, an even part and the likeliest by words, to which the run is
        bound.
        """
        began, show = time.perf_counter(), progress_printer()
        part: Embedded | None = None

        def hear(progress: OpenProgress) -> None:
            nonlocal part
            show(progress)
            if self.within is not None and time.perf_counter() - began > self.within:
                part = progress.so_far
                if part is not None:
                    raise Cancelled

        try:
            opened = finish(index_workspace(self.workspace, encoder), hear)
        except Cancelled:
            assert part is not None
            part = part.with_likeliest(self.query)
            self._spend("embedding", 1000 * (time.perf_counter() - began))
            self.config = self.config.with_(searched=part.ranges)
            self.config.check_against(len(self.workspace))
            say(
                f"searched {percent(part.share)} of the chunks, among them those that share most words"
                " with the question; ask again for more, what was embedded is kept"
            )
            return part.corpus()
        for notice in opened.notices:
            say(notice)
        for stage, milliseconds in opened.milliseconds.items():
            self._spend(stage, milliseconds)
        return opened.corpus

    def sources(self, chunk_ids: Iterable[int]) -> dict[str, Any]:
        """Where there are several documents, the names of those that chunks are from, by chunk id."""
        if len(self.names) < 2:
            return {}
        return {"documents": {str(i): self.names[self.workspace.locate(i)[0]] for i in sorted(chunk_ids)}}

    def _spend(self, stage: str, milliseconds: float) -> None:
        self.timings[stage] = self.timings.get(stage, 0.0) + milliseconds


def keep_run(
    log: RunLog | None, trace: Trace, question: Question, encoder: DualEncoder, answer: EvidenceAnswer | None
) -> None:
    """Leaves a run in the log, if one is named, and says under which id."""
    if log is not None:
        run_id = log_trace(log, trace, question.workspace, encoder, answer, label=question.label)
        say(f"logged as {run_id}")


@dataclass(frozen=True)
class ReadDocuments:
    """Documents of files, with names to show."""

    named: Sequence[tuple[str, Document]]
    milliseconds: float


_Episode = tuple[str | int, str, list[str], dict[str, Any] | None]
"""Id, query, chunks, and label of a line of a file of episodes."""


def agent_of(args: argparse.Namespace) -> tuple[DualEncoder, ReadDocuments | None]:
    """The agent that was named, else that for the first document, and the documents if they had to be read
    for that. Raises BadCheckpoint, BadRequest, BadDocument.
    """
    if args.checkpoint is not None or args.document is None:
        return load_encoder(args.checkpoint, args.device), None
    _check_asked(args)
    read = _read_named(args)
    return load_encoder(suited_to(read.named[0][1]), args.device), read


def suited_to(document: Document) -> str:
    """Name of the checkpoint that the app would open a document with."""
    specs = {name: read_spec(find_checkpoint(name)) for name in shipped_checkpoints()}
    return choose(document, specs).checkpoint


def say_chosen(document: Document, named: str | None, used: str) -> None:
    """Says which agent was taken, where nobody named one."""
    if named is None:
        say(f"{document.title} is opened with {used}, as in the app; --checkpoint names another agent")


def _read_named(args: argparse.Namespace) -> ReadDocuments:
    began = time.perf_counter()
    named = read_files(args.document, reading_of(args))
    return ReadDocuments(named, 1000 * (time.perf_counter() - began))


def _check_asked(args: argparse.Namespace) -> None:
    if args.query is None:
        raise BadRequest("--query is missing; give the question, or a file of questions with --episodes")
    check_query(args.query)


def questions(
    args: argparse.Namespace, encoder: DualEncoder, read: ReadDocuments | None = None
) -> Iterator[Question]:
    """The work that the flags name, cut as `encoder` reads. `read`: its documents. Raises BadRequest,
    BadDocument.
    """
    within = getattr(args, "within", None)
    if within is not None and not 0 <= within < math.inf:
        raise BadRequest(
            f"within {within:g} must be a finite number, 0 or more; give the seconds that embedding may take,"
            " or leave it out for as long as it takes"
        )
    if args.episodes is not None:
        if within is not None:
            raise BadRequest(
                "--within and --episodes exclude each other; a file of episodes is embedded whole"
            )
        if args.query is not None:
            raise BadRequest(
                "--query and --episodes exclude each other; each line of the file has its own query"
            )
        lines = list(_read_episodes(args.episodes))
        # a mistake in the last line is told before the first one runs
        for line, config in [(line, _config_of_episode(args, encoder.spec, line)) for line in lines]:
            name, query, chunks, label = line
            workspace = workspace_of_chunks(chunks, encoder.tokenizer.count(chunks), str(name))
            own = config.with_(seed=episode_seed(config.seed, name))
            yield Question(name, query, workspace, own, label=label)
        return
    _check_asked(args)
    timings: dict[str, float] = {}
    names: tuple[str, ...] = ()
    if args.chunks is not None:
        name = args.chunks.name
        chunks = _check_chunks(_parse_json(_read_text(args.chunks), name), name)
        workspace = workspace_of_chunks(chunks, encoder.tokenizer.count(chunks), name)
    else:
        read = read or _read_named(args)
        names, documents = zip(*read.named, strict=True)
        began = time.perf_counter()
        workspace = finish(chunk_documents(documents, encoder), progress_printer())
        timings |= {"reading": read.milliseconds, "chunking": 1000 * (time.perf_counter() - began)}
    config = config_of(args, encoder.spec, len(workspace))
    if args.document is not None:
        say_chosen(workspace.documents[0], args.checkpoint, encoder.spec.name)
    yield Question(None, args.query, workspace, config, timings, within=within, names=names)


def _config_of_episode(args: argparse.Namespace, spec: CheckpointSpec, line: _Episode) -> EpisodeConfig:
    name, _, chunks, _ = line
    try:
        return config_of(args, spec, len(chunks))
    except BadRequest as error:
        raise BadRequest(f"episode {name!r} of {args.episodes.name}: {error}") from error


def say_other_agent(document: Document, named: str | None, used: str) -> None:
    """Says, where nobody named an agent, that the app would open the (first) document with another than
    `used`.
    """
    if named is None and (suited := suited_to(document)) != used:
        say(
            f"{document.title} is opened with {used}, with which commands begin; the app would take"
            f" {suited} (--checkpoint {suited})"
        )


def episode_seed(seed: int, episode_id: str | int) -> int:
    """The seed that stands in an episode's config, so that the config alone makes the run again, in whatever
    batch it came. Every method takes it: language models draw with seeds below SEEDS_OF_MODELS only.
    """
    sequence = np.random.SeedSequence([seed, zlib.crc32(str(episode_id).encode())])
    return int(sequence.generate_state(1)[0]) % SEEDS_OF_MODELS


def read_files(paths: Sequence[Path], config: ReadingConfig) -> list[tuple[str, Document]]:
    """Documents of files, with names that tell them apart; notices to stderr. Raises BadDocument,
    BadRequest.
    """
    documents: list[tuple[str, Document]] = []
    report = count_printer()
    with Converter(config=config) as converter:
        for path, folders in zip(paths, _folders(paths), strict=True):
            on_part = partial(report, stage="reading")
            for name, document in read_documents(file_bytes(path), path.name, converter, on_part).items():
                documents.append((folders + name, document))
                if document.notices:
                    say(f"{folders}{name}: {document.told}")
    return documents


def _folders(paths: Sequence[Path]) -> list[str]:
    """Of each path the folders that tell it from others of its name, to stand before it.

    >>> _folders([Path("a/one.txt"), Path("b/one.txt"), Path("b/two.txt")])
    ['a/', 'b/', '']
    """
    whole = [path.absolute().parts for path in paths]
    left, length, found = set(whole), 0, dict[tuple[str, ...], str]()
    while left:
        length += 1
        counts = Counter(parts[-length:] for parts in left)
        for parts in [parts for parts in left if counts[parts[-length:]] == 1]:
            found[parts] = "".join(f"{printable(part).rstrip('/')}/" for part in parts[-length:-1])
            left.remove(parts)
    return [found[parts] for parts in whole]


def config_of(args: argparse.Namespace, spec: CheckpointSpec, n_chunks: int) -> EpisodeConfig:
    """Flags over the checkpoint's defaults; for a short document only a default budget shrinks."""
    k = getattr(args, "k", None)
    named = {"step_budget": args.step_budget if k is None else k, "temperature": args.temperature}
    settings = {name: value for name, value in named.items() if value is not None}
    own = ("stop_threshold", "review_threshold", "seed", "beam_width", "top_k_actions")
    settings |= {name: getattr(args, name) for name in own if name in args}
    config = spec.episode_config(**settings)
    if "step_budget" not in settings and 0 < n_chunks < config.step_budget:
        config = config.with_(step_budget=n_chunks)
    config.check_against(n_chunks)
    return config


def read_queries(path: Path) -> list[tuple[str, str]]:
    """(id, text) of each line of a BEIR file of queries. Raises BadRequest."""
    queries = []
    for where, values in _lines(path):
        if not all(isinstance(values.get(key), str) for key in ("_id", "text")):
            raise BadRequest(f'{where} needs "_id" and "text"; correct the file')
        checked_question(values["text"], where)
        queries.append((values["_id"], values["text"]))
    if not queries:
        raise BadRequest(f"{path.name} holds no query; write one JSON object a line")
    return queries


def _check_chunks(values: Any, where: str) -> list[str]:
    is_list = isinstance(values, list) and bool(values)
    if not is_list or not all(isinstance(value, str) and value.strip() for value in values):
        raise BadRequest(f"{where} must hold a JSON list of non-empty strings, one a chunk; correct the file")
    return list(values)


def _read_episodes(path: Path) -> Iterator[_Episode]:
    """The lines of the file. Raises BadRequest at the first that is no episode, or where there is none."""
    ids = set[str]()
    for where, values in _lines(path):
        if not isinstance(values.get("query"), str) or type(values.get("id")) not in (str, int):
            raise BadRequest(f'{where} needs "id" (a text or number), "query" and "chunks"; correct the file')
        name = str(values["id"]).strip()
        if not name or name in ids:
            fault = f"is {name[:40]!r}, as that of a line before" if name else "is empty"
            raise BadRequest(f'"id" in {where} {fault}; give each line its own')
        ids.add(name)
        checked_question(values["query"], where)
        chunks = _check_chunks(values.get("chunks"), f'"chunks" in {where}')
        yield values["id"], values["query"], chunks, _label(values, len(chunks), where)
    if not ids:
        raise BadRequest(f"{path.name} holds no episode; write one JSON object a line")


def _label(values: dict[str, Any], n_chunks: int, where: str) -> dict[str, Any] | None:
    """An episode's optional `support` and `answers`, the first of which lists of runs show. Raises
    BadRequest.
    """
    label = {name: values[name] for name in ("support", "answers") if values.get(name) is not None}
    for name, kind, words in (("support", int, "chunk ids"), ("answers", str, "texts")):
        given = label.get(name, [])
        if not isinstance(given, list) or any(type(one) is not kind for one in given):
            raise BadRequest(f'"{name}" in {where} must be a list of {words}; correct the file')
    for chunk_id in label.get("support", ()):
        if not 0 <= chunk_id < n_chunks:
            raise BadRequest(
                f'"support" in {where} names chunk {str(chunk_id)[:40]}; its ids must be between 0 and'
                f" {n_chunks - 1}; correct the file"
            )
    return label | ({"answer": label["answers"][0]} if label.get("answers") else {}) or None


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadRequest(f"{path.name} is no UTF-8 text (byte {error.start}); save it as UTF-8") from error
    except OSError as error:
        raise BadRequest(f"{path} can't be read ({error.strerror}); name a readable file") from error


def _lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Where each line stands that isn't blank, and its JSON object, empty for other JSON."""
    for number, line in enumerate(_read_text(path).split("\n"), start=1):
        if line.strip():
            where = f"line {number} of {path.name}"
            values = _parse_json(line, where)
            yield where, values if isinstance(values, dict) else {}


def _parse_json(text: str, where: str) -> Any:
    try:
        values = json.loads(text)
        # escapes may spell half a character, which no encoder reads
        json.dumps(values, ensure_ascii=False).encode()
        return values
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"{where} is no valid JSON ({str(error)[:100]}); correct it") from error
