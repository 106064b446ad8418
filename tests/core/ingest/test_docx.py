"""DOCX: what people see is in the text, in order."""

import pytest
from defusedxml import ElementTree

from core.ingest.docx import read_docx
from core.ingest.formulas import M, equation_line
from core.ingest.numbering import W, written
from tests.core.ingest.made import docx_parts, make_zip, paragraph, table

R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
MATH = f'xmlns:m="{M[1:-1]}"'


def run(text, properties=""):
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def item(text, level=0, number=1):
    numbering = f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>'
    return f"<w:p><w:pPr>{numbering}</w:pPr>{run(text)}</w:p>"


def level(at, form, text, more=""):
    return (
        f'<w:lvl w:ilvl="{at}"><w:start w:val="1"/><w:numFmt w:val="{form}"/>{more}'
        f'<w:lvlText w:val="{text}"/></w:lvl>'
    )


def num(number, levels, more=""):
    """A list of these levels with a number of its own."""
    return (
        f'<w:abstractNum w:abstractNumId="{number}">{levels}</w:abstractNum>',
        f'<w:num w:numId="{number}"><w:abstractNumId w:val="{number}"/>{more}</w:num>',
    )


def read(body, **parts):
    """What is read of a DOCX with this body and these other parts of `word/`."""
    relations = "".join(
        f'<Relationship Id="{name}" Type="{R}/{name.rstrip("12")}" Target="{name}.xml"/>' for name in parts
    )
    files = docx_parts(body)
    files["word/_rels/document.xml.rels"] = (
        f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{relations}'
        "</Relationships>"
    )
    files["word/document.xml"] = str(files["word/document.xml"]).replace(
        "<w:document", f'<w:document {MATH} xmlns:r="{R}"', 1
    )
    for name, content in parts.items():
        files[f"word/{name}.xml"] = f'<w:{name} xmlns:w="{W[1:-1]}">{content}</w:{name}>'
    return read_docx(make_zip(files), "a.docx")


def text_of(body, **parts):
    return read(body, **parts).markdown


def test_notes_of_a_heading_stand_behind_it() -> None:
    heading = '<w:pPr><w:outlineLvl w:val="0"/></w:pPr>'
    reference = '<w:r><w:footnoteReference w:id="2"/></w:r>'
    note = f'<w:footnote w:id="2">{paragraph("Renamed in 1902.")}</w:footnote>'
    text = text_of(f"<w:p>{heading}{run('The port')}{reference}</w:p>{paragraph('Boats.')}", footnotes=note)
    assert text == "# The port[1]\n\n[Note 1: Renamed in 1902.]\n\nBoats."


def test_what_a_field_waits_for_is_no_text() -> None:
    def control(properties: str, text: str) -> str:
        return f"<w:sdt><w:sdtPr>{properties}</w:sdtPr><w:sdtContent>{paragraph(text)}</w:sdtContent></w:sdt>"

    body = control("<w:showingPlcHdr/>", "Click here to enter text.") + control("", "Ann Berg")
    body += control('<w:showingPlcHdr w:val="0"/>', "Lund")
    assert text_of(body + paragraph("End.")) == "Ann Berg\n\nLund\n\nEnd."


def test_a_cell_that_waits_for_text_keeps_its_place() -> None:
    waiting = (
        "<w:sdt><w:sdtPr><w:showingPlcHdr/></w:sdtPr><w:sdtContent><w:tc>{}</w:tc></w:sdtContent></w:sdt>"
    )
    body = table([["Who", "Port", "Day"], ["Ann", "?", "Monday"]])
    body = body.replace(f"<w:tc>{paragraph('?')}</w:tc>", waiting.format(paragraph("Choose a port")))
    assert text_of(body).splitlines()[-1] == "| Ann |  | Monday |"


def test_a_page_that_breaks_breaks_a_line() -> None:
    assert text_of(f'<w:p>{run("End")}<w:r><w:br w:type="page"/></w:r>{run("begin")}</w:p>') == "End\nbegin"


def test_a_large_first_letter_stands_before_the_rest_of_its_word() -> None:
    frame = '<w:pPr><w:framePr w:dropCap="drop" w:lines="3"/></w:pPr>'
    letter = f"<w:p>{frame}{run('T')}</w:p>"
    assert text_of(letter + paragraph("he keeper", "Heading1") + paragraph("End.")) == "# The keeper\n\nEnd."
    inserted = f'<w:p>{frame}<w:ins w:id="1">{run("T")}</w:ins></w:p>'
    assert text_of(inserted + paragraph("he keeper")) == "The keeper"
    assert text_of(letter + inserted + paragraph("he keeper")) == "T\n\nThe keeper"


def test_a_file_of_another_format_within_the_text_is_told() -> None:
    told = [n.sentence for n in read(paragraph("Words.") + '<w:altChunk r:id="rId9"/>').notices]
    assert told == ["Embedded objects left out: 1."]


def test_hidden_text_is_left_out_and_told():
    styles = '<w:style w:styleId="Gone" w:type="character"><w:name w:val="Gone"/><w:rPr><w:vanish/></w:rPr></w:style>'
    hidden = run("SECRET one", "<w:vanish/>") + run("SECRET", '<w:rStyle w:val="Gone"/>')
    shown = run(" end", '<w:rStyle w:val="Gone"/><w:vanish w:val="0"/>')
    converted = read(f"<w:p>{run('Open')}{hidden}{shown}</w:p>", styles=styles)
    assert converted.markdown == "Open end"
    assert "Hidden text left out: 3 words." in map(str, converted.notices)


def test_clauses_have_the_numbers_that_are_shown():
    contract, link = num(
        1, level(0, "decimal", "%1.") + level(1, "decimal", "%1.%2") + level(2, "lowerLetter", "(%3)")
    )
    clauses = [
        ("Payment", 0),
        ("Rent", 1),
        ("cash", 2),
        ("coin", 2),
        ("Late rent", 1),
        ("Notice", 0),
        ("Six", 1),
    ]
    body = "".join(item(text, at) for text, at in clauses)
    assert text_of(body, numbering=contract + link) == (
        "1. Payment\n   1.1 Rent\n       (a) cash\n       (b) coin\n   1.2 Late rent\n2. Notice\n   2.1 Six"
    )


def test_numbers_go_on_begin_anew_and_stand_before_headings():
    roman, roman_link = num(1, level(0, "upperRoman", "Article %1"))
    plain, plain_link = num(2, level(0, "decimal", "%1."))
    anew = (
        '<w:num w:numId="3"><w:abstractNumId w:val="2"/><w:lvlOverride w:ilvl="0"><w:startOverride'
        ' w:val="5"/></w:lvlOverride></w:num>'
    )
    heading = item("Scope").replace("<w:pPr>", '<w:pPr><w:pStyle w:val="Heading1"/>')
    body = (
        heading
        + item("one", number=2)
        + paragraph("Between.")
        + item("two", number=2)
        + item("five", number=3)
    )
    assert text_of(body, numbering=roman + plain + roman_link + plain_link + anew) == (
        "# Article I Scope\n\n1. one\n\nBetween.\n\n2. two\n5. five"
    )


def test_the_style_of_a_list_says_how_deep_its_items_are() -> None:
    bullets, link = num(1, level(0, "bullet", "o"))
    styles = '<w:style w:type="paragraph" w:styleId="Deep"><w:name w:val="List Bullet 2"/></w:style>'
    deep = item("green").replace("<w:pPr>", '<w:pPr><w:pStyle w:val="Deep"/>')
    text = text_of(item("tea") + deep + item("milk"), numbering=bullets + link, styles=styles)
    assert text == "- tea\n  - green\n- milk"


def test_bullets_nest_and_numbers_of_styles_count():
    bullets, link = num(1, level(0, "bullet", "o") + level(1, "bullet", "o"))
    clause, clause_link = num(2, level(0, "decimal", "§ %1", '<w:pStyle w:val="Clause"/>'))
    styles = (
        '<w:style w:type="paragraph" w:styleId="Clause"><w:name w:val="Clause"/><w:pPr><w:numPr><w:numId'
        ' w:val="2"/></w:numPr></w:pPr></w:style>'
    )
    body = (
        item("tea")
        + item("green", 1)
        + item("milk")
        + paragraph("First", "Clause")
        + paragraph("Then", "Clause")
    )
    assert text_of(body, numbering=bullets + clause + link + clause_link, styles=styles) == (
        "- tea\n  - green\n- milk\n\n§ 1 First\n\n§ 2 Then"
    )


@pytest.mark.parametrize(
    ("n", "form", "text"),
    [
        *(
            (4, "upperRoman", "IV"),
            (28, "lowerLetter", "bb"),
            (7, "decimalZero", "07"),
            (12, "ordinal", "12th"),
        ),
        *(
            (21, "chineseCounting", "二十一"),
            (10, "japaneseCounting", "十"),
            (3, "hex", "3"),
            (0, "lowerRoman", "0"),
        ),
    ],
)
def test_numbers_are_written_in_their_format(n, form, text):
    assert written(n, form) == text


DELETED = '<w:del w:id="1"><w:r><w:delText>three weeks</w:delText></w:r></w:del>'
FIELD = "".join(f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>' for kind in ("begin", "separate"))
BOX = f"<w:txbxContent>{paragraph('in a box')}</w:txbxContent>"
MC = 'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
SEEN = {
    "simple field": (f'<w:fldSimple w:instr=" DATE ">{run("14 March")}</w:fldSimple>', "At 14 March end"),
    "complex field": (
        f'{FIELD}{run("clause 7")}<w:r><w:fldChar w:fldCharType="end"/></w:r>',
        "At clause 7 end",
    ),
    "control": (f"<w:sdt><w:sdtContent>{run('chosen')}</w:sdtContent></w:sdt>", "At chosen end"),
    "inserted, deleted": (f'{DELETED}<w:ins w:id="2">{run("a month")}</w:ins>', "At a month end"),
    "struck": (run("900", "<w:strike/>") + run("1150"), "At 1150 end"),
    "doubly struck": (run("900", "<w:dstrike/>") + run("1150", '<w:strike w:val="0"/>'), "At 1150 end"),
    "power": (run("10") + run("6", '<w:vertAlign w:val="superscript"/>'), "At 10^6 end"),
    "index": (run("CO") + run("2", '<w:vertAlign w:val="subscript"/>'), "At CO₂ end"),
    "ruby": (
        f"<w:r><w:ruby><w:rt>{run('kan')}</w:rt><w:rubyBase>{run('漢')}</w:rubyBase></w:ruby></w:r>",
        "At 漢 (kan) end",
    ),
    "link to nowhere": (f'<w:hyperlink r:id="none">{run("here")}</w:hyperlink>', "At here end"),
    "formula": ("<m:oMath><m:r><m:t>E=m</m:t></m:r></m:oMath>", "At E=m end"),
    "formula without words": ("<m:oMath><m:r/></m:oMath>", "At [formula] end"),
    "text box": (f"<w:r><w:drawing>{BOX}</w:drawing></w:r>", "At  end\n\nin a box"),
    "text box in two forms": (
        f"<w:r><mc:AlternateContent {MC}><mc:Choice><w:drawing>{BOX}</w:drawing></mc:Choice><mc:Fallback>"
        f"<w:pict>{BOX}</w:pict></mc:Fallback></mc:AlternateContent></w:r>",
        "At  end\n\nin a box",
    ),
}


@pytest.mark.parametrize("name", SEEN)
def test_what_is_seen_is_read(name):
    inside, text = SEEN[name]
    body = f"<w:p>{run('At ')}{inside}{run(' end')}</w:p>"
    assert " ".join(text_of(body).split()) == " ".join(text.split())


def test_what_is_left_out_is_told():
    body = (
        f"<w:p>{run('Costs ')}{run('900 crowns', '<w:strike/>')}{DELETED}<w:r><w:drawing/></w:r><w:r><w:object/></w:r>"
        "<m:oMath><m:r/></m:oMath></w:p>"
    )
    assert list(map(str, read(body).notices)) == [
        "Struck-out text left out: 2 words.",
        "Tracked deletions left out: 2 words.",
        "Pictures left out: 1.",
        "Embedded objects left out: 1.",
        "Formulas that can't be read: 1, each shown as [formula].",
    ]


def test_notes_and_comments_stand_by_their_paragraph_and_margins_at_the_start():
    mark = '<w:r><w:{} w:id="3"/></w:r>'
    body = f"<w:p>{run('Rent is due')}{mark.format('footnoteReference')}{run('.')}{mark.format('commentReference')}</w:p>"
    margins = "".join(
        f'<w:headerReference w:type="{kind}" r:id="header{at}"/>' for kind, at in (("first", 1), ("even", 2))
    )
    body += f'{paragraph("The end.")}<w:sectPr>{margins}<w:footerReference r:id="footer1"/></w:sectPr>'
    text = text_of(
        body,
        footnotes=f'<w:footnote w:id="3">{paragraph("In coin.")}</w:footnote>',
        comments=(
            f'<w:comment w:id="3" w:author="Ann">{paragraph("Ask why.")}</w:comment>'
            f'<w:comment w:id="4">{paragraph("Of nothing.")}</w:comment>'
        ),
        header1=paragraph("Lease 4471"),
        header2=paragraph("Quay Street"),
        footer1=paragraph("12"),
    )
    assert text.split("\n\n") == [
        "Page header: Lease 4471",
        "Page header: Quay Street",
        "Rent is due[1]. [Note 1: In coin.] [Comment by Ann: Ask why.]",
        "The end.",
        "[Comment: Of nothing.]",
    ], "a page number alone is no text"


def cell(text, properties=""):
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{text if text.startswith('<') else paragraph(text)}</w:tc>"


def row(*cells, before=0):
    skipped = f'<w:trPr><w:gridBefore w:val="{before}"/></w:trPr>' if before else ""
    return f"<w:tr>{skipped}{''.join(cells)}</w:tr>"


def test_values_stay_in_their_columns():
    wide, begin, on = '<w:gridSpan w:val="2"/>', '<w:vMerge w:val="restart"/>', "<w:vMerge/>"
    inner = f"<w:tbl>{row(cell('in'), cell('out'))}</w:tbl><w:p/>"
    body = "<w:tbl>" + row(cell("Route"), cell("Day"), cell("Departs"), cell("Fare"))
    body += row(cell("North", begin), cell("Monday"), cell("07:10"), cell("14"))
    body += row(cell("", on), cell("Friday"), cell("09:40"), cell("17"))
    body += row(cell("South | West", wide), cell("12:00"), cell(inner)) + row(
        cell("13:00"), cell("9"), before=2
    )
    assert text_of(body + "</w:tbl>").splitlines() == [
        "| Route | Day | Departs | Fare |",
        "| --- | --- | --- | --- |",
        "| North | Monday | 07:10 | 14 |",
        "| North | Friday | 09:40 | 17 |",
        "| South \\| West | South \\| West | 12:00 | in, out |",
        "|  |  | 13:00 | 9 |",
    ]


def test_headings_are_known_by_their_level_whatever_their_style_is_called():
    styles = (
        '<w:style w:styleId="Base"><w:name w:val="Heading 2"/></w:style><w:style w:type="paragraph"'
        ' w:styleId="Mine"><w:name w:val="Kapitel"/><w:basedOn w:val="Base"/></w:style><w:style/>'
    )
    body = paragraph("Chapter", "Mine") + paragraph("Words.")
    body += f'<w:p><w:pPr><w:outlineLvl w:val="2"/></w:pPr>{run("Part")}</w:p>'
    assert text_of(body, styles=styles) == "## Chapter\n\nWords.\n\n### Part"


def m_run(text):
    return f"<m:r><m:t>{text}</m:t></m:r>"


def part(name, text):
    return f"<m:{name}>{m_run(text)}</m:{name}>"


EQUATIONS = {
    "F=m/(a+2)": m_run("F=") + f"<m:f>{part('num', 'm')}{part('den', 'a+2')}</m:f>",
    "√(x+1)": f"<m:rad><m:radPr><m:degHide m:val='1'/></m:radPr><m:deg/>{part('e', 'x+1')}</m:rad>",
    "root 3 of (x)": f"<m:rad>{part('deg', '3')}{part('e', 'x')}</m:rad>",
    "∑_(i=1)^n i": (
        f"<m:nary><m:naryPr><m:chr m:val='∑'/></m:naryPr>{part('sub', 'i=1')}{part('sup', 'n')}{part('e', 'i')}"
        "</m:nary>"
    ),
    "∫_0^1 x": f"<m:nary>{part('sub', '0')}{part('sup', '1')}{part('e', 'x')}</m:nary>",
    "[a, b; c, d]": (
        "<m:d><m:dPr><m:begChr m:val='['/><m:endChr m:val=']'/></m:dPr><m:e><m:m>"
        f"<m:mr>{part('e', 'a')}{part('e', 'b')}</m:mr><m:mr>{part('e', 'c')}{part('e', 'd')}</m:mr></m:m></m:e></m:d>"
    ),
    "x_i^2": f"<m:sSubSup>{part('e', 'x')}{part('sub', 'i')}{part('sup', '2')}</m:sSubSup>",
    "sin x": f"<m:func>{part('fName', 'sin')}{part('e', 'x')}</m:func>",
    "lim_(n→∞)": f"<m:limLow>{part('e', 'lim')}{part('lim', 'n→∞')}</m:limLow>",
    "x=1; y=2": f"<m:eqArr>{part('e', 'x=1')}{part('e', 'y=2')}</m:eqArr>",
    "q": f"<m:newest>{part('e', 'q')}</m:newest>",
}


@pytest.mark.parametrize("line", EQUATIONS)
def test_an_equation_is_a_line(line):
    assert equation_line(ElementTree.fromstring(f"<m:oMath {MATH}>{EQUATIONS[line]}</m:oMath>")) == line


def test_the_strict_form_is_read():
    strict = "http://purl.oclc.org/ooxml/wordprocessingml/main"
    parts = {
        name: str(content).replace(W[1:-1], strict)
        for name, content in docx_parts(paragraph("Words.", "Heading1")).items()
    }
    assert read_docx(make_zip(parts), "a.docx").markdown == "# Words."


def dropdown(result: str, shown: str = "") -> str:
    entries = '<w:listEntry w:val="Red"/><w:listEntry w:val="Blue"/>'
    choices = f"<w:ffData><w:ddList>{result}{entries}</w:ddList></w:ffData>"
    shown = f'<w:r><w:fldChar w:fldCharType="separate"/></w:r>{run(shown)}' if shown else ""
    return (
        f'<w:r><w:fldChar w:fldCharType="begin">{choices}</w:fldChar></w:r>'
        f'<w:r><w:instrText> FORMDROPDOWN </w:instrText></w:r>{shown}<w:r><w:fldChar w:fldCharType="end"/></w:r>'
    )


@pytest.mark.parametrize(
    ("field", "chosen"),
    [
        (dropdown('<w:result w:val="1"/>'), "Blue"),
        (dropdown('<w:default w:val="1"/>'), "Blue"),
        (dropdown(""), "Red"),
        (dropdown('<w:result w:val="7"/>'), ""),
        (dropdown('<w:result w:val="1"/>', "Navy"), "Navy"),
    ],
)
def test_what_is_chosen_in_a_dropdown_of_a_form_is_text(field: str, chosen: str) -> None:
    assert text_of(f"<w:p>{run('Sail: ')}{field}{run(' cloth')}</w:p>").split() == [
        "Sail:",
        *chosen.split(),
        "cloth",
    ]


def test_a_diagram_left_out_is_no_picture() -> None:
    diagram = '<d:relIds xmlns:d="http://schemas.openxmlformats.org/drawingml/2006/diagram"/>'
    converted = read(f"<w:p>{run('Words.')}<w:r><w:drawing>{diagram}</w:drawing></w:r></w:p>")
    assert [n.sentence for n in converted.notices] == ["Diagrams (SmartArt) left out, with their words: 1."]
