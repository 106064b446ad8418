"""Gradio's page with a script before its own: clocks of work under way tick once a second, see clocks.js."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gradio.routes import templates

_SCRIPT = Path(__file__).with_name("clocks.js").read_text(encoding="utf-8")


def slow_clocks() -> None:
    """In every page that this process serves; once is enough. Leans on Gradio's templates (6.31)."""
    loader = templates.env.loader
    if loader is None or "get_source" in vars(loader):
        return
    gradios = loader.get_source

    def with_script(environment: Any, template: str) -> Any:
        source, *rest = gradios(environment, template)
        return source.replace("<head>", f"<head><script>{_SCRIPT}</script>", 1), *rest

    loader.get_source = with_script
