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


UNSEEN = {
    "#x { display: none }": "<p id=x>SECRET</p>",
    ".card .back { display: none }": "<div class=card><div><p class=back>SECRET</p></div></div>",
    "p.note.old { display: none }": "<p class='old note'>SECRET</p>",
    "div > span.q { display: none }": "<div><span class=q>SECRET</span></div>",
    "ul.tree ul { display: none }": "<ul class=tree><li>Boats<ul><li>SECRET</ul></ul>",
    ".off { position: absolute; left: -9999px }": "<p class=off>SECRET.</p>",
    ".vh { position: absolute; clip: rect(0 0 0 0) }": "<p>Docs <span class=vh>SECRET.</span></p>",
    ".nil { font-size: 0 }": "<p class=nil>SECRET.</p>",
    ".price .was { text-decoration: line-through }": "<p class=price>Now 9 <b class=was>SECRET</b></p>",
    "": "<p style='left:-9999px; position:absolute'>SECRET.</p><p class=text-decoration-line-through>SECRET</p>",
}
SEEN = {
    "div > span.q { display: none }": "<div><p><span class=q>KEPT</span></p></div>",
    "#x { display: none } @media (min-width: 9px) { #x { display: block } }": "<p id=x>KEPT</p>",
    "ul { display: none } .a:hover { display: none } [x-cloak] { display: none }": "<ul><li class=a x-cloak>KEPT</ul>",
    ".no-js .lazy { display: none }": "<div class=no-js><p class=lazy>KEPT</p></div>",
    ".gap { font-size: 0 }": "<div class=gap><p>KEPT</p></div>",
    ".old .x { display: none }": "<p class=x>KEPT</p>",
    ".logo { position: absolute; left: -9999px }": "<h2 class=logo>KEPT</h2>",
}


@pytest.mark.parametrize("sheet", UNSEEN)
def test_what_a_style_sheet_hides_or_strikes_goes(sheet: str) -> None:
    assert "SECRET" not in text_of(f"<style>{sheet}</style>{PROSE}{UNSEEN[sheet]}")


@pytest.mark.parametrize("sheet", SEEN)
def test_what_a_style_sheet_shows_stays(sheet: str) -> None:
    assert "KEPT" in text_of(f"<style>{sheet}</style>{PROSE}{SEEN[sheet]}")


def test_a_cell_keeps_words_off_the_screen_that_alone_say_its_value() -> None:
    sheet = "<style>.off { position: absolute; left: -9999px }</style>"
    table = "<table><tr><th>a<th>b<tr><td>x<td><i class=dot></i><span class=off>Yes</span></table>"
    assert text_of(sheet + PROSE + table).splitlines()[-1] == "| x | Yes |"


def test_many_selectors_for_many_elements_are_bounded() -> None:
    sheet = "".join(f".x{number} .a {{ display: none }}" for number in range(2_000))
    assert "KEPT" in text_of(f"<style>{sheet}</style>{'<p class=a>KEPT' * 1_000}")


@pytest.mark.parametrize(
    "rating",
    [
        "<span class=stars role=img aria-label='2 out of 5 stars'><svg></svg></span>",
        "<div class=star-rating title='Rated 2 out of 5'><span style='width:40%'></span></div>",
        "<img alt='2 stars'>",
    ],
)
def test_a_rating_that_only_a_label_says_is_shown(rating: str) -> None:
    assert "2" in text_of(f"<h2>Anna</h2><div>{rating}</div>{PROSE}")
    choice = f"<h2>Anna</h2><a href=x>{rating}</a><p>" + "<i title='4 stars'></i>" * 5 + "</p>"
    assert text_of(choice + PROSE) == f"## Anna\n\n{text_of(PROSE)}"


NUMBERED = {
    "<h2><span aria-hidden=true>3.2</span>Scope</h2>": "## 3.2 Scope",
    "<p><span aria-hidden=true>Step 4</span> Close it.</p>": "Step 4 Close it.",
    "<ul><li><span aria-hidden=true>(b)</span> The key.</ul>": "- (b) The key.",
    "<ol><li><span aria-hidden=true>1.</span> Mix.</ol>": "1. Mix.",
    "<h2><a aria-hidden=true href='#x'>#</a> Scope</h2>": "## Scope",
    "<p><span aria-hidden=true>Arrow</span> Close it.</p>": "Close it.",
}


@pytest.mark.parametrize("html", NUMBERED)
def test_the_hidden_number_of_a_clause_or_step_is_shown(html: str) -> None:
    assert text_of(html + PROSE).split("\n")[0] == NUMBERED[html]


ANSWERS = {
    "<input type=checkbox checked disabled> Mast": "✓ Mast",
    "<label><input type=checkbox checked> Mast</label>": "✓ Mast",
    "<p><input type=checkbox disabled> Mast</p>": "✗ Mast",
    "<input type=checkbox> Mast": "Mast",
    "<input type=radio checked> Mast": "✓ Mast",
    "<input type=radio id=t checked><label for=t>Mast?</label><div>Oak</div>": "Mast?",
    "<img class=emoji alt=❌> Mast": "❌ Mast",
    "<img alt='Not included'>Mast": "Not included: Mast",
    "<img alt='Green tick'> Mast": "✓ Mast",
    "<img alt='Old mast'> Mast": "Mast",
    "<svg><title>Unavailable</title></svg> Mast": "Unavailable: Mast",
    "<span class=sr-only>Not included:</span> Mast": "Not included: Mast",
    "<i class='fa fa-times' aria-hidden=true></i> Mast": "✗ Mast",
    "Mast: <i class='fas fa-check-circle'></i>": "Mast: ✓",
    "<i class='fa fa-check'></i><span class=sr-only>Included</span> Mast": "Included: Mast",
    "<button><i class='fa fa-times'></i></button> Mast": "Mast",
    "Mast <i class='fa fa-times'></i>": "Mast",
    "<i class='fa fa-anchor'></i> Mast": "Mast",
}


@pytest.mark.parametrize("item", ANSWERS)
def test_an_item_keeps_the_sign_that_says_yes_or_no(item: str) -> None:
    assert text_of(f"<ul><li>{item}</ul>").splitlines()[0] == f"- {ANSWERS[item]}"


@pytest.mark.parametrize(
    "lists",
    [
        "<ul class=inline-task-list><li class=checked>a<li>b</ul>",
        "<ul><li data-checked=true>a<li data-checked=false>b</ul>",
        "<ul><li><div class='checkbox checkbox-on'></div>a<li><div class='checkbox checkbox-off'></div>b</ul>",
    ],
)
def test_items_are_ticked_by_what_their_list_says(lists: str) -> None:
    assert text_of(lists) == "- ✓ a\n- ✗ b"


CELLS = {
    "<i class='fa fa-check'></i>": "✓",
    "<div><span class=icon-cross></span></div>": "✗",
    "<svg class=cross><path></svg>": "✗",
    "<svg><title>Included</title></svg>": "Included",
    "<i class='fa fa-times'></i> Safe": "✗ Safe",
    "<label><input type=checkbox><span class=checkmark></span></label>": "",
    "<i class='fa fa-ship'></i>": "",
}


@pytest.mark.parametrize("cell", CELLS)
def test_signs_drawn_by_a_class_are_the_value_of_a_cell(cell: str) -> None:
    table = f"<table><tr><th>Plan<th>Radar<tr><td>Free<td>{cell}</table>"
    assert text_of(table).splitlines()[-1] == f"| Free | {CELLS[cell]} |"


PICTURED = {
    "<img class=latex alt='F = ma'>": "F = ma",
    "<img class=map alt='F = ma'>": "",
    "<math alttext='F = ma'></math><img class=math-fallback alt='F = ma'>": "F = ma",
    "<span class=katex><span class=katex-html aria-hidden=true><b class=mord>F</b></span></span>": "**F**",
    "<span class=katex><span class=katex-html aria-hidden=true><b class=vlist>2</b></span></span>": "",
}


@pytest.mark.parametrize("formula", PICTURED)
def test_a_formula_that_is_only_a_picture_is_read(formula: str) -> None:
    assert text_of(f"<p>Law: {formula}</p>{PROSE}").split("\n")[0] == f"Law: {PICTURED[formula]}".strip()
