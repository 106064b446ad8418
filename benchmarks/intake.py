"""Opening a novel against sentence-transformers.

That is given the chunks and encodes them in its defaults; --n tokens, 100,000 by default. Ours is all of
opening: reading, cutting, tokenizing, embedding, keeping the vectors, indexing; each time into an empty home
folder. Medians of five are compared, in seconds on the wall and of the processors: the latter say something
on a busy machine, too. Encoding, tokenizing, which is a part of it, and reading and cutting are measured
alone, too. Install sentence-transformers for this comparison.
"""

from __future__ import annotations

from collections.abc import Callable

from sentence_transformers import SentenceTransformer

from benchmarks import Row, empty_home, median_times
from benchmarks.prose import novels
from core.base.progress import finish
from core.corpus.opening import chunk_documents, open_corpus
from core.encode.checkpoint import find_base
from core.encode.encoder import DualEncoder, load_encoder
from core.encode.packaged import MINILM
from core.ingest import read_document

CHECKPOINTS = {"general": "chunks of 220 tokens", "narrative": "a sentence a chunk"}
"""Of the base encoder's size, and how each cuts."""
REPEATS = 5


def rows(n: int = 100_000) -> list[Row]:
    """For each way of cutting: rates, ratios, and encoding's share of opening."""
    data = novels(n)
    theirs, out = SentenceTransformer(str(find_base(MINILM)), device="cpu"), []
    for name, cut in CHECKPOINTS.items():
        out += _compare(data, cut, load_encoder(name, "cpu"), theirs)
    return out


def _compare(data: bytes, cut: str, encoder: DualEncoder, theirs: SentenceTransformer) -> list[Row]:
    def opening() -> None:
        with empty_home():
            finish(open_corpus([read_document(data, "book.txt")], encoder))

    def cutting() -> list[str]:
        with empty_home():
            return finish(chunk_documents([read_document(data, "book.txt")], encoder)).texts()

    texts = cutting()
    n_tokens = int(encoder.tokenizer.count(texts).sum()) + 2 * len(texts)
    works: dict[str, Callable[[], object]] = {
        "ours": opening,
        "encoding": lambda: encoder.encode_chunks(texts),
        "tokenizing": lambda: encoder.tokenizer.ids(texts),
        "reading and cutting": cutting,
        "theirs": lambda: theirs.encode(texts, show_progress_bar=False),
    }
    medians = median_times(works, REPEATS)
    engine = encoder.engine.split(", ")[0]
    out = []
    for clock, attribute in (("s", "wall"), ("CPU s", "processors")):
        seconds = {name: getattr(median, attribute) for name, median in medians.items()}
        rate, ratio = n_tokens / seconds["ours"], seconds["theirs"] / seconds["ours"]
        measure = f"{cut}: opening with {engine}"
        out.append(Row(measure, rate, f"tokens/{clock}", "sentence-transformers", ratio))
        for part in ("encoding", "tokenizing", "reading and cutting"):
            share = seconds[part] / seconds["ours"]
            out.append(Row(f"{cut}: {part} alone", seconds[part], clock, "opening", share))
    return out
