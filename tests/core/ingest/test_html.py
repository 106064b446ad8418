"""Pages: what is dropped, what is kept, and what no page may do."""

import pytest

from core.ingest import Converter, ReadingConfig, limits, read_document, tables
from tests.conftest import CAMPAIGN, few


def text_of(html):
    return read_document(html.encode(), "page.html").text


DROPPED = {
    "script": "<script>SECRET</script>",
    "style": "<style>SECRET</style>",
    "noscript": "<noscript>SECRET</noscript>",
    "template": "<template>SECRET</template>",
    "comment": "<!-- SECRET -->",
    "form controls": (
        "<form><label>SECRET</label><select><option>SECRET</select><button>SECRET</button></form>"
    ),
    "navigation": "<nav>SECRET</nav><div role=navigation>SECRET</div>",
    "header and footer": "<header>SECRET</header><footer>SECRET</footer><aside>SECRET</aside>",
    "hidden": "<p hidden>SECRET</p><p style='display: none'>SECRET</p><span aria-hidden=true>SECRET</span>",
    "cookie banner": "<div id=cookieConsent>SECRET</div><div class='c-cookie_banner'>SECRET</div>",
    "advertisement": "<div class='ad ad-slot'>SECRET</div>",
    "menu": "<ul class=mainMenu><li><a href=/a>SECRET</a></ul>",
    "class that the page hides": "<style>/* */ .gone { display: none }</style><p class=gone>SECRET</p>",
    "label of a field, button": "<table><tr><td><label>SECRET</label><td><input></table><p>Like? <button>SECRET</button>",
    "link targets": "<a href='http://SECRET'>anchor</a><img src=SECRET alt=SECRET>",
}


@pytest.mark.parametrize("name", DROPPED)
def test_low_signal_elements_are_dropped(name):
    assert "SECRET" not in text_of(
        f"<body>{DROPPED[name]}<p>The article has a sentence that is long enough to be most of the page.</p>"
    )


PROSE = (
    "<p>The harbour of Lund has two basins of stone, and the outer one is the older of them by far.</p>" * 8
)
BANNERS = {
    "two controls": (
        "<div class=gdpr-bar><p>SECRET: we and our partners value your privacy. <a href=x>Settings</a></p>"
        "<button>Agree</button></div>"
    ),
    "links that are buttons": (
        "<div id=cookie-law-info-bar>SECRET uses cookies to improve the website. You can opt out."
        "<a role=button>Settings</a></div>"
    ),
    "link of a button's class": (
        "<div class=cookie-notice><p>SECRET: we use cookies. By going on you agree to this.</p>"
        "<a class=button href=x>OK</a></div>"
    ),
    "section": "<section class=cookie-consent><h2>Cookies</h2><p>SECRET: accept cookies.</p><button>Yes</button></section>",
    "another language": "<div class=cookies><p>SECRET: Wir verwenden Cookies.</p><button>OK</button></div>",
    "foot": "<div class=site-footer><p>© 2024 SECRET. All rights reserved. <a href=x>Privacy</a> | Terms</p></div>",
}


@pytest.mark.parametrize("name", BANNERS)
def test_a_box_named_and_worded_as_a_banner_is_dropped(name):
    assert "SECRET" not in text_of(BANNERS[name] + PROSE)


CHAPTERS = {
    "no button agrees": "<div id=cookies><p>The privacy of cookies: this site sells them. KEPT</p><button>Copy</button></div>",
    "heading and paragraph": "<section class=consent><h2>We use cookies</h2><p>You agree. KEPT</p><button>OK</button></section>",
    "table": "<div class=gdpr>We use cookies for the basket alone.<table><tr><td>KEPT<td>1</table><button>Accept</button></div>",
}


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_on_consent_is_no_banner(name):
    assert "KEPT" in text_of(f"<main>{PROSE}{CHAPTERS[name]}</main>")


@pytest.mark.parametrize("closed", ["", "</head>"])
@pytest.mark.parametrize("body", ["<body>", "", "<body><div>"])
def test_a_head_ends_where_the_body_begins(closed, body):
    page = (
        f"<html><head><!-- a --><meta charset=utf-8><title>Ferry</title>{closed}{body}<h2>Fees</h2><p>At six."
    )
    assert text_of(page) == "## Fees\n\nAt six."


@pytest.mark.parametrize("body", ["At six.", "<img src=x>At six.", "<b>At</b> six."])
def test_words_end_a_head_that_is_never_closed(body):
    document = read_document(f"<head><title>Ferry</title><script>x</script>{body}".encode(), "a.html")
    assert (document.title, document.text.replace("*", "")) == ("Ferry", "At six.")


NOTES = {
    "role": "<aside role=doc-endnotes><p>KEPT</p></aside>",
    "class": "<footer class=footnotes><p>KEPT</p></footer>",
    "reference": "<footer><ul><li id=n1>KEPT <a href=x>up and back again</a></ul></footer>",
    "numbers": "<footer><h2>Notes</h2><ol><li>KEPT in 1902. <a href=x>up</a></ol></footer>",
    "list of such a class": "<footer><ol class=references><li>KEPT</ol></footer>",
    "aside behind a heading": "<h2>Quay</h2><aside>KEPT</aside>",
    "aside alone in its box": "<div><aside>KEPT</aside></div>",
    "aside behind a paragraph": "<aside class='admonition note'>KEPT</aside><p>Then on.",
    "second aside there": "<aside>One.</aside><aside>KEPT</aside>",
}


@pytest.mark.parametrize("name", NOTES)
def test_notes_are_kept_wherever_they_stand(name):
    assert "KEPT" in text_of(
        f"<div>{PROSE}<p>The fee<sup><a href='#n1'>1</a></sup> rose.</p>{NOTES[name]}</div>"
    )


SIDES = {
    "aside of such a name": "<p>Words.</p><aside class=newsletter>SECRET</aside>",
    "sidebar": "<p>Words.</p><aside id=secondary-sidebar>SECRET</aside>",
    "aside behind a menu": "<ul><li><a href=x>Home</a></ul><aside>SECRET</aside>",
    "numbered menu": "<footer><ol><li>SECRET<li>Jobs at the firm</ol><p>© 2024 Firm</footer>",
    "advertisement": "<footer class=ads><ol><li><a href=x>SECRET</a></ol></footer>",
    "header with a menu": "<header><h2>SECRET</h2><nav>Home</nav></header>",
    "header that leads home": "<header><h2><a href=/>SECRET</a></h2><p>Boats and more for all of you.</p></header>",
}


@pytest.mark.parametrize("name", SIDES)
def test_sides_of_a_page_are_dropped(name):
    assert "SECRET" not in text_of(SIDES[name] + PROSE)


def test_a_header_with_a_title_of_its_own_is_kept():
    assert "Valid" in text_of(
        f"<header><h2>Timetable</h2><p>Valid from May to September.</p></header>{PROSE}"
    )


@pytest.mark.parametrize(
    "item", ["li class=ad-item", "li class=ad-item><h3><a href=x>Oar</a></h3", "div class=ad"]
)
def test_advertisements_that_are_the_page_stay(item):
    items = "".join(f"<{item}>Oak dinghy {n}, 900 crowns</{item[:3].strip()}>" for n in range(8))
    assert text_of(f"<h1>For sale</h1><p>Boats of this week.</p><div>{items}</div>").count("dinghy") == 8


LINES = {
    "div": "<div class=token-line><span>def</span> f():</div><div class=token-line>    return 1</div>",
    "nested": "<code><div class=line><div>def f():</div></div><div class=line><div>    return 1</div></div></code>",
    "item": "<ol><li>def f():</li><li>    return 1</li></ol>",
    "apart": "<div>def f():</div>\n<div>    return 1</div>",
    "behind words": "def f():<div>    return 1</div>",
    "broken": "<div>def f():<br></div><div>    return 1\n</div>",
}


@pytest.mark.parametrize("name", LINES)
def test_blocks_in_code_are_its_lines(name):
    assert text_of(f"<div><pre>{LINES[name]}</pre></div>") == "```\ndef f():\n    return 1\n```"


_GUTTER, _CODE = "<pre class=lineno>1\n2\n</pre>", "<pre>def f():\n    return 1\n</pre>"
NUMBERED = {
    "table in code": f"<pre><code><table><tr><td class=gutter>{_GUTTER}<td class=code>{_CODE}</table></code></pre>",
    "table": f"<table class=highlighttable><tr><td class=linenos>{_GUTTER}<td class=code>{_CODE}</table>",
    "beside": f"<div>{_GUTTER}{_CODE}</div>",
    "within": "<pre><span class=linenos>1</span>def f():\n<i data-line-number=2>2</i>    return 1</pre>",
    "a row a line": "<table class=highlight>\n<tr><td class=blob-num data-line-number=1></td>\n"
    "<td class=blob-code>def f():</td></tr><tr><td class=blob-num data-line-number=2></td>"
    "<td class=blob-code data-line-number=2>    <b>return</b> 1</td></tr></table>",
}


@pytest.mark.parametrize("name", NUMBERED)
def test_numbers_of_lines_are_no_code(name):
    assert text_of(NUMBERED[name]) == "```\ndef f():\n    return 1\n```"


def test_numbers_that_count_no_lines_of_code_stay():
    order = "<tr><td class=line-number>10<td>Bolt<tr><td class=line-number>20<td>Nut"
    assert text_of(f"<table>{order}</table>") == "| 10 | Bolt |\n| --- | --- |\n| 20 | Nut |"
    assert text_of("<pre class=line-numbers>1\n2</pre>") == "```\n1\n2\n```"


def test_the_sources_at_the_foot_of_an_article_stay():
    links = "<a href='/'>SECRET</a> " * 5
    page = (
        "<article><p>Short.</p><footer>Flaherty, Anne. Key Takeaways.</footer></article>"
        f"<article><p>Long.</p><footer>{links}</footer></article><footer>{links * 9}</footer>"
    )
    assert text_of(page).split("\n\n") == ["Short.", "Flaherty, Anne. Key Takeaways.", "Long."]


KEPT = {
    "anchor text": "<a href=x>KEPT</a>",
    "header of an article": "<article><header><h1>KEPT</h1></header>words</article>",
    "heading in a header": "<header><h1>KEPT</h1></header><p>words",
    "body of a cookie-named page": "<body class='has-cookie-banner'><p>KEPT",
    "most of a page, whatever its name": (
        "<div class='newsletter'><p>KEPT is the article in its whole length</div><p>end"
    ),
    "aside of an article": "<article><p>words</p><aside>KEPT</aside></article>",
    "recipe for cookies": "<h1>Cookies</h1><p>KEPT",
    "formula": "<span style='display: none'><math alttext='{\\displaystyle KEPT}'><mi>x</mi></math></span>",
    "prose of a box with such a name": (
        f"<main>{'<p>The harbour of Lund has two basins of stone. ' * 9}<section class='ads newsletter'><h2>Ads</h2>"
        "<p>KEPT, said the council of the word that names this chapter.</p></section></main>"
    ),
    "row of such a name": "<table><tr><th>a<th>b<tr class=sponsored><td>KEPT<td>2</table>",
    "header of a section": "<section><header><h2>Depths</h2><p>KEPT is the outer basin.</p></header></section>",
    "button of an accordion": "<h3><button aria-expanded=false>KEPT</button></h3><div>Fourteen nights.</div>",
    "button before a short panel": "<button class=accordion>KEPT</button><div class=panel>One.</div>",
    "question before its hidden answer": "<button>KEPT?</button><div style='display:none'>9 kr.</div>",
    "button before a panel that a style sheet hides": (
        "<style>.panel{display:none}</style><button>KEPT</button><div class=panel>9 kr.</div>"
    ),
    "button with a target": "<button data-bs-target='#c'>KEPT</button><p>Or.</p><div id=c class=collapse>No.</div>",
    "button before its panel": "<button class=accordion>KEPT</button><div class=panel>Fourteen nights in a row.</div>",
    "label before its answer": "<label>KEPT</label><p>Thirty crowns, water included.</p>",
    "item to tick": "<ul><li><label><input type=checkbox> KEPT</label></ul>",
    "label that is a row's name": "<table><tr><td><label>KEPT</label><td>1.4 m<tr><td>a<td>b</table>",
    "label of a value": "<div><label>KEPT</label><span>1.4 m</span></div>",
    "label with a box to itself": "<div><div><label>KEPT</label></div><div>1.4 m</div></div>",
    "button that is a row's name": (
        "<table><tr><td><button aria-expanded=false>KEPT</button><td>9<tr><td>a<td>b</table>"
    ),
    "button within a sentence": "<p>Press <button>KEPT</button> and wait.",
    "class that only print hides": "<style>@media print { .a { display: none } }</style><p class=a>KEPT</p>",
    "class that is shown elsewhere": (
        "<style>.a { display: none } @media (min-width: 9px) { .a { display: block } }</style><p class=a>KEPT</p>"
    ),
    "summary": "<details><summary>KEPT</summary>Thirty crowns.</details>",
    "panel of a tab": (
        "<p>Some words.</p><a role=tab aria-controls=w>Winter</a><div id=w role=tabpanel hidden>KEPT is the basin, closed.</div>"
    ),
    "panel that a script shows": (
        "<button onclick=\"show('w')\">Winter</button><div id=w style='display:none'>KEPT is the inner basin.</div>"
    ),
    "page that is little else": f"<p>Ten words.</p><aside>KEPT {'is what the page says at length. ' * 20}</aside>",
    "picture in a cell without text": "<table><tr><th>a<th>b<tr><td>x<td><img alt=KEPT></table>",
}


@pytest.mark.parametrize("name", KEPT)
def test_content_is_kept(name):
    assert "KEPT" in text_of(KEPT[name])


LINKED = "<a href=x>KEPT with saffron and mash</a>"
SAID = {
    "cells": f"<table><tr><th class=header>{LINKED}<th>Fee<tr><td>Tern<td>12</table>",
    "row of data": f"<table><tr class=header><td>{LINKED}<td>Fee<tr><td>Tern<td>12</table>",
    "heading": f"<h3 class=entry-header>{LINKED}</h3><p>It holds.",
    "term": f"<dl><dt class=header>{LINKED}</dt><dd>3.2</dl>",
    "box of a heading": f"<div class=post-header><h3>{LINKED}</h3></div><p>It holds.",
    "head of an item": f"<div><div class=card-header>{LINKED}</div><div>Forty berths.</div></div>",
    "header of an item": f"<div><header><h2>{LINKED}</h2></header><p>Forty berths.</div>",
    "items with prices": f"<div class=menu-item>{LINKED} 12 €</div><div class=menu-item><a href=y>Cakes</a> 6 €</div>",
    "list with prices": f"<ul class=menu><li>{LINKED} 12<li><a href=y>Cakes</a> 6</ul>",
    "list with a heading": f"<p>Us.</p><h3>Board</h3><ul class=nav-list><li>{LINKED}<li><a href=y>Dal</a></ul>",
    "number to call": "<div class=footer-info><a href=tel:070>KEPT 070-12</a></div>",
}
MENUS = {
    "head of a page": "<div class=header><a href=/>SECRET</a></div><div>Welcome to us all.</div>",
    "cell of a layout": (
        f"<table><tr><td class=header><a href=x>SECRET</a><td>Hi.<tr><td>One.<td>{PROSE}</table>"
    ),
    "menu with numbers": "<ul class=menu><li><a href=x>SECRET boats</a> (12)<li><a href=y>Oars of oak</a> (9)</ul>",
    "title that leads home": "<h2 class=header><a href=https://a.b/index.html>SECRET</a></h2><p>Welcome.",
    "other pages": "<ul class=teasers><li><a href=x>SECRET of the boats</a> 3 May<li><a href=y>Oars of oak</a> 4 May</ul>",
    "menu below a title": "<h2>Menu</h2><ul class=menu><li><a href=x>SECRET</a><li><a href=y>Oars</a></ul>",
    "foot": "<div class=footer><a href=tel:07>SECRET 07</a> <a href=x>Imprint</a></div>",
    "links side by side": "<div><a class=menu href=x>SECRET</a><a class=menu href=y>Oars</a></div>",
    "table of links": "<table class=menu><tr><td><a href=x>SECRET</a><td>.<tr><td><a href=y>Oars</a><td>.</table>",
}


@pytest.mark.parametrize("name", SAID)
def test_links_of_a_menus_name_that_say_something_are_kept(name):
    assert "KEPT" in text_of(f"<div>{PROSE}{SAID[name]}</div>")


@pytest.mark.parametrize("name", MENUS)
def test_links_of_a_menu_are_dropped(name):
    assert "SECRET" not in text_of(f"<div>{MENUS[name]}{PROSE}</div>")


AFTER_LABELS = {
    "<details><summary>Open?</summary>In May.</details>": "Open?\n\nIn May.",
    "<details><summary>Fees</summary><span>9 kr</span></details>": "Fees\n\n9 kr",
    "<div><label>Length</label>12 m</div>": "Length 12 m",
    "<div><label>Fee</label>€9</div>": "Fee €9",
    "<p>Press <button>OK</button>or wait.": "Press OK or wait.",
    "<p>点击<button>确定</button>按钮": "点击确定按钮",
}


@pytest.mark.parametrize("html", AFTER_LABELS)
def test_a_label_runs_into_nothing(html):
    assert text_of(html) == AFTER_LABELS[html]


def test_what_is_left_out_as_side_matter_is_counted():
    menu = "<nav><a href=/a>Home page</a></nav>"
    document = read_document(f"{menu}<p>The ferry leaves at six.</p><footer>Lund</footer>".encode(), "a.html")
    assert document.told == "Menus and side matter left out: 3 words; they can be kept."
    assert read_document(b"<p>The ferry leaves at six.", "a.html").notices == ()


@pytest.mark.parametrize("in_child", [False, True])
def test_side_matter_is_kept_where_a_person_wants_it(in_child):
    with Converter(config=ReadingConfig(keep_side_matter=True)) as converter:
        if in_child:
            converter.convert(b"<p>a", "html", "a.html")
        document = read_document(b"<nav>Home page</nav><p>The ferry leaves at six.", "a.html", converter)
    assert (document.text, document.told) == ("Home page\n\nThe ferry leaves at six.", "")


def test_the_name_of_a_tab_stands_before_what_it_opens():
    tabs = "<ul role=tablist><li><a role=tab href='#w'>Winter</a><li><a role=tab href='#s'>Summer</a></ul>"
    panels = (
        f"<div id={name} role=tabpanel aria-hidden={hidden}><p>The inner basin is {state} then.</p></div>"
        for name, hidden, state in (("w", "true", "closed"), ("s", "false", "open"))
    )
    assert text_of(tabs + "".join(panels)).split("\n\n")[-4:] == [
        *("Winter", "The inner basin is closed then.", "Summer", "The inner basin is open then.")
    ]


_TWO = "<div id={}><p>Closed.</div><div id={}><p>Open.</div>"
NAMED_PANELS = {
    "labelled": "<button role=tab id=w>Winter</button><button role=tab id=s>Summer</button>"
    "<div role=tabpanel aria-labelledby=w>Closed.</div><div role=tabpanel aria-labelledby=s hidden>Open.</div>",
    "in order": "<ul role=tablist><li role=tab>Winter<li role=tab>Summer</ul><div>"
    "<div role=tabpanel>Closed.</div><div role=tabpanel hidden>Open.</div></div>",
    "radio buttons": "<div class=tabs><input type=radio id=w><label for=w>Winter</label><input type=radio id=s>"
    f"<label for=s>Summer</label></div><div>{_TWO.format(1, 2)}</div>",
    "list": f"<ul><li><a href=#w>Winter</a><li><a href=#s>Summer</a></ul>{_TWO.format('w', 's')}",
    "script": "<div><button onclick=\"show('w')\">Winter</button><button onclick=\"show('s')\">Summer</button>"
    "</div><div id=w class=tabcontent>Closed.</div><div id=s class=tabcontent style='display:none'>Open.</div>",
}


@pytest.mark.parametrize("name", NAMED_PANELS)
def test_panels_are_named_however_tabs_lead_to_them(name):
    assert text_of(f"<p>Fees.</p>{NAMED_PANELS[name]}").split("\n\n") == [
        *("Fees.", "Winter", "Closed.", "Summer", "Open.")
    ]


def test_a_list_of_contents_and_an_answer_name_no_panel():
    contents = f"<ul><li><a href=#w>Winter</a><li><a href=#s>Summer</a></ul>{_TWO.format('s', 'w')}"
    assert text_of(contents).startswith("- Winter\n- Summer")


TAB = "<a role=tab href='#w'>Winter</a>"
PANEL = "<div id=w role=tabpanel>Closed.</div>"
TABS = {
    "named twice": (f"{TAB}{TAB}{PANEL}", "Winter\n\nClosed."),
    "heading": (f"<h3>{TAB}</h3>{PANEL}", "### Winter\n\nClosed."),
    "named already": (f"{TAB}<div id=w><h3>Winter</h3>Closed.</div>", "### Winter\n\nClosed."),
    "within words": (f"<p>See {TAB} for more.</p>{PANEL}", "See Winter for more.\n\nClosed."),
    "first word of code": (
        f"{TAB}<div id=w role=tabpanel><pre><b>Winter</b> now</pre></div>",
        "Winter\n\n```\nWinter now\n```",
    ),
}


@pytest.mark.parametrize("name", TABS)
def test_a_panel_is_named_once_and_as_a_page_does(name):
    html, text = TABS[name]
    assert text_of(html) == text


STRUCK = {
    "del": "<del>120 crowns</del><ins>90 crowns</ins>",
    "s": "<s>120 crowns</s>90 crowns",
    "strike": "<strike>120 crowns</strike>90 crowns",
    "style": "<span style='text-decoration: red line-through'>120 crowns</span>90 crowns",
    "style sheet": "<style>p{} span.old, .x {text-decoration:line-through}</style><span class='a old'>120</span>90 crowns",
}


@pytest.mark.parametrize("name", STRUCK)
def test_struck_text_is_left_out_and_counted(name):
    document = read_document(f"<p>Boots cost {STRUCK[name]} now.".encode(), "a.html")
    assert document.text == "Boots cost 90 crowns now."
    assert document.notices[0].sentence.startswith("Struck-out text left out: ")


def test_a_strike_that_is_never_closed_strikes_nothing():
    assert "crowns" in text_of("<p>Old: <s>nine" + "<p>The boots cost ninety crowns this week." * 30)


def test_structure_becomes_markdown_that_reads_well():
    html = (
        "<h1>A <a href=x>title</a></h1><p>snake_case * 2<sup>10</sup><ul><li>one<ul><li>inner</ul><li>two</ul>"
        "<ol><li>first</ol><pre>a\n  b</pre>"
    )
    lists = "- one\n  - inner\n- two\n\n1. first"
    assert text_of(html) == f"# A title\n\nsnake_case * 2^10\n\n{lists}\n\n```\na\n  b\n```"
    assert text_of(
        "<p>x<sub>i</sub>, CO<sub>2</sub>, e<sup>n+1</sup>, 1<sup>st</sup>, <ruby>漢<rt>kan</rt></ruby>"
    ) == ("x_i, CO₂, e^(n+1), 1st, 漢 (kan)")
    assert text_of("<ol start=4><li>four<li>five</ol>") == "4. four\n5. five"
    assert text_of("<p><time>17:24</time><span>Ann</span>") == "17:24 Ann", (
        "only the style sheet kept them apart"
    )


@pytest.mark.parametrize(
    "table",
    [
        "<table><tr><th>a<th>b<tr><td>1<td>2</table>",
        "<table><thead><tr><td>a<td>b</thead><tbody><tr><td>1<td>2</table>",
        "<table><colgroup><col></colgroup><tr><td> </td></tr><tr><td>a<td>b<tr><td>1<td>2</table>",
    ],
)
def test_data_tables_become_pipe_tables(table):
    assert text_of(table) == "| a | b |\n| --- | --- |\n| 1 | 2 |"


SPANNED = {
    "rowspan": ("<tr><td rowspan=2>N<td>Mo<td>7<tr><td>Fr<td>9", ["| N | Mo | 7 |", "| N | Fr | 9 |"]),
    "rowspan to the end": (
        "<tr><td rowspan=0>N<td>Mo<td>7<tr><td>Fr<td>9",
        ["| N | Mo | 7 |", "| N | Fr | 9 |"],
    ),
    "colspan": ("<tr><td colspan=2>S<td>12", ["| S | S | 12 |"]),
    "both": ("<tr><td>a<td rowspan=2 colspan=2>b<tr><td>c", ["| a | b | b |", "| c | b | b |"]),
    "section": ("<tr><th colspan=3>Weekdays<tr><td>a<td>b<td>c", ["| Weekdays |", "| a | b | c |"]),
    "bar": ("<tr><td>a | b<td>c<td>d", ["| a \\| b | c | d |"]),
    "long text": (
        f"<tr><td rowspan=2>{'x' * 101}<td>1<td>2<tr><td>3<td>4",
        [f"| {'x' * 101} | 1 | 2 |", "|  | 3 | 4 |"],
    ),
}


@pytest.mark.parametrize("name", SPANNED)
def test_spans_keep_values_in_their_columns(name):
    rows, lines = SPANNED[name]
    table = f"<table><thead><tr><th>Route<th>Day<th>Time</thead>{rows}</table>"
    assert text_of(table).splitlines() == ["| Route | Day | Time |", "| --- | --- | --- |", *lines]


def test_a_row_that_is_short_below_a_span_is_a_row_of_data():
    lines = text_of("<table><tr><td rowspan=2>Jar<td>1 l<tr><td>2 l</table>").splitlines()
    assert lines == ["| Jar | 1 l |", "| --- | --- |", "| Jar | 2 l |"]


def test_a_title_over_all_columns_stands_above_and_a_small_table_in_a_cell_is_words_of_it():
    assert text_of("<table><tr><th colspan=2>Fares<tr><th>a<th>b<tr><td>1<td>2</table>") == (
        "Fares\n\n| a | b |\n| --- | --- |\n| 1 | 2 |"
    )
    inner = "<table><tr><td>in<td>out<tr><td>up<td>down</table>"
    assert (
        text_of(f"<table><tr><th>a<th>b<tr><td>1<td>{inner}</table>").splitlines()[-1]
        == "| 1 | in, out; up, down |"
    )


def test_spans_beyond_any_table_add_a_bounded_number_of_cells(record_attack, monkeypatch):
    n_rows = 2_000
    if not CAMPAIGN:
        n_rows = 200
        monkeypatch.setattr(tables, "MAX_SPANNED_CELLS", 2_000)
    row = "<tr>" + "<td rowspan=60000 colspan=1000>xyz" * 3
    text = text_of(f"<table><tr><th>a<th>b{row * n_rows}</table>")
    assert text.count("xyz") <= 3 * n_rows + tables.MAX_SPANNED_CELLS
    assert len(text) < 3_000_000
    record_attack("pages whose cells span 60,000 rows and 1,000 columns", 1, "cells within a bound")


def test_head_and_foot_of_a_table_stand_where_a_page_shows_them():
    rows = "<tfoot><tr><td>Sum<td>9</tfoot><tbody><tr><td>1<td>2</tbody><thead><tr><th>a<th>b</thead>"
    assert text_of(f"<table>{rows}</table>") == "| a | b |\n| --- | --- |\n| 1 | 2 |\n| Sum | 9 |"


def test_cells_with_headings_and_blocks_of_their_own_are_layout():
    cells = "<td><h2>Fees</h2><p>Thirty crowns.<td><h2>Hours</h2><p>Nine to five."
    assert text_of(f"<table><tr>{cells}<tr><td>a<td>b</table>").startswith(
        "## Fees\n\nThirty crowns.\n\n## Hours"
    )


LAID_OUT = {
    "title": "<td><td><h1>Ferry</h1><tr><td>Home<td>KEPT",
    "rule": "<td>Ferry<td>Hello<tr><td>Home<td>KEPT<hr>Mail",
    "paragraph and list": "<td>Ferry<td>Hello<tr><td>Home<td>At six.<p>KEPT<ul><li>Adult 14</ul>",
    "code": "<td>Ferry<td>Hello<tr><td>Home<td>KEPT<pre>a  b\nc  d</pre>",
}


@pytest.mark.parametrize("name", LAID_OUT)
def test_cells_with_parts_of_a_page_are_layout(name):
    text = text_of(f"<table border=0><tr>{LAID_OUT[name]}</table>")
    assert "KEPT" in text.splitlines()
    assert "| --- |" not in text
    assert "| --- |" in text_of(f"<table><tr><th>a<th>b<tr>{LAID_OUT[name]}</table>")


def test_a_list_or_a_command_in_a_cell_is_data():
    rows = "<tr><td>Mon<td><ul><li>oil</ul><tr><td>Tue<td><pre>ls</pre>"
    assert text_of(f"<table>{rows}</table>").startswith("| Mon |")


LABELLED = {
    "rule": ("<td>Mon<td>9-17<hr>19-21", "| Mon | 9-17"),
    "title alone": ("<td><h2>Lund</h2><td>5 kr", "| Lund | 5 kr |"),
    "paragraph and list": (
        "<td><p>Ann<td><p>Keeper of the light.<ul><li>born 1870</ul>",
        "| Ann | Keeper of the",
    ),
    "code": ("<td>E1<td><pre>a = 1\nb = 2</pre><td>Restart", "| E1 | ``` a = 1 b = 2 ``` | Restart |"),
}


@pytest.mark.parametrize("name", LABELLED)
def test_rows_with_a_name_are_data_whatever_their_cells_hold(name):
    row, line = LABELLED[name]
    assert text_of(f"<table><tr>{row}<tr><td>Bo<td>x</table>").startswith(line)


def test_a_menu_names_no_row():
    menu = "<a href=/>Home</a><br><a href=/>News</a>"
    page = f"<tr><td>Ferry<td>Hello<tr><td>{menu}<td>At six, in all weathers.<p>KEPT<ul><li>Adult 14</ul>"
    assert "KEPT" in text_of(f"<table>{page}</table>").splitlines()


SIGNS = {
    "<span aria-label=Yes class=icon></span>": "Yes",
    "<i class=icon aria-hidden=true title=No></i>": "No",
    "<x-icon title=Yes><i title=Yes></i></x-icon> <b title=Paid></b>": "Yes Paid",
    "<i title=No></i>maybe": "maybe",
    "<a title=Zoom><img alt=Chart></a>": "Chart",
    "<label><input type=checkbox class=sr-only checked></label>": "✓",
    "<input type=checkbox disabled>": "✗",
    "<input type=checkbox title=Select>": "",
}


@pytest.mark.parametrize("cell", SIGNS)
def test_signs_in_cells_are_words(cell):
    table = f"<table><tr><th>Plan<th>Pets<tr><td>Free<td>{cell}</table>"
    assert text_of(table).splitlines()[-1] == f"| Free | {SIGNS[cell]} |"


def test_captions_stand_before_their_table():
    table = "<table><caption>Prices</caption><tr><th>a<td>1<tr><th>b<td>2</table>"
    assert text_of(table) == "Prices\n\n| a | 1 |\n| --- | --- |\n| b | 2 |"


@pytest.mark.parametrize("attributes", ["role=presentation", ""])
def test_layout_tables_become_text(attributes):
    inner = "<table><tr><th>x<th>y<tr><td>1<td>2</table>" if not attributes else ""
    text = text_of(f"<table {attributes}><tr><td>Left<td>Right<tr><td>{inner}More<td>Words</table>")
    assert "Left" in text.splitlines()
    assert ("| x | y |" in text) == bool(inner)


def test_the_number_of_a_clause_in_a_cell_of_its_own_stands_before_its_words():
    inner = "<table><tr><td><p>—</p><td><p>dry;</table>"
    clause = f"<table border=0><tr><td><p>(a)</p><td><p>rock <i>salt</i>, where:{inner}</table>"
    assert text_of(clause) == "(a) rock *salt*, where:\n\n— dry;"
    code = "<table border=0><tr><td>1.<td><pre>make all</pre></table>"
    assert text_of(code) == "1.\n\n```\nmake all\n```"


def test_unclosed_paragraphs_and_items_are_neighbours_not_nested():
    assert text_of("<p>one<p>two<ul><li>a<li>b</ul><dl><dt>t<dd>d</dl>").startswith("one\n\ntwo\n\n- a\n- b")
    assert read_document(b"<p>one" * 500, "a.html").notices == ()


def test_a_fence_in_the_text_swallows_nothing():
    text = text_of("<p>``` begins a fence</p><h2>Head</h2><pre>```\ncode\n```</pre><h2>Next</h2>")
    assert text.count("```") == 2
    assert "## Next" in text


@pytest.mark.parametrize("tag", few(["div", "table><tr><td", "ul><li", "blockquote", "b><i", "h1"]))
def test_five_thousand_levels_become_flat_text_with_a_notice(tag, record_attack):
    document = read_document(f"<{tag}>".encode() * 5_000 + b"CORE", "deep.html")
    assert "CORE" in document.text
    assert document.told == "Elements nested more than 100 levels deep became plain text."
    record_attack("pages whose elements are nested 5,000 deep", 1, "flat text and a notice")


HOSTILE = ["<!--", "<td colspan=1000>", "<a href='", "<", "<![", "<img alt=x>", "</div>", "<math alttext=x>"]
HOSTILE += ["<a b=c ", "<textarea "]


@pytest.mark.parametrize("piece", few(HOSTILE, 4))
def test_hostile_repetition_stays_linear(piece, record_attack):
    page = f"<p>{'BEGIN ' * 9}</p>" + piece * 3_000  # quadratic reading would need minutes
    assert text_of(page).startswith("BEGIN BEGIN")
    record_attack("pages of one piece of markup, 3,000 times", 1, "read in time that grows with their length")


@pytest.mark.parametrize(
    ("source", "values"),
    [
        ('{"@type": "Recipe"}', ({"@type": "Recipe"},)),
        ('//<![CDATA[\n{"a": 1}\n//]]>', ({"a": 1},)),
        ('{"a": "line\nbreak"};', ({"a": "line\nbreak"},)),
        ('{"a": NaN}', ()),
        ('{"a": [{"b": 1e999}]}', ()),
        ("[" * 5_000, ()),
        ("[" * 60 + "]" * 60, ()),
        ("1" * 5_000, ()),
    ],
)
def test_json_ld_is_kept_when_it_parses(source, values):
    document = read_document(f"<script type='application/ld+json'>{source}</script><p>x".encode(), "a.html")
    assert document.json_ld == values
    assert document.told == ("" if values else "1 JSON-LD blocks of the page are not valid JSON.")


def test_json_ld_is_bounded_in_number():
    document = read_document(b'<script type="application/ld+json">{}</script>' * 101 + b"<p>x", "a.html")
    assert len(document.json_ld) == 100
    assert "1 JSON-LD blocks were left out" in document.told
    json = b'<script type="application/ld+json">{"a": "\\ud800"}</script><p>x'
    assert read_document(json, "a.html").json_ld == ({"a": "\ufffd"},)


def test_a_title_turns_no_direction_of_writing():
    page = "<title>Annual \u202etxt.exe\u2066 report</title><p>\u202eText stays."
    document = read_document(page.encode(), "a.html")
    assert document.title == "Annual txt.exe report"
    assert read_document("<title>¶ § 5 Fees §</title><p>x".encode(), "a.html").title == "§ 5 Fees"
    assert document.text.endswith("\n\n\u202eText stays.")


@pytest.mark.parametrize(
    "style", ["a" * 300_000, "text-decoration-" * 15_000, ".a{" + "text-decoration:" * 15_000]
)
def test_hostile_style_sheets_are_read_at_once(style):
    assert text_of(f"<style>{style}</style><p style='{style[:200_000]}'>BEGIN") == "BEGIN"


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("2a4e5f5e536a5c4f4646044f524b475a464f", "duty@vell.example"),
        ("00", "hidden"),
        ("2a4e5f5e53", "hidden"),
    ],
)
def test_an_address_hidden_from_robots_is_read(code, shown):
    assert text_of(f"<p>Write to <a href=x data-cfemail={code}>hidden</a> soon.") == f"Write to {shown} soon."


VALUES = {
    "fixed": "<p>Boat: <input value=KEPT readonly>",
    "of no one to change": "<label>Boat</label><input type=text value=KEPT disabled>",
    "within words": "<p>Serves <input type=number value=KEPT> people.",
    "cell": "<table><tr><th>Item<th>Boat<tr><td>Rope<td><input value=KEPT></table>",
    "chosen": "<p>Boat: <select disabled><option>Gull<option selected>KEPT</select>",
    "lines": "<p>Boat: <textarea readonly>KEPT</textarea>",
    "state": "<form>Boats <input type=text><button disabled>KEPT, sold out</button></form>",
    "state as a value": "<form>Boats <input type=text><input type=submit value='KEPT: ausverkauft'></form>",
    "choice": "<div><button role=radio aria-checked=true>KEPT</button><button role=radio>Gull</button></div>",
    "label of words": "<div><label>KEPT</label><div>Tern</div><label>Note</label><input name=n></div>",
    "label in a form": "<form><div><label>KEPT</label><b>Tern</b></div><div><label>Note</label><input></div></form>",
}
SECRETS = {
    "password": "<p>Boat: <input type=password value=SECRET readonly>",
    "hidden type": "<p>Boat: <input type=hidden value=SECRET readonly>",
    "hidden": "<p>Boat: <input value=SECRET readonly hidden>",
    "in what is hidden": f"<div style='display:none'>{PROSE}<input value=SECRET readonly></div>",
    "cell of a layout": "<table><tr><td>Boats<td><input value=SECRET></table>",
    "to be typed": "<form>Search <input value=SECRET></form>",
    "command": "<form>Boats <input type=text><button disabled>SECRET</button></form>",
    "label of a field": "<div><label>SECRET</label><div>Such as Tern</div><div><input></div></div>",
}


@pytest.mark.parametrize("name", VALUES)
def test_what_fields_and_buttons_show_is_kept(name):
    assert "KEPT" in text_of(f"{PROSE}{VALUES[name]}")


@pytest.mark.parametrize("name", SECRETS)
def test_what_fields_hide_or_wait_for_is_dropped(name):
    assert "SECRET" not in text_of(f"{PROSE}{SECRETS[name]}")


INNER = {
    "shadow": "<fee-card><template shadowrootmode=open><style>p{display:none}</style><p>KEPT</template></fee-card>",
    "page": "<iframe srcdoc='&lt;title&gt;SECRET&lt;/title&gt;&lt;p>KEPT'></iframe>",
    "page in a page": "<iframe srcdoc=\"<iframe srcdoc='<p>KEPT'></iframe>\"></iframe>",
}


@pytest.mark.parametrize("name", INNER)
def test_what_a_saved_page_holds_within_is_read(name):
    assert text_of(f"<p>Fees.</p>{INNER[name]}<p>End.") == "Fees.\n\nKEPT\n\nEnd."


def test_pages_within_a_page_are_bounded():
    hidden = "<iframe hidden srcdoc='<p>SECRET'></iframe>"
    many = f"<iframe srcdoc='{'<p>SECRET' * (limits.MAX_OWN_TAGS + 1)}'></iframe>"
    for inner in (hidden, many):
        assert "SECRET" not in text_of(f"{PROSE}{inner}")
    deep = f"<iframe srcdoc='{'<div>' * limits.MAX_HTML_DEPTH}KEPT'></iframe>"
    document = read_document(f"{'<div>' * 60}{deep}".encode(), "a.html")
    assert (document.text, "levels deep" in document.told) == ("KEPT", True)


STRAY = {
    "<table>Closed Mondays<tr>Adults<th>a<th>b<tr><td>1<td>2</table>": "Closed Mondays\n\nAdults\n\n| a | b |",
    "<table><h3>Fees</h3><tr><th>a<th>b<tr><td>1<td>2</table>": "### Fees\n\n| a | b |",
    "<ul>Tools<li>Saw<li>Red</ul>": "Tools\n\n- Saw\n- Red",
    "<ul><li>Red</li><b>Rope</b><li>Thick</ul>": "- Red\n\n**Rope**\n\n- Thick",
}


@pytest.mark.parametrize("html", STRAY)
def test_words_between_the_parts_of_a_table_or_list_stay_apart(html):
    assert text_of(html).startswith(STRAY[html])


def test_elements_that_say_that_they_are_a_table_keep_their_columns():
    head = "<div role=row><b role=columnheader>Port</b><b role=columnheader>Spring</b></div>"
    rows = "<div role=row><div role=cell></div><div role=cell>1.2</div></div>"
    table = f"<div role=table><div role=rowgroup>{head}{rows}</div></div>"
    assert text_of(table) == "| Port | Spring |\n| --- | --- |\n|  | 1.2 |"
    assert "KEPT" in text_of(f"<div role=grid>{rows}{rows}<p role=gridcell>KEPT</p></div>")


def test_what_a_change_adds_and_takes_away_keeps_its_signs():
    line = "<tr><td class=blob-num data-line-number=4></td><td class=blob-code><i><span data-code-marker='{0}'>{1}</span></i>"
    page = f"<table>{line.format('-', 'port = 1')}{line.format('+', 'port = 2')}</table>"
    assert text_of(page) == "```\n-port = 1\n+port = 2\n```"
