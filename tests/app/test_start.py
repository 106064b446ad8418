"""What a start imports: all of it stands between `python app.py` and the page."""

from __future__ import annotations

import os
from pathlib import Path

from tests.app import forked
from tests.app.forked import Forked

LATER = {
    "accelerate",
    "bm25s",
    "bs4",
    "datasets",
    "markitdown",
    "matplotlib",
    "onnxruntime",
    "pdfplumber",
    "peft",
    "pypdf",
    "scipy",
    "sklearn",
    "sympy",
    "transformers",
    "trl",
}
"""Libraries that only some actions need: they import them when they begin."""


def test_a_start_imports_no_library_that_only_some_actions_need(tmp_path: Path) -> None:
    output = tmp_path / "libraries"
    assert Forked(forked.start_without_serving, (), {**os.environ, "QRAG_HOME": str(tmp_path)}, output).wait(120) == 0, output.read_text()
    libraries = set(output.read_text().split())
    assert {"gradio", "torch"} <= libraries
    assert libraries & LATER == set()
