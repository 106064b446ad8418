"""Where the passages of another retriever stand in opened documents.

By the place or name that was given, if its text stands there; else by text, first in the document that is
named: exact, with case, blanks and Unicode folded, by words in a row, then by words that chunks share with
it. Other cuts than ours are usual, so a passage may be several chunks.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
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
LEAST_OF_PASSAGE = 0.5
"""Of the passage's words, how many must be in the chunks that are taken for it."""
LEAST_WORDS = 4
"""Of a passage, below which shared words say nothing, and its text only where it stands once."""
_Way = Callable[[int, str, bool], Iterator[tuple[int, int]]]
_NEIGHBOURS = 50
"""Chunks around the best one that may belong to the same passage."""
_MOST_PLACES = 64
"""Of the same words in a row, how many are looked at."""
_MOST_PAIRS = 1 << 20
"""Of such places, for all of a passage."""
_MOST_KNOWN = 10_000
"""Passages that are kept with where they stand."""
_EDGES = " \t\r\n\"'“”„«»‘’….[]"
"""What is put around a passage that is cut out or quoted."""
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,200}>")


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
        self._rows: dict[int, _Rows] = {}
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
        known = self._known
        if key not in known:
            if len(known) >= _MOST_KNOWN:
                self._known = known = {}
            held = next(filter(None, (self._around(chunk_ids, text) for chunk_ids in given)), None)
            known[key] = FoundAgain("given", held) if held else self._by_text(text, document)
        return known[key]

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
        """By a chunk id, a range of characters, or a name: a document's title, or TITLE#CHUNK, which counts
        the document's own chunks or all.
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
            first, last = self._ids(named)
            yield from ((i,) for i in (first + int(number), int(number)) if first <= i < last)
        elif not passage.text and (named := self._titled(passage.name)) is not None:
            yield self._chunks(named, 0, len(self._workspace.documents[named].text))

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
        ways: tuple[tuple[How, _Way], ...] = (("exact", self._exact), ("folded", self._alike))
        named = [i for i in everywhere if i == document]
        for words in dict.fromkeys((text, text.strip(_EDGES))):
            # stop words are no words to the index, and texts without blanks are one word here
            is_short = max(len(words.split()), wanted.total()) < LEAST_WORDS
            for documents in (named, everywhere) if words else ():
                for how, spans in ways:
                    places = ((i, *span) for i in documents for span in spans(i, words, is_short))
                    if found := list(islice(places, 1 + is_short)):
                        return FoundAgain(how, self._chunks(*found[0])) if len(found) == 1 else None
        shared = self._in_a_row(text, named) or self._in_a_row(text, everywhere) or self._by_words(wanted)
        return FoundAgain("overlap", shared) if shared else None

    def _exact(self, document: int, text: str, is_short: bool) -> Iterator[tuple[int, int]]:
        """Where it stands in a document; a short one as whole words, any other at its first place."""
        whole = self._workspace.documents[document].text
        if is_short and text in whole:
            yield from (match.span() for match in re.finditer(rf"(?<!\w){re.escape(text)}(?!\w)", whole))
        elif not is_short and (at := whole.find(text)) >= 0:
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

    def _in_a_row(self, text: str, documents: Iterable[int]) -> tuple[int, ...]:
        """The chunks where most of a passage stands word for word, with something before, behind or in it."""
        best = (0.0, -1, 0, 0)
        *_, rows = _rows(_TAG.sub(" ", text))
        for document in documents:
            if document not in self._rows:
                self._rows[document] = _Rows(self._workspace.documents[document].text)
            share, start, end = self._rows[document].find(rows)
            best = max(best, (share, document, start, end), key=lambda one: one[0])
        share, document, start, end = best
        if share < LEAST_SHARED:
            return ()
        held = self._workspace.documents[document].text[start:end]
        return self._chunks(document, start, end) if len(words_of(held)) >= LEAST_WORDS - 1 else ()

    def _by_words(self, wanted: Counter[str]) -> tuple[int, ...]:
        """Chunks behind one another near the one that shares most, if they have enough of the passage;
        headings only between others.
        """
        if wanted.total() < LEAST_WORDS:
            return ()
        best = int(np.argmax(self._words.scores(wanted.elements())))
        first, last = self._ids(self._workspace.locate(best)[0])
        runs: list[tuple[list[int], Counter[str]]] = [([], Counter())]
        n_shared: dict[int, int] = {}
        for chunk_id in range(max(first, best - _NEIGHBOURS), min(last, best + _NEIGHBOURS + 1)):
            own = Counter(words_of(self._workspace[chunk_id].text))
            n_shared[chunk_id] = (own & wanted).total()
            if n_shared[chunk_id] >= LEAST_SHARED * min(own.total(), wanted.total()):
                runs[-1][0].append(chunk_id)
                runs[-1][1].update(own)
            else:
                runs.append(([], Counter()))
        totals = [((own & wanted).total(), ids) for ids, own in runs]
        most, chunk_ids = max(totals, key=lambda one: (one[0], best in one[1]))
        solid = [chunk_id for chunk_id in chunk_ids if n_shared[chunk_id] >= LEAST_WORDS - 1]
        if not solid or most < LEAST_OF_PASSAGE * wanted.total():
            return ()
        return tuple(range(solid[0], solid[-1] + 1))

    def _ids(self, document: int) -> tuple[int, int]:
        """The first chunk of a document, and that behind its last."""
        first, last = self._workspace.borders[document : document + 2].tolist()
        return first, last

    @cached_property
    def _words(self) -> WordIndex:
        workspace = self._workspace
        return word_index(workspace, lambda: texts_in_context(workspace), words_file(workspace, self._part))


_ALIKE = str.maketrans("‘’‚“”„«»–—−‐‑", '\'\'\'"""""-----', "\u00ad\u200b\u200c\u200d\u2060\ufeff")


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


class _Rows:
    """A text's words as numbers, `LEAST_WORDS` in a row each, and where these stand."""

    def __init__(self, text: str) -> None:
        self._starts, self._ends, self._rows = _rows(text)
        self._order = np.argsort(self._rows, kind="stable")

    def find(self, rows: np.ndarray) -> tuple[float, int, int]:
        """(share of a passage that stands there, start, end) of where most of its rows do."""
        first, end = (np.searchsorted(self._rows, rows, side, self._order) for side in ("left", "right"))
        counts = np.minimum(end - first, max(1, min(_MOST_PLACES, _MOST_PAIRS // max(1, len(rows)))))
        if not counts.any():
            return 0.0, 0, 0
        before = np.cumsum(counts) - counts
        places = self._order[np.repeat(first - before, counts) + np.arange(counts.sum())]
        own = np.repeat(np.arange(len(rows)), counts)
        shifts, which = np.unique(places - own, return_inverse=True)
        rarity = 1 / np.maximum(1, end - first)
        shift = int(shifts[np.argmax(np.bincount(which, np.repeat(rarity, counts)))])
        # what is added or left out within it shifts what follows: of each row the closest place, if it's near
        gaps = np.abs(places - own - shift)
        closest = np.lexsort((gaps, own))[before[counts > 0]]
        near = closest[gaps[closest] <= LEAST_WORDS + len(rows) // 10]
        # and those that stand so often that the place here was none of the first ones
        there = np.arange(max(0, -shift), min(len(rows), len(self._rows) - shift))
        there = there[self._rows[there + shift] == rows[there]]
        own, places = np.append(own[near], there), np.append(places[near], there + shift)
        held = np.unique(own[:, None] + np.arange(LEAST_WORDS)).size / (len(rows) + LEAST_WORDS - 1)
        return held, int(self._starts[places.min()]), int(self._ends[places.max() + LEAST_WORDS - 1])


def _rows(text: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(start of each word, its end, (N - LEAST_WORDS + 1,) what stands for it and those behind it)."""
    starts, ends, codes = array("q"), array("q"), array("q")
    known: dict[str, int] = {}
    for match in re.finditer(r"\w+", text):
        starts.append(match.start())
        ends.append(match.end())
        codes.append(known.get(match[0]) or known.setdefault(match[0], hash(fold(match[0]))))
    words = np.frombuffer(codes, np.int64).astype(np.uint64) if codes else np.zeros(0, np.uint64)
    n = max(0, len(words) - LEAST_WORDS + 1)
    rows = np.zeros(n, np.uint64)
    for i in range(LEAST_WORDS):
        rows = rows * np.uint64(0x9E3779B97F4A7C15) + words[i : i + n]
    return np.array(starts), np.array(ends), rows


_ENDING = re.compile(r"\.[A-Za-z]\w{0,7}$")
"""Of a file's name; no number, as titles end in."""


def _by_name(names: Sequence[str]) -> dict[str, int | None]:
    """Documents by name; None for what several are called."""
    counts = Counter(map(_name, names))
    return {name: i if counts[name] == 1 else None for i, name in enumerate(map(_name, names)) if name}


def _name(title: str) -> str:
    """A title as a column of a TREC run."""
    return re.sub(r"\s+", "_", title)
