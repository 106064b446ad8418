"""Both chunkers: what must hold of every chunk table."""

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.base.config import CHUNKERS, ChunkConfig
from core.base.errors import BadDocument, BadRequest, Cancelled
from core.base.types import Document, Workspace
from core.ingest import chunk_document, default_chunker, packing

PIECES = [
    *("# Top\n", "## Part\n", "### Deep *one*\n", "Title\n=====\n", "---\n", "\n", "\n\n", "\ttab"),
    *("Some words here. And more of them, with a clause; then an end.", "词语。另一句。", "e\u0301" * 30),
    *("- item one", "- item two\n  more", "\n1. first\n2. second\n", "a|b\n-|-\n", "<!-- # hidden\n-->\n"),
    *("\n| a | b |\n| --- | --- |\n| 1 | 2 |\n| 3 | 4 |\n", "```\ncode # no heading\n- no list\n```\n"),
    *("averyveryveryverylongwordwithoutanyblank" * 3, "> quoted\n"),
]


texts = st.lists(st.sampled_from(PIECES), min_size=1, max_size=25).map("".join).filter(str.strip)


def chunks_of(text, tokenizer, chunker, max_tokens=8, kind="markdown"):
    table = chunk_document(
        Document("t", text, kind), ChunkConfig(chunker=chunker, max_tokens=max_tokens), tokenizer
    )
    return list(Workspace((Document("t", text, kind),), (table,))), table


@pytest.mark.parametrize("chunker", CHUNKERS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=texts, max_tokens=st.integers(8, 30))
def test_every_chunk_is_a_slice_that_fits_and_nothing_is_lost(text, max_tokens, chunker, tokenizer):
    chunks, _ = chunks_of(text, tokenizer, chunker, max_tokens)
    edges = [0, *(edge for chunk in chunks for edge in (chunk.start, chunk.end)), len(text)]
    gaps = ["".join(text[a:b].split()) for a, b in zip(edges[::2], edges[1::2], strict=True)]
    assert edges == sorted(edges)
    assert all(chunk.text.strip() for chunk in chunks)
    assert [chunk.n_tokens for chunk in chunks] == tokenizer.count([chunk.text for chunk in chunks]).tolist()
    assert max(chunk.n_tokens for chunk in chunks) <= max_tokens
    assert not any(gaps)


@pytest.mark.parametrize(
    ("one_sentence", "expected"),
    [
        (False, ["One two. One two. Three.", "A b c d e f g,", "h i j k l m n o p", "q r."]),
        (True, ["One two.", "One two.", "Three.", "A b c d e f g,", "h i j k l m n o p", "q r."]),
    ],
)
def test_sentences_are_packed_or_stand_alone_and_only_one_too_long_is_broken_best_after_a_clause(
    tokenizer, one_sentence, expected
):
    """Repeats are kept."""
    document = Document("t", "One two. One two. Three.\n\nA b c d e f g, h i j k l m n o p q r.", "text")
    table = chunk_document(document, ChunkConfig(max_tokens=9, one_sentence=one_sentence), tokenizer)
    assert [chunk.text for chunk in Workspace((document,), (table,))] == expected
    with pytest.raises(BadRequest, match="choose sentences"):
        ChunkConfig(chunker="structure", one_sentence=True)


def test_words_and_letters_too_long_for_a_chunk_are_cut_and_a_blank_text_has_none(tokenizer):
    for text, max_tokens in (("x" * 45_000, 64), ("e\u0301 " * 40, 8), (" \n", 8)):
        chunks, _ = chunks_of(text, tokenizer, "sentences", max_tokens, "text")
        assert "".join("".join(chunk.text for chunk in chunks).split()) == "".join(text.split())
        assert all(chunk.text[0] in "xe" for chunk in chunks), "accents stay with their letters"


def test_scripts_that_a_tokenizer_does_not_know_make_no_giant_chunks(tokenizer):
    thai = "เรือประภาคาร" * 9
    for text in (f"{thai} " * 40, thai * 200):
        chunks, _ = chunks_of(text, tokenizer, "sentences", 32, "text")
        assert max(len(chunk.text) for chunk in chunks) <= 32 * 13
        assert "".join(chunk.text for chunk in chunks).replace(" ", "") == text.replace(" ", "")


def test_structure_chunks_have_their_type_and_heading_path(tokenizer):
    """A heading right below a higher one shares its chunk."""
    text = (
        "# Top\n\n## Intro\n\nWords.\n\n## Data\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\nAfter it.\n\n## Steps\n\n-"
        " one\n- two\n  - inner\n\nEnd."
    )
    chunks, _ = chunks_of(text, tokenizer, "structure", 40)
    assert [(chunk.type, chunk.heading_path, chunk.text) for chunk in chunks] == [
        ("text", ("Top", "Intro"), "# Top\n\n## Intro\n\nWords."),
        ("text", ("Top", "Data"), "## Data"),
        ("table", ("Top", "Data"), "| a | b |\n| --- | --- |\n| 1 | 2 |"),
        ("text", ("Top", "Data"), "After it."),
        ("text", ("Top", "Steps"), "## Steps"),
        ("list", ("Top", "Steps"), "- one\n- two\n  - inner"),
        ("text", ("Top", "Steps"), "End."),
    ]


def test_long_tables_are_cut_between_rows_and_long_lists_between_items(tokenizer):
    rows = [f"| {i} | x |" for i in range(6)]
    table, _ = chunks_of("\n".join(["| a | b |", "|---|---|", *rows]), tokenizer, "structure", 24)
    assert "\n".join(chunk.text for chunk in table) == "\n".join(["| a | b |", "|---|---|", *rows])
    assert len(table) > 1
    assert {chunk.type for chunk in table} == {"table"}
    items, _ = chunks_of("\n".join(f"- item {i}\n  its text" for i in range(5)), tokenizer, "structure", 14)
    assert all(chunk.text.startswith("- item") and chunk.type == "list" for chunk in items)


BODIES = {
    "text": ["The ferry leaves.", "Nobody came."],
    "list": ["- oil\n- wick", "- sweep"],
    "table": ["| a | b |\n| --- | --- |\n| 1 | 2 |"],
}
blocks = st.lists(
    st.tuples(st.integers(1, 3), st.sampled_from(["Heron", "Kestrel"]))
    | st.sampled_from([(kind, body) for kind, bodies in BODIES.items() for body in bodies]),
    min_size=1,
    max_size=30,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(blocks=blocks)
def test_everything_stays_under_its_own_heading_however_often_it_stands(blocks, tokenizer):
    lines, path, expected = [], [], []
    joins = False
    for kind, words in blocks:
        if isinstance(kind, int):
            lines.append(f"{'#' * kind} {words}")
            path = [*((level, title) for level, title in path if level < kind), (kind, words)]
            joins = False
            continue
        lines.append(words)
        titles = tuple(title for _, title in path)
        if kind in ("text", "list") and joins == kind:
            expected[-1] = (kind, titles, f"{expected[-1][2]} {words}")
        else:
            expected.append((kind, titles, words))
        joins = kind
    chunks, _ = chunks_of("\n\n".join(lines), tokenizer, "structure", 10_000)
    bodies = [(chunk.type, chunk.heading_path, re.sub(r"(?m)^#+ .*\n*", "", chunk.text)) for chunk in chunks]
    assert [(kind, titles, body.split()) for kind, titles, body in bodies if body] == [
        (kind, titles, body.split()) for kind, titles, body in expected
    ]


def test_progress_rises_to_the_end_and_cancel_passes_through(tokenizer, monkeypatch):
    monkeypatch.setattr(packing, "BATCH_UNITS", 10)
    document = Document("t", "One two. Three four. " * 200, "text")
    seen = []
    chunk_document(
        document, ChunkConfig(max_tokens=8), tokenizer, lambda done, total: seen.append((done, total))
    )
    assert seen == sorted(seen)
    assert seen[-1] == (len(document.text), len(document.text))

    def stop(*_):
        raise Cancelled

    with pytest.raises(Cancelled):
        chunk_document(document, ChunkConfig(max_tokens=8), tokenizer, stop)


def test_too_many_tokens_are_refused_in_one_sentence(tokenizer, monkeypatch):
    monkeypatch.setattr(packing, "MAX_DOCUMENT_TOKENS", 100)
    with pytest.raises(BadDocument, match="more than 100 tokens; split it"):
        chunk_document(Document("t", "word " * 200, "text"), ChunkConfig(), tokenizer)


def test_marked_up_documents_are_cut_by_structure():
    chunkers = {kind: default_chunker(kind) for kind in ("html", "markdown", "text", "chunks")}
    assert chunkers == {
        **dict.fromkeys(("html", "markdown"), "structure"),
        **dict.fromkeys(("text", "chunks"), "sentences"),
    }
