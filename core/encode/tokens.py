"""A fast tokenizer: counts, offsets and ids, all without special tokens."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from tokenizers import Encoding
from tokenizers import Tokenizer as RustTokenizer

from core.base.batches import batches
from core.base.errors import BadCheckpoint

_BATCH = 4096
"""Texts a call: bounds the memory of the encodings that Rust hands back."""


class FastTokenizer:
    """Wraps the `tokenizer.json` of a base encoder. Satisfies `core.ingest.Tokenizer`."""

    def __init__(self, directory: Path) -> None:
        """Raises BadCheckpoint without a fast tokenizer that has a BERT-like encoder's special tokens."""
        path = directory / "tokenizer.json"
        if not path.is_file():
            raise BadCheckpoint(
                f"{directory.name} has no tokenizer.json; only encoders with a fast tokenizer are supported"
            )
        try:
            self._tokenizer = RustTokenizer.from_file(str(path))
        except Exception as error:  # the Rust side raises bare Exception
            raise BadCheckpoint(
                f"tokenizer.json of {directory.name} can't be read ({error}); fetch the encoder again"
            ) from error
        self.sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.cls_id = self._special_id("[CLS]", "<s>")
        self.sep_id = self._special_id("[SEP]", "</s>")
        self.pad_id = self._special_id("[PAD]", "<pad>")

    @property
    def vocabulary_size(self) -> int:
        """Token ids run below this."""
        return int(self._tokenizer.get_vocab_size())

    def _special_id(self, *names: str) -> int:
        for name in names:
            token_id = self._tokenizer.token_to_id(name)
            if token_id is not None:
                return int(token_id)
        raise BadCheckpoint(
            f"the tokenizer knows none of the special tokens {', '.join(names)}; only BERT-like encoders are"
            " supported"
        )

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text, special tokens left out."""
        return [encoding.ids for encoding in self._encoded(texts)]

    def pieces(self, texts: Sequence[str]) -> list[tuple[list[int], list[tuple[int, int]]]]:
        """(token ids, code point offsets) of each text, special tokens left out."""
        return [
            (encoding.ids, encoding.offsets)
            for encoding in self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        ]

    def count(self, texts: Sequence[str]) -> np.ndarray:
        """(N,) int32 tokens of each text, special tokens left out."""
        return np.fromiter(map(len, self._encoded(texts)), np.int32, len(texts))

    def _encoded(self, texts: Sequence[str]) -> Iterator[Encoding]:
        for some in batches(texts, _BATCH):
            yield from self._tokenizer.encode_batch_fast(list(some), add_special_tokens=False)

    def spans(self, text: str) -> np.ndarray:
        """(n_tokens, 2) int64 code point offsets of each token in `text`."""
        offsets = self._tokenizer.encode(text, add_special_tokens=False).offsets
        return np.asarray(offsets, dtype=np.int64).reshape(-1, 2)
