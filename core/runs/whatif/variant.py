"""What made the difference.

The same question over the same documents but for one chunk, which reads otherwise or is gone. A changed chunk
is no slice of any document: a `Variant` is laid over a corpus and is searched like one. Only the changed text
is embedded, and its vector is kept nowhere; nor is a run over it, since the log holds runs that can be made
again from documents. A chunk that is taken out leaves no gap: those behind it move up by one, and so do their
positions.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from core.base.config import EpisodeConfig
from core.base.errors import BadRequest
from core.base.events import StepTaken, Trace, fold
from core.base.later import torch
from core.corpus.bm25 import WordIndex, word_index
from core.corpus.context import context, texts_in_context, with_new_words
from core.corpus.index import ChunkIndex, Corpus
from core.encode.cache import embed_chunks
from core.encode.encoder import DualEncoder
from core.methods.qrag.agent import Agent
from core.methods.qrag.retriever import AgentRetriever

MAX_TEXT = 10_000
"""Characters of a changed chunk: several times what an encoder reads of one."""


@dataclass(frozen=True)
class Change:
    """What is done to one chunk."""

    chunk_id: int
    text: str | None
    """What it reads instead; None takes it out."""

    def check_against(self, corpus: Corpus) -> None:
        """Raises BadRequest when the corpus can't be changed so."""
        if not 0 <= self.chunk_id < len(corpus):
            raise BadRequest(
                f"chunk {self.chunk_id} does not exist; change one between 0 and {len(corpus) - 1}"
            )
        if self.text is None:
            if len(corpus) == 1:
                raise BadRequest(
                    "the only chunk can't be left out, nothing would be left to search; change its text"
                    " instead"
                )
            return
        if not self.text.strip():
            raise BadRequest("the changed text is empty; type some, or leave the chunk out instead")
        if len(self.text) > MAX_TEXT:
            raise BadRequest(
                f"the changed text has {len(self.text):,} characters, more than {MAX_TEXT:,}; shorten it"
            )
        if self.text == corpus.text(self.chunk_id):
            raise BadRequest("the text is as it was; change it, or leave the chunk out")
        try:
            self.text.encode()
        except UnicodeEncodeError as error:
            raise BadRequest(
                f"the changed text holds half a character at position {error.start + 1}; type it again"
            ) from error


@dataclass(frozen=True, eq=False)
class Variant:
    """A corpus with one change: a `Searchable` with own chunk ids; `original` leads back to the corpus's."""

    corpus: Corpus
    change: Change
    index: ChunkIndex
    n_embedded: int
    """Chunks that had to be embedded: the changed one, or none."""
    n_unread: int = 0
    """Tokens at the end of the changed chunk that the encoder has no room for."""

    @property
    def borders(self) -> np.ndarray:
        borders = self.corpus.borders
        return borders - (borders > self.change.chunk_id) if self.change.text is None else borders

    def __len__(self) -> int:
        return len(self.index)

    def text(self, chunk_id: int) -> str:
        original = self.original(chunk_id)
        if original == self.change.chunk_id and self.change.text is not None:
            return self.change.text
        return self.corpus.text(original)

    def texts(self) -> Sequence[str]:
        return [self.text(chunk_id) for chunk_id in range(len(self))]

    def _texts_in_context(self) -> list[str]:
        workspace, at, text = self.corpus.workspace, self.change.chunk_id, self.change.text
        texts = texts_in_context(workspace)
        changed = [] if text is None else [with_new_words(context(workspace, at), text)]
        return [*texts[:at], *changed, *texts[at + 1 :]]

    @property
    def words(self) -> WordIndex:
        return word_index(self, self._texts_in_context)

    def original(self, chunk_id: int) -> int:
        """The corpus's id of a chunk of the variant."""
        return chunk_id + (self.change.text is None and chunk_id >= self.change.chunk_id)

    def own(self, original: int) -> int | None:
        """The variant's id of a chunk of the corpus; None for the one that is gone."""
        if self.change.text is not None:
            return original
        return None if original == self.change.chunk_id else original - (original > self.change.chunk_id)

    def renumbered(self, config: EpisodeConfig) -> EpisodeConfig:
        """A run's configuration with the variant's ids."""
        forced = tuple(
            (step, own) for step, chunk_id in config.forced if (own := self.own(chunk_id)) is not None
        )
        forbidden = tuple(own for chunk_id in config.forbidden if (own := self.own(chunk_id)) is not None)
        return config.with_(forced=forced, forbidden=forbidden)


def vary(corpus: Corpus, encoder: DualEncoder, change: Change) -> Variant:
    """The corpus with one chunk changed; `encoder` made its vectors. Raises BadRequest."""
    change.check_against(corpus)
    index = corpus.index
    rows = np.arange(len(index)) if index.rows is None else index.rows
    if change.text is None:
        return Variant(corpus, change, index.arranged(np.delete(rows, change.chunk_id)), 0)
    vector = torch.from_numpy(embed_chunks(encoder, [change.text], None)).to(index.vectors)
    changed = rows.copy()
    changed[change.chunk_id] = len(index.vectors)
    vectors = torch.cat([index.vectors, vector])
    replaced = ChunkIndex(
        vectors,
        halves=index.halves,
        theta=index.theta,
        resolution=index.resolution,
        device=vectors.device,
        rows=changed,
    )
    n_read = min(encoder.spec.readable_tokens, encoder.max_positions - 2)
    n_unread = len(encoder.tokenizer.ids([change.text])[0]) - n_read
    return Variant(corpus, change, replaced, 1, max(0, n_unread))


@dataclass(frozen=True)
class VariantChoice:
    """A chunk that one of two runs chose at a step."""

    chunk_id: int
    """Of the corpus."""
    text: str
    q_value: float
    other_q: float | None
    """Q of the same chunk at the same look of the other run; None where that has no such look or chunk."""


@dataclass(frozen=True)
class StepPair:
    """The same step of two runs; None where one of them had stopped."""

    step: int
    before: VariantChoice | None
    after: VariantChoice | None

    @property
    def same_chunk(self) -> bool:
        """Whether both runs chose the same place of the documents, whatever it reads now."""
        before, after = self.before, self.after
        return before is not None and after is not None and before.chunk_id == after.chunk_id


@dataclass(frozen=True, eq=False)
class TryOut:
    """A run that was made again over a variant."""

    variant: Variant
    before: Trace
    after: Trace
    """In the variant's ids."""
    milliseconds: float
    """Of making the variant and of the run."""

    @property
    def pairs(self) -> tuple[StepPair, ...]:
        """Both runs step by step."""
        steps = zip_longest(self.before.steps, self.after.steps)
        return tuple(
            StepPair(at, self._before(was), self._after(now)) for at, (was, now) in enumerate(steps, start=1)
        )

    @property
    def differs_from(self) -> int | None:
        """First step that is not the same in both; None when they chose alike."""
        return next((pair.step for pair in self.pairs if not pair.same_chunk), None)

    def _before(self, step: StepTaken | None) -> VariantChoice | None:
        if step is None:
            return None
        return _choice(step, step.chunk_id, self.after, self.variant.own(step.chunk_id))

    def _after(self, step: StepTaken | None) -> VariantChoice | None:
        if step is None:
            return None
        chunk_id = self.variant.original(step.chunk_id)
        return _choice(step, chunk_id, self.before, chunk_id)


def _choice(step: StepTaken, chunk_id: int, other: Trace, other_id: int | None) -> VariantChoice:
    """other_id: of the same chunk in the other run."""
    scores = other.scores_at(step.step)
    q_value = None if scores is None or other_id is None else float(scores.q_values[other_id])
    return VariantChoice(chunk_id, step.text, step.q_value, q_value)


def try_out(encoder: DualEncoder, before: Trace, corpus: Corpus, change: Change) -> TryOut:
    """An agent's run again, same settings, with one chunk changed. Raises BadRequest."""
    began = time.perf_counter()
    variant = vary(corpus, encoder, change)
    retriever = AgentRetriever(Agent(encoder, before.started.method))
    after = fold(retriever.retrieve(before.started.query, variant, variant.renumbered(before.started.config)))
    return TryOut(variant, before, after, 1000 * (time.perf_counter() - began))
