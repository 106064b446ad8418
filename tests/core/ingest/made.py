"""Small PDFs, DOCXs, EPUBs and zips that the tests make by hand: bytes that say exactly what is in them."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

import pypdf

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
CONTENT_TYPES = (
    '<?xml version="1.0" encoding="UTF-8"?><Types'
    ' xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Default Extension="xml" ContentType="application/xml"/><Default Extension="png"'
    ' ContentType="image/png"/>'
    '<Override PartName="/word/document.xml"'
    ' ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>'
)
RELATIONSHIPS = (
    '<?xml version="1.0" encoding="UTF-8"?><Relationships'
    ' xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1"'
    ' Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"'
    ' Target="word/document.xml"/></Relationships>'
)
STYLES = (
    f'<w:styles xmlns:w="{W}"><w:style w:type="paragraph" w:styleId="Heading1"><w:name w:val="heading'
    ' 1"/></w:style><w:style w:type="paragraph" w:styleId="Heading2"><w:name w:val="heading'
    ' 2"/></w:style></w:styles>'
)
FONTS = {"helvetica": "Helvetica", "times": "Times-Roman", "courier": "Courier", "bold": "Helvetica-Bold"}
CONTAINER = (
    '<?xml version="1.0"?><container version="1.0"'
    ' xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile'
    ' full-path="OEBPS/content.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
)


def make_zip(entries: Mapping[str, str | bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return packed.getvalue()


def paragraph(text: str, style: str = "") -> str:
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f'<w:p>{properties}<w:r><w:t xml:space="preserve">{escape(text)}</w:t></w:r></w:p>'


def table(rows: Sequence[Sequence[str]]) -> str:
    cells = ("".join(f"<w:tc>{paragraph(cell)}</w:tc>" for cell in row) for row in rows)
    return "<w:tbl>" + "".join(f"<w:tr>{row}</w:tr>" for row in cells) + "</w:tbl>"


def docx_parts(body: str, title: str = "") -> dict[str, str | bytes]:
    core = f"<dc:title>{escape(title)}</dc:title>" if title else ""
    return {
        "[Content_Types].xml": CONTENT_TYPES,
        "_rels/.rels": RELATIONSHIPS,
        "docProps/core.xml": (
            "<cp:coreProperties"
            ' xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties"'
            f' xmlns:dc="http://purl.org/dc/elements/1.1/">{core}</cp:coreProperties>'
        ),
        "word/styles.xml": STYLES,
        "word/document.xml": (
            '<?xml version="1.0" encoding="UTF-8"?><w:document'
            f' xmlns:w="{W}"><w:body>{body}</w:body></w:document>'
        ),
    }


def make_docx(body: str, title: str = "") -> bytes:
    return make_zip(docx_parts(body, title))


def epub_parts(chapters: Sequence[str], title: str = "") -> dict[str, str | bytes]:
    """The parts of an EPUB; `chapters` are bodies in HTML."""
    numbers = range(1, len(chapters) + 1)
    items = "".join(
        f'<item id="c{i}" href="chapter{i}.xhtml" media-type="application/xhtml+xml"/>' for i in numbers
    )
    spine = "".join(f'<itemref idref="c{i}"/>' for i in numbers)
    metadata = f"<dc:title>{escape(title)}</dc:title>" if title else ""
    opf = (
        '<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf" version="3.0"><metadata'
        ' xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"{metadata}</metadata><manifest>{items}</manifest><spine>{spine}</spine></package>"
    )
    pages = {
        f"OEBPS/chapter{i}.xhtml": (
            f'<!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml"><body>{body}</body></html>'
        )
        for i, body in zip(numbers, chapters, strict=True)
    }
    return {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": CONTAINER,
        "OEBPS/content.opf": opf,
        **pages,
    }


def make_epub(chapters: Sequence[str], title: str = "") -> bytes:
    return make_zip(epub_parts(chapters, title))


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


def make_pdf(pages: Sequence[Sequence[str]], title: str = "") -> bytes:
    """A PDF with these lines on its pages; one without lines has a drawing and no text, as a scan has."""
    scan = Sheet([b"0.5 g 72 72 400 600 re f"])
    return pdf_of(*(Sheet().lines(72, 740, lines, 11) if lines else scan for lines in pages), title=title)


def _pdf_string(text: str) -> bytes:
    return text.encode("latin-1").replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)")


def _stream(content: bytes, entries: bytes = b"") -> bytes:
    return b"<< %b/Length %d >>\nstream\n%b\nendstream" % (entries, len(content), content)


def _pdf_file(objects: Mapping[int, bytes]) -> bytes:
    out = io.BytesIO()
    out.write(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
    offsets = []
    for number, content in sorted(objects.items()):
        offsets.append(out.tell())
        out.write(f"{number} 0 obj\n".encode() + content + b"\nendobj\n")
    start = out.tell()
    rows = b"".join(f"{offset:010d} 00000 n \n".encode() for offset in offsets)
    out.write(f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode() + rows)
    out.write(
        f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R /Info 4 0 R >>\nstartxref\n{start}\n%%EOF\n".encode()
    )
    return out.getvalue()


def make_long_pdf() -> bytes:
    """A PDF that takes minutes: thousands of full pages."""
    return make_pdf([["The ferry leaves the north quay at six each morning."] * 45] * 3_000)


def make_pdf_bomb(megabytes: int) -> bytes:
    """A PDF whose only page unpacks to that many megabytes of blanks."""
    blanks = b" " * 1024 * 1024
    packer = zlib.compressobj(9)
    start = packer.compress(b"") + packer.flush(zlib.Z_FULL_FLUSH)
    piece = packer.compress(blanks) + packer.flush(zlib.Z_FULL_FLUSH)
    checksum = 1
    for _ in range(megabytes):
        checksum = zlib.adler32(blanks, checksum)
    packed = start + piece * megabytes + b"\x03\x00" + struct.pack(">I", checksum)
    return _pdf_file(
        {
            1: b"<< /Type /Catalog /Pages 2 0 R >>",
            2: b"<< /Type /Pages /Kids [5 0 R] /Count 1 >>",
            3: b"null",
            4: b"<< >>",
            5: b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 6 0 R >>",
            6: _stream(packed, b"/Filter /FlateDecode "),
        }
    )


def make_nested_pdf(depth: int) -> bytes:
    """A PDF of one page whose form draws another twice, and so on: 2 ** depth forms in all."""
    resources = b"/Resources << /Font << /F1 3 0 R >> /XObject << /N %d 0 R >> >> "
    first = 6
    forms = {
        first + level: _stream(
            b"/N Do /N Do" if level < depth else b"BT /F1 11 Tf 72 740 Td (deep) Tj ET",
            b"/Type /XObject /Subtype /Form /BBox [0 0 612 792] " + resources % (first + level + 1),
        )
        for level in range(1, depth + 1)
    }
    return _pdf_file(
        {
            1: b"<< /Type /Catalog /Pages 2 0 R >>",
            2: b"<< /Type /Pages /Kids [5 0 R] /Count 1 >>",
            3: b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
            4: b"<< >>",
            5: (
                b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] "
                + resources % (first + 1)
                + b"/Contents 6 0 R >>"
            ),
            first: _stream(b"BT /F1 11 Tf 72 700 Td (Words) Tj ET /N Do"),
            **forms,
        }
    )


def make_repeating_epub(n_times: int) -> bytes:
    """An EPUB whose list of chapters names its only one so many times, half of them by other ids."""
    parts = epub_parts(["<h1>One</h1><p>The ferry left at six.</p>"])
    opf = str(parts["OEBPS/content.opf"])
    other = '<item id="other" href="chapter1.xhtml" media-type="application/xhtml+xml"/></manifest>'
    spine = "<spine>" + '<itemref idref="c1"/><itemref idref="other"/>' * (n_times // 2) + "</spine>"
    parts["OEBPS/content.opf"] = (
        opf.partition("<spine>")[0].replace("</manifest>", other) + spine + "</package>"
    )
    return make_zip(parts)


def encrypted_pdf(pages: Sequence[Sequence[str]], password: str) -> bytes:
    """A PDF that opens with a password; without one where that is empty."""
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(make_pdf(pages)))
    writer.encrypt(password, owner_password="owner", algorithm="AES-256")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def encrypted_zip(entries: Mapping[str, str | bytes]) -> bytes:
    """An archive whose entries say that they are encrypted."""
    data = bytearray(make_zip(entries))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        offsets = [info.header_offset for info in archive.infolist()]
    for offset in offsets:
        data[offset + 6] |= 1
    at = -1
    while (at := data.find(b"PK\x01\x02", at + 1)) >= 0:
        data[at + 8] |= 1
    return bytes(data)


def with_declared_size(data: bytes, size: int) -> bytes:
    """An archive whose headers claim that every entry unpacks to `size` bytes (at most 4 GB)."""
    out = bytearray(data)
    for signature, place in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        at = -1
        while (at := out.find(signature, at + 1)) >= 0:
            out[at + place : at + place + 4] = struct.pack("<I", size)
    return bytes(out)
