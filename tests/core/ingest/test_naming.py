"""Names and titles: what is shown of them, and which titles count."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.ingest.limits import MAX_TITLE_CHARACTERS
from core.ingest.naming import file_name, printable, sane_title


@pytest.mark.parametrize(
    "title", [" Annual\n report  2024 ", "数据", "A document about untitled works", "Book of hours"]
)
def test_titles_that_people_gave_are_kept(title):
    assert sane_title(title) == " ".join(title.split())


@pytest.mark.parametrize(
    "title",
    [None, " \n", "Untitled 3", "Microsoft Word - thesis_final.doc", "report.docx", "Document1", "---", "\0"],
)
def test_titles_that_programs_made_up_are_not(title):
    assert sane_title(title) == ""


@given(st.text(max_size=400))
def test_what_is_shown_is_one_bounded_printable_line(text):
    for name in (printable(text), file_name(text), sane_title(text)):
        assert name.isprintable()
        assert len(name) <= MAX_TITLE_CHARACTERS
    assert "/" not in file_name(text)


def test_a_title_loses_what_turns_the_direction_of_writing():
    assert sane_title("Tides \u202eydnuF fo\u202c \u2067(2024)\u2069") == "Tides ydnuF fo (2024)"
