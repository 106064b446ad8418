"""What a chunk stands under reaches whoever searches and reads it."""

from collections.abc import Sequence

import pytest

from core.answer.evidence import answer_evidence
from core.answer.protocol import Answer, Span
from core.base.config import ChunkConfig
from core.base.types import Document, Workspace
from core.corpus.bm25 import WordIndex
from core.corpus.context import context, texts_in_context
from core.corpus.words import words_of
from core.ingest import chunk_document
from tests.core.ingest.conftest import WordTokenizer
from tests.plain_reader import PlainReader

SHEET = "| Part | Value |\n| --- | --- |\n| Weight | {} g |\n| Colour | grey |\n| Warranty | 24 months |"
LAMPS = "# Lamps\n\n" + "\n\n".join(
    f"## {name}\n\n{SHEET.format(weight)}"
    for name, weight in (("Heron", 250), ("Kestrel", 305), ("Plover", 410))
)


def workspace_of(*documents: Document, max_tokens: int = 200) -> Workspace:
    config = ChunkConfig(chunker="structure", max_tokens=max_tokens)
    tables = tuple(chunk_document(document, config, WordTokenizer()) for document in documents)
    return Workspace(documents, tables)


def lamps(max_tokens: int = 200) -> Workspace:
    return workspace_of(Document("Catalogue", LAMPS, "markdown"), max_tokens=max_tokens)


def test_of_three_like_tables_words_find_the_one_under_its_heading() -> None:
    workspace = lamps()
    scores = WordIndex(texts_in_context(workspace)).scores(words_of("Kestrel weight"))
    best = workspace[int(scores.argmax())]
    assert "305 g" in best.text
    assert context(workspace, best.chunk_id) == "Lamps / Kestrel"


def test_a_row_that_was_cut_off_has_its_header_cells_before_it() -> None:
    workspace = lamps(max_tokens=14)
    cut = [chunk.chunk_id for chunk in workspace if chunk.text.startswith("| Weight")]
    assert [context(workspace, chunk_id) for chunk_id in cut] == [
        f"Lamps / {name}\n| Part | Value |" for name in ("Heron", "Kestrel", "Plover")
    ]
    in_context = texts_in_context(workspace)
    assert [text for text in in_context if "305" in text] == [
        "Lamps Kestrel Part Value\n| Weight | 305 g |\n| Colour | grey |"
    ]
    assert in_context[0] == "", "headings alone stand before what is below them"


@pytest.mark.parametrize(
    ("header", "row", "goes_on"),
    [
        ("| Port | Summer | Summer |", "| Port | Adult | Child |", True),
        ("|  | Boats | Boats |", "| Port | in use | laid up |", True),
        ("| Port | Boats | Boats |", "| Port | 2019 | 2020 |", True),
        ("| Port | Fare | Fare |", "| Lund | 14 | 7 |", False),
        ("|  | Fare | Fare |", "| Lund | 14 | 7 |", False),
        ("| Port | Fare | Child |", "| Port | none | none |", False),
    ],
)
def test_a_row_that_names_columns_below_a_cell_over_several_is_of_the_header(
    header: str, row: str, goes_on: bool
) -> None:
    rows = "\n".join(f"| Lund {i} | {i} | 7 |" for i in range(20))
    page = Document("Fares", f"{header}\n| --- | --- | --- |\n{row}\n{rows}", "markdown")
    workspace = workspace_of(page, max_tokens=40)
    assert context(workspace, 0) == ""
    assert {context(workspace, chunk_id) for chunk_id in range(1, len(workspace))} == {
        f"{header}\n{row}" if goes_on else header
    }


def test_a_chunk_that_says_it_itself_has_none_and_titles_tell_several_documents_apart() -> None:
    page = Document("Lease 7", "## Rent\n\nForty crowns.", "markdown")
    assert context(workspace_of(page), 0) == ""
    several = workspace_of(page, Document("Notes", "Plain words.", "text"))
    assert [context(several, chunk_id) for chunk_id in range(2)] == ["Lease 7", "Notes"]


class Finder(PlainReader):
    """Reads passages for one word."""

    name = "finder"

    def __init__(self, word: str) -> None:
        self.word = word

    def read(self, question: str, passages: Sequence[str]) -> Answer:  # noqa: ARG002 - it looks for its word
        found = next(number for number, text in enumerate(passages) if self.word in text)
        start = passages[found].index(self.word)
        span = Span(found, start, start + len(self.word))
        return Answer(self.word, 0.9, span, "answer", span)


@pytest.mark.parametrize(("word", "place"), [("305", (42, 45)), ("Kestrel", None)])
def test_an_answer_is_placed_in_its_chunk_and_one_from_a_heading_cites_it(
    word: str, place: tuple[int, int] | None
) -> None:
    workspace = lamps()
    table = next(chunk for chunk in workspace if "305 g" in chunk.text)
    above = {table.chunk_id: context(workspace, table.chunk_id)}
    [answer] = answer_evidence(Finder(word), ["?"], [{table.chunk_id: table.text}], contexts=[above])
    assert answer.citations == (table.chunk_id,)
    assert answer.place == place
    assert place is None or table.text[slice(*place)] == word
