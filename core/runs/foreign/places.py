"""Where the passages of another retriever stand in opened documents.

By the place or name that was given, if its text stands there; else by text, first in the document that is
named: exact, then with case, blanks and Unicode folded, then by the words that a chunk shares with it. Other
cuts than ours are usual, so a passage may be several chunks.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import PurePath
from typing import Literal

import numpy as np

from core.base.types import Workspace
from core.corpus.bm25 import WordIndex, word_index
from core.corpus.context import texts_in_context
from core.corpus.opening import words_file
from core.corpus.words import words_of
from core.runs.foreign.files import ForeignPassage

How = Literal["given", "exact", "folded", "overlap"]
LEAST_SHARED = 0.7
"""Of the words of a chunk or of the passage, how many the other must hold."""
LEAST_WORDS = 4
"""Of a passage, below which shared words say nothing, and its text only where it stands once."""
_Way = Callable[[int, str, bool], Iterator[tuple[int, int]]]
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
        self._known: dict[tuple[str, int | None, tuple[tuple[int, ...], ...]], FoundAgain | None] = {}
        files = [document.file for document in workspace.documents]
        titles = [document.title for document in workspace.documents]
        self._named = [_by_name(names) for names in (titles, files, [PurePath(file).stem for file in files])]

    def find(self, passage: ForeignPassage) -> FoundAgain | None:
        """None for what isn't in the documents."""
        text, document = passage.text.strip(), self._document(passage)
        given = tuple(filter(None, self._given(passage, document)))
        if not text:
            return FoundAgain("given", given[0]) if given else None
        key = (text, document, given)
        if key not in self._known:
            held = next(filter(None, (self._around(chunk_ids, text) for chunk_ids in given)), None)
            self._known[key] = FoundAgain("given", held) if held else self._by_text(text, document)
        return self._known[key]

    def _document(self, passage: ForeignPassage) -> int | None:
        """The one that its title, name or TITLE#CHUNK names, else its number; None where nothing does."""
        names = (passage.title, passage.name, passage.name.rpartition("#")[0])
        return next((i for i in map(self._titled, names) if i is not None), passage.document)

    def _titled(self, title: str) -> int | None:
        """The document of a title or file, or of a path that ends in it; None where several are called so."""
        last = re.split(r"[/\\]", title)[-1]
        for name in map(_name, (title, last, _ENDING.sub("", last))):
            for named in self._named:
                if name in named:
                    return named[name]
        return None

    def _given(self, passage: ForeignPassage, document: int | None) -> Iterator[tuple[int, ...]]:
        """By a chunk id, a range of characters, or a name: a document's title, or TITLE#CHUNK. What that
        counts is the document's own chunks, as in the files that we write, or else all.
        """
        chunk_id, n_documents = passage.chunk_id, len(self._workspace.documents)
        title, _, number = passage.name.rpartition("#")
        named, counts = self._titled(title), number.isdecimal() and len(number) < 9
        if chunk_id is None and counts and not title and passage.text:  # an id that may be ours
            chunk_id = int(number)
        if chunk_id is not None:
            yield (chunk_id,) if 0 <= chunk_id < len(self._workspace) else ()
        elif passage.start is not None and passage.end is not None:
            if document is None:
                document = -1 if passage.title and n_documents > 1 else 0
            inside = 0 <= document < n_documents
            yield self._chunks(document, passage.start, passage.end) if inside else ()
        elif counts and named is not None:
            first, last = (int(self._workspace.borders[named + i]) for i in (0, 1))
            yield from ((i,) for i in (first + int(number), int(number)) if first <= i < last)
        elif not passage.text and (named := self._titled(passage.name)) is not None:
            yield self._chunks(named, 0, self._length(named))

    def _around(self, chunk_ids: tuple[int, ...], text: str) -> tuple[int, ...]:
        """The chunks that hold a text, if it stands in these or across their edges."""
        first, last = (self._workspace[chunk_ids[i]] for i in (0, -1))
        start = max(0, first.start - len(text) + 1)
        around = self._workspace.documents[first.document].text[start : last.end + len(text) - 1]
        at = around.find(text)
        span = (at, at + len(text)) if at >= 0 else None
        if span is None and len(chunk_ids) <= _NEIGHBOURS:  # folding takes long
            span = next(_Folded(around).find(text), None)
        return self._chunks(first.document, start + span[0], start + span[1]) if span else ()

    def _by_text(self, text: str, document: int | None) -> FoundAgain | None:
        wanted, everywhere = Counter(words_of(text)), range(len(self._workspace.documents))
        # stop words are no words to the index, and texts without blanks are one word here
        is_short = max(len(text.split()), wanted.total()) < LEAST_WORDS
        ways: tuple[tuple[How, _Way], ...] = (("exact", self._exact), ("folded", self._alike))
        for documents in ([i for i in everywhere if i == document], everywhere):
            for how, spans in ways:
                places = ((i, *span) for i in documents for span in spans(i, text, is_short))
                if found := list(islice(places, 1 + is_short)):
                    return FoundAgain(how, self._chunks(*found[0])) if len(found) == 1 else None
        shared = self._by_words(wanted)
        return FoundAgain("overlap", shared) if shared else None

    def _exact(self, document: int, text: str, is_short: bool) -> Iterator[tuple[int, int]]:
        """Where it stands in a document; a short one as whole words, any other at its first place."""
        whole = self._workspace.documents[document].text
        if is_short:
            yield from (match.span() for match in re.finditer(rf"(?<!\w){re.escape(text)}(?!\w)", whole))
        elif (at := whole.find(text)) >= 0:
            yield at, at + len(text)

    def _alike(self, document: int, text: str, _: bool) -> Iterator[tuple[int, int]]:
        if document not in self._folded:
            self._folded[document] = _Folded(self._workspace.documents[document].text)
        return self._folded[document].find(text)

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
    """A text's words, folded and joined by a blank, and where each stands in it."""

    def __init__(self, text: str) -> None:
        matches = [(match.start(), match.end(), fold(match[0])) for match in re.finditer(r"\S+", text)]
        self._starts = [start for start, _, word in matches if word]
        self._ends = [end for _, end, word in matches if word]
        words = [word for _, _, word in matches if word]
        self._text = f" {' '.join(words)} "
        self._offsets = np.cumsum([1, *(len(word) + 1 for word in words)])

    def find(self, text: str) -> Iterator[tuple[int, int]]:
        """(start, end) of each place in the text, whole words."""
        wanted = " ".join(filter(None, map(fold, text.split())))
        at = self._text.find(f" {wanted} ") if wanted else -1
        while at >= 0:
            edges: Sequence[int] = [at + 1, at + len(wanted)]
            first, last = (int(np.searchsorted(self._offsets, edge, "right")) - 1 for edge in edges)
            yield self._starts[first], self._ends[last]
            at = self._text.find(f" {wanted} ", at + 1)


_ENDING = re.compile(r"\.[A-Za-z]\w{0,7}$")
"""Of a file's name; no number, as titles end in."""


def _by_name(names: Sequence[str]) -> dict[str, int | None]:
    """Documents by name; None for what several are called."""
    counts = Counter(map(_name, names))
    return {name: i if counts[name] == 1 else None for i, name in enumerate(map(_name, names)) if name}


def _name(title: str) -> str:
    """A title as a column of a TREC run."""
    return re.sub(r"\s+", "_", title)
