"""Gradio's page with scripts before its own.

What all panels share, clocks of work under way that tick once a second (clocks.js), and targets of events
that are found quickly (targets.js).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gradio.routes import templates

_OWN = [Path(__file__).with_name(name).read_text(encoding="utf-8") for name in ("clocks.js", "targets.js")]


def begin_pages_with(script: str) -> None:
    """In every page that this process serves; once is enough. Leans on Gradio's templates (6.31)."""
    loader = templates.env.loader
    if loader is None or "get_source" in vars(loader):
        return
    gradios = loader.get_source

    def with_scripts(environment: Any, template: str) -> Any:
        source, *rest = gradios(environment, template)
        scripts = "".join(f"<script>{one}</script>" for one in (*_OWN, script))
        return source.replace("<head>", f"<head>{{% raw %}}{scripts}{{% endraw %}}", 1), *rest

    loader.get_source = with_scripts
    if templates.env.cache is not None:
        templates.env.cache.clear()  # a page served before this was compiled without them
