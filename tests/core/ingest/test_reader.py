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
        ("iso8859-1", "The ferry to Malmö leaves at six."),
        ("iso8859-1", "Coffee costs 5£."),
        ("cp1252", "Then the captain said: “Go.”"),
        ("cp1252", "• It’s 20°C — the boy’s “lamp” costs €5…"),
        ("iso8859-15", "Le cœur coûte 5 €, la sœur paie 7 € à l'été."),
        ("iso8859-2", "Wieża stoi na końcu mola, a strażnik śpi w ciągu dnia. Później zapala światło."),
        ("iso8859-2", "Věž stojí na konci mola. Těžká loď odplouvá, když je bouře."),
        ("iso8859-5", "Башня стоит в конце мола. Сторож днём спит, а вечером зажигает огонь."),
        ("koi8-u", "Паром відходить о шостій ранку, їжа є."),
        ("tis-620", "หอคอยตั้งอยู่ปลายเขื่อน คนเฝ้านอนกลางวันและจุดไฟตอนเย็น"),
        ("gbk", "Release notes for version 2.1 of the package, by 王小明 of Wuhan. See the index for more."),
        ("shift_jis", "Release notes for version 2.1 of the package, by 山田太郎 of Tokyo. See the index."),
        ("cp1251", "Release notes for version 2.1 of the package, by Иван Петров. See the index for more."),
        ("iso2022_jp", "塔は防波堤の端に立っています。"),
        ("cp1252", "Er sagte: „Wir fahren morgen“ – und ging."),
        ("cp1252", "Er fragte: ‚Wer?‘ und ging."),
        ("cp1252", "Er las »Die Brücke« und ging."),
        ("cp1252", "»Die Nacht« ist ein Film."),
        ("cp1252", "Båten kostar 1\xa0200 kr."),
        ("cp1252", "1\xa0200 kr"),
        ("cp1252", "Schiff\xadfahrt und Fluss\xadufer bleiben offen."),
        ("cp1250", "WIEŻA STOI NA KOŃCU MOLA, A STRAŻNIK ŚPI W CIĄGU DNIA."),
        ("cp1251", "БАШНЯ СТОИТ В КОНЦЕ МОЛА. СТОРОЖ ДНЁМ СПИТ."),
        ("koi8-r", "БАШНЯ СТОИТ В КОНЦЕ МОЛА. СТОРОЖ ДНЁМ СПИТ."),
        ("cp866", "БАШНЯ СТОИТ В КОНЦЕ МОЛА. СТОРОЖ ДНЁМ СПИТ."),
        ("cp1253", "Ο ΠΥΡΓΟΣ ΣΤΕΚΕΤΑΙ ΣΤΗΝ ΑΚΡΗ ΤΟΥ ΜΟΛΟΥ."),
    ],
)
def test_a_short_text_that_says_no_encoding_is_read_by_a_guess_that_is_told(encoding, text):
    document = read_document(text.encode(encoding), "a.txt")
    assert document.text == text
    assert "a guess" in document.told


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("gbk", "塔在防波堤的尽头。看守人白天睡觉。"),
        ("cp1251", "Башня стоит в конце мола."),
        ("shift_jis", "番人は昼に眠り、夜に灯をともします。"),
    ],
)
def test_the_markup_of_a_page_is_no_part_of_what_is_guessed_from(encoding, text):
    page = f"<html><body class='wide'><div class='content'><p class='first'>{text}</p></div></body></html>"
    assert read_document(page.encode(encoding), "a.html").text == text


def test_a_last_character_that_is_cut_off_makes_no_other_encoding():
    document = read_document("The lamp costs 7 €".encode()[:-1], "a.txt")
    assert document.text == "The lamp costs 7 \ufffd"
    assert document.told == "1 broken UTF-8 characters were replaced by \ufffd."


@pytest.mark.parametrize(
    ("label", "encoding", "text"),
    [
        ("gbk", "gbk", "渡轮六点出发。"),
        ("gb2312", "gbk", "朱镕基"),
        ("x-sjis", "cp932", "①船は六時に出ます。"),
        ("windows-31j", "cp932", "①船は六時に出ます。"),
        ("iso-2022-jp", "iso2022_jp", "船は六時に出ます。"),
        ("ks_c_5601-1987", "cp949", "펲시 배는 떠납니다."),
        ("tis-620", "cp874", "เรือออก “หกโมง”"),
        ("windows-874", "cp874", "เรือออก"),
        ("win-1251", "cp1251", "Паром"),
        ("x-mac-cyrillic", "mac-cyrillic", "Паром"),
        ("iso-8859-8-i", "iso8859-8", "המעבורת יוצאת"),
        ("iso-8859-9", "cp1254", "“Kırmızı”"),
    ],
)
def test_encodings_are_known_by_the_names_that_pages_give_them(label, encoding, text):
    document = read_document(f'<meta charset="{label}"><p>{text}'.encode(encoding), "a.html")
    assert (document.text, document.notices) == (text, ())
    with Converter(config=ReadingConfig(encoding=label)) as converter:
        assert read_document(text.encode(encoding), "a.txt", converter).text == text


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


@pytest.mark.parametrize(
    ("rows", "items"),
    [
        ("Land,Code,2019,2020\nLund,SE,10,11\n", "- Land: Lund; Code: SE; 2019: 10; 2020: 11\n"),
        ("Land,1/22/20,2019/20\nLund,3,4\n", "- Land: Lund; 1/22/20: 3; 2019/20: 4\n"),
        ("#,Name,%\n1,Ann,30\n", "- #: 1; Name: Ann; %: 30\n"),
        ("sep=;\nName;Wo\nAnn;Lund, Ystad\n", "- Name: Ann; Wo: Lund, Ystad\n"),
        (
            "Fares 2024,,\n,,\nRoute,Adult,Child\nNorth,14,7\n",
            "Fares 2024\n\n- Route: North; Adult: 14; Child: 7\n",
        ),
        ("# exported\nName,Age\nAnn,30\n", "exported\n\n- Name: Ann; Age: 30\n"),
        ("Team,Goals,Team,Goals\nLund,3,Ystad,1\n", "- Team: Lund; Goals: 3; Team: Ystad; Goals: 1\n"),
        (
            "Name;Preis, netto;Ort, Land\nAnn;3,50;Lund\n",
            "- Name: Ann; Preis, netto: 3,50; Ort, Land: Lund\n",
        ),
        ("Name;x, y, z;Ort\nAnn;3;Lund\n", "- Name: Ann; x, y, z: 3; Ort: Lund\n"),
        ('Name,"a;b;c"\nAnn,3\n', "- Name: Ann; a;b;c: 3\n"),
        ("name\taddress\nAnn\tKajen 1, Lund\n", "- name: Ann; address: Kajen 1, Lund\n"),
        (
            "Ort;Einwohner\nLund;1,5\nYstad;2,5\n",
            "- Ort: Lund; Einwohner: 1,5\n- Ort: Ystad; Einwohner: 2,5\n",
        ),
        ("Preis, netto|Ort\n3,50|Lund\n", "- Preis, netto: 3,50; Ort: Lund\n"),
        (
            "Was;Preis;Menge\nSeil;12,50;3\nAnker;99,00\n",
            "- Was: Seil; Preis: 12,50; Menge: 3\n- Was: Anker; Preis: 99,00\n",
        ),
        (
            "Fahrpreise, 2024;;\nRoute;Preis;Kind\nNord;14;7\n",
            "Fahrpreise, 2024\n\n- Route: Nord; Preis: 14; Kind: 7\n",
        ),
    ],
)
def test_heads_of_columns_are_read_as_programs_write_them(rows, items):
    assert read_document(rows.encode(), "a.csv").text == items


@pytest.mark.parametrize(
    "rows",
    [
        "Volvo,Sweden,1998\nSaab,Sweden,2001\n",
        "2019,Lund\n3,Ystad\n",
        "Ann,yes,no,yes\nBob,no,no,yes\n",
        "Name\nSmith, John\nDoe, Jane\n",
        "Ann,,\nBob,Lund,7\nCid,Ystad\n",
        "Ann,30,5\nBob,31,6\n",
    ],
)
def test_a_first_row_that_is_like_the_others_is_no_head(rows):
    assert read_document(rows.encode(), "a.csv").text == rows


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
    assert read_document(b'+++\ntitle = "My boat"\n+++\n## Fees\n', "a.mdx").title == "My boat"
    assert read_document(b"\n---\ntitle: My boat\n...\n## Fees\n", "a.md").title == "My boat"


@pytest.mark.parametrize(
    "before", ["<!-- <meta charset='koi8-r'> -->", f"<style>{'a { b: c } ' * 3_000}</style>"]
)
def test_an_encoding_is_declared_behind_comments_that_name_another_and_long_styles(before):
    page = f"{before}<meta charset='windows-1252'><p>Fähre"
    assert read_document(page.encode("cp1252"), "a.html").text == "Fähre"


def test_a_fence_in_the_code_of_a_notebook_ends_nothing(converter):
    code = {"cell_type": "code", "source": ["p = x\n", "```json\n", "# call the model"], "outputs": []}
    words = {"cell_type": "markdown", "source": "# Results\n\nFine."}
    book = {"cells": [code, words], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    document = read_document(json.dumps(book).encode(), "a.ipynb", converter)
    assert structure_layout(document.text).heading_paths == ((), ("Results",))


def test_pictures_in_the_words_of_a_notebook_are_left_out_and_told(converter):
    picture = "![chart](data:image/png;base64," + "iVBORw0KGgo" * 90 + ")"
    cells = [{"cell_type": "markdown", "source": source} for source in (picture, "# Results\n\nFine.")]
    book = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    document = read_document(json.dumps(book).encode(), "a.ipynb", converter)
    assert document.text == "chart\n\n# Results\n\nFine."
    assert document.told.endswith("Pictures left out: 1.")
    book["cells"] = [{"cell_type": "markdown", "source": picture.replace("chart", "")}]
    with pytest.raises(BadDocument, match="has no cell with text"):
        read_document(json.dumps(book).encode(), "a.ipynb", converter)


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp932", "御中\n①一泊 340円\n㈱ヴェル港湾 担当:髙橋\n営業時間は午前九時からです。"),
        ("cp950", "港口的費用是每晚340元。鑰匙在屋裏面。開放時間是上午九時至下午五時。"),
        ("big5hkscs", "碼頭嘅費用係每晚340蚊。沖涼唔使錢,鎖匙喺屋入面,唔好俾其他人攞咗去。"),
    ],
)
def test_characters_that_vendors_added_are_read(encoding, text):
    assert read_document(text.encode(encoding), "a.txt").text == text
    page = b"<meta charset=%s><p>" % {"cp932": b"ms_kanji"}.get(encoding, b"cn-big5") + text.encode(encoding)
    assert "\ufffd" not in read_document(page, "a.html").text


def test_japanese_of_vendors_is_read_in_euc_too():
    text = (
        "港の料金は次のとおりです。営業時間は午前九時から午後五時までです。月曜日は休みです。シャワーは無料です。\n".encode(
            "euc_jp"
        )
        + b"\xad\xa1 \xad\xea \xfc\xe2\xb6\xb6\n"
    )
    assert (
        read_document(text, "a.txt").text
        == "港の料金は次のとおりです。営業時間は午前九時から午後五時までです。月曜日は休みです。シャワーは無料です。\n① ㈱ 髙橋\n"
    )


def test_escapes_in_json_become_the_characters_they_stand_for():
    escaped = rb'{"a": "\u00c5sa \ud83d\udc4d \\u00c5 \u000a\u0022\u005C \ud83d \u00c"}'
    assert read_document(escaped, "a.json").text == (
        '{"a": "Åsa \N{THUMBS UP SIGN} ' + r'\\u00c5 \u000a\u0022\u005C \ud83d \u00c"}'
    )
    assert read_document(escaped, "a.txt").text == escaped.decode()
    (notice,) = read_document(rb'"\u00c5' + "åäö".encode() + b'\xff"', "a.jsonl").notices
    assert notice.at == 5, "where it stands in the text as read"


def test_what_a_terminal_obeys_is_no_text():
    assert read_document(b"\x1b[1;31mERROR\x1b[0m 12\x1b]0;title\x07 \x1b[K", "a.log").text == "ERROR 12 "


@pytest.mark.parametrize(
    ("rows", "items"),
    [
        (
            "Item,Q1,Q2\nRope,1,2\n\nStaff,Rate\nAnna,3\n",
            "- Item: Rope; Q1: 1; Q2: 2\n- Staff: Anna; Rate: 3\n",
        ),
        (
            "Item,Q1,\nRope,1,\n,,\nStaff,Rate,Sum\nAnna,3,4\n",
            "- Item: Rope; Q1: 1\n- Staff: Anna; Rate: 3; Sum: 4\n",
        ),
        ("a,b,c\nx,1,2\n\ny,z\nw,v\n", "- a: x; b: 1; c: 2\n- a: y; b: z\n- a: w; b: v\n"),
        ("T\n\nS\n\na,b\nx,1\n", "T\n\nS\n\n- a: x; b: 1\n"),
        ("Report,Anna\nItem,Fee,Sum\nRope,1,2\n", "- Report; Anna\n- Item: Rope; Fee: 1; Sum: 2\n"),
        ("a,b\nx,1\n\ny,z\nw,2\n", "- a: x; b: 1\n- a: y; b: z\n- a: w; b: 2\n"),
    ],
)
def test_a_table_behind_an_empty_row_has_names_of_its_own(rows, items):
    assert read_document(rows.encode(), "a.csv").text == items


@pytest.mark.parametrize("groups", [",2021,,2022,", ",2021,2021,2022,2022", ",2021,,2022"])
def test_columns_have_the_names_of_the_groups_that_stand_over_them(groups):
    below = "Region,Paid,Free,Paid,Free\nNorth,1,2,3,4\n"
    items = "- Region: North; 2021 Paid: 1; 2021 Free: 2; 2022 Paid: 3; 2022 Free: 4\n"
    assert read_document(f"{groups}\n{below}".encode(), "a.csv").text == items
    uneven = f"{groups}\n{below.replace('Free', 'Owed', 1)}"
    assert "2022 Owed" not in read_document(uneven.encode(), "a.csv").text


COMMENTED = """# Fees

<!-- SECRET: ask Ann -->
Six crowns<!-- SECRET
of 1902 -->, `<!-- paid -->` at the pier. \\<!-- no comment -->

- ```html
  <!-- kept -->
  ```

    <!-- kept, too -->

{% highlight html %}
<!-- as code of Jekyll is -->
{% endhighlight %}

~~~
<!-- and this
~~~

<!-- never closed
"""


def test_comments_in_markdown_are_no_text_but_in_code():
    document = read_document(COMMENTED.encode(), "a.md")
    assert document.text == COMMENTED.replace("<!-- SECRET: ask Ann -->", "").replace(
        "<!-- SECRET\nof 1902 -->", ""
    )
    assert read_pasted(COMMENTED).text == document.text
    assert read_document(b"# a <!-- b -->", "a.txt").text == "# a <!-- b -->"
    (notice,) = read_document(b"<!-- c -->\n# \xc3\x85\xc3\x85\xc3\x85 \xff", "a.md").notices
    assert notice.at == 7, "where it stands in the text as read"
