"""markitdown without the parts that nothing here uses.

Importing them takes longer than everything else in it. magika guesses formats, which are known here; its
runtime (onnxruntime) writes a file among the temporary ones when it is imported and holds addresses for
telemetry. So `MarkItDown` itself, which asks it, can't be used: its converters are called directly.
"""

from __future__ import annotations

import sys
from types import ModuleType


def import_markitdown() -> None:
    """Imports markitdown, once, as if magika were empty and pandas (for spreadsheets) not installed."""
    if "markitdown" in sys.modules:
        return
    stand_ins: dict[str, ModuleType | None] = {"magika": ModuleType("magika"), "pandas": None}
    stand_ins = {name: module for name, module in stand_ins.items() if name not in sys.modules}
    sys.modules.update(stand_ins)  # type: ignore[arg-type]  # None says: not installed
    try:
        import markitdown  # noqa: F401 - for its place in sys.modules
    finally:
        for name in stand_ins:
            sys.modules.pop(name, None)
