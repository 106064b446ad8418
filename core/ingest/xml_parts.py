"""XML of office files and e-books, parsed within bounds."""

from __future__ import annotations

from typing import Any
from xml.sax.handler import ContentHandler

from defusedxml import DefusedXmlException  # type: ignore[import-untyped]
from defusedxml import sax as safe_sax

from core.base.errors import BadDocument
from core.ingest.limits import MAX_XML_DEPTH, MAX_XML_ELEMENTS


class XmlCheck(ContentHandler):
    """Counts the elements of all parts of a file, and how deep they lie."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.depth = 0
        self.n_elements = 0

    def is_sound(self, xml: bytes) -> bool:
        """Whether a part can be parsed. Raises DefusedXmlException, BadDocument when too deep or large."""
        self.depth = 0
        try:
            safe_sax.parseString(xml, self, forbid_dtd=True)
        except (BadDocument, DefusedXmlException):
            raise
        except Exception:  # parsers fail on broken files in more ways than they name
            return False
        return True

    def startElement(self, name: str, attrs: Any) -> None:  # noqa: ARG002 - the interface's
        self.depth += 1
        self.n_elements += 1
        if self.depth > MAX_XML_DEPTH:
            raise BadDocument(
                f"{self.name} is nested more than {MAX_XML_DEPTH} levels deep; save it as PDF, HTML or plain"
                " text and open that"
            )
        if self.n_elements > MAX_XML_ELEMENTS:
            raise BadDocument(
                f"{self.name} has more than {MAX_XML_ELEMENTS:,} XML elements; split it and open the parts,"
                " or save it as plain text"
            )

    def endElement(self, name: str) -> None:  # noqa: ARG002 - the interface's
        self.depth -= 1
