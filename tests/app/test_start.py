"""What a start imports: all of it stands between `python app.py` and the page; and where the app listens."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.services.settings import LOOPBACK, Settings
from app.start import start
from app.web import listen
from core.base.errors import BadRequest
from tests.conftest import ROOT

LATER = {
    "accelerate",
    "bm25s",
    "bs4",
    "datasets",
    "markitdown",
    "matplotlib",
    "onnxruntime",
    "pypdfium2",
    "peft",
    "pypdf",
    "scipy",
    "sklearn",
    "sympy",
    "transformers",
    "trl",
}
"""Libraries that only some actions need: they import them when they begin."""


ALL_BUT_SERVE = """
import ast, os, sys

parsed, parse = [], ast.parse
ast.parse = lambda *given, **named: parsed.append(1) or parse(*given, **named)
from app.without_stubs import without_stubs
with without_stubs():
    import app.start, app.build

def told():
    print(*{module.partition(".")[0] for module in sys.modules}, flush=True)

told()
print(len(parsed))
from app.services.shared import Services
from app.services.settings import Settings

services = Services(Settings(checkpoint=sys.argv[1]))
app.build.build_app(services)
services.agents.load(services.agents.default_checkpoint)
told()
os._exit(0)
"""


def test_pages_are_up_before_torch_is_imported_and_some_libraries_never_are(
    tmp_path: Path, tiny: Path
) -> None:
    environ = os.environ | {"QRAG_HOME": str(tmp_path), "OMP_DISPLAY_ENV": "VERBOSE"}
    del environ["GOMP_SPINCOUNT"]
    ended = subprocess.run(
        [sys.executable, "-c", ALL_BUT_SERVE, str(tiny)],
        cwd=ROOT,
        env=environ,
        check=True,
        capture_output=True,
        text=True,
    )
    assert "GOMP_SPINCOUNT = '1000'" in ended.stderr, "torch's threads sleep soon"
    with_pages, n_parsed, with_an_agent = (set(line.split()) for line in ended.stdout.splitlines())
    assert "gradio" in with_pages
    assert int(*n_parsed) < 40, "no stub was made of the source of a component"
    assert "torch" not in with_pages
    assert "torch" in with_an_agent
    assert with_an_agent & LATER == set()


def test_a_port_that_is_taken_is_refused_and_the_next_one_found() -> None:
    with listen(LOOPBACK, None) as first, listen(LOOPBACK, None) as second:
        port = first.getsockname()[1]
        assert second.getsockname()[1] > port
        with pytest.raises(BadRequest, match=f"port {port} is taken; choose another one with --port"):
            listen(LOOPBACK, port)
    with pytest.raises(BadRequest, match=r"can't listen at host '192\.0\.2\.1', port 7999: .*--host"):
        listen("192.0.2.1", 7999)
    with pytest.raises(BadRequest, match=r"can't listen at host 'b\.\.de', port 7999: .*--host"):
        listen("b..de", 7999)


def test_a_home_that_can_not_be_made_ends_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QRAG_HOME", "/proc/none")
    with pytest.raises(BadRequest, match=r"/proc/none can't be written to \(.*\); set QRAG_HOME"):
        start(Settings(host="192.0.2.1", port=7999))


@pytest.mark.parametrize("part", ["reader", "engine"])
def test_a_part_that_there_is_not_ends_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    variable = f"QRAG_{part.upper()}"
    monkeypatch.setenv("QRAG_HOME", str(tmp_path))
    monkeypatch.setenv(variable, "huge")
    with pytest.raises(BadRequest, match=f"{variable}='huge' is no {part}"):
        start(Settings(host="192.0.2.1", port=7999))  # an address that none could listen at
