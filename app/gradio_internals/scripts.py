"""Gradio's own scripts without work that they do in vain.

A page makes the tree of all its components, and then, because it has just begun, the same tree anew. It looks
for each target of each event in that tree, through Svelte's proxies, to set properties that no event asks
for, and for components that it has at hand. That was a third of what the page's own process takes for a load.
With each word on how far an event is, it copies all that each component holds which any event ever filled.
Decides that a script in which one of these places is not found is served as it is. Leans on Gradio's scripts
(6.31).
"""

from __future__ import annotations

import re
from functools import cache
from mimetypes import guess_type
from pathlib import Path
from typing import Any

import gradio
from gradio.routes import Response

ASSETS = Path(gradio.__file__).parent / "templates" / "frontend" / "assets"
IN_VAIN = {
    "Blocks": (
        (r"(\w+\(\)),(\w+\(\(\)=>\{\w+\.reload\()", r"\1&&\2"),
        (r"async set_event_args\((\w+),(\w+)\)\{", r"\g<0>if(!Object.keys(\2).length)return()=>{};"),
    ),
    "core": (
        (r"(async get_state\((\w+)\)\{let (\w+)=this\.#\w+\.get\(\2\),\w+=)", r"\1\3||"),
        (
            r"(async update_state\((\w+),(\w+),(\w+)=!0\)\{)(.*?let \w+=(this\.#\w+)\.get\(\2\);)",
            r"\1if(!\4&&`loading_status`in \3&&\6.has(\2))return \6.get(\2)(\3);\5",
        ),
    ),
}
"""What is replaced, and by what, by the first part of a script's name: a tree is made anew where the count of
reloads is not 0, properties are set where there are some, a component is looked for that is not at hand, and
one that is at hand hears how far an event is, and nothing else is done.
"""
_NAME = re.compile(rf"/assets/(({'|'.join(IN_VAIN)})-[\w-]+\.js)")


@cache
def lean(name: str, kind: str) -> bytes | None:
    """The script of this name; None where it has to stay as it is."""
    text = (ASSETS / name).read_text(encoding="utf-8")
    for what, instead in IN_VAIN[kind]:
        text, n_replaced = re.subn(what, instead, text)
        if n_replaced != 1:
            return None
    return text.encode()


class LeanScripts:
    """Middleware that serves these scripts."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        named = _NAME.fullmatch(scope["path"]) if scope["type"] == "http" else None
        script = lean(*named.groups()) if named and (ASSETS / named[1]).exists() else None
        served = Response(script, media_type=guess_type(scope["path"])[0]) if script else self._app
        await served(scope, receive, send)
