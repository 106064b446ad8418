"""Blocks of Markdown: small cases by eye, awkward and long ones against markdown-it's line numbers."""

import bisect
import tracemalloc

import pytest
from markdown_it import MarkdownIt

from core.base.errors import BadDocument
from core.ingest import blocks
from core.ingest.blocks import parse_blocks, plain_title
from core.ingest.limits import MAX_LINE_CHARACTERS
from core.lab.tasks.samples import SAMPLE_FOLDER
from tests.conftest import ROOT, few

DOCUMENTS = [
    ROOT / "tests/data/real/rust-book.md",
    SAMPLE_FOLDER / "beacon-handbook.md",
]
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


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_long_documents_have_the_blocks_that_markdown_it_sees(path):
    text = path.read_text(encoding="utf-8")
    assert list(blocks_by_us(text)) == list(blocks_by_markdown_it(text))


AWKWARD = {
    "lazy lines": (
        "- one\nlazy\n  own\n\n  still one\n\nText\n- two\nlazy\n# Head\n- three\n```\ncode\n```\nText"
    ),
    "what ends an item": "- one\n> quote\n\n- two\n***\n- three\nTwo\n===\n\n1. one\n# Head",
    "blank lines in a list": (
        "- one\n\n\n- two\n\n  own\n\n text\n\n1. one\n\n   - in\n\n     deep\n\n2. two\n\n   own\n  text"
    ),
    "no item": (
        "Born in\n12. and\n3) then\n1.text\n-text\n1234567890. long\n\n    - code\n\n\t- code\n\n- - -\n"
        "\n_ _ _"
    ),
    "fences": (
        "~~~\n# no\n```\n- no\n~~~\n# One\n````\n```\n# no\n`````\n# Two\n``` a`b\n# Three\n  ```\n# no\n"
        "  ```  \n# Four"
    ),
    "a fence in an item": (
        "- ```\n  # no\n  - no\n  ```\n- ~~~\n  # no\n\n  ~~~ no\n  - no\n  ~~~\n  - in\n\n- ```\n"
        "  never closed\n# Head"
    ),
    "headings": (
        "# One\n## Two ##\n### Three \\#\n#no\n####### no\n   #### Four\n    # code\n\nText\n   # Five\n"
        "Text\n\t# no"
    ),
    "underlines": (
        "One\nand more\n===\nTwo\n---\n\n---\n\nText\n\n===\n\n- item\n---\n\n> quote\n---\n\nThree\n"
        " --   \n\n    code\n---"
    ),
    "rules": "***\n\n- - -\n- one\n* * *\n- two\n--\n\n_____\n\n*-*\n\n- one\n  ***\n  two\n\n**\n",
    "tables": (
        "a | b\n--|--\n1 | 2\nno bar\n\n| a |\n|---|\n| 1 |\n\n| a \\| b |\n|:-:|\n\na | b\n---\n\n"
        "| a | b |\n|---|\n\nText\n| a | b |\n|--|--:|\n| 1 |\n# Head"
    ),
    "what ends a table": (
        "a | b\n-|-\n1 | 2\n> quote\n\na | b\n-|-\n1 | 2\n- item\n\na | b\n-|-\n1 | 2\n***\n\na | b\n"
        "-|-\n```\n# no\n```"
    ),
    "raw": (
        "<!-- one line -->\n# One\n<!--\n# no\n\n- no\n-->\n# Two\n<pre>\n# no\n\n- no\n</pre>\n# Three\n"
        "<SCRIPT>\n# no\n</SCRIPT>\n# Four\n   <!-- a\nb --> c\n- five"
    ),
    "quotes": "> # no\n> - no\nlazy\n- one\n\n> a | b\n> --|--\n\n>quote\n===\n\nText\n> quote\n# One",
}


@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_texts_have_the_blocks_that_markdown_it_sees(name):
    assert list(blocks_by_us(AWKWARD[name])) == list(blocks_by_markdown_it(AWKWARD[name]))


def test_blocks_have_their_titles_and_parts():
    text = "---\ntitle: x\n---\n# One #\n\nTwo\n===\n\n###   \n\ntext"
    assert [(block.type, block.title) for block in parse_blocks(text)] == [
        ("heading", "One"),
        ("heading", "Two"),
    ]
    text = "- one\n  - inner\n\n  still one\n\n  ```\n  # code\n  ```\n- two\nlazy line\n\nText"
    (block,) = parse_blocks(text)
    assert text[block.start : block.end] == text.removesuffix("\n\nText")
    assert [text[part : part + 5] for part in block.parts] == ["- one", "- two"]
    text = "Prices\n\na | b\n--|--\n1 | 2\n3 | 4\n\nText"
    (block,) = parse_blocks(text)
    assert [text[part : part + 5] for part in block.parts] == ["a | b", "1 | 2", "3 | 4"]


def test_titles_lose_links_emphasis_directions_of_writing_and_their_length():
    assert plain_title("The [*best*](http://x.y) `code` {#id} of_all") == "The best code of_all"
    assert plain_title(r"2 * 3 of read\_file, \*new\* &amp; **old**") == "2 * 3 of read_file, *new* & old"
    assert plain_title("Annual \u202etxt.exe\u2066 report\u200f") == "Annual txt.exe report"
    assert len(plain_title("word " * 1000)) == 200


@pytest.mark.parametrize("line", few(["- a\n", "a|b\n-|-\n", "```\n", "<!--\n", "> ", "`", "\t"], 3))
def test_hostile_repetition_stays_linear(line):
    assert len(list(parse_blocks(line * 30_000))) <= 30_000  # quadratic rules would need minutes


@pytest.mark.parametrize("line", ["-" * 200_000 + "x", "- " * 100_000 + "x", "`" * 200_000 + "x`"])
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
    with pytest.raises(BadDocument, match="has more than 3 headings, tables and lists; split it"):
        list(parse_blocks("a\n=\n" * 4))


@pytest.mark.parametrize(
    ("text", "titles"),
    [
        ("# A\n\n{% highlight sh %}\n# no\n{% endhighlight %}\n\n# B", ["A", "B"]),
        ("# A\n\n{{< highlight sh >}}\n# no\n{{< /highlight >}}\n\n# B", ["A", "B"]),
        ("{% highlight sh %}\n\n# A", ["A"]),
        (
            '<h2 align="center" id=x>The <b>boat</b></h2>\n\nText\n<h2>no</h2>\n\n<h2>no\n\n<h1>A</h1> b',
            ["The boat"],
        ),
        ("+++\ntitle = 1\n# no\n+++\n# A", ["A"]),
        ("---\na: b\n# no\n...\n# A", ["A"]),
        ("\n---\na: b\n---\n# A", ["A"]),
    ],
)
def test_what_generators_of_sites_add_has_its_headings_and_no_others(text, titles):
    assert [block.title for block in parse_blocks(text)] == titles


def test_code_that_never_ends_stays_linear():
    assert list(parse_blocks("{% highlight sh %}\n\n" * 50_000)) == []
