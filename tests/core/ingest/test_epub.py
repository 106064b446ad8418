"""EPUB: every chapter of the spine, in its order."""

import pytest

from core.base.errors import BadDocument
from core.ingest.epub import read_epub
from tests.core.ingest.made import CONTAINER, make_zip


def book(chapters, prefix="", page="OEBPS/{}", kind="application/xhtml+xml", contents=None):
    """An EPUB of (name in the archive, href, body). contents: name, entry of the manifest, text."""
    q, space = (f"{prefix}:", f"xmlns:{prefix}") if prefix else ("", "xmlns")
    items = "".join(
        f'<{q}item id="c{i}" href="{href}" media-type="{kind}"/>' for i, (_, href, _) in enumerate(chapters)
    )
    items += "" if contents is None else contents[1]
    spine = "".join(f'<{q}itemref idref="c{i}"/>' for i in reversed(range(len(chapters))))
    package = (
        f'<{q}package {space}="http://www.idpf.org/2007/opf"><{q}metadata'
        ' xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>Tides</dc:title><dc:creator>Ann</dc:creator>'
        f"</{q}metadata><{q}manifest>{items}</{q}manifest><{q}spine>{spine}</{q}spine></{q}package>"
    )
    pages = {page.format(name): f"<html><body>{body}</body></html>" for name, _, body in chapters}
    pages |= {} if contents is None else {page.format(contents[0]): contents[2]}
    return make_zip({"META-INF/container.xml": CONTAINER, "OEBPS/content.opf": package, **pages})


NAMES = [
    *(("a.xhtml", "a.xhtml"), ("b.xht", "b.xht"), ("c", "c"), ("d.html", "d.html#start")),
    *(("e f.xml", "e%20f.xml"), ("g%20h.xhtml", "g%20h.xhtml"), ("i.page", "./i.page")),
]


@pytest.mark.parametrize("prefix", ["", "opf"])
def test_chapters_of_any_ending_are_read_in_the_order_of_the_spine(prefix):
    chapters = [(name, href, f"<h1>Part {i}</h1><p>Word {i}.</p>") for i, (name, href) in enumerate(NAMES)]
    converted = read_epub(book(chapters, prefix), "a.epub")
    parts = [f"# Part {i}\n\nWord {i}." for i in reversed(range(len(NAMES)))]
    assert converted.markdown == "\n\n".join(["**Title:** Tides\n**Authors:** Ann", *parts])
    assert converted.title == "Tides"
    assert converted.notices == ()


def test_marks_and_spans_are_read_as_those_of_pages_and_menus_stay():
    body = "<nav>Contents</nav><p>10<sup>6</sup> litres of H<sub>2</sub>O for <s>nine</s> ten crowns.</p>"
    cells = "<tr><th>a</th><th>b</th></tr><tr><td rowspan='2'>1</td><td>2</td></tr><tr><td>3</td></tr>"
    body += f"<table>{cells}</table>"
    converted = read_epub(book([("a", "a", body)]), "a.epub")
    assert converted.markdown.split("\n\n")[1:] == [
        "Contents",
        "10^6 litres of H₂O for  ten crowns.",
        "| a | b |\n| --- | --- |\n| 1 | 2 |\n| 1 | 3 |",
    ]
    assert list(map(str, converted.notices)) == ["Struck-out text left out: 1 word."]


def test_a_chapter_that_is_not_there_is_told_and_a_book_of_none_refused():
    two = book([("a", "a", "<p>One.</p>"), ("b", "other", "<p>Two.</p>")])
    (notice,) = read_epub(two, "a.epub").notices
    assert str(notice) == "Chapters that the book names but does not hold: 1."
    with pytest.raises(BadDocument, match="has no text in its chapters"):
        read_epub(book([("a", "a", "")]), "a.epub")


NCX = (
    "<ncx><navMap><navPoint><navLabel><text>One</text></navLabel><content src='a#top'/>"
    "<navPoint><navLabel><text>Inner</text></navLabel><content src='a#in'/></navPoint></navPoint>"
    "<navPoint><navLabel><text>The second</text></navLabel><content src='b'/></navPoint></navMap></ncx>"
)
NAV = "<html><body><nav><ol><li><a href='a#top'>One</a><li><a href='b'>The <i>second</i></a></ol></nav></body></html>"
CONTENTS = {
    "ncx": ("t.ncx", '<item id="t" href="t.ncx" media-type="application/x-dtbncx+xml"/>', NCX),
    "nav": ("n", '<item id="t" href="n" properties="nav" media-type="application/xhtml+xml"/>', NAV),
    "damaged": ("t.ncx", '<item id="t" href="t.ncx" media-type="application/x-dtbncx+xml"/>', "<ncx><"),
}


@pytest.mark.parametrize("kind", CONTENTS)
def test_chapters_without_a_heading_get_their_name_of_the_contents(kind):
    chapters = [
        ("c", "c", "<h2>Own</h2><p>Third.</p>"),
        ("b", "b", "<p>Second.</p>"),
        ("a", "a", "<p class=ct><b>ONE</b></p><p>First.</p>"),
    ]
    text = read_epub(book(chapters, contents=CONTENTS[kind]), "a.epub").markdown.partition("\n\n")[2]
    named = "# One\n\nFirst.\n\n# The second\n\nSecond.\n\n## Own\n\nThird."
    assert text == (named if kind != "damaged" else "**ONE**\n\nFirst.\n\nSecond.\n\n## Own\n\nThird.")


@pytest.mark.parametrize(
    ("nav", "body", "text"),
    [
        ("<nav><a href='a#s2'>Section Two</a></nav>", "<p>On.</p><p id=s2>Two.</p>", "On.\n\nTwo."),
        (
            "<nav><a href='a#s2'>Section Two</a></nav>",
            "<div id=s2><p>Two.</p></div>",
            "# Section Two\n\nTwo.",
        ),
        ("<nav><a href='a#x'>X</a><a href='a'>A</a></nav>", "<p>On.</p><p id=x>Y.</p>", "# A\n\nOn.\n\nY."),
        ("<nav epub:type='page-list'><a href='a'>7</a></nav>", "<p>On.</p>", "On."),
        ("<nav epub:type='landmarks'><a href='a'>Cover Page</a></nav>", "<p>On.</p>", "On."),
        ("<nav epub:type='toc'><a href='a'>One</a></nav>", "<p>On.</p>", "# One\n\nOn."),
        (
            "<nav><a href='a'>Chapter I: The Storm</a></nav>",
            "<p>CHAPTER I</p><p><i>The Storm</i></p><p>On.</p>",
            "# Chapter I: The Storm\n\nOn.",
        ),
    ],
)
def test_a_name_of_the_contents_is_that_of_a_chapter_where_it_begins(nav, body, text):
    contents = (*CONTENTS["nav"][:2], f"<html><body>{nav}</body></html>")
    read = read_epub(book([("a", "a", body)], contents=contents), "a.epub")
    assert read.markdown.partition("\n\n")[2] == text
