"""Documents -> chunks -> vectors, a part at a time.

The plan is made once, from the names and sizes of the files, and kept with the corpus: who comes back does
the parts that are not there yet. Plain actors instead of Ray Data: a part writes itself, so nothing has to
flow, and a part that a dying worker had in hand is done by another. A document that can't be read is left out
and said. Vectors don't go through the cache of this machine, which would double them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from core.base.errors import BadDocument, BadRequest
from core.base.types import Document
from core.encode.checkpoint import CHECKPOINTS, find_checkpoint
from core.encode.encoder import DualEncoder, load_encoder
from core.ingest import (
    MAX_FILE_BYTES,
    Converter,
    chunk_document,
    default_chunker,
    read_documents,
    read_pasted,
)
from core.integrations.cluster.parts import (
    HEADER,
    CorpusFile,
    CorpusPart,
    CorpusPlan,
    PartDocument,
    part_folder,
    read_plan,
    remove_unfinished,
    write_part,
)
from core.integrations.cluster.workers import task_results

if TYPE_CHECKING:
    from pyarrow import parquet

PART_BYTES = 1_000_000
"""Of documents in a part, about: what a kill costs at most, for each worker."""
TEXT, TITLE = "text", "title"
"""Columns of a Parquet file; the second may be missing."""
BEIR_CORPUS = "corpus.jsonl"
"""Documents of a folder in BEIR's format: a line {"_id", "title", "text"} each."""


def planned_parts(source: Path, part_bytes: int = PART_BYTES) -> tuple[tuple[CorpusFile, ...], ...]:
    """The parts of all files below a folder, in the order of their paths; of its Parquet files, if there are
    any; or of the lines of a BEIR folder's corpus. Raises BadDocument.
    """
    if not source.exists():
        raise BadDocument(f"{source} is not there; name a folder of documents, or a Parquet file")
    root = source if source.is_dir() else source.parent
    paths = sorted(_files(source)) if source.is_dir() else [source]
    if (corpus := root / BEIR_CORPUS) in paths:
        return tuple((lines,) for lines in _line_ranges(corpus, part_bytes))
    tables = [path for path in paths if path.suffix == ".parquet"]
    if tables:
        return tuple((rows,) for path in tables for rows in _row_ranges(path, root, part_bytes))
    parts: list[list[CorpusFile]] = []
    weight = part_bytes
    for path in paths:
        size = path.stat().st_size
        if weight + size > part_bytes:
            parts.append([])
            weight = 0
        parts[-1].append(CorpusFile(path.relative_to(root).as_posix(), size))
        weight += size
    if not parts:
        raise BadDocument(f"{source} holds no files; put documents into it")
    return tuple(map(tuple, parts))


def _files(folder: Path) -> Iterator[Path]:
    for place, below, names in os.walk(folder):
        below[:] = [name for name in below if not name.startswith(".")]
        yield from (Path(place, name) for name in names if not name.startswith("."))


def _row_ranges(path: Path, root: Path, part_bytes: int) -> Iterator[CorpusFile]:
    with _parquet(path) as table:
        n_rows = table.metadata.num_rows
        n_bytes = sum(table.metadata.row_group(i).total_byte_size for i in range(table.num_row_groups))
    step = max(1, int(part_bytes * n_rows / max(1, n_bytes)))
    for first in range(0, n_rows, step):
        rows = (first, min(first + step, n_rows))
        yield CorpusFile(path.relative_to(root).as_posix(), path.stat().st_size, rows)


def _line_ranges(path: Path, part_bytes: int) -> Iterator[CorpusFile]:
    size = path.stat().st_size
    first = last = 0
    with path.open("rb") as file:
        for line in file:
            last += len(line)
            if last - first >= part_bytes:
                yield CorpusFile(path.name, size, (first, last))
                first = last
    if first < last:
        yield CorpusFile(path.name, size, (first, last))


def _parquet(path: Path) -> parquet.ParquetFile:
    """Raises BadDocument and BadRequest."""
    try:
        from pyarrow import ArrowException, parquet
    except ModuleNotFoundError as error:
        raise BadRequest("Parquet files need the package pyarrow; run pip install -e '.[cluster]'") from error
    try:
        table = parquet.ParquetFile(path)
    except (OSError, ArrowException) as error:
        raise BadDocument(f"{path.name} is no Parquet file; name one, or a folder of documents") from error
    if TEXT not in table.schema_arrow.names:
        raise BadDocument(f"{path.name} has no column {TEXT!r}; name the column of documents so")
    return table


class PartEmbedder:
    """Makes parts of one corpus."""

    def __init__(self, source: Path, out: Path, plan: CorpusPlan, device: str | None = None) -> None:
        self._root = source if source.is_dir() else source.parent
        self._out, self._plan, self._device = out, plan, device

    def first(self) -> Document | None:
        """The first document of the first part that can be read; None where none can."""
        with Converter() as converter:
            for _, read in self._sources(self._plan.parts[0] if self._plan.parts else (), converter):
                with suppress(BadDocument):
                    for document in read().values():
                        return document
        return None

    def embed(self, number: int) -> int:
        """Makes a part; returns its number. Raises BadRequest for another encoder than the plan's."""
        encoder = self._encoder
        documents: list[PartDocument] = []
        texts: list[str] = []
        with Converter() as converter:
            for title, read in self._sources(self._plan.parts[number], converter):
                try:
                    for name, document in read().items():
                        chunks = _chunks(document, encoder)
                        texts += chunks
                        documents.append(PartDocument(name, len(chunks), told=document.told))
                except BadDocument as fault:
                    documents.append(PartDocument(title, 0, f"{title}: {fault}"))
        vectors = encoder.encode_chunks(texts).astype(encoder.spec.vectors)
        write_part(self._out, number, documents, texts, vectors.reshape(len(texts), encoder.dim))
        return number

    @cached_property
    def _encoder(self) -> DualEncoder:
        encoder = load_encoder(self._plan.checkpoint, self._device)
        if encoder.vector_fingerprint != self._plan.vectors:
            raise BadRequest(
                f"this machine's encoder makes vectors {encoder.vector_fingerprint}, the corpus has"
                f" {self._plan.vectors}; use the same checkpoint and engine (QRAG_ENGINE) everywhere"
            )
        return encoder

    def _sources(
        self, files: Sequence[CorpusFile], converter: Converter
    ) -> Iterator[tuple[str, Callable[[], dict[str, Document]]]]:
        """(a title, what reads the documents of it): of each file, or of each row."""
        for file in files:
            path = self._root / file.path
            if file.rows is None:
                yield file.path, partial(_read_file, path, file.path, converter)
            else:
                read = _lines if file.path == BEIR_CORPUS else _rows
                for title, text in read(path, file):
                    yield title, partial(_read_text, text, title, converter)


def _read_file(path: Path, title: str, converter: Converter) -> dict[str, Document]:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise BadDocument(f"it has more than {MAX_FILE_BYTES:,} bytes; split it")
        data = path.read_bytes()
    except OSError as error:
        raise BadDocument(f"it can't be read ({error.strerror}); make it readable") from error
    read = read_documents(data, path.name, converter)
    return {title if len(read) == 1 else f"{title}: {name}": one for name, one in read.items()}


def _read_text(text: object, title: str, converter: Converter) -> dict[str, Document]:
    return {title: read_pasted(text if isinstance(text, str) else "", title, converter)}


def _lines(path: Path, file: CorpusFile) -> Iterator[tuple[str, object]]:
    """(id, title and text) of some lines of a BEIR corpus; None for the text of a line that is none of it."""
    assert file.rows is not None
    first, last = file.rows
    with path.open("rb") as lines:
        lines.seek(first)
        while (start := lines.tell()) < last:
            try:
                values = json.loads(lines.readline())
                text = "\n\n".join(filter(None, (values.get(TITLE), values[TEXT])))
                name = str(values["_id"])
                (name + text).encode()  # escapes may spell half a character, which no encoder reads
                yield name, text
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                yield f"{file.path}, line at byte {start}", None


def _rows(path: Path, file: CorpusFile) -> Iterator[tuple[str, object]]:
    """(title, text) of some rows. Only the row groups that hold them are read."""
    assert file.rows is not None
    wanted, last = file.rows
    with _parquet(path) as table:
        columns = [name for name in (TEXT, TITLE) if name in table.schema_arrow.names]
        start = 0
        for group in range(table.num_row_groups):
            n_rows = table.metadata.row_group(group).num_rows
            if start < last and wanted < start + n_rows:
                lo, hi = max(wanted - start, 0), min(last - start, n_rows)
                rows = table.read_row_group(group, columns=columns).slice(lo, hi - lo).to_pylist()
                for row, values in enumerate(rows, start=start + lo):
                    yield str(values.get(TITLE) or f"{file.path}, row {row}"), values[TEXT]
            start += n_rows


def _chunks(document: Document, encoder: DualEncoder) -> list[str]:
    config = encoder.spec.chunk_config(default_chunker(document.kind))
    table = chunk_document(document, config, encoder.tokenizer)
    return [document.text[start:end] for start, end in zip(table.start, table.end, strict=True)]


@dataclass(frozen=True)
class CorpusMade:
    """What embedding came to."""

    n_parts: int
    n_parts_before: int
    n_documents: int
    n_chunks: int
    left_out: tuple[str, ...]
    """A sentence about each document that could not be read."""
    told: tuple[str, ...]


def embed_corpus(
    source: Path,
    out: Path,
    checkpoint: str | None,
    device: str | None = None,
    cluster: str | None = None,
    on_part: Callable[[int, int], None] = lambda _done, _total: None,
    part_bytes: int = PART_BYTES,
    on_first: Callable[[Document, str], None] | None = None,
) -> CorpusMade:
    """Makes the parts that are not there yet, in workers of a cluster if one is named. `on_part` gets (parts
    there, parts in all), `on_first` the first document and the agent's name, before anything is embedded.
    Raises BadDocument, BadRequest, BadCheckpoint.
    """
    encoder = load_encoder(checkpoint, device)
    source, out, folder = source.resolve(), out.resolve(), find_checkpoint(checkpoint)
    name = encoder.spec.name if folder.parent == CHECKPOINTS else str(folder.resolve())
    plan = CorpusPlan(name, encoder.vector_fingerprint, encoder.dim, planned_parts(source, part_bytes))
    before = read_plan(out)
    if before is not None and before != plan:
        raise BadRequest(
            f"{out / HEADER} is of other documents or another encoder; name another --out, or remove the"
            " folder"
        )
    if on_first is not None and (first := PartEmbedder(source, out, plan).first()) is not None:
        on_first(first, encoder.spec.name)
    if before is None:
        plan.save(out)
    missing = [number for number in range(len(plan.parts)) if not part_folder(out, number).is_dir()]
    n_before = len(plan.parts) - len(missing)
    on_part(n_before, len(plan.parts))
    made = task_results(PartEmbedder, (source, out, plan, device), "embed", missing, cluster)
    for done, _ in enumerate(made, start=1):
        on_part(n_before + done, len(plan.parts))
    remove_unfinished(out)
    parts = [CorpusPart(out, number, plan.dim) for number in range(len(plan.parts))]
    documents = [document for part in parts for document in part.documents]
    return CorpusMade(
        len(parts),
        n_before,
        sum(not document.notice for document in documents),
        sum(part.n_chunks for part in parts),
        tuple(document.notice for document in documents if document.notice),
        tuple(f"{document.title}: {document.told}" for document in documents if document.told),
    )
