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
    "linked sentence": "<a href='#w'>Winter</a><div id=w style='display:none'>KEPT.</div>",
    "so named": "<div class=faq-question>Price?</div><div class=faq-answer style='display:none'>KEPT.</div>",
    "named and linked": "<a href='#x'>May</a><p>Or:</p><div id=x class=tab-pane hidden>KEPT</div>",
    "behind a question": "<h3>Price?</h3><div class=answer hidden>30 KEPT</div>",
    "behind its control": "<button aria-expanded=false>Pets</button><div hidden><p>KEPT</p></div>",
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
    "form for small screens": "<div class=tablet-only style='display:none'><p>SECRET by telephone: 123.</p></div>",
    "other form of a value": "<b><span class='toggle a'>$9</span><span class='toggle b' hidden>SECRET</span></b>",
    "message of a table": "<table><tr><td>1<td>2</table><div class=table-empty hidden>SECRET: nothing found.</div>",
    "hint": "<div class=toggle-hint hidden>SECRET: press to see all of it.</div>",
    "target of a skip link": "<a href='#m'>Skip</a><div id=m hidden>SECRET</div>",
    "what a label is for": "<label for=q>Number</label><div id=q hidden>SECRET</div>",
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
    "<span aria-hidden=true>Mon</span><span class=sr-only>Monday</span>": "Monday",
    "<span class=sr-only>4.5 of 5</span><span aria-hidden=true>★★★★☆</span>": "4.5 of 5",
    "<span aria-label='4.5 of 5'><span aria-hidden=true>★★★★☆</span></span>": "4.5 of 5",
    "<span aria-label=Price><span aria-hidden=true>$49</span></span>": "$49",
    "<span class=sr-only>Now:</span><span aria-hidden=true>$49.99</span>": "$49.99",
    "<div class=sr-only>Now</div><div aria-hidden=true>$49</div>": "$49",
    "rules<span class=sr-only> (in a new window)</span><i class=icon aria-hidden=true>open_in_new</i>": "rules",
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


@pytest.mark.parametrize(
    "heading",
    [
        "<h1><a href='/'><img alt=SECRET></a></h1>",
        "<h2 aria-label='SECRET: copy link'><a href='#x' aria-hidden=true></a></h2>",
        "<h3><img alt='SECRET icon'></h3>",
        "<h3><i class=material-icons aria-hidden=true>secret_link</i></h3>",
    ],
)
def test_a_picture_that_links_or_adorns_is_no_heading(heading: str) -> None:
    assert text_of(heading + PROSE) == text_of(PROSE)


@pytest.mark.parametrize(
    "name", ["<h2 class=sr-only>SECRET</h2>", "<h2><span class=sr-only>SECRET</span></h2>"]
)
@pytest.mark.parametrize("menu", ["<nav>Home</nav>", "<ul><li><a href=x>Home</a></ul>"])
def test_a_heading_for_screen_readers_goes_with_its_menu(name: str, menu: str) -> None:
    assert "SECRET" not in text_of(name + menu + PROSE)
    assert text_of(name + PROSE).startswith("## SECRET")
