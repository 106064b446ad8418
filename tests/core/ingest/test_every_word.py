"""No word of a document is lost unsaid."""

from __future__ import annotations

import io
import random
import re
import zipfile
from collections.abc import Callable
from html.parser import HTMLParser
from xml.etree import ElementTree

import pypdf
import pytest

from core.base.config import ChunkConfig
from core.ingest import chunk_document, default_chunker, read_document
from tests.conftest import COUNTS
from tests.core.ingest.conftest import WordTokenizer
from tests.core.ingest.made import Sheet, W, docx_parts, make_epub, make_zip, pdf_of

_WORD = re.compile(r"[a-z]{9}")
_LEFT_OUT = re.compile(r"left out: (\d+) word")


class Words:
    """Words that nobody wrote, each once."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self._n = 0

    def __call__(self, n: int = 1) -> str:
        """Some words: six letters that count on, three at random."""
        made = []
        for _ in range(n):
            number, letters = self._n, ""
            for _ in range(6):
                number, digit = divmod(number, 8)
                letters += "bdfgklmn"[digit] if len(letters) % 2 else "aeiouyrs"[digit]
            self._n += 1
            made.append(letters + "".join(self.chance.choice("aeiou") for _ in range(3)))
        return " ".join(made)

    def sentence(self) -> str:
        text = self(self.chance.randint(3, 12))
        return f"{text.capitalize()}."


def html_block(words: Words, depth: int = 0) -> str:
    chance, inner = words.chance, lambda: html_block(words, depth + 1)
    blocks: list[Callable[[], str]] = [
        lambda: f"<p>{words.sentence()} {words.sentence()}</p>",
        lambda: f"<h{chance.randint(1, 4)}>{words(2)}</h2>",
        lambda: f"{words.sentence()}<br>{words.sentence()}",
        lambda: (
            f"<p>{words(2)} <del>{words()}</del><ins>{words()}</ins> <s>{words(2)}</s> {words()}<sup>2</sup></p>"
        ),
        lambda: f"<ul>{''.join(f'<li>{words(3)}' for _ in range(chance.randint(1, 4)))}</ul>",
        lambda: f"<ol start=3><li>{words(2)}<ol><li>{words(2)}</ol><li><p>{words(2)}</p></ol>",
        lambda: f"<dl><dt>{words()}<dd>{words(4)}</dl>",
        lambda: f"<pre>{words()}\n  {words(2)}</pre>",
        lambda: f"<details><summary>{words(2)}</summary>{words(6)}</details>",
        lambda: f"<figure><img alt=picture><figcaption>{words(4)}</figcaption></figure>",
        lambda: f"<nav><a href=/a>{words(2)}</a> <a href=/b>{words()}</a></nav>",
        lambda: f"<footer>{words(3)} <a href=/c>{words()}</a></footer>",
        lambda: f"<aside>{words(9)}</aside>",
        lambda: f"<div class='{chance.choice(['ads', 'cookie', 'social-share', 'menu'])}'>{words(5)}</div>",
        lambda: f"<div style='display:none'>{words(4)}</div><div hidden>{words(3)}</div>",
        lambda: (
            f"<form><label>{words()}<input value=x></label><select><option>{words()}<option>{words()}</select>"
            f"<textarea>{words(2)}</textarea><button>{words()}</button></form>"
        ),
        lambda: f"<button aria-expanded=false>{words(2)}</button><div>{words(7)}</div>",
        lambda: f"<svg><text>{words()}</text><title>{words()}</title></svg>",
        lambda: f"<dialog>{words(4)}</dialog>",
        lambda: f"<ruby>{words()}<rp>(</rp><rt>{words()}</rt><rp>)</rp></ruby>",
        lambda: f"<table><caption>{words()}</caption>{html_rows(words)}</table>",
        lambda: f"<table>{html_rows(words)}</table>",
        lambda: f"<table role=presentation><tr><td>{words(6)}<td>{words(6)}</table>",
        lambda: f"<map><area alt=x>{words()}</map>",
    ]
    if depth < 3:
        blocks += [
            lambda: f"<section>{inner()}{inner()}</section>",
            lambda: f"<blockquote>{inner()}</blockquote>",
            lambda: f"<div>{inner()}{words(4)}{inner()}</div>",
            lambda: f"<article><header>{inner()}</header>{inner()}</article>",
            lambda: f"<ul><li>{inner()}<li>{words()}{inner()}</ul>",
            lambda: f"<table><tr><td>{inner()}<td>{inner()}<tr><td>{words()}</table>",
        ]
    return chance.choice(blocks)()


def html_rows(words: Words) -> str:
    chance = words.chance

    def cell() -> str:
        spans = [
            f" {kind}={chance.randint(2, 3)}" * (chance.random() < 0.2) for kind in ("rowspan", "colspan")
        ]
        return f"<t{chance.choice('dddh')}{''.join(spans)}>{words(chance.randint(0, 3))}"

    return "".join(
        f"<tr>{''.join(cell() for _ in range(chance.randint(1, 4)))}" for _ in range(chance.randint(1, 5))
    )


class Texts(HTMLParser):
    """All that stands between tags."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def texts_of_html(html: str) -> str:
    parser = Texts()
    parser.feed(html)
    parser.close()
    return " ".join(parser.texts)


def html(words: Words) -> tuple[str, bytes, str]:
    body = "".join(html_block(words) for _ in range(words.chance.randint(3, 14)))
    return "a.html", f"<title>t</title><body>{body}".encode(), texts_of_html(body)


def epub(words: Words) -> tuple[str, bytes, str]:
    bodies = ["".join(html_block(words) for _ in range(words.chance.randint(1, 5))) for _ in range(3)]
    return "a.epub", make_epub(bodies), texts_of_html(" ".join(bodies))


def text(words: Words) -> tuple[str, bytes, str]:
    lines = [words.sentence() for _ in range(words.chance.randint(1, 30))]
    marks = ["", "# ", "- ", "> ", "| ", "    ", "1. ", "\t", "```\n", "***", "~~~ "]
    joined = "".join(words.chance.choice(marks) + line + "\n" * words.chance.randint(1, 3) for line in lines)
    return (
        words.chance.choice(["a.txt", "a.md"]),
        joined.encode(words.chance.choice(["utf-8", "utf-16"])),
        joined,
    )


def docx_run(words: Words) -> str:
    def r(inner: str, properties: str = "") -> str:
        return f"<w:r><w:rPr>{properties}</w:rPr>{inner}</w:r>"

    def t(n: int = 2) -> str:
        return f'<w:t xml:space="preserve">{words(n)} </w:t>'

    field = "".join(
        r(f'<w:fldChar w:fldCharType="{kind}"/>') + more
        for kind, more in (("begin", ""), ("separate", r(t())), ("end", ""))
    )
    box = f"<w:p>{r(t())}</w:p>"
    m = 'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
    kinds = [
        r(t()),
        r(t(), '<w:vertAlign w:val="superscript"/>'),
        r(t(), "<w:b/><w:vanish/>"),
        r(t(), "<w:strike/>"),
        f'<w:hyperlink w:anchor="x">{r(t())}</w:hyperlink>',
        f'<w:fldSimple w:instr="X">{r(t())}</w:fldSimple>',
        field,
        f'<w:ins w:id="1" w:author="A">{r(t())}</w:ins>',
        f'<w:del w:id="2" w:author="A"><w:r><w:delText>{words(2)} </w:delText></w:r></w:del>',
        f"<w:sdt><w:sdtContent>{r(t())}</w:sdtContent></w:sdt>",
        f"<w:smartTag>{r(t())}</w:smartTag>",
        f"<m:oMath {m}><m:f><m:num><m:r><m:t>{words()}</m:t></m:r></m:num><m:den><m:r><m:t>{words()}</m:t></m:r></m:den></m:f>"
        f"<m:weird><m:r><m:t>{words()}</m:t></m:r></m:weird></m:oMath>",
        r(
            f'<w:pict xmlns:v="urn:schemas-microsoft-com:vml"><v:textbox><w:txbxContent>{box}</w:txbxContent></v:textbox></w:pict>'
        ),
        r(f'<w:footnoteReference w:id="{words.chance.randint(1, 3)}"/>'),
        r(f'<w:commentReference w:id="{words.chance.randint(1, 3)}"/>'),
        r(f"<w:ruby><w:rt>{r(t(1))}</w:rt><w:rubyBase>{r(t(1))}</w:rubyBase></w:ruby>"),
        f'<w:customXml w:element="e">{r(t())}</w:customXml>',
    ]
    return words.chance.choice(kinds)


def docx_block(words: Words, depth: int = 0) -> str:
    chance = words.chance
    if depth < 2 and chance.random() < 0.25:
        rows = ""
        for _ in range(chance.randint(1, 3)):
            merge = chance.choice(["", '<w:vMerge w:val="restart"/>', '<w:gridSpan w:val="2"/>'])
            cells = [
                f"<w:tc><w:tcPr>{merge}</w:tcPr>{docx_block(words, depth + 1)}</w:tc>"
                for _ in range(chance.randint(1, 3))
            ]
            rows += f"<w:tr>{''.join(cells)}</w:tr>"
        return f"<w:tbl>{rows}</w:tbl><w:p/>"
    if chance.random() < 0.1:
        return f"<w:sdt><w:sdtContent>{docx_block(words, depth)}</w:sdtContent></w:sdt>"
    style = chance.choice(
        ["", "", '<w:pPr><w:pStyle w:val="Heading1"/></w:pPr>', '<w:pPr><w:pStyle w:val="Nameless"/></w:pPr>']
    )
    return f"<w:p>{style}{''.join(docx_run(words) for _ in range(chance.randint(1, 5)))}</w:p>"


def docx(words: Words) -> tuple[str, bytes, str]:
    blocks = [docx_block(words) for _ in range(words.chance.randint(1, 8))]
    references = "".join(f'<w:r><w:footnoteReference w:id="{i}"/></w:r>' for i in (1, 2, 3))
    parts = docx_parts(f"{''.join(blocks)}<w:p>{references}</w:p>")
    for kind, tag in (("footnotes", "footnote"), ("comments", "comment")):
        notes = "".join(
            f'<w:{tag} w:id="{i}"><w:p><w:r><w:t>{words(2)}</w:t></w:r></w:p></w:{tag}>' for i in (1, 2, 3)
        )
        parts[f"word/{kind}.xml"] = f'<w:{kind} xmlns:w="{W}">{notes}</w:{kind}>'
    data = make_zip(parts)
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        roots = [
            ElementTree.fromstring(packed.read(name))
            for name in packed.namelist()
            if name.startswith("word/")
        ]
    return "a.docx", data, " ".join(" ".join(root.itertext()) for root in roots)


def pdf(words: Words) -> tuple[str, bytes, str]:
    chance = words.chance
    head = words(2).capitalize()
    sheets = []
    for number in range(chance.randint(1, 4)):
        sheet = Sheet()
        sheet.text(60, 810, head, 8).text(500, 30, str(number + 1), 8)
        y = 760
        while y > 120:
            kind = chance.randrange(6)
            if kind == 0:
                sheet.lines(60, y, [words(5) for _ in range(3)])
                sheet.lines(330, y, [words(4) for _ in range(3)])
            elif kind == 1:
                for row in range(3):
                    sheet.row(y - 14 * row, {60: words(), 200: words(), 340: str(row), 440: words()})
            elif kind == 2:
                sheet.text(60, y, words(2).capitalize(), 15, "bold")
            elif kind == 3:
                sheet.grid([60, 250, 500], [y + 12, y - 8, y - 28]).row(y, {66: words(2), 256: words()})
                sheet.row(y - 20, {66: words(), 256: words(3)})
            elif kind == 4:
                sheet.text(60, y, f"1 {words(6)}", 7)
            else:
                sheet.lines(60, y, [words(8), f"{words(7)},", f"{words(5)}."])
            y -= 70
        sheet.text(570, 300, words(2), 8, angle=90)
        sheets.append(sheet)
    data = pdf_of(*sheets)
    return "a.pdf", data, " ".join(page.extract_text() for page in pypdf.PdfReader(io.BytesIO(data)).pages)


@pytest.mark.parametrize("make", [html, epub, text, docx, pdf])
def test_each_word_stands_in_a_chunk_or_is_told(make, converter):
    for seed in range(COUNTS.examples // 5):
        name, data, said = make(Words(seed))
        document = read_document(data, name, converter)
        table = chunk_document(
            document, ChunkConfig(chunker=default_chunker(document.kind), max_tokens=24), WordTokenizer()
        )
        chunks = " ".join(document.text[a:b] for a, b in zip(table.start, table.end, strict=True)).lower()
        wanted = set(_WORD.findall(said.lower()))
        missing = wanted - set(_WORD.findall(chunks)) - set(_WORD.findall(document.told.lower()))
        n_told = sum(map(int, _LEFT_OUT.findall(document.told.replace(",", ""))))
        assert wanted
        assert len(missing) <= n_told, (seed, sorted(missing)[:5], document.told)
