"""The page's address: which tab is in front, and what it shows.

Runs and documents of Explore are in it, too, see `page`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from urllib.parse import parse_qs

import gradio as gr

from core.views.draw.scripts import bundled

ADDRESS_SCRIPT = f"const qxAddress = {bundled('address.js')};"
"""What `qxAddress` is: in the head of the page, before anything changes what the visitor came with."""
ASKED = ("compare", "evaluation", "documents", "runs", "opened")
"""Keys of what tabs show."""
_ID = re.compile(r"[0-9a-f]{32}")


def address_part(tab: str, *keys: str) -> gr.HTML:
    """Invisible; its value, made by `part_of`, stands in the address while the tab is in front."""
    arguments = ", ".join(map(json.dumps, (tab, keys)))
    return gr.HTML(
        "",
        html_template="<span hidden></span>",
        js_on_load=f"qxAddress.part({arguments}, props, watch);",
        apply_default_css=False,
    )


def part_of(**ids: Sequence[str]) -> str:
    """Ids by the key that they stand behind; a key without any is left out."""
    return "&".join(f"{key}={'.'.join(some)}" for key, some in ids.items() if some)


def asked(came: str, key: str, most: int) -> tuple[str, ...]:
    """The ids behind a key of an address, which anybody may have written."""
    [words] = parse_qs(came.removeprefix("?")[:10_000]).get(key, [""])[:1]
    return tuple(dict.fromkeys(_ID.findall(words)))[:most]
