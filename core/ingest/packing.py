"""Units of text -> chunks of at most so many tokens.

Neighbouring units of one group are packed greedily. A unit that is too long alone is cut into its sentences,
a sentence that is too long at a token border: after a line break if one is near the end, else after clause
punctuation, else at a blank. Units are counted first; a chunk of several is counted again as the one text it
is, since not every tokenizer adds up. Memory stays bounded: offsets in arrays, a batch of strings at a time.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, pairwise

import numpy as np

from core.base.errors import BadDocument
from core.ingest.limits import BATCH_UNITS, MAX_DOCUMENT_TOKENS, MAX_UNIT_CHARACTERS
from core.ingest.sentences import iter_sentences
from core.ingest.tokenizer import Tokenizer

Progress = Callable[[int, int], None]
Cut = Callable[[str, int, int], Iterator[tuple[int, int]]]
_MOST_CHARACTERS = 12
"""Characters, blanks not counted, that pass for one token at most: prose has four or five, but a run of a
script that a tokenizer does not know is one token however long it is.
"""
_CLAUSE_ENDS = frozenset(",;:.!?…—–)]|、，；：。")


@dataclass(frozen=True, eq=False)
class Units:
    """Spans of the text that should stay whole, in order; chunks are units of a coarser kind. U rows."""

    spans: np.ndarray
    """(U, 2) int64 start and end, neither on a blank."""
    group: np.ndarray
    """(U,) int32, ascending: only units of one group share a chunk."""

    def __len__(self) -> int:
        return len(self.group)


def spans_array(spans: Iterator[tuple[int, int]]) -> np.ndarray:
    """(U, 2) int64 from a stream of pairs, without a list of them."""
    return np.fromiter(chain.from_iterable(spans), dtype=np.int64).reshape(-1, 2)


def pack(
    text: str, units: Units, max_tokens: int, tokenizer: Tokenizer, on_progress: Progress | None = None
) -> tuple[Units, np.ndarray]:
    """Chunks of at most `max_tokens` tokens, N of them, and their (N,) token counts.

    `on_progress(done, len(text))` may raise. Raises BadDocument beyond MAX_DOCUMENT_TOKENS tokens.
    """
    counter = _Counter(text, tokenizer, on_progress)
    units, _ = _cut(units, text, _slabs, units.spans[:, 1] - units.spans[:, 0] > MAX_UNIT_CHARACTERS)
    counts = counter.count(units.spans, 0.0, 0.5)
    pieces = partial(counter.pieces, max_tokens=max_tokens, budget=max_tokens)
    for cut in (sentences_of, pieces):
        units, counts = counter.refine(units, counts, counts > max_tokens, cut)

    first = _greedy(counts, units.group, max_tokens)
    last = np.append(first[1:], len(units))[: len(first)] - 1
    chunks = Units(np.stack([units.spans[first, 0], units.spans[last, 1]], axis=1), units.group[first])
    n_tokens = counts[first]
    n_tokens[last > first] = counter.count(chunks.spans[last > first], 0.5, 1.0)
    while (over := (n_tokens > max_tokens) & _hold_several(chunks, units)).any():
        chunks, n_tokens = counter.refine(chunks, n_tokens, over, _halves(units))
    if on_progress is not None:
        on_progress(len(text), len(text))
    return chunks, n_tokens.astype(np.int32)


def _greedy(counts: np.ndarray, group: np.ndarray, max_tokens: int) -> np.ndarray:
    """(N,) int64: the units that begin a chunk."""
    first: list[int] = []
    total, current = 0, -1
    for row, (count, owner) in enumerate(zip(counts.tolist(), group.tolist(), strict=True)):
        total += count
        if owner != current or total > max_tokens:
            first.append(row)
            total, current = count, owner
    return np.array(first, dtype=np.int64)


def _cut(units: Units, text: str, cut: Cut, which: np.ndarray) -> tuple[Units, np.ndarray]:
    """Units with those of the mask `which` in parts, and the row each was before, -1 for a part."""
    spans, groups, origins = [], [], []
    rows = np.arange(len(units))
    at = 0
    for row in np.flatnonzero(which).tolist():
        start, end = units.spans[row].tolist()
        parts = spans_array(cut(text, start, end))
        group = np.full(len(parts), units.group[row], dtype=np.int32)
        spans += [units.spans[at:row], parts]
        groups += [units.group[at:row], group]
        origins += [rows[at:row], np.full(len(parts), -1)]
        at = row + 1
    spans.append(units.spans[at:])
    groups.append(units.group[at:])
    origins.append(rows[at:])
    finer = Units(np.concatenate(spans), np.concatenate(groups))
    return finer, np.concatenate(origins)


def sentences_of(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    return ((start + a, start + b) for a, b in iter_sentences(text[start:end]))


def _slabs(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Parts of at most MAX_UNIT_CHARACTERS, cut at the last line break or blank where there is one."""
    while end - start > MAX_UNIT_CHARACTERS:
        limit = start + MAX_UNIT_CHARACTERS
        border = next((cut for blank in "\n " if (cut := text.rfind(blank, start, limit)) > start), limit)
        yield from trimmed(text, start, border)
        start = border
    yield from trimmed(text, start, end)


def _hold_several(chunks: Units, units: Units) -> np.ndarray:
    """(N,) bool: the chunks made of more than one unit."""
    first, after = np.searchsorted(units.spans[:, 0], chunks.spans).T
    held: np.ndarray = after - first > 1
    return held


def _halves(units: Units) -> Cut:
    """A cut of a chunk of several units between two of them."""

    def cut(_: str, start: int, end: int) -> Iterator[tuple[int, int]]:
        first, after = np.searchsorted(units.spans[:, 0], [start, end]).tolist()
        middle = (first + after) // 2
        yield start, int(units.spans[middle - 1, 1])
        yield int(units.spans[middle, 0]), end

    return cut


def trimmed(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The span without blanks at its ends, unless it is all blank."""
    part = text[start:end]
    length = len(part.rstrip())
    if length:
        yield start + len(part) - len(part.lstrip()), start + length


class _Counter:
    """Counts slices of one text in batches, with progress."""

    def __init__(self, text: str, tokenizer: Tokenizer, on_progress: Progress | None) -> None:
        self.text = text
        self.tokenizer = tokenizer
        self.on_progress = on_progress

    def count(self, spans: np.ndarray, begin: float = 0.0, finish: float = 0.0) -> np.ndarray:
        """(U,) int64 token counts. Where they differ, reports shares from `begin` to `finish` of the work."""
        counts = np.zeros(len(spans), dtype=np.int64)
        total = 0
        for row in range(0, len(spans), BATCH_UNITS):
            batch = spans[row : row + BATCH_UNITS].tolist()
            texts = [self.text[start:end] for start, end in batch]
            found = self.tokenizer.count(texts)
            for at in np.flatnonzero(
                found * _MOST_CHARACTERS < np.subtract(*np.array(batch).T[::-1])
            ).tolist():
                found[at] = max(found[at], len("".join(texts[at].split())) // _MOST_CHARACTERS)
            counts[row : row + len(batch)] = found
            total += int(counts[row : row + len(batch)].sum())
            if total > MAX_DOCUMENT_TOKENS:
                raise BadDocument(
                    f"the document has more than {MAX_DOCUMENT_TOKENS:,} tokens; split it and open the parts"
                )
            if self.on_progress is not None and finish > begin:
                done = begin + (finish - begin) * (row + len(batch)) / len(spans)
                self.on_progress(round(done * len(self.text)), len(self.text))
        return counts

    def refine(
        self, units: Units, counts: np.ndarray, which: np.ndarray, cut: Cut
    ) -> tuple[Units, np.ndarray]:
        """Replaces the units in the mask `which` by their parts, and counts those."""
        if not which.any():
            return units, counts
        finer, origin = _cut(units, self.text, cut, which)
        finer_counts = counts[origin]
        finer_counts[origin < 0] = self.count(finer.spans[origin < 0])
        return finer, finer_counts

    def pieces(
        self, text: str, start: int, end: int, *, max_tokens: int, budget: int
    ) -> Iterator[tuple[int, int]]:
        """A sentence cut at token borders; what counts more alone is cut at half the budget, at last by
        characters.
        """
        part = text[start:end]
        tokens = self.tokenizer.spans(part)
        has_borders = 0 < budget < len(tokens)
        borders = _plan(part, tokens, budget) if has_borders else [0, _middle(part), len(part)]
        planned = [span for a, b in pairwise(borders) for span in trimmed(text, start + a, start + b)]
        counts = self.count(np.array(planned, dtype=np.int64).reshape(-1, 2))
        for (a, b), n_tokens in zip(planned, counts.tolist(), strict=True):
            if n_tokens <= max_tokens or b - a == 1:
                yield a, b
            else:
                yield from self.pieces(text, a, b, max_tokens=max_tokens, budget=budget // 2)


def _middle(part: str) -> int:
    """Where a text without tokens is cut: at the blank nearest to its middle, inside no character."""
    half = len(part) // 2
    blanks = [at for at in (part.rfind(" ", 1, half + 1), part.find(" ", half, len(part) - 1)) if at > 0]
    if blanks:
        return min(blanks, key=lambda at: abs(at - half))
    while half > 1 and unicodedata.category(part[half])[0] == "M":
        half -= 1
    return max(1, half)


def _plan(part: str, tokens: np.ndarray, budget: int) -> list[int]:
    """Borders with at most `budget` token spans between two; each the best of its last quarter."""
    borders, row = [0], 0
    while len(tokens) - row > budget:
        row = max(
            range(row + budget, row + budget - budget // 4 - 1, -1),
            key=lambda i: _border_quality(part, tokens, i),
        )
        borders.append(max(borders[-1], int(tokens[row, 0])))
    return [*borders, len(part)]


def _border_quality(part: str, tokens: np.ndarray, i: int) -> int:
    """How well a cut before token `i` reads: line 4, clause 3, blank 2, else 1; inside a character 0."""
    before, after = int(tokens[i - 1, 1]), int(tokens[i, 0])
    gap = part[before:after]
    if "\n" in gap:
        return 4
    if part[before - 1 : before] in _CLAUSE_ENDS:
        return 3
    if gap:
        return 2
    return int(before <= after and not unicodedata.combining(part[after]))
