"""Bytes of a PDF, DOCX, EPUB, HTML page or notebook -> Markdown.

HTML comes as UTF-8. Runs in the child process of `worker`, under its limits. Office files and e-books are
unpacked within the bounds of archives, without images, with no XML that declares entities or lies too deep.
Links and images lose their markup, as those of pages do. Importing this module takes most of a second, so
only the child does.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from io import BytesIO

from defusedxml import DefusedXmlException  # type: ignore[import-untyped]

from core.base.errors import BadDocument
from core.base.types import Notice
from core.ingest.converted import Converted, Format
from core.ingest.docx import read_docx
from core.ingest.epub import read_epub
from core.ingest.html import read_html
from core.ingest.lean import import_markitdown
from core.ingest.limits import MAX_CONVERTED_CHARACTERS, check_bound
from core.ingest.pdf import OnPage, read_pdf, read_picture

_BLANK_LINES = re.compile(r"\n(?:[ \t]*+\n)++")
_LINE_END_BLANKS = re.compile(r"(?<![ \t])[ \t]++$", re.MULTILINE)


def convert(
    data: bytes, form: Format, name: str, on_page: OnPage | None = None, *, keep_side_matter: bool = False
) -> Converted:
    """Markdown of a file. Raises BadDocument when it is damaged, encrypted, too large or without text."""
    if form == "html":
        return read_html(data.decode(), name, keep_side_matter=keep_side_matter)
    try:
        if form in ("pdf", "picture"):
            converted = {"pdf": read_pdf, "picture": read_picture}[form](data, name, on_page)
        else:
            converted = {"docx": read_docx, "epub": read_epub, "ipynb": _read_notebook}[form](data, name)
    except (BadDocument, MemoryError):
        raise
    except DefusedXmlException:
        raise BadDocument(
            f"{name} declares XML entities, which are never expanded here; save it again from an office or"
            " e-book program"
        ) from None
    except RecursionError:
        raise BadDocument(
            f"{name} is nested too deeply to be converted; save it as PDF, HTML or plain text and open that"
        ) from None
    except Exception:  # the libraries fail on broken files in every way there is
        kind = "picture" if form == "picture" else f"{form.upper()} file"
        raise BadDocument(
            f"{name} is damaged or no {kind}; open it in its program, save it again and open that"
        ) from None
    markdown = _tidy(converted.markdown)
    check_bound(f"{name} has", len(markdown), MAX_CONVERTED_CHARACTERS, "characters of text")
    return replace(converted, markdown=markdown)


def _tidy(markdown: str) -> str:
    """Without runs of blank lines and form feeds."""
    text = markdown.replace("\f", "\n").replace("\0", " ")
    return _BLANK_LINES.sub("\n\n", _LINE_END_BLANKS.sub("", text)).strip()


def _read_notebook(data: bytes, name: str) -> Converted:
    """Cells of a Jupyter notebook, by markitdown, without what they printed."""
    import_markitdown()
    from markitdown import StreamInfo
    from markitdown.converters import IpynbConverter

    notebook = json.loads(data)
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":  # in the code they would end the fence around it
            cell["source"] = "".join(cell["source"]).replace("```", "` ` `").splitlines(keepends=True)
    plain = BytesIO(json.dumps(notebook).encode())
    read = IpynbConverter().convert(plain, StreamInfo(extension=".ipynb", charset="utf-8"))
    if not read.markdown.strip():
        raise BadDocument(f"{name} has no cell with text; open one that has")
    return Converted(read.markdown, read.title or "", (Notice("What its cells printed was not read."),))
