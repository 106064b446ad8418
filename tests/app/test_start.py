"""What a start imports: all of it stands between `python app.py` and the page."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType

from app.gradio_internals.imports import WithoutStubs
from tests.conftest import ROOT

LATER = {
    "bm25s",
    "bs4",
    "datasets",
    "markitdown",
    "matplotlib",
    "onnxruntime",
    "pdfplumber",
    "pypdf",
    "sklearn",
    "sympy",
    "trl",
}
"""Libraries that only some actions need: they import them when they begin."""
COMPUTING = {"peft", "torch", "transformers"}
"""Libraries of an agent, which take seconds: a browser loads the pages meanwhile."""


ALL_BUT_SERVE = """
import os, sys
import app.start, app.build

def told():
    print(*{module.partition(".")[0] for module in sys.modules}, flush=True)

told()
from app.services import Services
from app.settings import Settings

services = Services(Settings())
app.build.build_app(services)
services.agents.load(services.agents.default_checkpoint)
told()
os._exit(0)
"""


def test_pages_are_up_before_an_agent_is_imported_and_some_libraries_never_are(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", ALL_BUT_SERVE],
        cwd=ROOT,
        env={**os.environ, "QRAG_HOME": str(tmp_path)},
        check=True,
        capture_output=True,
        text=True,
    )
    with_pages, with_an_agent = (set(line.split()) for line in ended.stdout.splitlines())
    assert "gradio" in with_pages
    assert with_pages & COMPUTING == set()
    assert with_an_agent >= COMPUTING
    assert with_an_agent & LATER == set()


def loaded(spec: ModuleSpec | None) -> ModuleType:
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_gradio_is_imported_as_it_is_but_for_the_function_that_writes_stubs() -> None:
    import gradio

    # Tests import Gradio as servers do, so what it is without us is loaded anew.
    component_meta = loaded(PathFinder.find_spec("gradio.component_meta", gradio.__path__))
    module = loaded(WithoutStubs().find_spec("gradio.component_meta", gradio.__path__))
    assert set(vars(component_meta)) <= set(vars(module))
    changed = {
        name
        for name, ours in vars(module).items()
        if hasattr(ours, "__code__") and ours.__code__ != vars(component_meta)[name].__code__
    }
    assert changed == {"create_or_modify_pyi"}
    assert module.create_or_modify_pyi(None, "", []) is None
    assert module.ComponentMeta.__new__.__code__ == component_meta.ComponentMeta.__new__.__code__
    assert WithoutStubs().find_spec("gradio.blocks", gradio.__path__) is None
