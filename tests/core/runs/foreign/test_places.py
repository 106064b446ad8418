"""Which document a passage names: by title, by file, by a path that ends in it."""

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
