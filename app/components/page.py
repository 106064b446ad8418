"""The page's own behaviour.

Keeps in the address what is in view, for a reload and for others, and listens for keys. Its value is
"run=" and the id of a run, "doc=" and the name of documents without one, or NOTHING, which leaves neither;
without a value the address stays what the visitor came with.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gradio as gr

from core.views.draw.scripts import bundled

_HERE = Path(__file__).parent
NOTHING = "run="
LOADING_SCRIPT = f"const qxLoading = {bundled('loading.js')};"
"""What `qxLoading` is: in the head of the page, before any script of Gradio's."""
KEY_SCRIPT = (_HERE / "visitor.js").read_text(encoding="utf-8")
"""Runs in the browser when a page loads, and puts the visitor's key in the second input's place."""


def page(**kwargs: Any) -> gr.HTML:
    """A link past the tabs, the choice of colours, and the help dialog."""
    return gr.HTML(
        html_template=(_HERE / "page.html").read_text(encoding="utf-8"),
        js_on_load=f"qxLoading.over(); ({bundled('page.js')}).page(element, props, watch);",
        apply_default_css=False,
        **kwargs,
    )


_SCRIPT = """
const seen = new IntersectionObserver((found) => {
  if (props.value && found.some((one) => one.isIntersecting)) trigger("select", {});
}, { rootMargin: "200px" });
const look = () => { seen.unobserve(element); seen.observe(element); };
watch("value", look);
look();
"""


def near(**kwargs: Any) -> gr.HTML:
    """Sends `select` when it comes within 200 pixels of what the browser shows, and where it is there already
    with each new value that is not empty.
    """
    return gr.HTML(
        "", html_template='<div class="qx-near"></div>', js_on_load=_SCRIPT, apply_default_css=False, **kwargs
    )
