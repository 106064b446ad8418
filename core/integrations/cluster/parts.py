"""A corpus on disk, in parts that are whole or not there.

A folder a part: vectors (.npy, mapped into memory), the texts of the chunks as UTF-8, where each of them
ends, and which documents they are of. A part is written beside its place and renamed into it, so a killed
writer leaves no half of one. `corpus.json` names the parts that are planned and the encoder. The texts are
read when they are asked for.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np

from core.base.errors import BadDocument
from core.corpus.bm25 import WordIndex, word_index
from core.corpus.index import VectorIndex

HEADER = "corpus.json"
_FORMAT = 1
_VECTORS, _TEXTS, _ENDS, _DOCUMENTS = "vectors.npy", "texts.bin", "ends.npy", "documents.json"


@dataclass(frozen=True, slots=True)
class CorpusFile:
    """A file below the folder of documents, or some rows of a Parquet file, or lines of a BEIR corpus."""

    path: str
    n_bytes: int
    """Of the file; another size is another corpus."""
    rows: tuple[int, int] | None = None
    """First row and the one behind the last, of lines their bytes; None for a file that is read whole."""


@dataclass(frozen=True)
class CorpusPlan:
    """What a corpus is made of, and by which encoder."""

    checkpoint: str
    vectors: str
    """The encoder's `vector_fingerprint`."""
    dim: int
    parts: tuple[tuple[CorpusFile, ...], ...]

    def save(self, folder: Path) -> None:
        """Writes `corpus.json`. Raises BadDocument when it can't be written."""
        # not above: workers need no log, whose libraries take a moment
        from core.runs.log.atomic import write_whole

        try:
            folder.mkdir(parents=True, exist_ok=True)
            write_whole(folder / HEADER, [json.dumps({"format": _FORMAT, **asdict(self)})])
        except OSError as error:
            raise BadDocument(
                f"{folder} can't be written ({error.strerror}); name another folder with --out"
            ) from error


def read_plan(folder: Path) -> CorpusPlan | None:
    """The plan of a folder, None where there is none yet. Raises BadDocument for one that can't be used."""
    try:
        values = json.loads((folder / HEADER).read_text(encoding="utf-8"))
        if values.pop("format") != _FORMAT:
            raise ValueError
        parts = tuple(
            tuple(
                CorpusFile(file["path"], file["n_bytes"], file["rows"] and tuple(file["rows"]))
                for file in part
            )
            for part in values.pop("parts")
        )
        return CorpusPlan(**values, parts=parts)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadDocument(
            f"{folder / HEADER} does not describe a corpus; name a folder that embed-corpus made"
        ) from error


def part_folder(folder: Path, number: int) -> Path:
    """Where a part lies, or will."""
    return folder / f"{number:06d}"


@dataclass(frozen=True)
class PartDocument:
    """A document of a part. Without chunks where it could not be read."""

    title: str
    n_chunks: int
    notice: str = ""
    told: str = ""
    """What reading it lost or guessed."""


def write_part(
    folder: Path, number: int, documents: Sequence[PartDocument], texts: Sequence[str], vectors: np.ndarray
) -> None:
    """Puts a part in its place; one that is there already stays. texts and vectors (n, D): of all chunks."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    temporary = folder / f".{number:06d}.{uuid.uuid4().hex}"
    temporary.mkdir()
    np.save(temporary / _VECTORS, vectors, allow_pickle=False)
    np.save(temporary / _ENDS, np.cumsum([len(text) for text in encoded], dtype=np.int64), allow_pickle=False)
    (temporary / _TEXTS).write_bytes(b"".join(encoded))
    (temporary / _DOCUMENTS).write_text(json.dumps([asdict(one) for one in documents]), encoding="utf-8")
    try:
        os.rename(temporary, part_folder(folder, number))
    except OSError:  # a worker that was thought dead had written it
        shutil.rmtree(temporary)
        if not part_folder(folder, number).is_dir():
            raise


def remove_unfinished(folder: Path) -> None:
    """Removes what killed writers left."""
    for path in folder.glob(".[0-9]*.*"):
        with suppress(OSError):
            shutil.rmtree(path)


class CorpusPart:
    """A part that is there. What it holds is read when it is asked for."""

    def __init__(self, folder: Path, number: int, dim: int) -> None:
        self._path, self._number, self._dim = part_folder(folder, number), number, dim

    @cached_property
    def documents(self) -> tuple[PartDocument, ...]:
        """Raises BadDocument for a part that is gone or damaged, as do the others here."""
        try:
            return tuple(PartDocument(**one) for one in json.loads((self._path / _DOCUMENTS).read_bytes()))
        except (OSError, ValueError, TypeError) as error:
            raise self._gone(error) from error

    @cached_property
    def n_chunks(self) -> int:
        return sum(document.n_chunks for document in self.documents)

    @cached_property
    def vectors(self) -> np.ndarray:
        """(n, D), mapped into memory."""
        mapped = self._load(_VECTORS)
        if mapped.shape != (self.n_chunks, self._dim):
            raise self._gone(ValueError(f"{mapped.shape} vectors for {self.n_chunks} chunks"))
        return mapped

    @cached_property
    def _ends(self) -> np.ndarray:
        return self._load(_ENDS)

    def text(self, row: int) -> str:
        """Of one chunk."""
        start = int(self._ends[row - 1]) if row else 0
        try:
            with (self._path / _TEXTS).open("rb") as file:
                file.seek(start)
                return file.read(int(self._ends[row]) - start).decode("utf-8", "surrogatepass")
        except OSError as error:
            raise self._gone(error) from error

    def texts(self) -> Iterator[str]:
        """Of all chunks."""
        try:
            joined = (self._path / _TEXTS).read_bytes()
        except OSError as error:
            raise self._gone(error) from error
        start = 0
        for end in self._ends.tolist():
            yield joined[start:end].decode("utf-8", "surrogatepass")
            start = end

    def _load(self, name: str) -> np.ndarray:
        try:  # copy on write: torch warns of arrays that it must not write to
            array: np.ndarray = np.load(self._path / name, mmap_mode="c", allow_pickle=False)
            return array
        except (OSError, ValueError, EOFError) as error:
            raise self._gone(error) from error

    def _gone(self, error: Exception) -> BadDocument:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return BadDocument(
            f"part {self._number} of the corpus, {self._path}, can't be read ({why}), so not all chunks can"
            " be searched; remove what is left of it and run embed-corpus again"
        )


class CorpusParts:
    """All parts of a corpus, in order."""

    def __init__(self, folder: Path) -> None:
        """Raises BadDocument for a folder without a corpus, one that is not complete, or a damaged part."""
        plan = read_plan(folder)
        if plan is None:
            raise BadDocument(f"{folder} holds no corpus; make one with embed-corpus ... --out {folder}")
        n_missing = sum(not part_folder(folder, number).is_dir() for number in range(len(plan.parts)))
        if n_missing:
            raise BadDocument(
                f"{n_missing:,} of the {len(plan.parts):,} parts of {folder} are not there; run embed-corpus"
                " again to embed them"
            )
        self.folder, self.plan = folder, plan
        self.parts = [CorpusPart(folder, number, plan.dim) for number in range(len(plan.parts))]
        sizes = [part.n_chunks for part in self.parts]
        self.starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        """(parts + 1,) first chunk of each part."""
        if not len(self):
            raise BadDocument(f"there is no text to search in {folder}; embed documents with text")

    def __len__(self) -> int:
        return int(self.starts[-1])

    def ranges(self, n_shards: int) -> list[tuple[int, int]]:
        """Parts [first, last) of each shard: about as many chunks to each, none empty."""
        starts = self.starts
        borders = np.linspace(0, len(self), n_shards + 1)
        halfway = (starts[1:] + starts[:-1]) / 2
        nearest = np.searchsorted(halfway, borders[1:-1])
        cuts = np.unique([0, *nearest, len(self.parts)]).tolist()
        return [(first, last) for first, last in pairwise(cuts) if starts[last] > starts[first]]


@dataclass(frozen=True, eq=False)
class EmbeddedCorpus:
    """A `Searchable`: texts from disk, scores from an index over the parts."""

    parts: CorpusParts
    index: VectorIndex

    def __len__(self) -> int:
        return len(self.parts)

    @cached_property
    def titles(self) -> list[str]:
        """Of each document that has chunks."""
        return [document.title for document in self._documents()]

    @cached_property
    def borders(self) -> np.ndarray:
        return np.concatenate([[0], np.cumsum([one.n_chunks for one in self._documents()])]).astype(np.int64)

    def title(self, chunk_id: int) -> str:
        """Of the document that a chunk is of."""
        return self.titles[bisect_right(self.borders, chunk_id) - 1]

    def text(self, chunk_id: int) -> str:
        number = bisect_right(self.parts.starts, chunk_id) - 1
        return self.parts.parts[number].text(chunk_id - int(self.parts.starts[number]))

    def texts(self) -> list[str]:
        """Reads all of them into memory."""
        return [text for part in self.parts.parts for text in part.texts()]

    @property
    def words(self) -> WordIndex:
        """Built in this process."""
        return word_index(self, self.texts)

    def _documents(self) -> Iterable[PartDocument]:
        return (document for part in self.parts.parts for document in part.documents if document.n_chunks)
