"""Evidence in its place: how much of what stands around a chunk is shown."""

from __future__ import annotations

import json

import numpy as np
import pytest

from core.base.types import ChunkTable, Document, Workspace
from core.views.draw.evidence import CONTEXT, evidence_rows


@pytest.mark.parametrize(
    ("before", "behind", "shown"),
    [
        ("渡" * 400, "轮" * 400, ("渡" * CONTEXT, "轮" * CONTEXT)),
        ("渡" * 399 + " ", "轮 " + "轮" * 400, ("渡" * 239 + " ", "轮 " + "轮" * 238)),
        ("word " * 80, "\nwords" * 80, ("word " * 47, "\nwords" * 39)),
    ],
)
def test_what_stands_around_a_chunk_is_cut_at_words_where_any_are_near(
    before: str, behind: str, shown: tuple[str, str]
) -> None:
    text = f"{before}CHUNK{behind}"
    place = (np.array([at]) for at in (len(before), len(before) + 5, 1, 0, 0))
    workspace = Workspace((Document("page", text, "chunks"),), (ChunkTable(*place, heading_paths=((),)),))
    said = json.dumps(evidence_rows(workspace, {0: 1}, (), 1, None), ensure_ascii=False)
    for part in shown:
        assert f'"{part}"'.replace("\n", "\\n") in said
