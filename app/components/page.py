"""The page's own behaviour: keeps the id of the run in view in the address, and listens for keys.

Its value is {"run_id": id}: an empty id removes it from the address, None leaves the address alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gradio as gr

_HERE = Path(__file__).parent


def page(**kwargs: Any) -> gr.HTML:
    """Invisible but for its help dialog."""
    return gr.HTML(
        {"run_id": None},
        html_template=(_HERE / "page.html").read_text(encoding="utf-8"),
        js_on_load=(_HERE / "page.js").read_text(encoding="utf-8"),
        apply_default_css=False,
        **kwargs,
    )
