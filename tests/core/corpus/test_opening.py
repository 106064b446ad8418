"""Opening documents: known ones cost no tokenizing and no embedding."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from core.base.config import ChunkConfig
from core.base.errors import BadDocument, Cancelled
from core.base.home import CACHES, keep_arrays, kept_arrays, trim_caches
from core.base.progress import finish
from core.base.types import ChunkTable, Document
from core.corpus.bm25 import WordIndex
from core.corpus.opening import OpenProgress, chunk_table, open_corpus
from core.encode.encoder import DualEncoder
from core.ingest import read_document
from core.methods.qrag.agent import Agent

pytestmark = pytest.mark.usefixtures("home")

STORY = Document(
    "Story", "Mary went to the garden. John got the milk there. The night was cold. " * 30, "text"
)
PAGE = read_document(
    b"# House\n\nThe old house said nothing.\n\n| day | rain |\n|---|---|\n| one | three |\n\n- ship\n-"
    b" letter\n",
    "house.md",
)


@pytest.fixture
def encoder(agents: dict[str, Agent]) -> DualEncoder:
    return agents["relative10"].encoder


def files_of(home: Path) -> dict[Path, tuple[int, bytes]]:
    """Time of the last change and content of every file."""
    return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in home.rglob("*") if path.is_file()}


def assert_same_table(a: ChunkTable, b: ChunkTable) -> None:
    for name in ("start", "end", "n_tokens", "type_code", "heading_code"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
        assert getattr(a, name).dtype == getattr(b, name).dtype
    assert a.heading_paths == b.heading_paths


def test_opening_again_tokenizes_and_embeds_nothing(encoder: DualEncoder, home: Path) -> None:
    stages: list[OpenProgress] = []
    first = finish(open_corpus([STORY, PAGE], encoder), stages.append)
    workspace = first.corpus.workspace
    assert {progress.stage for progress in stages} == {"chunking", "embedding", "indexing"}
    assert first.n_embedded == len(set(workspace.texts()))
    assert [config.chunker for config in workspace.configs] == ["sentences", "structure"]
    before = files_of(home)
    stages.clear()
    again = finish(open_corpus([STORY, PAGE], encoder), stages.append)
    assert again.n_embedded == 0
    assert "chunking" not in {progress.stage for progress in stages}
    embedding = [progress for progress in stages if progress.stage == "embedding"]
    assert all(progress.done == progress.total == progress.n_cached for progress in embedding)
    assert files_of(home) == before
    np.testing.assert_array_equal(again.corpus.index.vectors, first.corpus.index.vectors)
    for a, b in zip(workspace.tables, again.corpus.workspace.tables, strict=True):
        assert_same_table(a, b)
    edited = Document(PAGE.title, PAGE.text.replace("The old house", "The house"), PAGE.kind)
    assert finish(open_corpus([edited, PAGE], encoder)).n_embedded == 1


def test_tables_are_kept_by_content_and_chunking(encoder: DualEncoder, home: Path) -> None:
    configs = [ChunkConfig(max_tokens=32), ChunkConfig(max_tokens=64)]
    first, second = (finish(chunk_table(STORY, config, encoder)) for config in configs)
    assert len(first) != len(second)
    renamed = Document("Another title", STORY.text, STORY.kind)
    assert_same_table(finish(chunk_table(renamed, configs[0], encoder)), first)
    assert len(list((home / "chunks").iterdir())) == 2


def test_a_damaged_table_is_cut_again(encoder: DualEncoder, home: Path) -> None:
    """Every 7th byte changed in turn, and the file cut, emptied or replaced by something else: the right
    table comes out each time.
    """
    config = ChunkConfig(chunker="structure", max_tokens=32)
    table = finish(chunk_table(PAGE, config, encoder))
    (path,) = (home / "chunks").iterdir()
    content = path.read_bytes()
    flipped = [content[:i] + bytes([content[i] ^ 0xFF]) + content[i + 1 :] for i in range(0, len(content), 7)]
    for spoilt in (*flipped, content[: len(content) // 2], b"", b"no archive", json.dumps({}).encode()):
        path.write_bytes(spoilt)
        assert_same_table(finish(chunk_table(PAGE, config, encoder)), table)
    path.write_bytes(b"no archive")
    finish(chunk_table(PAGE, config, encoder))
    assert_same_table(finish(chunk_table(PAGE, config, encoder)), table)
    assert path.read_bytes() != b"no archive"


def counted(encoder: DualEncoder, part: str = "") -> tuple[bytes, ...]:
    """What the words of a new opening say, to the bit."""
    words = finish(open_corpus([STORY, PAGE], encoder, part=part)).corpus.words
    queries = (["john", "milk", "john"], ["house"], ["cold", "nobody"])
    return (*(words.scores(query).tobytes() for query in queries), bytes([words.frequency("rain")]))


def test_words_are_counted_at_the_first_opening_alone(encoder: DualEncoder, home: Path) -> None:
    first = counted(encoder)
    before = files_of(home)
    (path,) = (home / "words").iterdir()
    assert counted(encoder) == first
    assert files_of(home) == before
    stored = kept_arrays(path)
    keep_arrays(path, {**stored, "data": 2 * stored["data"]})
    assert counted(encoder) != first, "they were read from the file"
    assert counted(encoder, "somebody") == first, "a part sees no other"
    assert trim_caches(0) >= 1
    assert not path.exists()
    finish(open_corpus([PAGE], encoder)).corpus.words.scores(["house"])
    finish(open_corpus([PAGE, STORY], encoder)).corpus.words.scores(["house"])
    assert len(set((home / "words").glob("*.npz")) - {path}) == 2, "one for each list of chunks"
    assert "words" in CACHES


def test_damaged_words_are_counted_again(encoder: DualEncoder, home: Path) -> None:
    """Every 7th byte changed in turn, the file cut or emptied, and whole files whose arrays don't fit each
    other or the chunks.
    """
    first = counted(encoder)
    (path,) = (home / "words").iterdir()
    content, stored = path.read_bytes(), kept_arrays(path)
    corpus = finish(open_corpus([STORY, PAGE], encoder)).corpus
    n = len(corpus)
    for i in range(0, len(content), 7):
        path.write_bytes(content[:i] + bytes([content[i] ^ 0xFF]) + content[i + 1 :])
        kept = WordIndex.kept(path, n)
        assert kept is None or kept.scores(["john"]).tobytes() == corpus.words.scores(["john"]).tobytes()
    for spoilt in (content[: len(content) // 2], content[:-1], b"", b"no archive"):
        path.write_bytes(spoilt)
        assert WordIndex.kept(path, n) is None
    ends, rows = stored["indptr"], stored["indices"]
    for changed in (
        {"indices": np.where(rows == rows.max(), n, rows).astype(np.int32)},
        {"indices": -1 - rows},
        {"indices": rows.astype(np.int64)},
        {"indices": rows[:-1]},
        {"data": stored["data"].astype(object).astype(str)},
        {"indptr": ends[::-1].copy()},
        {"indptr": ends + 1},
        {"words": stored["words"][:-9]},
        {"words": np.full(9, 0xFF, np.uint8)},
    ):
        keep_arrays(path, {**stored, **changed})
        assert WordIndex.kept(path, n) is None, changed
    assert counted(encoder) == first
    assert kept_arrays(path).keys() == stored.keys(), "and kept again"


def test_cancel_at_any_stage_leaves_nothing_half_done(encoder: DualEncoder) -> None:
    for stage in ("chunking", "embedding", "indexing"):

        def cancel(progress: OpenProgress, stage: str = stage) -> None:
            if progress.stage == stage:
                raise Cancelled

        with pytest.raises(Cancelled):
            finish(open_corpus([STORY], encoder), cancel)
    assert finish(open_corpus([STORY], encoder)).n_embedded == 0  # the last cancel came when all was embedded


def test_no_text_at_all(encoder: DualEncoder) -> None:
    for documents in ([Document("Blank", " \n ", "text")], []):
        with pytest.raises(BadDocument, match="no text to search"):
            finish(open_corpus(documents, encoder))


def test_a_home_that_is_no_folder(encoder: DualEncoder, home: Path) -> None:
    """Chunks can do without their cache; vectors say where they could not be kept."""
    shutil.rmtree(home, ignore_errors=True)
    home.write_text("a file")
    table = finish(chunk_table(STORY, ChunkConfig(), encoder))
    assert len(table) > 1
    opened = finish(open_corpus([STORY], encoder))
    assert len(opened.corpus) == len(table)
    assert opened.corpus.words.frequency("milk") > 0
    assert "can't be kept" in opened.notices[0]
    assert home.read_text() == "a file"


@pytest.mark.parametrize(
    ("text", "is_told"),
    [
        ("Der Hafen ist im Winter zu, und die Fähre fährt nicht. " * 4, True),
        (
            "Przewoźnik śpi, gdyż łódź już odpłynęła; młyn stoi, żona płacze i dziewięć gęsi idzie wąską ścieżką. "
            * 3,
            True,
        ),
        ("渡轮早上六点从北码头出发。", True),
        ("The harbour is shut in winter, and the ferry does not go. " * 4, False),
        ("| Pump | Rate |\n| P-7 | 12 l |\n" * 20, False),
    ],
)
def test_a_document_in_another_language_is_told(encoder: DualEncoder, text: str, is_told: bool) -> None:
    notices = finish(open_corpus([Document("a", text, "text")], encoder)).notices
    assert any("not in English" in notice for notice in notices) == is_told
