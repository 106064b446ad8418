"""A mark on the page that tells when somebody comes near it.

What lies below is made for those who look at it, and for nobody else.
"""

from __future__ import annotations

from typing import Any

import gradio as gr

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
