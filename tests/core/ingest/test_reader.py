"""Files of every kind and condition: each gives a document or one clear sentence."""

import codecs
import json

import pytest

from core.base.errors import BadDocument, BadRequest
from core.ingest import Converter, ReadingConfig, limits, read_document, read_pasted, reader
from core.ingest.structure import structure_layout

REFUSED = {
    "empty": (b"", "a.txt", "a.txt is empty; open a file that has text"),
    "binary named text": (bytes(range(256)), "a.txt", "a.txt is binary, not text (it has a NUL byte at 0)"),
    "image": (b"\x89PNG...", "report.txt", "report.txt is an image, not text; save it as HTML"),
    "office file cut off": (
        b"PK\x03\x04...",
        "report.docx",
        "report.docx is damaged: its list of contents can't be read; make or download it again",
    ),
    "office file with a password": (
        b"\xd0\xcf\x11\xe0...",
        "report.docx",
        "report.docx is encrypted or of an old office format; save it as DOCX",
    ),
    "page without text": (
        b"<html><script>run()</script><nav>Home</nav></html>",
        "a.html",
        "a.html has no text left once scripts",
    ),
    "100 MB of HTML": (
        b"<p>a" * (25 * 2**20),
        "a.html",
        "a.html has 104,857,600 bytes, more than 67,108,864; split it and open the parts",
    ),
    "line break in the name": (b"", "a\nb.txt", "a\\nb.txt is empty"),
    "path in the name": (b"", "C:\\secret\\..\\a.txt", "a.txt is empty"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_unusable_files_are_refused_in_one_sentence(name):
    data, filename, sentence = REFUSED[name]
    with pytest.raises(BadDocument) as refusal:
        read_document(data, filename)
    assert str(refusal.value).startswith(sentence)
    assert "\n" not in str(refusal.value)


def test_sizes_above_the_limits_are_refused_with_the_number(monkeypatch):
    with pytest.raises(BadDocument, match="tags, more than 400,000"):
        read_document(b"<b>" * (limits.MAX_HTML_TAGS + 1), "a.html")
    monkeypatch.setattr(reader, "MAX_FILE_BYTES", 10)
    with pytest.raises(BadDocument, match="has 11 bytes, more than 10; split it"):
        read_document(b"x" * 11, "a.txt")
    with pytest.raises(BadDocument, match="the pasted text has 11 characters, more than 10"):
        read_pasted("x" * 11)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (codecs.BOM_UTF8 + "Grüße".encode(), "Grüße"),
        ("Grüße 𝒳".encode("utf-16"), "Grüße 𝒳"),
        (codecs.BOM_UTF16_BE + "Grüße".encode("utf-16-be"), "Grüße"),
        (b"one\r\ntwo\rthree\n", "one\ntwo\nthree\n"),
        (b"bell\x07 here", "bell  here"),
    ],
)
def test_encodings_and_line_ends_become_plain_text(data, text):
    document = read_document(data, "a.txt")
    assert document.text == text
    assert document.notices == ()


@pytest.mark.parametrize(
    ("data", "text", "notice"),
    [
        (
            "Schöne Grüße über die Straße. ".encode("latin-1") * 5,
            "Schöne Grüße über die Straße. " * 5,
            "a guess",
        ),
        ("Это русский текст. ".encode("cp1251") * 40, "Это русский текст. " * 40, "a guess"),
        ("Grüße, schöne Stadt ".encode() + b"\xff end", "Grüße, schöne Stadt \ufffd end", "1 broken UTF-8"),
    ],
)
def test_other_encodings_are_read_with_a_notice(data, text, notice):
    document = read_document(data, "a.txt")
    assert document.text == text
    assert notice in document.told
    broken = document.text.find("\ufffd")
    assert document.notices[-1].at == (None if broken < 0 else broken)


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp1250", "Wieża stoi na końcu mola, a strażnik śpi w ciągu dnia. Później zapala światło."),
        ("cp1250", "Věž stojí na konci mola. Hlídač přes den spí a večer rozsvěcí světlo."),
        ("cp1250", "A torony a móló végén áll. Az őr nappal alszik, este tüzet gyújt, és őrködik fölötte."),
        ("cp1252", "Der Wärter schläft am Tag und zündet abends das Licht über dem Fluß an."),
        ("cp1252", "Le gardien dort la journée et, à la tombée du soir, il éclaire la jetée."),
        ("cp1254", "Kulenin bekçisi gündüz uyur, akşam ışığı yakar ve sabaha değin başında kalır."),
        ("cp1257", "Bokštas stovi molo gale. Sargas dieną miega, o vakare uždega šviesą ir ją saugo."),
        ("cp1251", "Башня стоит в конце мола. Сторож днём спит, а вечером зажигает огонь."),
        ("cp866", "Башня стоит в конце мола. Сторож днём спит, а вечером зажигает огонь."),
        ("mac-roman", "Le gardien dort la journée et, à la tombée du soir, il éclaire la jetée."),
        ("cp850", "Der Wärter schläft am Tag und zündet abends das Licht über dem Fluß an."),
        ("cp1250", "Wśze i żółw."),
        ("cp1250", "Őrség: a kikötő zárva, fűtés nincs."),
        ("cp1252", "“It’s the keeper’s lamp”—so said the boy’s mother."),
        ("koi8-r", "Башня стоит в конце мола. Сторож днём спит, а вечером зажигает огонь."),
        ("cp1253", "Ο πύργος στέκεται στην άκρη του μόλου. Ο φύλακας κοιμάται τη μέρα."),
        ("cp1255", "המגדל עומד בקצה המזח. השומר ישן ביום ומדליק אור בערב."),
        ("cp1256", "يقع البرج في آخر الرصيف. ينام الحارس نهارا ويشعل النور مساء."),
        ("shift_jis", "塔は防波堤の端に立っています。番人は昼に眠り、夜に灯をともします。"),
        ("euc-jp", "塔は防波堤の端に立っています。番人は昼に眠り、夜に灯をともします。"),
        ("gb18030", "塔在防波堤的尽头。看守人白天睡觉,晚上点灯,直到早上。"),
        ("big5", "塔在防波堤的盡頭。看守人白天睡覺,晚上點燈,直到早上。"),
        ("euc-kr", "탑은 방파제 끝에 서 있다. 등대지기는 낮에 자고 밤에 불을 켠다."),
    ],
)
def test_a_short_text_that_says_no_encoding_is_read_by_a_guess_that_is_told(encoding, text):
    document = read_document(text.encode(encoding), "a.txt")
    assert document.text == text
    assert "a guess" in document.told


def test_an_encoding_that_a_person_chooses_is_that_of_all_that_is_not_utf8():
    with Converter(config=ReadingConfig(encoding="iso8859-2")) as converter:
        read = {
            name: read_document(text.encode(encoding), name, converter)
            for name, text, encoding in (
                ("a.txt", "Wśze", "iso8859-2"),
                ("b.html", "<meta charset=koi8-r><p>Wśze", "iso8859-2"),
                ("c.txt", "Ærø", "utf-8"),
            )
        }
    assert {name: document.text for name, document in read.items()} == {
        "a.txt": "Wśze",
        "b.html": "Wśze",
        "c.txt": "Ærø",
    }
    assert not any(document.notices for document in read.values())
    for unsafe in ("utf-7", "rot13", "no such", "unicode_escape"):
        with pytest.raises(BadRequest, match="choose one such as cp1252"):
            ReadingConfig(encoding=unsafe)


def test_bytes_that_are_utf8_are_read_as_that_whatever_a_page_declares():
    page = '<meta charset="windows-1252"><p>Ærø and smørrebrød cost 7 €'.encode()
    assert read_document(page, "a.html").text == "Ærø and smørrebrød cost 7 €"


def test_a_page_may_declare_its_encoding_but_no_trick():
    declared = '<meta charset="iso-8859-1"><p>Grüße “so”'.encode("cp1252")
    assert read_document(declared, "a.html").text == "Grüße “so”"
    assert "<script" not in read_document(b'<meta charset="utf-7"><p>+ADw-script+AD4-', "a.html").text


@pytest.mark.parametrize(
    ("filename", "data", "kind", "title"),
    [
        ("my page.HTM", b"<title>The  title</title><p>x", "html", "The title"),
        ("page", b"<!doctype html><html><body><h1>Head</h1></body>", "html", "Head"),
        ("notes.markdown", b"text\n\n## First *head*\n", "markdown", "First head"),
        ("notes.md", b"no heading", "markdown", "notes"),
        ("novel.txt", b"<html> is a word here", "text", "novel"),
        ("data.bin", b"plain words", "text", "data"),
    ],
)
def test_the_kind_comes_from_the_name_or_else_from_the_content(filename, data, kind, title):
    document = read_document(data, filename)
    assert (document.kind, document.title) == (kind, title)


def test_pasted_html_is_recognised_and_other_text_is_not():
    assert read_pasted("<div><p>One.</p><p>Two.</p></div>").text == "One.\n\nTwo."
    assert read_pasted("a < b, and <b> is bold").kind == "text"
    assert read_pasted("words", "My notes").title == "My notes"
    assert read_pasted("a\ud800b").text == "a\ufffdb", "no lone surrogate comes through"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("# Lamps\n\nThe **lamp** is lit.", "markdown"),
        ("run this:\n# install\nmake", "text"),
        ("The **lamp** is lit.", "text"),
    ],
)
def test_text_whose_headings_stand_alone_is_markdown(text: str, kind: str) -> None:
    assert read_pasted(text).kind == kind
    assert read_document(text.encode(), "notes").kind == kind


def test_a_line_longer_than_people_write_is_read_with_a_notice():
    document = read_document(b"word " * 2_000_000, "a.txt")
    assert document.told == (
        "It has a line of 10,000,000 characters, more than 1,000,000: is it a text that people wrote?"
    )
    assert len(document.text) == 10_000_000


def test_rows_of_values_are_items_with_the_names_of_their_columns():
    document = read_document(b'name;price;note\nGull;1,5;"a ""b""\nc"\n\nTern;;x\n', "boats.csv")
    assert document.text == '- name: Gull; price: 1,5; note: a "b" c\n- name: Tern; note: x\n'
    assert [str(notice) for notice in document.notices] == [
        "Each row was written as an item, with the names of its columns."
    ]
    long_name = f"{'a' * 201},b\n1,2\n"
    grown = f"{'a' * 190},b\n" + "1,2\n" * 300
    for text in (
        long_name,
        grown,
        "a,b\n" + "1,2\n" * 600_000,
        "1,2\n3,4\n",
        "a,b\n1,2,3\n",
        "one column\n5\n",
        'a,b\n"open,2\n',
        "a,a\n1,2\n",
    ):
        assert read_document(text.encode(), "boats.csv").text == text, "no such table"
    assert read_document(b"a\tb\n1\t2\n", "a.tsv").text == "- a: 1; b: 2\n"


def test_pictures_in_a_text_are_left_out_and_told():
    data = "data:image/png;base64," + "A" * 900
    markdown = f"# Crew\n\nSee ![the boat]({data}) and <img src='{data}'>.\n\n[image1]: <{data}>\n"
    document = read_document(markdown.encode(), "a.md")
    assert document.text == "# Crew\n\nSee the boat and <img src=''>.\n\n\n"
    assert [str(notice) for notice in document.notices] == ["Pictures left out: 3."]


def test_front_matter_names_a_document():
    named = b'---\nlayout: post\ntitle: "My boat"\n---\n## Fees\n\nThirty.\n'
    assert read_document(named, "a.md").title == "My boat"
    assert read_document(named.replace(b"title", b"other"), "a.md").title == "Fees"


def test_an_encoding_that_only_a_comment_names_is_none():
    page = "<!-- <meta charset='koi8-r'> --><meta charset='windows-1252'><p>Fähre"
    assert read_document(page.encode("cp1252"), "a.html").text == "Fähre"


def test_an_encoding_is_declared_behind_long_styles_too():
    page = f"<style>{'a { b: c } ' * 3_000}</style><meta charset='windows-1252'><p>F\u00e4hre"
    assert read_document(page.encode("cp1252"), "a.html").text == "F\u00e4hre"


def test_a_fence_in_the_code_of_a_notebook_ends_nothing():
    code = {"cell_type": "code", "source": ["p = x\n", "```json\n", "# call the model"], "outputs": []}
    words = {"cell_type": "markdown", "source": "# Results\n\nFine."}
    book = {"cells": [code, words], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    document = read_document(json.dumps(book).encode(), "a.ipynb")
    assert structure_layout(document.text).heading_paths == ((), ("Results",))
