"""Tokens a second of the dual encoder against sentence-transformers.

Same model, same texts, both in float32: 300 chunks of composed prose, 10 to 200 words each. Theirs runs at
the better of two batch sizes. Where the app runs ours otherwise, in half precision or with OpenVINO, that is
measured, too. Install sentence-transformers for this comparison.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from benchmarks import Row, median_times
from benchmarks.prose import compose_chunks
from core.encode.checkpoint import find_base, find_checkpoint, read_spec, write_spec
from core.encode.encoder import DualEncoder
from core.encode.packaged import MINILM

N_CHUNKS = 300
BATCH_SIZES = (32, 128)
REPEATS = 2


def rows() -> list[Row]:
    """Rates, and how far the two agree."""
    texts = list(islice(compose_chunks(), N_CHUNKS))
    with tempfile.TemporaryDirectory() as folder:
        write_spec(Path(folder), read_spec(find_checkpoint("base")).model_copy(update={"vectors": "float32"}))
        full = DualEncoder(Path(folder))
    shipped = DualEncoder(find_checkpoint("base"))
    as_float32 = {"dtype": torch.float32}
    theirs = SentenceTransformer(str(find_base(MINILM)), device=full.device.type, model_kwargs=as_float32)
    theirs.max_seq_length = full.spec.max_chunk_tokens
    n_tokens = int(np.minimum(full.tokenizer.count(texts) + 2, full.spec.max_chunk_tokens).sum())
    works: dict[str, Callable[[], object]] = {
        f"theirs {size}": partial(theirs.encode, texts, batch_size=size, normalize_embeddings=True)
        for size in BATCH_SIZES
    }
    works["float32"] = lambda: full.encode_chunks(texts)
    if shipped.engine != full.engine:
        works[shipped.engine] = lambda: shipped.encode_chunks(texts)
    seconds = {name: taken.wall for name, taken in median_times(works, REPEATS).items()}
    best = min(seconds[f"theirs {size}"] for size in BATCH_SIZES)
    against = "sentence-transformers, float32, better of two batch sizes"
    rates = [
        Row(f"encoding, {name}", n_tokens / seconds[name], "tokens/s", against, best / seconds[name])
        for name in works
        if not name.startswith("theirs")
    ]
    expected = theirs.encode(texts, normalize_embeddings=True)
    cosine = float((full.encode_chunks(texts) * expected).sum(axis=1).min())
    smallest = "smallest cosine between the two vectors of a text"
    return [*rates, Row(smallest, cosine, "cosine", "sentence-transformers, float32")]
