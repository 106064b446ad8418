"""What stands higher, lower or side by side in a line: no word runs into another, no number into a power."""

import pytest

from core.ingest import read_document
from core.ingest.clean import clean
from core.ingest.inline import name_lifted
from core.ingest.markdown import markdown_of
from core.ingest.soup import parse_html
from core.ingest.structure import structure_layout
from tests.core.ingest.test_docx import run
from tests.core.ingest.test_docx import text_of as office_text

KATEX = (
    "<span class=katex><span class=katex-mathml><math><semantics><mrow><mi>E</mi><mo>=</mo><mi>m</mi></mrow>"
    "<annotation encoding='application/x-tex'>E = mc^2</annotation></semantics></math></span>"
    "<span class=katex-html aria-hidden=true>E=mc2</span></span>"
)
READ_AS = {
    # powers and indices
    "2<sup>1024</sup> or 10<sup>6.5</sup> or 10<sup>−6</sup>": "2^1024 or 10^6.5 or 10^−6",
    "e<sup>x<sup>2</sup></sup> and a<sup>i j</sup>": "e^(x^2) and a^(i j)",
    "T<sub>room</sub>, x<sub>i,j</sub>, H<sub>2</sub>O": "T_room, x_(i,j), H₂O",
    "1<sup>st</sup>, M<sup>me</sup> Roux, Acme<sup>®</sup>, Na<sup>+</sup>": "1st, Mme Roux, Acme®, Na+",
    "10<span style='vertical-align: super'>6</span>": "10^6",
    "10<span class='superscript subscript'>6</span>": "10^6",
    # blanks within them, numbers of verses
    "10<sup>6 </sup>litres, 1<sup>st </sup>of May, x<sub>i </sub>and 5 m<sup>2 </sup>.": (
        "10^6 litres, 1st of May, x_i and 5 m^2."
    ),
    "10<sup> 6</sup> is a number<sup> (see below)</sup>": "10^6 is a number (see below)",
    "<p><sup>16&nbsp;</sup>For God <sup>17</sup>Indeed": "^16 For God ^17 Indeed",
    "<p><sup>3</sup>I saw <b>it</b> <sup>14</sup>C<p><sup><a href='#r'>1</a></sup>In coin": "^3 I saw **it** ^14C\n\n[1] In coin",
    "<p>It was. <sup>2</sup>He said so! <sup>3</sup>I went by <sup>3</sup>He. <sup>238</sup>U is": (
        "It was. ^2 He said so! ^3 I went by ^3He. ^238U is"
    ),
    # notes
    "In 2019<sup>3,4</sup> and Smith<sup>12–15</sup>": "In 2019[3,4] and Smith[12–15]",
    "10<sup>3–5</sup>": "10^(3–5)",
    "cost 1200<sup><a href='#fn2'>2</a></sup> or 30<a href='#fn3'><sup>b</sup></a>": "cost 1200[2] or 30[b]",
    "in 1914.<a epub:type=noteref href='notes.xhtml#n1'>1</a>": "in 1914.[1]",
    "one<sup><a href='#cite-1'>[1]</a></sup><sup>: p. 7</sup>": "one[1]: p. 7",
    # what Word writes before items
    "<p><span style='mso-list:Ignore'>·<i>&nbsp; </i></span>Oil": "- Oil",
    "<p><span style='mso-list: Ignore'>a)<i>&nbsp; </i></span>Oil": "a) Oil",
    # fractions
    "1<sup>1</sup>/<sub>2</sub> cups, <sup>3</sup>&frasl;<sub>4</sub>": "1 1/2 cups, 3/4",
    "<span class=frac>3<span class=sr-only>+</span><span class=num>1</span>⁄<span class=den>2</span></span>": "3 1/2",
    "6<span class=sfrac>\u2060<i class=tion><span class=num>1</span><span class=sr-only>/</span><span class=den>2</span></i></span> in": (
        "6\u2060 *1/2* in"
    ),
    "3<span class=fraction>1/2</span> cups, 2<small>1/2</small> in": "3 1/2 cups, 2 1/2 in",
    # cents, minutes and degrees
    "<span>$</span><span>49</span><sup>99</sup>, €9,<sup>95</sup>, 340.<sup>50</sup> kr, 1 200<sup>00</sup> zł": (
        "$49.99, €9,95, 340.50 kr, 1 200.00 zł"
    ),
    "9<sup>30</sup>–17<sup>00</sup>, 10<sup>30</sup> - 12<sup>30</sup>, 9<sup>15</sup> Uhr": "9:30–17:00, 10:30 - 12:30, 9:15 Uhr",
    "2<sup>10</sup>–2<sup>12</sup>, 1914–18<sup>30</sup>. Cost $340.<sup>12</sup> The": "2^10–2^12, 1914–18^30. Cost $340.^12 The",
    "20<sup>o</sup>C, 35<sup>0</sup> F, 5<sup>º</sup>, x<sup>0</sup>": "20°C, 35° F, 5º, x^0",
    # what classes raise or call a note
    "10<span class=superscript>6</span>, m<span class='unit sup'>3</span>, CO<span class=subscript>2</span>": "10^6, m^3, CO₂",
    "14<a class=footnote-ref href='#fn2'>2</a>, 12<a href='#n'>3</a>, Orna<a class=noteref href='#n4'>4</a>": (
        "14[2], 12[3], Orna[4]"
    ),
    "Pages <a href='#1'>1</a><a href='#2'>2</a> of <a href='#5'>5</a>, 4<a href='x.html'>5</a>": "Pages 1 2 of 5, 45",
    # formulas
    f"So {KATEX} holds": "So E = mc^2 holds",
    "<math><mi>m</mi><msup><mi>c</mi><mn>2</mn></msup><mo>=</mo><msqrt><mi>x</mi></msqrt></math>": "mc^2 = √(x)",
    "<math><mn>3</mn><mfrac><mn>1</mn><mn>2</mn></mfrac></math> cups": "3 1/2 cups",
    "<math><msubsup><mi>x</mi><mi>i</mi><mn>2</mn></msubsup><mi>sin</mi><mi>t</mi></math>": "x_i^2 sin t",
    "<math><munder><mi>lim</mi><mi>n</mi></munder><mtable><mtr><mtd>1</mtd><mtd>0</mtd></mtr></mtable></math>": (
        "lim_n 1, 0"
    ),
    "a <span class=MathJax_Preview>x2</span><script type='math/tex'>x^2</script> b": "a x^2 b",
    # the parts of a word, and neighbours that only styles keep apart
    "<p>The <span>interna</span><span>tional</span> fund, <span>O</span><span>nce": "The international fund, Once",
    "<p><span>北京</span><span>大学</span>": "北京大学",
    "<time>17:24</time><span>Ann</span>": "17:24 Ann",
    "<div><span>red</span><span>blue</span></div>": "red blue",
    "<div><span>Author:</span><span>Jane</span> <strong>Born</strong><span>1900</span> <em>Fee</em><b>30</b></div>": (
        "Author: Jane **Born** 1900 *Fee* **30**"
    ),
    "<b>Tel.</b><span>55</span> <span>(1)</span><a>The</a> <span>[2]</span><span>Berg</span> <b>1.</b><span>the</span>": (
        "**Tel.** 55 (1) The [2] Berg **1.** the"
    ),
    '<span>(a)</span><span>"boat" means</span> <span>1.</span><span>(new) boats</span>': (
        '(a) "boat" means 1. (new) boats'
    ),
    "<span>3</span><span>(a)</span><span>(i)</span> of f<span>(x)</span><span>(y)</span>": "3(a)(i) of f(x)(y)",
    "<b>P</b>arts <b>P</b><span>arts</span> <b>inter</b><em>net</em> <span>(un)</span><span>happy</span>": (
        "**P**arts **P**arts **inter***net* (un)happy"
    ),
    "<span>20.</span><span>99</span> <span>17:</span><span>24</span> <span>www.</span><span>x.se</span>": (
        "20.99 17:24 www.x.se"
    ),
    # what stood between them
    "<p><span>Adults</span><svg><path/></svg><span>12</span> <a>Vell</a><i class=icon></i><a>Orna</a>": "Adults 12 Vell Orna",
    "<p><span>08:10</span><img src=x><input><span>09:25</span> <span>har</span><img><span>bour</span>": "08:10 09:25 harbour",
    "<p><span>Vell</span><wbr><span>Orna</span>": "VellOrna",
    # classes that name what they hold, and those of styles
    "<p><span class=tag>red</span><span class=tag>blue</span> <span class=day>monday</span><span class=state>open": (
        "red blue monday open"
    ),
    "<p><span class=c1>har</span><span class=c2>bour</span> <span class=stem>walk</span><span class=suffix>ed": "harbour walked",
    "<p><span class=dropcap>T</span><span class=lead>he</span> <span class=hl>har</span><span>bour</span>": "The harbour",
    "<p><span class=ellipsis>vell.example/har</span><span class=invisible>bour": "vell.example/harbour",
    "<p><span>90 €</span><span>In stock</span> <span>12%</span><span>off</span> <span>Vell!</span><span>Orna": (
        "90 € In stock 12% off Vell! Orna"
    ),
    # custom elements
    "<a-row><a-cell>Adults</a-cell><a-cell>12</a-cell></a-row><a-row><a-cell>child</a-cell><a-cell>free": "Adults 12 child free",
    "<x-l>h</x-l><x-l>e</x-l> <my-a>Fee</my-a><my-sign>:</my-sign><my-b>12</my-b>": "he Fee: 12",
    # words beside a badge, a number, a speaker
    "<p>Berth 1<span class=badge>4</span> <span class=speaker>ANNA</span>The fee <time>08:10</time>Gate": (
        "Berth 1 4 ANNA The fee 08:10 Gate"
    ),
    "<p>1850<input><span class=sidenote>The date</span> <span class=qty>10</span>12 mm <span class=verse_num>5</span>And": (
        "1850 The date 10 12 mm 5 And"
    ),
    "<p>H<b class=num>2</b>O <i class=count>3</i>rd <span class=num>5</span>G boat<span class=label>s</span>": (
        "H**2**O *3*rd 5G boats"
    ),
    "<ruby>漢<rp>(<rt>kan<rp>)</ruby>": "漢 (kan)",
    "<p><span>O</span><span>NCE UPON A TIME</span> there": "ONCE UPON A TIME there",
    # what the print of an e-book leaves in its words
    "the <span epub:type=pagebreak>12</span>stairs, har<span class=pagenum>[Pg 13]</span>bour": "the stairs, harbour",
    "<div class=page-break-avoid>12</div>": "12",
    # blocks
    "<center>CHAPTER I</center><fieldset><legend>Fee</legend>30</fieldset>By<address>Ann</address>": (
        "CHAPTER I\n\nFee\n\n30\n\nBy\n\nAnn"
    ),
    "a</br>b": "a\nb",
    "<p>a</p>b</p>c": "a\n\nb\nc",
    "<table><tr><td><h4>Mon</h4>9<td>x<tr><td>a<td>b</table>": "| Mon 9 | x |\n| --- | --- |\n| a | b |",
    "<strong><h2>Head</h2></strong><b><ul><li>a</ul></b>": "## Head\n\n- a",
    # headings without the sign that links to them
    "<h2>Fees<a class=headerlink href='#fees'>¶</a></h2>": "## Fees",
    "<h2><a href='#foo'>#</a>Foo <a href='#bar'>bar</a></h2>": "## Foo bar",
    "<div role=heading aria-level=3>Fees</div>": "### Fees",
    # labels of items
    "<ol reversed><li>Bronze<li>Silver</ol>": "2. Bronze\n1. Silver",
    "<ol><li value=5>five<li>six</ol>": "5. five\n6. six",
    "<ol style='list-style-type: lower-roman' start=3><li>x</ol><p>or<ol class=upper-alpha><li>y</ol>": "- iii. x\n\nor\n\n- A. y",
    "<ol style='list-style:none'><li>4. Fee<li>(c) Key</ol><p>or<ol class=list-unstyled><li>Key</ol>": "- 4. Fee\n- (c) Key\n\nor\n\n1. Key",
    "<ol start=3 type=I><li>x</ol><p>or<ol type=a><li>y<li>z</ol>": "- III. x\n\nor\n\n- a. y\n- b. z",
}


@pytest.mark.parametrize("html", READ_AS)
def test_a_line_reads_as_it_is_meant(html: str) -> None:
    assert read_document(html.encode(), "page.html").text == READ_AS[html]


def test_what_a_style_sheet_raises_or_numbers_reads_alike() -> None:
    page = (
        "<style>.up{vertical-align:super} .fn{vertical-align: super} ol.legal{list-style:lower-alpha}</style>"
        "10<span class=up>6</span> units, 14<a class=fn href='#n1'>2</a>, fees<span class=up>New</span>"
        "<ol class=legal><li>Dogs<li>Cats</ol>"
    )
    soup, _ = parse_html(page)
    name_lifted(soup)
    clean(soup)
    assert markdown_of(soup) == "10^6 units, 14[2], feesNew\n\n- a. Dogs\n- b. Cats"


def test_a_title_is_without_the_sign_that_links_to_it() -> None:
    page = b"<h1>Fees<a href='#fees'>\xc2\xb6</a></h1><p>x"
    assert read_document(page, "page.html").title == "Fees"


def test_what_office_files_raise_reads_alike() -> None:
    raised = '<w:vertAlign w:val="superscript"/>'
    body = f"<w:p>{run('In 2019')}{run('3,4', raised)}{run(' and 10')}{run('6.5', raised)}</w:p>"
    assert office_text(body) == "In 2019[3,4] and 10^6.5"
    assert office_text(f"<w:p>{run('10')}{run('6 ', raised)}{run('litres')}</w:p>") == "10^6 litres"


NO_STRUCTURE = {
    "<h1>Letters</h1><p>Dear Ann,<br>thanks<br>--<br>Bob</p><h2>More</h2><p>x": ("Letters", "More"),
    "<h1>Sums</h1><p>Total<br>======<br>30</p><h2>More</h2><p>x": ("Sums", "More"),
    "<h1>Tags</h1><dl><dt>&lt;script&gt;<dd>runs</dl><p>&lt;!-- note<p>~~~<p># pip<h2>More</h2><p>x": (
        "Tags",
        "More",
    ),
}


@pytest.mark.parametrize("html", NO_STRUCTURE)
def test_words_that_look_like_markdown_are_no_structure(html: str) -> None:
    document = read_document(html.encode(), "page.html")
    assert structure_layout(document.text).heading_paths == ((NO_STRUCTURE[html][0],), NO_STRUCTURE[html])
