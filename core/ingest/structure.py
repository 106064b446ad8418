"""Markdown -> units for the structure chunker (RES-RAG, appendix A, algorithm 1).

Tables and lists are groups of their own, with rows and top-level items as units; the text between is a group
of sentences. A heading begins a new group and its words stay in the text, so every chunk is an exact slice
and nothing is lost. Departs from algorithm 1 in two places: a table or list closes the text before it, and a
heading with nothing below it but a deeper heading joins that one's group.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from core.base.types import CHUNK_TYPES, ChunkType
from core.ingest.blocks import Block, parse_blocks
from core.ingest.packing import Units, sentences_of, trimmed
from core.ingest.sentences import iter_sentences


class Layout:
    """Units of a text, and type and heading path of each group's chunks. Grows while blocks are read."""

    def __init__(self) -> None:
        self._spans = array("q")
        self._group = array("i")
        self._type = array("B")
        self._heading = array("i")
        self._codes: dict[tuple[str, ...], int] = {}

    def add(self, chunk_type: ChunkType, path: tuple[str, ...], spans: Iterable[tuple[int, int]]) -> None:
        """Appends one group, unless it has no units."""
        before = len(self._group)
        for span in spans:
            self._spans.extend(span)
            self._group.append(len(self._type))
        if len(self._group) > before:
            self._type.append(CHUNK_TYPES.index(chunk_type))
            self._heading.append(self._codes.setdefault(path, len(self._codes)))

    @property
    def units(self) -> Units:
        return Units(
            np.array(self._spans, dtype=np.int64).reshape(-1, 2), np.array(self._group, dtype=np.int32)
        )

    @property
    def type_code(self) -> np.ndarray:
        """(groups,) uint8, index into CHUNK_TYPES."""
        return np.array(self._type, dtype=np.uint8)

    @property
    def heading_code(self) -> np.ndarray:
        """(groups,) int32, index into `heading_paths`."""
        return np.array(self._heading, dtype=np.int32)

    @property
    def heading_paths(self) -> tuple[tuple[str, ...], ...]:
        return tuple(self._codes)


def sentence_layout(text: str) -> Layout:
    """The sentences of the whole text as one group without headings (Q-RAG, appendix H)."""
    layout = Layout()
    layout.add("text", (), iter_sentences(text))
    return layout


def structure_layout(text: str) -> Layout:
    """Tables, lists and the text between, each under its headings."""
    layout = Layout()
    headings: list[Block] = []
    start = body = 0
    for block in parse_blocks(text):
        path = tuple(heading.title for heading in headings)
        if block.type == "heading":
            joins = (
                bool(headings)
                and block.level > headings[-1].level
                and start < body
                and not text[body : block.start].strip()
            )
            if not joins:
                layout.add("text", path, sentences_of(text, start, block.start))
                start = block.start
            headings = [*(heading for heading in headings if heading.level < block.level), block]
            body = block.end
        else:
            layout.add("text", path, sentences_of(text, start, block.start))
            borders = pairwise((*block.parts, block.end))
            layout.add(block.type, path, (span for a, b in borders for span in trimmed(text, a, b)))
            start = body = block.end
    path = tuple(heading.title for heading in headings)
    layout.add("text", path, sentences_of(text, start, len(text)))
    return layout
