"""Where a passage stands, also one with something added."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from core.base.types import Workspace, join_workspaces, workspace_of_chunks
from core.ingest import read_document
from core.runs.foreign.files import ForeignPassage
from core.runs.foreign.places import Places

SAME = "The harbour closes at nine in the evening every day."


def workspace(*documents: tuple[str, str]) -> Workspace:
    """Of (title, file), all of one text in two chunks."""
    parts = []
    for title, file in documents:
        part = workspace_of_chunks([SAME, f"This is of {file}."], np.full(2, 9), title)
        parts.append(replace(part, documents=(replace(part.documents[0], file=file),)))
    return join_workspaces(parts)


OPENED = workspace(("alpha", "alpha.txt"), ("beta", "beta.txt"), ("Manual", "old.pdf"), ("Manual", "new.pdf"))


@pytest.mark.parametrize(
    ("passage", "chunk_ids"),
    [
        ({"page_content": SAME, "metadata": {"source": "/docs/beta.txt"}}, (2,)),
        ({"text": SAME, "file_path": r"C:\docs\beta.pdf"}, (2,)),
        ({"content": SAME, "meta": {"file_path": "docs/beta.txt"}}, (2,)),
        ({"name": "sub/beta.txt#1"}, (3,)),
        ({"text": SAME, "source": "/docs/new.pdf"}, (6,)),
        ({"name": "old.pdf#1"}, (5,)),
        ({"text": SAME, "title": "new"}, (6,)),
        ({"name": "Manual#1"}, ()),
        ({"name": "Manual#1", "text": "This is of old.pdf."}, (5,)),
        ({"title": "Manual", "start": 0, "end": 9}, ()),
        ({"name": "beta.2#1"}, ()),
    ],
)
def test_a_path_names_its_document_and_a_title_of_several_names_none(
    passage: dict[str, object], chunk_ids: tuple[int, ...]
) -> None:
    found = Places(OPENED).find(ForeignPassage.model_validate(passage))
    assert (found.chunk_ids if found else ()) == chunk_ids


def test_a_document_keeps_the_name_of_its_file() -> None:
    document = read_document(b"# The tank\n\nIt holds ten.", "docs/tank.md")
    assert (document.title, document.file) == ("The tank", "tank.md")


WORDS = [
    f"Keeper {name} carried {i} lamps along the quay of {name}town at dusk."
    for i, name in enumerate("ABCDEFGH")
]
LONG = workspace_of_chunks(
    ["## The lamps at dusk", *WORDS[:4], "## Of lamps", *WORDS[4:], "Lamps at dusk along the quay."],
    np.full(11, 9),
    "lamps",
)
CUT = " ".join(WORDS[1:4])


@pytest.mark.parametrize(
    "text",
    [
        f"...{CUT}...",
        f"“{CUT[:-5]}” […]",
        f"The lamps of the coast\n\n{CUT}",
        f"passage: {CUT}",
        "".join(f"<p>{words}</p>" for words in WORDS[1:4]),
        CUT.replace("quay of C", "quaj of C"),
        f"file_path: /data/the_lamps.txt\n\n{CUT}",
        f"eper{CUT[6:-3]}".replace(" ", "  "),
    ],
)
def test_a_passage_with_something_added_is_found_where_it_stands(text: str) -> None:
    found = Places(LONG).find(ForeignPassage(text=text))
    assert found is not None
    assert found.chunk_ids == (2, 3, 4)


def test_what_holds_the_words_of_a_heading_is_not_that_heading() -> None:
    other = "At dusk the lamps on the quay are lit. " + " ".join(
        f"Boat {i} lies off the north pier." for i in range(30)
    )
    assert Places(LONG).find(ForeignPassage(text=other)) is None


def test_shared_words_take_chunks_behind_one_another_alone() -> None:
    """A chunk further on, all words of which are in the passage, too, is no part of it."""
    mixed = " ".join(" ".join(reversed(words.split())) for words in WORDS[1:4])
    found = Places(LONG).find(ForeignPassage(text=mixed))
    assert found is not None
    assert (found.how, found.chunk_ids) == ("overlap", (2, 3, 4))


@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize("key", ["start_char_idx", "split_idx_start", "metadata"])
def test_a_passage_that_stands_twice_is_where_its_dump_says(key: str, offset: int) -> None:
    twice = workspace_of_chunks([SAME, "Of other things.", SAME], np.full(3, 9), "twice")
    at = twice[2 * offset].start
    passage = {"text": SAME, key: {"start_index": at} if key == "metadata" else at}
    found = Places(twice).find(ForeignPassage.model_validate(passage))
    assert found is not None
    assert found.chunk_ids == (2 * offset,)


def test_rows_that_are_nearly_alike_are_told_apart() -> None:
    rows = [f"Row {i} was read by the second keeper and found to be in order." for i in range(200)]
    table = workspace_of_chunks(rows, np.full(200, 9), "table")
    found = Places(table).find(ForeignPassage(text="The log book\n\n" + "\n\n".join(rows[150:153])))
    assert found is not None
    assert found.chunk_ids == (150, 151, 152)
