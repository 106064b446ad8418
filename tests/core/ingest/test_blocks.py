"""Blocks of Markdown: small cases by eye, real documents against markdown-it's line numbers."""

import bisect
import gzip
import os
import tracemalloc
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from core.errors import BadDocument
from core.ingest import blocks
from core.ingest.blocks import parse_blocks, plain_title
from core.ingest.limits import MAX_LINE_CHARACTERS

DATA = Path(os.environ.get("QRAG_DATA", Path(__file__).resolve().parents[3] / "../shared/data"))
DOCUMENTS = ["commonmark_spec", "cpp_core_guidelines", "awesome_selfhosted", "wealth_of_nations"]
KINDS = {
    "heading_open": "heading",
    "table_open": "table",
    "bullet_list_open": "list",
    "ordered_list_open": "list",
}


def blocks_by_markdown_it(text):
    """(type, first line, line after the last) of each top-level block, without blank lines at its end."""
    lines = text.split("\n")
    parser = MarkdownIt("commonmark").enable("table").disable("reference")
    parser.core.ruler.enableOnly(["normalize", "block"])
    for token in parser.parse(text):
        if token.level == 0 and token.type in KINDS:
            first, last = token.map
            while not lines[last - 1].strip():
                last -= 1
            yield KINDS[token.type], first, last


def blocks_by_us(text):
    starts = [0, *(i + 1 for i, character in enumerate(text) if character == "\n")]
    for block in parse_blocks(text):
        yield (
            block.type,
            bisect.bisect_right(starts, block.start) - 1,
            bisect.bisect_right(starts, block.end - 1),
        )


@pytest.mark.parametrize("name", DOCUMENTS)
def test_real_documents_have_the_blocks_that_markdown_it_sees(name):
    text = gzip.decompress((DATA / "markdown" / f"{name}.md.gz").read_bytes()).decode().replace("\r\n", "\n")
    assert list(blocks_by_us(text)) == list(blocks_by_markdown_it(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# One #\n\nTwo\n===\n\nThree\n---", [("heading", "One"), ("heading", "Two"), ("heading", "Three")]),
        ("```\n# code\n- x\n```\n# After", [("heading", "After")]),
        ("<!--\n# hidden\n-->\n# After", [("heading", "After")]),
        ("---\ntitle: x\n---\n# After", [("heading", "After")]),
        ("###   \n\ntext", []),
        ("born in the year\n12. Then he died", []),
        ("1.\n\ntext", []),
        ("a | b\nno rule", []),
    ],
)
def test_what_is_a_heading_and_what_is_text(text, expected):
    assert [(block.type, block.title) for block in parse_blocks(text)] == expected


def test_lists_keep_their_nested_items_code_and_paragraphs():
    text = "- one\n  - inner\n\n  still one\n\n  ```\n# code\n  ```\n- two\nlazy line\n\nText"
    text = text.replace("\n# code", "\n  # code")
    (block,) = parse_blocks(text)
    assert text[block.start : block.end] == text.removesuffix("\n\nText")
    assert [text[part : part + 5] for part in block.parts] == ["- one", "- two"]


def test_a_table_is_one_block_with_its_rows_as_parts():
    text = "Prices\n\na | b\n--|--\n1 | 2\n3 | 4\n\nText"
    (block,) = parse_blocks(text)
    assert [text[part : part + 5] for part in block.parts] == ["a | b", "1 | 2", "3 | 4"]


def test_titles_lose_links_emphasis_and_their_length():
    assert plain_title("The [*best*](http://x.y) `code` {#id} of_all") == "The best code of_all"
    assert len(plain_title("word " * 1000)) == 200


@pytest.mark.parametrize(
    "line",
    [
        "- a\n",
        "a|b\n-|-\n",
        "```\n",
        "<!--\n",
        "> ",
        "- ",
        "* ",
        "`",
        "# ",
        "|",
        "1. a\n\n",
        "\t",
        "[",
        "~~~\n\n",
    ],
)
def test_hostile_repetition_stays_linear(line):
    assert len(list(parse_blocks(line * 30_000))) <= 30_000  # quadratic rules would need minutes


@pytest.mark.parametrize(
    "line",
    [
        "-" * 200_000 + "x",
        "- " * 100_000 + "x",
        "=" * 200_000 + "x",
        "~" * 200_000,
        "`" * 200_000 + "x`",
        "- " + "- " * 100_000 + "x",
    ],
)
def test_no_line_takes_more_memory_than_a_few_times_its_size(line):
    tracemalloc.start()
    try:
        list(parse_blocks(f"Words.\n\n{line}\n- a\n{line}"))
        assert tracemalloc.get_traced_memory()[1] < 10 * len(line)  # backtracking keeps 270 bytes a character
    finally:
        tracemalloc.stop()


def test_a_line_longer_than_people_write_is_text():
    assert [block.type for block in parse_blocks("- " + "x" * (MAX_LINE_CHARACTERS - 2))] == ["list"]
    assert list(parse_blocks("- " + "x" * (MAX_LINE_CHARACTERS - 1))) == []


def test_more_blocks_than_a_text_may_have_are_refused(monkeypatch):
    monkeypatch.setattr(blocks, "MAX_BLOCKS", 3)
    assert len(list(parse_blocks("a\n=\n" * 3))) == 3
    with pytest.raises(
        BadDocument, match="the document has more than 3 headings, tables and lists; split it"
    ):
        list(parse_blocks("a\n=\n" * 4))


def test_a_title_turns_no_direction_of_writing():
    assert plain_title("Annual \u202etxt.exe\u2066 report\u200f") == "Annual txt.exe report"
