"""A tokenizer small enough to check by eye."""

import re

import numpy as np
import pytest

from core.ingest import Converter

_TOKEN = re.compile(r"\w{1,10}|[^\w\s]")


class WordTokenizer:
    """Satisfies core.ingest.Tokenizer."""

    def count(self, texts):
        return np.array([len(_TOKEN.findall(text)) for text in texts], dtype=np.int32)

    def spans(self, text):
        return np.array([match.span() for match in _TOKEN.finditer(text)], dtype=np.int64).reshape(-1, 2)


class NewlineTokenizer(WordTokenizer):
    """Counts line breaks, too, so that chunks hold more tokens than the sentences inside: like a byte-level
    tokenizer.
    """

    def count(self, texts):
        return super().count(texts) + np.array([text.count("\n") for text in texts], dtype=np.int32)


@pytest.fixture(scope="module")
def converter():
    """One child for a file: starting it takes a third of a second."""
    with Converter() as shared:
        yield shared


@pytest.fixture(params=[WordTokenizer, NewlineTokenizer])
def tokenizer(request):
    return request.param()
