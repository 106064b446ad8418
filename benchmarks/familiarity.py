"""How foreign real documents are to each shipped agent.

Bits a word piece, as a ratio to the agent's own validation texts. An agent calls a document foreign from a
ratio of `core.encode.familiarity.FOREIGN` on. Documents are of kinds that the agent knows (novels of authors
it never read), knows in part (essays, wiki paragraphs), and does not know (other languages, program text,
lists).
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

from benchmarks import Row
from core.base.types import Document, Workspace
from core.encode.checkpoint import find_checkpoint, shipped_checkpoints
from core.encode.encoder import DualEncoder
from core.encode.familiarity import FOREIGN
from core.ingest import chunk_document, read_document
from core.lab.tasks.data import data_folder
from core.lab.tasks.samples import list_samples

MOST_CHARACTERS = 200_000
PAGES = 12
"""The first so many of the web pages."""


def rows() -> list[Row]:
    """A row per agent and document."""
    out = []
    for name in shipped_checkpoints():
        encoder = DualEncoder(find_checkpoint(name))
        familiarity = encoder.familiarity
        if familiarity is None:
            continue
        for label, document in _documents():
            table = chunk_document(document, encoder.spec.chunk_config("sentences"), encoder.tokenizer)
            bits = familiarity.surprise(Workspace((document,), (table,)).texts(), encoder.tokenizer) or 0.0
            verdict = "foreign" if familiarity.is_foreign(bits) else "familiar"
            out.append(
                Row(
                    f"{name}: {label}",
                    bits,
                    "bits",
                    f"own texts, {verdict} (limit {FOREIGN})",
                    bits / familiarity.own,
                )
            )
    return out


def _documents() -> Iterator[tuple[str, Document]]:
    data = data_folder()
    for sample in list_samples():
        yield f"sample {sample.key}", read_document(sample.path.read_bytes(), sample.key)
    for path in sorted((data / "books" / "eval").glob("*.txt.gz"))[:8]:
        yield f"novel {path.name.removesuffix('.txt.gz')}", _text(path, _unpacked(path).decode())
    with gzip.open(data / "essays" / "essays.jsonl.gz", "rt", encoding="utf-8") as file:
        for number, line in enumerate(file):
            if number < 4:
                yield f"essay {number}", _text(Path("essay.txt"), json.loads(line)["text"])
    with gzip.open(data / "musique" / "eval.jsonl.gz", "rt", encoding="utf-8") as file:
        paragraphs = [chunk["text"] for line in file for chunk in json.loads(line)["chunks"]]
    yield "paragraphs of MuSiQue", _text(Path("musique.txt"), "\n\n".join(paragraphs))
    for path in sorted((data / "markdown").glob("*.md.gz")):
        yield f"Markdown {path.name.removesuffix('.md.gz')}", _text(path, _unpacked(path).decode())
    for path in sorted((data / "html").glob("*.html.gz"))[:PAGES]:
        yield (
            f"page {path.name.removesuffix('.html.gz')}",
            read_document(_unpacked(path), path.name.removesuffix(".gz")),
        )
    source = Path(__file__).resolve().parents[1] / "core" / "corpus" / "index.py"
    yield "program text", _text(source, source.read_text(encoding="utf-8"))


def _unpacked(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes())


def _text(path: Path, text: str) -> Document:
    return Document(path.name, text[:MOST_CHARACTERS], "text")
