"""What a page hides: answers that a click opens, words for screen readers."""

import pytest

from tests.core.ingest.test_html import text_of

PROSE = (
    "<p>The harbour of Lund has two basins of stone, and the outer one is the older of them by far.</p>" * 3
)
OPENED = {
    "controlled": "<h3><button aria-controls=a1>Price?</button></h3><div id=a1 hidden><p>30 KEPT.</p></div>",
    "behind a button that names it": "<button aria-controls=b1>Fee</button><div id=b1 hidden>30 KEPT.</div>",
    "tab panel": "<div role=tabpanel>npm</div><div role=tabpanel hidden><pre>yarn KEPT</pre></div>",
    "linked": "<a href='#w'>Winter</a><div id=w style='display:none'>KEPT.</div>",
    "so named": "<div class=faq-question>Price?</div><div class=faq-answer style='display:none'>KEPT.</div>",
    "within a line": "<p>Depth: <a class=toggle href='#'>show</a><span class=more style='display:none'>KEPT</span>",
}


@pytest.mark.parametrize("name", OPENED)
def test_what_a_click_opens_is_kept_however_short(name: str) -> None:
    assert "KEPT" in text_of(PROSE + OPENED[name])


HIDDEN = {
    "beside no words": "<div><span style='display:none'>SECRET</span></div>",
    "within a line": "<p>Lund <span style='display:none'>SECRET</span> is old.",
    "within a control": "<p>Depth <a href=x>more <span class='toggle less' hidden>SECRET</span></a>",
    "small dialog": "<a href='#d1'>Log in</a><div id=d1 role=dialog hidden>SECRET.</div>",
    "menu": "<button aria-controls=m1>Menu</button><ul id=m1 hidden><li><a href=x>SECRET</a></ul>",
    "words for screen readers that nothing repeats": "<p>Docs <span class=sr-only>SECRET</span>",
}


@pytest.mark.parametrize("name", HIDDEN)
def test_what_nothing_opens_stays_hidden(name: str) -> None:
    assert "SECRET" not in text_of(PROSE + HIDDEN[name])


def test_the_rest_of_a_sentence_stands_in_place_of_its_dots() -> None:
    rest = "<span id=dots>...</span><span id=more style='display:none'>in 1902 by the town.</span>"
    assert text_of(f"<p>It was built {rest}</p>{PROSE}").startswith("It was built in 1902 by the town.")


SAID_TWICE = {
    "10<span class=sr-only> minutes</span> <span aria-hidden=true>mins</span>": "10 minutes",
    "<span><b>10</b><span class=sr-only> minutes</span></span> <span aria-hidden=true>mins</span>": "**10** minutes",
    "<span aria-hidden=true>4.5 / 5</span><span class=visually-hidden>4.5 out of 5 stars</span>": "4.5 out of 5 stars",
}


@pytest.mark.parametrize("html", SAID_TWICE)
def test_of_what_is_said_twice_one_is_kept(html: str) -> None:
    assert text_of(f"<p>{html}</p>{PROSE}").split("\n")[0] == SAID_TWICE[html]


DATA = {
    "words beside an icon": "<i class=fa aria-hidden=true></i><span class='visually-hidden'>Yes</span>",
    "words beside a drawing": "<svg aria-hidden=true><title>no</title></svg><span class=sr-only>Yes</span>",
    "sign": "<span aria-hidden=true>Yes</span>",
    "icon with a label": "<span role=img aria-label=Yes></span>",
    "drawing with a label": "<svg aria-label=Yes><path></svg>",
    "words beside a picture": "<img alt=tick><span class=sr-only>Yes</span>",
    "words, without their sign": "Yes<span aria-hidden=true>SECRET</span>",
}


@pytest.mark.parametrize("name", DATA)
def test_a_cell_keeps_what_alone_says_its_value(name: str) -> None:
    table = f"<table><tr><th>a<th>b<tr><td>x<td>{DATA[name]}</table>"
    assert text_of(PROSE + table).splitlines()[-1] == "| x | Yes |"


@pytest.mark.parametrize(
    "heading",
    [
        "<h1 aria-label='The Ferry'><span aria-hidden=true><b>T</b><b>h</b><b>e</b></span></h1>",
        "<h1><span aria-hidden=true>The Ferry</span></h1>",
        "<h1><svg></svg><span class=sr-only>The Ferry</span></h1>",
        "<h1><img alt='The Ferry'></h1>",
    ],
)
def test_a_heading_keeps_what_alone_says_it(heading: str) -> None:
    assert text_of(heading + PROSE).startswith("# The Ferry\n")


def test_a_picture_that_links_home_is_no_heading() -> None:
    assert "SECRET" not in text_of(f"<h1><a href='/'><img alt=SECRET></a></h1>{PROSE}")
