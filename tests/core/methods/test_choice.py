"""What a document gets where nobody chose: stories the agent that learned on them, all else what suits its
kind.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from core.base.types import Document, DocumentKind
from core.encode.checkpoint import CheckpointSpec, find_checkpoint, read_spec, shipped_checkpoints
from core.lab.tasks.narrative import generate_narrative
from core.methods.choice import Choice, choose, is_story

SAMPLES = Path(__file__).resolve().parents[2] / "sample_docs"
NOVEL = (
    "Mr. Dale looked at the window for a while, and said nothing. He went to the door. Lily followed her"
    " sister to the gate. “You knew it,” said he. Crosbie had taken the letter. She left the house. The"
    " squire walked up and down the terrace, and thought of the boy whom he had sent to the school. Bell shut"
    " the door. Hopkins was in the garden. They had come from the village. Mrs. Dale put out the candle."
)


def specs() -> dict[str, CheckpointSpec]:
    return {name: read_spec(find_checkpoint(name)) for name in shipped_checkpoints()}


@pytest.mark.parametrize(("tokens", "seed"), [(1_000, 0), (1_000, 7), (4_000, 1), (64_000, 2)])
def test_generated_stories_are_stories(tokens: int, seed: int) -> None:
    assert is_story(Document("story", generate_narrative(tokens, seed, 3).text, "text"))


def test_prose_is_no_story() -> None:
    assert not is_story(Document("novel", NOVEL, "text"))
    assert not is_story(Document("nothing", "", "text"))


@pytest.mark.parametrize(
    ("name", "kind", "expected"),
    [
        ("river-chronicle.txt", "text", Choice("narrative", "qrag")),
        ("beacon-handbook.md", "markdown", Choice("general", "qrag")),
        ("river-chronicle.txt", "markdown", Choice("general", "qrag")),
    ],
)
def test_samples_get_what_suits_them(name: str, kind: DocumentKind, expected: Choice) -> None:
    document = Document(name, (SAMPLES / name).read_text(encoding="utf-8"), kind)
    assert choose(document, specs()) == expected


def test_a_novel_gets_no_agent_that_learned_on_stories() -> None:
    assert choose(Document("novel", NOVEL, "text"), specs()) == Choice("general", "qrag")
