"""Foreign words are noticed, familiar ones are not, and a damaged file is one sentence."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

import pytest

from core.base.errors import BadCheckpoint
from core.base.progress import finish
from core.base.types import Document
from core.corpus.opening import open_corpus
from core.encode.checkpoint import find_checkpoint
from core.encode.encoder import DualEncoder
from core.encode.familiarity import FAMILIARITY_FILE, Familiarity, load_familiarity
from core.lab.tasks.prose import compose_paragraph
from core.methods.qrag.agent import Agent

PROGRAM = (
    "def turn(x: np.ndarray, p: float) -> np.ndarray:\n    return np.stack([x[..., 0] * cos(p), x[..., 1] *"
    " sin(p)], axis=-1)\n" * 20
)
GERMAN = (
    "Die Fähre legt bei jedem Wetter ab, doch im Nebel wartet der Fährmann auf das Läuten der Glocke am"
    " anderen Ufer. " * 20
)


def prose(seed: int) -> list[str]:
    rng = Random(seed)
    return [sentence for _ in range(150) for sentence in compose_paragraph(rng)]


@pytest.fixture(scope="module")
def familiarity(minilm: DualEncoder) -> Familiarity:
    return Familiarity.of(prose(1), prose(2), minilm.tokenizer)


def test_surprise_is_lowest_for_what_was_counted_and_other_texts_are_foreign(
    familiarity: Familiarity, minilm: DualEncoder
) -> None:
    own = familiarity.surprise(prose(3), minilm.tokenizer)
    assert own == pytest.approx(familiarity.own, rel=0.03)
    assert not familiarity.is_foreign(own)
    for text in (PROGRAM, GERMAN):
        bits = familiarity.surprise([text], minilm.tokenizer)
        assert bits is not None
        assert familiarity.is_foreign(bits)


def test_texts_without_words_say_nothing(familiarity: Familiarity, minilm: DualEncoder) -> None:
    assert familiarity.surprise([], minilm.tokenizer) is None
    assert familiarity.surprise(["", " "], minilm.tokenizer) is None


def test_a_checkpoint_carries_it_and_opening_tells_of_foreign_documents(
    familiarity: Familiarity, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(find_checkpoint("base"), tmp_path / "agent"))
    familiarity.save(folder)
    encoder = DualEncoder(folder, "cpu")
    documents = [Document("Tales", " ".join(prose(4)[:40]), "text"), Document("Program", PROGRAM, "text")]
    opened = finish(open_corpus(documents, encoder))
    notices = opened.notices
    assert opened.foreign
    assert len(notices) == 1
    assert notices[0].startswith("Program reads unlike what base was trained on")


def test_a_checkpoint_without_the_file_says_nothing(minilm: DualEncoder) -> None:
    assert minilm.familiarity is None


@pytest.mark.parametrize("content", [b"", b"not tensors", None])
def test_a_damaged_or_foreign_file_is_one_sentence(
    content: bytes | None,
    familiarity: Familiarity,
    minilm: DualEncoder,
    agents: dict[str, Agent],
    tmp_path: Path,
) -> None:
    familiarity.save(tmp_path)
    tokenizer = minilm.tokenizer
    if content is None:
        tokenizer = next(iter(agents.values())).encoder.tokenizer
    else:
        (tmp_path / FAMILIARITY_FILE).write_bytes(content)
    with pytest.raises(BadCheckpoint, match="delete it"):
        load_familiarity(tmp_path, tokenizer)
