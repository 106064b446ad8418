"""Pages: what is dropped, what is kept, and what no page may do."""

import pytest

from core.ingest import read_document
from tests.conftest import few


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
    "link targets": "<a href='http://SECRET'>anchor</a><img src=SECRET alt=SECRET>",
}


@pytest.mark.parametrize("name", DROPPED)
def test_low_signal_elements_are_dropped(name):
    assert "SECRET" not in text_of(
        f"<body>{DROPPED[name]}<p>The article has a sentence that is long enough to be most of the page.</p>"
    )


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
    "picture in a cell without text": "<table><tr><th>a<th>b<tr><td>x<td><img alt=KEPT></table>",
}


@pytest.mark.parametrize("name", KEPT)
def test_content_is_kept(name):
    assert "KEPT" in text_of(KEPT[name])


def test_structure_becomes_markdown_that_reads_well():
    html = (
        "<h1>A <a href=x>title</a></h1><p>snake_case * 2<sup>10</sup><ul><li>one<ul><li>inner</ul><li>two</ul>"
        "<ol><li>first</ol><pre>a\n  b</pre>"
    )
    lists = "- one\n  - inner\n- two\n\n1. first"
    assert text_of(html) == f"# A title\n\nsnake_case * 2^10\n\n{lists}\n\n```\na\n  b\n```"
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


def test_captions_stand_before_their_table():
    table = "<table><caption>Prices</caption><tr><th>a<td>1<tr><th>b<td>2</table>"
    assert text_of(table) == "Prices\n\n| a | 1 |\n| --- | --- |\n| b | 2 |"


@pytest.mark.parametrize("attributes", ["role=presentation", ""])
def test_layout_tables_become_text(attributes):
    inner = "<table><tr><th>x<th>y<tr><td>1<td>2</table>" if not attributes else ""
    text = text_of(f"<table {attributes}><tr><td>Left<td>Right<tr><td>{inner}More<td>Words</table>")
    assert "Left" in text.splitlines()
    assert ("| x | y |" in text) == bool(inner)


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
    assert document.text.endswith("\n\n\u202eText stays.")
