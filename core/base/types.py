"""The data on the spine: documents, chunk tables, workspaces.

A chunk is an exact slice of its document's text, so tables store offsets, in columns: a document of ten
million tokens has some 160,000 to 400,000 chunks and opens from the cache in milliseconds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np

from core.base.config import ChunkConfig

ChunkType = Literal["text", "table", "list"]
CHUNK_TYPES: tuple[ChunkType, ...] = ("text", "table", "list")
DocumentKind = Literal["html", "markdown", "text", "chunks"]


@dataclass(frozen=True, slots=True)
class Notice:
    """What reading a document left out, guessed, cut or could not read, in one sentence with its count."""

    sentence: str
    at: int | None = None
    """Character of `Document.text` where it stands, or would, the first of several; None: nowhere in it."""

    def __str__(self) -> str:
        return self.sentence


@dataclass(frozen=True)
class Document:
    """One text that was read, ready for chunking. All offsets elsewhere count code points of `text`."""

    title: str
    text: str
    kind: DocumentKind
    json_ld: tuple[Any, ...] = ()
    """Parsed JSON-LD objects of an HTML page, in page order."""
    notices: tuple[Notice, ...] = ()
    """All that a reader should know of what is not in `text` as it is in the file."""
    file: str = field(default="", compare=False)
    """Name of the file it was read from, without folders; empty where there was none."""

    @property
    def told(self) -> str:
        """The notices in one line; empty where nothing was lost."""
        return " ".join(map(str, self.notices))

    @cached_property
    def sha256(self) -> str:
        """Hash of kind and text: the key of every cache."""
        return hashlib.sha256(f"{self.kind}\0{self.text}".encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class Chunk:
    """A slice of one document: `document.text[start:end] == text` always holds."""

    chunk_id: int
    """0-based, running over the whole workspace: the row in the index."""
    document: int
    """Position of the document in the workspace."""
    type: ChunkType
    heading_path: tuple[str, ...]
    text: str
    start: int
    end: int
    n_tokens: int


@dataclass(frozen=True, eq=False)
class ChunkTable:
    """All chunks of one document as columns, in document order. N rows."""

    start: np.ndarray
    """(N,) int64, inclusive."""
    end: np.ndarray
    """(N,) int64, exclusive."""
    n_tokens: np.ndarray
    """(N,) int32, of the tokenizer the table was made with, special tokens not counted."""
    type_code: np.ndarray
    """(N,) uint8, index into CHUNK_TYPES."""
    heading_code: np.ndarray
    """(N,) int32, index into `heading_paths`."""
    heading_paths: tuple[tuple[str, ...], ...]

    def __len__(self) -> int:
        return len(self.start)


class Hashed(Protocol):
    """A document, or what is known of one."""

    @property
    def sha256(self) -> str:
        """Of its text."""


@dataclass(frozen=True, eq=False)
class Workspace:
    """An ordered list of documents and their chunk tables, under one running chunk id."""

    documents: tuple[Document, ...]
    tables: tuple[ChunkTable, ...]
    configs: tuple[ChunkConfig | None, ...] = ()
    """How each document was cut; None where its chunks were given. Empty means all given."""
    borders: np.ndarray = field(init=False)
    """(documents + 1,) int64: document d owns the chunk ids borders[d] ... borders[d + 1] - 1."""

    def __post_init__(self) -> None:
        sizes = [len(table) for table in self.tables]
        object.__setattr__(self, "borders", np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))

    def __len__(self) -> int:
        return int(self.borders[-1])

    @property
    def n_tokens(self) -> int:
        return int(sum(int(table.n_tokens.sum()) for table in self.tables))

    @cached_property
    def sha256(self) -> str:
        """Hash over the documents in their order."""
        return hashlib.sha256("\0".join(document.sha256 for document in self.documents).encode()).hexdigest()

    def is_cut_as(self, documents: Sequence[Hashed], tables: Sequence[ChunkTable | None]) -> bool:
        """Whether documents, open or logged, are its own, cut alike: else ids name other passages."""
        return [own.sha256 for own in self.documents] == [one.sha256 for one in documents] and all(
            theirs is not None
            and np.array_equal(table.start, theirs.start)
            and np.array_equal(table.end, theirs.end)
            for table, theirs in zip(self.tables, tables, strict=True)
        )

    def locate(self, chunk_id: int) -> tuple[int, int]:
        """(document, row in its table) of a running id. Raises IndexError outside 0 ... N-1."""
        if not 0 <= chunk_id < len(self):
            raise IndexError(f"chunk {chunk_id} is not among the {len(self)} chunks")
        document = int(np.searchsorted(self.borders, chunk_id, side="right")) - 1
        return document, chunk_id - int(self.borders[document])

    def __getitem__(self, chunk_id: int) -> Chunk:
        document, row = self.locate(chunk_id)
        table = self.tables[document]
        start, end = int(table.start[row]), int(table.end[row])
        return Chunk(
            chunk_id=chunk_id,
            document=document,
            type=CHUNK_TYPES[table.type_code[row]],
            heading_path=table.heading_paths[table.heading_code[row]],
            text=self.documents[document].text[start:end],
            start=start,
            end=end,
            n_tokens=int(table.n_tokens[row]),
        )

    def __iter__(self) -> Iterator[Chunk]:
        return (self[i] for i in range(len(self)))

    def texts(self) -> list[str]:
        """The text of every chunk, by chunk id."""
        return [
            document.text[start:end]
            for document, table in zip(self.documents, self.tables, strict=True)
            for start, end in zip(table.start.tolist(), table.end.tolist(), strict=True)
        ]

    def overlapping(self, document: int, start: int, end: int) -> list[int]:
        """Ids of the chunks of one document that share at least one character with [start, end)."""
        table = self.tables[document]
        rows = np.nonzero((table.start < end) & (table.end > start))[0]
        return (rows + int(self.borders[document])).tolist()


def workspace_of_chunks(chunks: Sequence[str], n_tokens: np.ndarray, title: str = "chunks") -> Workspace:
    """A workspace whose chunks are the strings as they are; chunk i is chunks[i]. n_tokens: (N,)."""
    separator = "\n\n"
    lengths = np.array([len(chunk) for chunk in chunks], dtype=np.int64)
    start = np.cumsum(lengths + len(separator)) - lengths - len(separator)
    table = ChunkTable(
        start=start,
        end=start + lengths,
        n_tokens=np.asarray(n_tokens, dtype=np.int32),
        type_code=np.zeros(len(chunks), dtype=np.uint8),
        heading_code=np.zeros(len(chunks), dtype=np.int32),
        heading_paths=((),),
    )
    return Workspace((Document(title, separator.join(chunks), "chunks"),), (table,))


def join_workspaces(parts: Sequence[Workspace]) -> Workspace:
    """The documents of several workspaces as one list, in order."""
    return Workspace(
        tuple(document for part in parts for document in part.documents),
        tuple(table for part in parts for table in part.tables),
        tuple(config for part in parts for config in (part.configs or (None,) * len(part.tables))),
    )
