"""What stands higher, lower or side by side in a line: no word runs into another, no number into a power."""

import pytest

from core.ingest import read_document
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
    # fractions
    "1<sup>1</sup>/<sub>2</sub> cups, <sup>3</sup>&frasl;<sub>4</sub>": "1 1/2 cups, 3/4",
    "<span class=frac>3<span class=sr-only>+</span><span class=num>1</span>⁄<span class=den>2</span></span>": "3 1/2",
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
    "<ol start=3 type=I><li>x</ol><p>or<ol type=a><li>y<li>z</ol>": "- III. x\n\nor\n\n- a. y\n- b. z",
}


@pytest.mark.parametrize("html", READ_AS)
def test_a_line_reads_as_it_is_meant(html: str) -> None:
    assert read_document(html.encode(), "page.html").text == READ_AS[html]


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
