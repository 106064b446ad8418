"""What a document gets where nobody chose."""

from __future__ import annotations

import pytest

from core.base.types import Document, DocumentKind
from core.encode.checkpoint import find_checkpoint, read_spec, shipped_checkpoints
from core.lab.tasks.narrative import generate_narrative
from core.methods.choice import Choice, choose, is_story
from tests.conftest import ROOT

NOVEL = (
    "Mr. Dale looked at the window for a while, and said nothing. He went to the door. Lily followed her"
    " sister to the gate. “You knew it,” said he. Crosbie had taken the letter. She left the house. The"
    " squire walked up and down the terrace, and thought of the boy whom he had sent to the school. Bell shut"
    " the door. Hopkins was in the garden. They had come from the village. Mrs. Dale put out the candle."
)


@pytest.mark.parametrize(("tokens", "seed"), [(1_000, 7), (64_000, 2)])
def test_generated_stories_are_stories(tokens: int, seed: int) -> None:
    assert is_story(Document("story", generate_narrative(tokens, seed, 3).text, "text"))


@pytest.mark.parametrize(
    ("name", "kind", "expected"),
    [
        ("river-chronicle.txt", "text", Choice("narrative", "qrag")),
        ("beacon-handbook.md", "markdown", Choice("general", "qrag")),
        ("river-chronicle.txt", "markdown", Choice("general", "qrag")),
        ("", "text", Choice("general", "qrag")),
    ],
)
def test_documents_get_what_suits_them(name: str, kind: DocumentKind, expected: Choice) -> None:
    """A novel, which is no story of the generators, gets no agent that learned on those."""
    specs = {shipped: read_spec(find_checkpoint(shipped)) for shipped in shipped_checkpoints()}
    text = (ROOT / "sample_docs" / name).read_text(encoding="utf-8") if name else NOVEL
    assert choose(Document(name, text, kind), specs) == expected
    assert not is_story(Document("nothing", "", "text"))
