"""BM25 over the words of the chunks, see `core.corpus.bm25`."""

from __future__ import annotations

import time
from collections.abc import Iterator

from core.base.config import EpisodeConfig
from core.base.errors import BadRequest
from core.base.events import Event
from core.corpus.index import Searchable
from core.corpus.words import words_of
from core.methods.protocol import Method, check, one_look_events, ranked

BM25 = Method(
    name="bm25",
    label="BM25",
    sentence="The chunks that share the rarest words with the question, all at once; no encoder",
    score_name="BM25",
    has_vectors=False,
    zero_is_none=True,
)


def check_words(corpus: Searchable) -> None:
    """Raises BadRequest where no chunk holds a word."""
    if corpus.words.is_empty:
        raise BadRequest("no chunk of the document holds a word that BM25 could count; choose another method")


class Bm25:
    """Lexical BM25 over the chunks' texts, see `core.corpus.bm25`."""

    name = BM25.name

    def retrieve(self, query: str, corpus: Searchable, config: EpisodeConfig) -> Iterator[Event]:
        """See `Retriever`. Chunks that share no word with the query are never retrieved."""
        query = check(query, corpus, config)
        check_words(corpus)
        started = time.perf_counter()
        scores = corpus.words.scores(words_of(query))
        sharing = [i for i in ranked(scores, config) if scores[i] > 0]
        yield from one_look_events(self.name, "", query, corpus, config, scores, sharing, started)
