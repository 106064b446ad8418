"""Files of every kind through the one door: what becomes of them, and the sentence where nothing does."""

import json
import zipfile

import pytest

from core.base.errors import BadDocument, Cancelled
from core.ingest import (
    archive,
    convert,
    default_chunker,
    documents,
    limits,
    pdf_page,
    read_document,
    read_documents,
)
from tests.core.ingest.made import (
    docx_parts,
    encrypted_pdf,
    encrypted_zip,
    epub_parts,
    make_docx,
    make_nested_pdf,
    make_pdf,
    make_repeating_epub,
    make_zip,
    paragraph,
    table,
    with_declared_size,
)

LETTER = (
    paragraph("The letter", "Heading1")
    + paragraph("Anna hid it & left <quickly>.")
    + table([["day", "rain"], ["Monday", "three"]])
)

LETTER_TEXT = "# The letter\n\nAnna hid it & left <quickly>.\n\n|  |  |\n| --- | --- |\n| day | rain |\n| Monday | three |"


def changed(parts, name, old, new):
    """Parts of an archive with one text in one of them replaced."""
    assert old in parts[name]
    return make_zip({**parts, name: parts[name].replace(old, new)})


def test_a_docx_keeps_headings_and_tables_and_loses_images(converter):
    drawing = (
        '<w:p><w:r><w:drawing><a:blip xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
        ' r:embed="rId9" xmlns:r="r"/></w:drawing></w:r></w:p>'
    )
    document = read_document(make_docx(LETTER + drawing, "A title"), "letter.docx", converter)
    assert (document.title, document.kind, default_chunker(document.kind)) == (
        "A title",
        "markdown",
        "structure",
    )
    head = "| day | rain |\n| --- | --- |"
    assert document.text.replace(head, "|  |  |\n| --- | --- |\n| day | rain |") == LETTER_TEXT
    assert document.told == "Pictures left out: 1."
    renamed = read_document(make_docx(LETTER), "renamed.pdf", converter)
    assert (renamed.kind, renamed.title) == ("markdown", "renamed"), "the bytes say what a file is"


def test_a_notebook_gives_its_cells_without_what_they_printed(converter):
    cells = [
        {"cell_type": "markdown", "source": ["# Tides\n", "Six hours apart."]},
        {"cell_type": "code", "source": ["height = 3"], "outputs": [{"text": ["printed"]}]},
    ]
    document = read_document(json.dumps({"cells": cells}).encode(), "tides.ipynb", converter)
    assert document.text == "# Tides\nSix hours apart.\n\n```python\nheight = 3\n```"
    assert document.told == "What its cells printed was not read."
    with pytest.raises(BadDocument, match="is damaged or no IPYNB file"):
        read_document(b'{"cells": 3', "cut.ipynb", converter)


def test_a_pdf_gives_the_text_of_its_pages_and_tells_how_far_it_is(converter):
    told, pages = [], [f"Page {i} says (hello)." for i in range(30)]
    pdf = make_pdf([[page] for page in pages], "Thirty pages")
    document = read_document(pdf, "p.pdf", converter, lambda *parts: told.append(parts))
    assert (document.title, document.kind) == ("Thirty pages", "markdown")
    assert document.text == "\n\n".join(pages)
    assert all(done <= total for done, total in told)
    assert told[-1][1] in (1, 30)
    free = read_document(encrypted_pdf([["for all to read"]], ""), "a.pdf", converter)
    assert free.text == "for all to read", "it opens without a password"


ENTITIES = '<!DOCTYPE d [<!ENTITY a "a">]>'
PROTECTED = (
    '<e xmlns:n="http://www.w3.org/2001/04/xmlenc#"><n:CipherReference URI="OEBPS/chapter1.xhtml"/></e>'
)
REFUSED = {
    "encrypted.pdf": (
        lambda: encrypted_pdf([["secret"]], "password"),
        "is encrypted; save it without a password and open that",
    ),
    "scan.pdf": (
        lambda: make_pdf([[], []]),
        "has 2 pages but no text, as scans have; ",
    ),
    "cut.pdf": (
        lambda: make_pdf([["text"]])[:300],
        "is damaged or no PDF file; open it in its program, save it again and open that",
    ),
    "empty.docx": (lambda: make_docx(""), "has no text; open one that has"),
    "broken-xml.docx": (
        lambda: changed(docx_parts(LETTER), "word/document.xml", "</w:body>", ""),
        "is damaged or no DOCX file; open it in its program",
    ),
    "entities.docx": (
        lambda: changed(docx_parts(LETTER), "word/document.xml", "<w:document", ENTITIES + "<w:document"),
        "declares XML entities, which are never expanded here; save it again",
    ),
    "entities16.docx": (
        lambda: make_zip({**docx_parts(LETTER), "word/theme.xml": f"{ENTITIES}<d>&a;</d>".encode("utf-16")}),
        "declares XML entities",
    ),
    "deep.docx": (
        lambda: make_docx("<w:sdt>" * 250 + "</w:sdt>" * 250),
        "is nested more than 200 levels deep; save it as PDF",
    ),
    "long.docx": (
        lambda: make_docx("<w:p/>" * 500_001),
        "has more than 500,000 XML elements; split it and open the parts",
    ),
    "bomb.docx": (
        lambda: make_zip({**docx_parts(LETTER), "word/more.xml": b" " * 2**25}),
        "bytes to more than 16,777,216; split it and open the parts",
    ),
    "entities.epub": (
        lambda: changed(epub_parts(["x"], "T"), "OEBPS/content.opf", "<package", ENTITIES + "<package"),
        "declares XML entities, which are never expanded here",
    ),
    "protected.epub": (
        lambda: make_zip({**epub_parts(["x"]), "META-INF/encryption.xml": PROTECTED}),
        "is protected against reading by other programs (DRM); open a copy without protection",
    ),
    "sheet.xlsx": (
        lambda: make_zip({"[Content_Types].xml": "x", "xl/workbook.xml": "x"}),
        "is an office file of another kind than DOCX; save it as DOCX or PDF",
    ),
    "encrypted.zip": (
        lambda: encrypted_zip({"a.txt": "text"}),
        "is encrypted; unpack it with its password and open the files in it",
    ),
    "bomb.zip": (
        lambda: make_zip({f"{i}.txt": b" " * 2**23 for i in range(3)}),
        "bytes to more than 16,777,216; split it and open the parts",
    ),
    "bombs.zip": (
        lambda: make_zip({f"{i}.zip": make_zip({"a.txt": b" " * 2**23}) for i in range(3)}),
        "bytes to more than 16,777,216; split it",
    ),
    "many.zip": (
        lambda: make_zip(dict.fromkeys(map(str, range(2_001)), "x"), zipfile.ZIP_STORED),
        "holds more than 2,000 files; open fewer at once",
    ),
    "images.zip": (
        lambda: make_zip({"a.png": b"\x89PNG"}),
        "holds no document that can be read: a.png in images.zip is an image, not text",
    ),
}


@pytest.mark.parametrize("filename", REFUSED)
def test_what_cannot_be_read_is_refused_in_one_sentence(converter, filename):
    make, sentence = REFUSED[filename]
    with pytest.raises(BadDocument) as refusal:
        read_documents(make(), filename, converter)
    assert str(refusal.value).startswith(filename)
    assert sentence in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_an_archive_gives_a_document_an_entry_in_its_order(converter):
    data = make_zip(
        {
            "b/notes.md": "# Notes\n\ntext",
            "a.html": "<p>page",
            "b/letter.docx": make_docx(LETTER),
            "inner.zip": make_zip({"deep.txt": "deep"}),
        }
    )
    told = []
    read = read_documents(data, "all.zip", converter, lambda *parts: told.append(parts))
    assert [(name, document.kind, document.title) for name, document in read.items()] == [
        ("all.zip/b/notes.md", "markdown", "Notes"),
        ("all.zip/a.html", "html", "a"),
        ("all.zip/b/letter.docx", "markdown", "letter"),
        ("all.zip/inner.zip/deep.txt", "text", "deep"),
    ]
    assert sorted(set(told)) == [(done, 4) for done in range(4)]


def test_one_document_and_a_whole_archive_have_doors_of_their_own():
    with pytest.raises(BadDocument, match=r"all\.zip is an archive; unpack it and open a document of it"):
        read_document(make_zip({"a.txt": "text"}), "all.zip")
    assert list(read_documents(b"text", "folder/a.txt")) == ["a.txt"]


def test_files_that_cannot_be_read_are_left_out_and_told_about():
    entries = {"a.txt": "good", "b.txt": "damaged", "c.png": b"\x89PNG", "d.txt": "", "e.txt": b"\0"}
    damaged = make_zip(entries, zipfile.ZIP_STORED).replace(b"damaged", b"demaged", 1)
    (document,) = read_documents(damaged, "all.zip").values()
    assert document.text == "good"
    assert document.told == (
        "4 files were left out of all.zip: b.txt in all.zip is damaged; c.png in all.zip is an image, not"
        " text; d.txt in all.zip is empty; and 1 more."
    )
    deep = make_zip({"text.txt": "text", "one.zip": make_zip({"two.zip": make_zip({"deep.txt": "deep"})})})
    (document,) = read_documents(deep, "all.zip").values()
    assert document.told.endswith("two.zip in one.zip in all.zip is an archive more than 2 levels deep.")


def test_names_in_archives_are_only_shown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    titles = {
        "../../etc/passwd": "passwd",
        "/absolute.txt": "absolute",
        "C:\\dir\\drive.txt": "drive",
        "line\nbreak\x1b[31m.txt": "line\\nbreak\\x1b[31m",
        "turn\u202etxt.exe": "turn\\u202etxt",
        "x" * 5_000 + ".txt": "x" * 199 + "…",
        "A.TXT": "A",
    }
    read = read_documents(make_zip(dict.fromkeys(titles, "text")), "all.zip")
    assert [document.title for document in read.values()] == [*titles.values()]
    assert all(name.isprintable() and len(name) < 300 for name in read)
    assert list(tmp_path.iterdir()) == []


def test_an_entry_that_lost_its_name_is_left_out_and_two_of_one_name_are_two(converter):
    packed = make_zip({"a.txt": "one", "b.txt": "two"})
    read = {
        name: document.text
        for lost in (b"\0.txt", b"a.txt")
        for name, document in read_documents(packed.replace(b"b.txt", lost), "z.zip", converter).items()
    }
    assert read == {"z.zip/a.txt": "one", "z.zip/a.txt (2)": "two"}


def test_sizes_that_headers_claim_count_for_nothing():
    data = make_zip({"a.txt": "a" * 3_000_000})
    (document,) = read_documents(with_declared_size(data, 4_000_000_000), "a.zip").values()
    assert document.text == "a" * 3_000_000
    with pytest.raises(BadDocument, match=r"a\.txt in a\.zip is damaged"):
        read_documents(with_declared_size(data, 1_000), "a.zip")


def test_entries_packed_by_other_methods_are_left_out():
    data = make_zip({"a.txt": "text"}, zipfile.ZIP_LZMA)
    with pytest.raises(
        BadDocument, match=r"a\.txt in z\.zip is packed in an unusual way \(method 14\); pack it"
    ):
        read_documents(data, "z.zip")


def test_bounds_of_archives_are_those_of_limits(monkeypatch):
    monkeypatch.setattr(archive, "MAX_UNPACKED_BYTES", 1_000)
    with pytest.raises(BadDocument, match="bytes to more than 1,000; split it"):
        read_documents(make_zip({"a.txt": "x" * 600, "b.txt": "x" * 600}), "z.zip")
    monkeypatch.setattr(archive, "MAX_UNPACKED_BYTES", limits.MAX_UNPACKED_BYTES)
    monkeypatch.setattr(archive, "MAX_FILE_BYTES", 500)
    with pytest.raises(BadDocument, match=r"a\.txt in z\.zip has more than 500 bytes; split it"):
        read_documents(make_zip({"a.txt": "x" * 600}), "z.zip")
    monkeypatch.setattr(documents, "MAX_ARCHIVE_DEPTH", 1)
    with pytest.raises(BadDocument, match=r"b\.zip in z\.zip is an archive more than 1 levels deep"):
        read_documents(make_zip({"b.zip": make_zip({"a.txt": "x"})}), "z.zip")


def test_what_converting_gives_counts_as_unpacked(converter, monkeypatch):
    monkeypatch.setattr(archive, "FREE_UNPACKED_BYTES", 40_000)
    monkeypatch.setattr(archive, "MAX_ARCHIVE_RATIO", 1)
    letters = {f"{i}.docx": make_docx(paragraph("word " * 3_000)) for i in range(4)}
    with pytest.raises(BadDocument, match="to more than 40,000; split it"):
        read_documents(make_zip(letters), "z.zip", converter)


def test_reading_an_archive_can_be_cancelled_between_files():
    def cancel(*parts):
        if parts != (0, 2):
            raise Cancelled

    with pytest.raises(Cancelled):
        read_documents(make_zip({"a.txt": "a", "b.txt": "b"}), "z.zip", on_part=cancel)


def test_drawings_within_drawings_are_bounded(monkeypatch, record_attack):
    monkeypatch.setattr(pdf_page, "MAX_PDF_FORMS", 200)
    assert "deep" in convert.convert(make_nested_pdf(5), "pdf", "a.pdf").markdown
    with pytest.raises(BadDocument, match=r"a\.pdf draws more than 200 forms; print the pages"):
        convert.convert(make_nested_pdf(8), "pdf", "a.pdf")
    outcome = "read below the bound, refused in a sentence beyond"
    record_attack("PDFs whose drawings draw each other", 2, outcome)


@pytest.mark.campaign
def test_a_chapter_is_read_once_however_often_it_is_listed(record_attack):
    document = read_document(make_repeating_epub(200), "a.epub")
    assert document.text == "# One\n\nThe ferry left at six."
    assert document.told == "Its list of chapters names some again, 199 times; each was read once."
    record_attack("a chapter named again by its EPUB", 199, "read once")
