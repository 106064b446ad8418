"""Gradio's page with scripts before its own.

What all panels share, and clocks of work under way that tick once a second (clocks.js).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gradio.routes import templates

_CLOCKS = Path(__file__).with_name("clocks.js").read_text(encoding="utf-8")


def begin_pages_with(script: str) -> None:
    """In every page that this process serves; once is enough. Leans on Gradio's templates (6.31)."""
    loader = templates.env.loader
    if loader is None or "get_source" in vars(loader):
        return
    gradios = loader.get_source

    def with_scripts(environment: Any, template: str) -> Any:
        source, *rest = gradios(environment, template)
        scripts = f"<script>{_CLOCKS}</script><script>{script}</script>"
        return source.replace("<head>", f"<head>{{% raw %}}{scripts}{{% endraw %}}", 1), *rest

    loader.get_source = with_scripts
    if templates.env.cache is not None:
        templates.env.cache.clear()  # a page served before this was compiled without them
