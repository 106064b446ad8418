"""Bytes -> document -> chunks: readers, cleaning and the two chunkers."""

from core.ingest.chunker import chunk_document, default_chunker
from core.ingest.converter import ENCODINGS, Converter, ReadingConfig
from core.ingest.documents import read_documents
from core.ingest.limits import MAX_DOCUMENT_TOKENS, MAX_FILE_BYTES
from core.ingest.reader import OnPart, read_document, read_pasted
from core.ingest.sentences import split_sentences
from core.ingest.tokenizer import Tokenizer

__all__ = [
    "ENCODINGS",
    "MAX_DOCUMENT_TOKENS",
    "MAX_FILE_BYTES",
    "Converter",
    "OnPart",
    "ReadingConfig",
    "Tokenizer",
    "chunk_document",
    "default_chunker",
    "read_document",
    "read_documents",
    "read_pasted",
    "split_sentences",
]
