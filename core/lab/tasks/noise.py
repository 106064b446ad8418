"""Chunks of prose that decide nothing.

Novels and essays from the data sets, or the project's own composed prose. Novels are hard-wrapped, so lines
are joined before sentences are found. Cutting and counting are those of `core.ingest`, so noise looks as a
document does in the app. People of novels can be given other names, so that prose speaks of those whom a
question asks about.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Literal

import numpy as np

from core.base.errors import BadRequest
from core.ingest.packing import Units, pack, spans_array
from core.ingest.sentences import iter_sentences
from core.ingest.tokenizer import Tokenizer
from core.lab.tasks.data import UNREADABLE, data_folder
from core.lab.tasks.example import Noise
from core.lab.tasks.prose import compose_paragraph

Source = Literal["books/train", "books/eval", "essays"]
SOURCES: tuple[Source, ...] = ("books/train", "books/eval", "essays")

LONGEST_SENTENCE = 64
"""Tokens at which a sentence is cut where each is a chunk of its own: the app's chunk size."""
CHARACTERS_PER_TOKEN = 8
"""Far more than prose has, so that so many characters surely hold the tokens asked for."""

_EMPTY_LINES = re.compile(r"\n\s*\n")
_WORD = re.compile(r"[A-Za-z]+")
_TALK = "said asked cried answered replied went came looked turned sat stood thought felt knew smiled"
"""Words that follow the name of a person far more often than that of a place or a day."""
_FEWEST_TALKS = 3
_MOVES = (
    "went came took got left returned moved walked gave picked put ran brought carried followed dropped"
    " travelled handed passed entered hurried stepped climbed drove rode arrived retired crossed rushed"
    " strolled wandered descended reached fetched seized lifted threw"
)
_DOES = rf" (?:had |then |\w+ly )?(?:{_MOVES.replace(' ', '|')})\b"
_LONGEST_DEED = 40
"""Tokens of a sentence that is mostly about the deed."""
_LONGEST_CALL = 12
"""Tokens of a sentence that says hardly more than a name."""
_TITLE = r"(?:(?:Mr|Mrs|Miss|Dr|Sir|Lady|Lord|Captain)\.? )?"


def read_noise(
    source: Source,
    tokenizer: Tokenizer,
    max_tokens: int | None = None,
    n_tokens: int | None = None,
    data: Path | None = None,
) -> Noise:
    """Noise from the data sets, files in the order of their names, until it has `n_tokens` tokens. With
    `max_tokens` None each sentence is a chunk (cut at 64 tokens), else whole sentences are packed up to so
    many. Raises BadRequest when the source is unknown or its files aren't there.
    """
    return _collect(source, _texts(source, data_folder(data)), tokenizer, max_tokens, n_tokens)


def compose_noise(rng: Random, tokenizer: Tokenizer, n_tokens: int) -> Noise:
    """Noise of at least `n_tokens` tokens from the project's own prose, for where there are no data sets."""
    paragraphs = (" ".join(compose_paragraph(rng)) for _ in iter(int, 1))
    return _collect("prose", paragraphs, tokenizer, None, n_tokens)


def find_people(texts: Sequence[str]) -> frozenset[str]:
    """Words always written with a capital that are seen doing something: names of people, as a guess.

    >>> texts = ["Emma went.", "Then Emma said so.", "Emma sat in London.", "She went; he and she said so."]
    >>> sorted(find_people(texts))
    ['Emma']
    """
    words, talk = [_WORD.findall(text) for text in texts], _TALK.split()
    lower = {word.capitalize() for sentence in words for word in sentence if word.islower()}
    talks = Counter(word for sentence in words for word, following in pairwise(sentence) if following in talk)
    return frozenset(
        word
        for word, n in talks.items()
        if n >= _FEWEST_TALKS and len(word) > 2 and word.istitle() and word not in lower
    )


def find_deeds(noise: Noise, people: frozenset[str]) -> Noise:
    """The short sentences in which one of `people`, of whom one stands for every "he" and "she" as well,
    goes, takes, carries or gives: they are there to be renamed. Token counts are as they were.
    """
    somebody = min(people, default="")
    texts = [re.sub(rf"\b(?:[Hh]e|[Ss]he)(?={_DOES})", somebody, text) for text in noise.texts]
    return _short(noise, texts, _LONGEST_DEED, rf"\b{_any_of(people)}{_DOES}")


def find_calls(noise: Noise, people: frozenset[str]) -> Noise:
    """The sentences of a few words that name one of `people`: they look like facts about them."""
    return _short(noise, noise.texts, _LONGEST_CALL, rf"\b{_any_of(people)}\b")


def _short(noise: Noise, texts: Sequence[str], most: int, pattern: str) -> Noise:
    """Texts of at most so many tokens in which a pattern is found, counts as they were."""
    short = np.flatnonzero(noise.n_tokens <= most).tolist()
    rows = [row for row in short if re.search(pattern, texts[row])]
    return Noise(noise.name, tuple(texts[row] for row in rows), noise.n_tokens[rows])


def rename_people(
    noise: Noise, people: frozenset[str], cast: Sequence[str], rng: Random, tokenizer: Tokenizer
) -> Noise:
    """The same sentences, each mention of `people`, title and all, a name drawn from the `cast`."""
    pattern = re.compile(rf"\b{_TITLE}{_any_of(people)}\b")
    texts = tuple(pattern.sub(lambda _: rng.choice(cast), text) for text in noise.texts)
    return Noise(noise.name, texts, np.array(tokenizer.count(texts), dtype=np.int32))


def _any_of(people: frozenset[str]) -> str:
    """A pattern of one of their names; of nobody's where there are none."""
    return f"(?:{'|'.join(sorted(people))})" if people else "(?!)"


def _texts(source: Source, data: Path) -> Iterator[str]:
    if source not in SOURCES:
        raise BadRequest(f"noise {source!r} does not exist; choose among {', '.join(SOURCES)}")
    paths = sorted((data / source).glob("*.jsonl.gz" if source == "essays" else "*.txt.gz"))
    if not paths:
        raise BadRequest(f"{data / source} holds no texts; put the {source} files there")
    for path in paths:
        try:
            with gzip.open(path, "rt", encoding="utf-8") as file:
                yield from (
                    (json.loads(line)["text"] for line in file) if source == "essays" else [file.read()]
                )
        except (*UNREADABLE, UnicodeDecodeError) as error:
            raise BadRequest(f"{path} can't be read ({error}); fetch it again") from error


def _collect(
    name: str, texts: Iterator[str], tokenizer: Tokenizer, max_tokens: int | None, n_tokens: int | None
) -> Noise:
    """Chunks of one text after another until there are enough."""
    chunks: list[str] = []
    counts: list[np.ndarray] = []
    total = 0
    for text in texts:
        left = len(text) if n_tokens is None else CHARACTERS_PER_TOKEN * (n_tokens - total)
        parts, n = cut_prose(text[: left + 1000] if left <= len(text) else text, tokenizer, max_tokens)
        chunks += parts
        counts.append(n)
        total += int(n.sum())
        if n_tokens is not None and total >= n_tokens:
            break
    if not chunks:
        raise BadRequest(f"the noise {name} holds no text; check its files")
    n = np.concatenate(counts)
    enough = len(n) if n_tokens is None else min(len(n), int(np.searchsorted(np.cumsum(n), n_tokens)) + 1)
    return Noise(name, tuple(chunks[:enough]), n[:enough])


def cut_prose(text: str, tokenizer: Tokenizer, max_tokens: int | None) -> tuple[list[str], np.ndarray]:
    """Chunks of one text, line breaks in paragraphs joined, and (N,) int32 token counts; see `read_noise`."""
    paragraphs = _EMPTY_LINES.split(text)
    text = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    spans = spans_array(iter_sentences(text))
    groups = np.arange(len(spans), dtype=np.int32) if max_tokens is None else np.zeros(len(spans), np.int32)
    chunks, n_tokens = pack(text, Units(spans, groups), max_tokens or LONGEST_SENTENCE, tokenizer)
    texts = [" ".join(text[start:end].split()) for start, end in chunks.spans.tolist()]
    kept = [row for row, chunk in enumerate(texts) if any(map(str.isalpha, chunk))]
    return [texts[row] for row in kept], np.array(n_tokens[kept], dtype=np.int32)
