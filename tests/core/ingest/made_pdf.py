"""PDFs with text, rules, fields and comments at given places, for tests of layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.core.ingest.made import _pdf_file, _pdf_string, _stream

FONTS = {"helvetica": "Helvetica", "times": "Times-Roman", "courier": "Courier", "bold": "Helvetica-Bold"}


@dataclass
class Sheet:
    """A page of A4; `y` counts from the foot, as PDF does."""

    operators: list[bytes] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    rotate: int = 0

    def text(
        self, x: float, y: float, text: str, size: float = 10, font: str = "helvetica", angle: int = 0
    ) -> Sheet:
        """Text from (x, y); \\x02 and \\x03 are the ligatures fi and fl."""
        matrix = {0: "1 0 0 1", 90: "0 1 -1 0", 180: "-1 0 0 -1", 270: "0 -1 1 0"}.get(angle, ".7 .7 -.7 .7")
        shown = _pdf_string(text)
        self.operators.append(f"BT /{font} {size} Tf {matrix} {x} {y} Tm (".encode() + shown + b") Tj ET")
        return self

    def lines(
        self,
        x: float,
        y: float,
        texts: Sequence[str],
        size: float = 10,
        leading: float = 14,
        font: str = "helvetica",
    ) -> Sheet:
        for i, text in enumerate(texts):
            self.text(x, y - i * leading, text, size, font)
        return self

    def row(self, y: float, cells: Mapping[float, str], size: float = 10, font: str = "helvetica") -> Sheet:
        for x, text in cells.items():
            self.text(x, y, text, size, font)
        return self

    def rule(self, x0: float, y0: float, x1: float, y1: float) -> Sheet:
        self.operators.append(f"{x0} {y0} m {x1} {y1} l S".encode())
        return self

    def grid(self, xs: Sequence[float], ys: Sequence[float]) -> Sheet:
        for x in xs:
            self.rule(x, min(ys), x, max(ys))
        for y in ys:
            self.rule(min(xs), y, max(xs), y)
        return self

    def box(self, x: float, y: float, width: float, height: float) -> Sheet:
        self.operators.append(f"{x} {y} {width} {height} re S".encode())
        return self

    def field(
        self, kind: str, name: str, value: str, x: float, y: float, more: str = "", width: float = 120
    ) -> Sheet:
        """A form's field: kind Tx, Btn or Ch; `value` as PDF writes it, (text) or /Name."""
        self.notes.append(
            f"<< /Type /Annot /Subtype /Widget /FT /{kind} /T ({name}) /V {value} {more}"
            f" /Rect [{x} {y} {x + width} {y + 14}] {'' if '/F ' in more else '/F 4'} >>"
        )
        return self

    def comment(self, text: str, author: str, kind: str = "Text", x: float = 400, y: float = 700) -> Sheet:
        self.notes.append(
            f"<< /Type /Annot /Subtype /{kind} /Contents ({text}) /T ({author}) /Rect [{x} {y} {x + 20} {y + 20}] >>"
        )
        return self


def pdf_of(*sheets: Sheet, title: str = "") -> bytes:
    objects: dict[int, bytes] = {4: b"<< /Title (" + _pdf_string(title) + b") >>"}
    fonts = ""
    number = 5
    for name, base in FONTS.items():
        objects[number] = (
            f"<< /Type /Font /Subtype /Type1 /BaseFont /{base} /Encoding << /Type /Encoding /BaseEncoding"
            " /WinAnsiEncoding /Differences [2 /fi /fl] >> >>".encode()
        )
        fonts += f"/{name} {number} 0 R "
        number += 1
    kids, fields = [], []
    for sheet in sheets:
        notes = []
        for note in sheet.notes:
            objects[number] = note.encode("latin-1")
            notes.append(f"{number} 0 R")
            fields += [f"{number} 0 R"] if "/Widget" in note else []
            number += 1
        objects[number] = _stream(b"\n".join(sheet.operators))
        objects[number + 1] = (
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Rotate {sheet.rotate} /Resources << /Font <<"
            f" {fonts}>> >> /Contents {number} 0 R /Annots [{' '.join(notes)}] >>".encode()
        )
        kids.append(f"{number + 1} 0 R")
        number += 2
    form = f"/AcroForm << /Fields [{' '.join(fields)}] /DA (/helvetica 10 Tf) >>" if fields else ""
    objects[1] = f"<< /Type /Catalog /Pages 2 0 R {form} >>".encode()
    objects[2] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>".encode()
    objects[3] = b"null"
    return _pdf_file(objects)
