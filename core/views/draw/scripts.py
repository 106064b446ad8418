"""The modules of assets/scripts as one expression.

Gradio runs one piece of JavaScript a component, an exported page allows one script, by its hash, and fetching
ten modules would take longer. So they are put together here, each in a scope of its own, in the order that
their imports ask for. Understands two forms: `import { a, b } from "./other.js";` on one line, and `export`
before a declaration that begins a line.
"""

from __future__ import annotations

import re
from graphlib import TopologicalSorter

from core.base.home import ASSETS

SCRIPTS = ASSETS / "scripts"
_IMPORT = re.compile(r'^import (\{.*\}) from "\./([\w.]+)";$', re.M)
_EXPORT = re.compile(r"^export ((?:async )?(?:const|function) (\w+))", re.M)
_COMMENT = re.compile(r"^ *//.*\n|^ */\*\*(?s:.*?)\*/\n", re.M)


def script(name: str) -> str:
    """A file of assets/scripts."""
    return (SCRIPTS / name).read_text(encoding="utf-8")


def bundled(entry: str) -> str:
    """An expression for what a module exports, without the comments that have lines of their own."""
    imports: dict[str, set[str]] = {}
    waiting = [entry]
    while waiting:
        name = waiting.pop()
        if name not in imports:
            imports[name] = {other for _, other in _IMPORT.findall(script(name))}
            waiting += imports[name]
    modules = "".join(map(_scoped, TopologicalSorter(imports).static_order()))
    return f'(() => {{\nconst modules = {{}};\n{modules}return modules["{entry}"];\n}})()'


def _scoped(name: str) -> str:
    source = script(name)
    exports = ", ".join(each for _, each in _EXPORT.findall(source))
    body = _IMPORT.sub(r'const \1 = modules["\2"];', _EXPORT.sub(r"\1", _COMMENT.sub("", source)))
    return f'modules["{name}"] = (() => {{\n{body}return {{ {exports} }};\n}})();\n'
