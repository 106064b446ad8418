"""Where the passages of another retriever stand in opened documents.

By the place or name that was given, else by text: exact, then with case, blanks and Unicode folded, then by
the words that a chunk shares with it. Other cuts than ours are usual, so a passage may be several chunks.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from core.base.types import Document, Workspace
from core.corpus.bm25 import WordIndex, word_index
from core.corpus.context import texts_in_context
from core.corpus.opening import words_file
from core.corpus.words import words_of
from core.runs.foreign.files import ForeignPassage

How = Literal["given", "exact", "folded", "overlap"]
LEAST_SHARED = 0.7
"""Of the words of a chunk or of the passage, how many the other must hold."""
LEAST_WORDS = 4
"""Of a passage, below which shared words say nothing."""
_NEIGHBOURS = 50
"""Chunks around the best one that may belong to the same passage."""


@dataclass(frozen=True)
class FoundAgain:
    """The chunks that a passage is made of, in document order, and how they were found."""

    how: How
    chunk_ids: tuple[int, ...]


class Places:
    """Finds passages in a workspace; what was found once is kept."""

    def __init__(self, workspace: Workspace, part: str = "") -> None:
        """part: of the caches, see `core.corpus.opening`."""
        self._workspace, self._part = workspace, part
        self._folded: dict[int, _Folded] = {}
        self._known: dict[str, FoundAgain | None] = {}
        titles = enumerate(document.title for document in workspace.documents)
        self._titles = {_name(title): i for i, title in titles}

    def find(self, passage: ForeignPassage) -> FoundAgain | None:
        """None for what isn't in the documents."""
        given = self._given(passage)
        if given or not passage.text.strip():
            return FoundAgain("given", given) if given else None
        if passage.text not in self._known:
            self._known[passage.text] = self._by_text(passage.text.strip())
        return self._known[passage.text]

    def _given(self, passage: ForeignPassage) -> tuple[int, ...]:
        """By a chunk id, a range of characters, or a name: a document's title, or TITLE#CHUNK."""
        n, chunk_id = len(self._workspace), passage.chunk_id
        if chunk_id is not None and not passage.text:
            return (chunk_id,) if 0 <= chunk_id < n else ()
        if passage.start is not None and passage.end is not None and not passage.text:
            inside = 0 <= passage.document < len(self._workspace.documents)
            return self._chunks(passage.document, passage.start, passage.end) if inside else ()
        title, _, number = passage.name.rpartition("#")
        if title in self._titles and number.isdecimal() and len(number) < 9:
            return (int(number),) if int(number) < n else ()
        document = None if passage.text else self._titles.get(_name(passage.name))
        return () if document is None else self._chunks(document, 0, self._length(document))

    def _by_text(self, text: str) -> FoundAgain | None:
        for i, document in enumerate(self._workspace.documents):
            if (at := document.text.find(text)) >= 0:
                return FoundAgain("exact", self._chunks(i, at, at + len(text)))
        for i, document in enumerate(self._workspace.documents):
            if i not in self._folded:
                self._folded[i] = _Folded(document)
            if (span := self._folded[i].find(text)) is not None:
                return FoundAgain("folded", self._chunks(i, *span))
        shared = self._by_words(Counter(words_of(text)))
        return FoundAgain("overlap", shared) if shared else None

    def _chunks(self, document: int, start: int, end: int) -> tuple[int, ...]:
        """Those of which half lies in the range, or that hold half of it; else the one that holds most."""
        shares: dict[int, float] = {}
        for chunk_id in self._workspace.overlapping(document, start, end):
            chunk = self._workspace[chunk_id]
            shared = min(chunk.end, end) - max(chunk.start, start)
            shares[chunk_id] = shared / max(1, min(chunk.end - chunk.start, end - start))
        held = tuple(chunk_id for chunk_id, share in shares.items() if share >= 0.5)
        return held or tuple(sorted(shares, key=lambda chunk_id: -shares[chunk_id])[:1])

    def _by_words(self, wanted: Counter[str]) -> tuple[int, ...]:
        """The chunk that shares most, and those near it that share as much of themselves."""
        if wanted.total() < LEAST_WORDS:
            return ()
        best = int(np.argmax(self._words.scores(wanted.elements())))
        document, _ = self._workspace.locate(best)
        first, last = (int(self._workspace.borders[document + i]) for i in (0, 1))
        near = range(max(first, best - _NEIGHBOURS), min(last, best + _NEIGHBOURS + 1))
        return tuple(chunk_id for chunk_id in near if self._shares(chunk_id, wanted))

    def _shares(self, chunk_id: int, wanted: Counter[str]) -> bool:
        own = Counter(words_of(self._workspace[chunk_id].text))
        n_shared, least = (own & wanted).total(), min(own.total(), wanted.total())
        return n_shared >= LEAST_WORDS - 1 and n_shared >= LEAST_SHARED * least

    def _length(self, document: int) -> int:
        return len(self._workspace.documents[document].text)

    @cached_property
    def _words(self) -> WordIndex:
        workspace = self._workspace
        return word_index(workspace, lambda: texts_in_context(workspace), words_file(workspace, self._part))


_ALIKE = str.maketrans("‘’‚“”„«»–—−‐‑", '\'\'\'"""""-----', "\u00ad\u200b\u200c\u200d\u2060\ufeff")
"""Quotes, dashes, and characters without width."""


def fold(text: str) -> str:
    """A word as it is compared.

    >>> fold("\\ufb01ve\\u00adfold") == fold("FIVEFOLD")
    True
    """
    return unicodedata.normalize("NFKC", text).translate(_ALIKE).casefold()


class _Folded:
    """A document's words, folded and joined by a blank, and where each stands in it."""

    def __init__(self, document: Document) -> None:
        matches = [
            (match.start(), match.end(), fold(match[0])) for match in re.finditer(r"\S+", document.text)
        ]
        self._starts = [start for start, _, word in matches if word]
        self._ends = [end for _, end, word in matches if word]
        words = [word for _, _, word in matches if word]
        self._text = f" {' '.join(words)} "
        self._offsets = np.cumsum([1, *(len(word) + 1 for word in words)])

    def find(self, text: str) -> tuple[int, int] | None:
        """(start, end) in the document, whole words."""
        wanted = " ".join(filter(None, map(fold, text.split())))
        at = self._text.find(f" {wanted} ") if wanted else -1
        if at < 0:
            return None
        edges: Sequence[int] = [at + 1, at + len(wanted)]
        first, last = (int(np.searchsorted(self._offsets, edge, "right")) - 1 for edge in edges)
        return self._starts[first], self._ends[last]


def _name(title: str) -> str:
    """A title as a column of a TREC run."""
    return re.sub(r"\s+", "_", title)
