"""The mixture of stories and needles: no test story, no validation noise, always the same validation."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

import pytest

from core.encode.tokens import FastTokenizer
from core.lab.tasks.babi_world import TASKS, story_key, tell_babi
from core.lab.tasks.babilong import FactQuestion
from core.lab.tasks.example import Example, Noise, Woven
from core.lab.train.narrative import SHARES, WINDOW, NarrativeMixture
from tests.core.lab.tasks.conftest import tokenizer, write_gzip, write_stories  # noqa: F401


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A novel whose every sentence occurs once, some of them about Ellen, and test files with
    a story each.
    """
    folder, rng = tmp_path_factory.mktemp("data"), Random(6)
    said = [
        "Ship {} left the harbour with {} barrels of salt.",
        "Ellen left ship {} with barrel {}.",
        "Ellen said {} {}.",
    ]
    paragraphs = [
        " ".join(said[i % 3].format(10 * number + i, number) for i in range(5)) for number in range(400)
    ]
    write_gzip(folder / "books" / "train" / "A.txt.gz", "\n\n".join(paragraphs))
    for task in TASKS:
        write_stories(folder, task, "test", [tell_babi(task, rng)])
    return folder


@pytest.fixture(scope="module")
def mixture(data: Path, tokenizer: FastTokenizer) -> NarrativeMixture:  # noqa: F811
    return NarrativeMixture(data, tokenizer)


def babi_story(example: Example) -> FactQuestion:
    """The story that an example of a bAbI task was woven from."""
    chunks = example.chunks
    assert isinstance(chunks, Woven)
    return FactQuestion(
        example.question,
        chunks.own,
        tuple(chunks.places.index(row) for row in example.support),
        example.answers[0],
    )


@pytest.mark.campaign
def test_no_draw_holds_a_test_story(
    mixture: NarrativeMixture,
    data: Path,
    tokenizer: FastTokenizer,  # noqa: F811
    tmp_path: Path,
) -> None:
    """What one generator drew becomes the test files; the same generator then has to draw something else."""
    stories = [
        (example.task, babi_story(example))
        for example in mixture.draw(Random(7), 80)
        if example.task in TASKS
    ]
    assert {task for task, _ in stories} == set(TASKS)
    shutil.copytree(data / "books", tmp_path / "books")
    for task in TASKS:
        write_stories(tmp_path, task, "test", [story for told, story in stories if told == task])
    tested = {story_key(story.facts, story.question) for _, story in stories}
    again = [
        babi_story(example)
        for example in NarrativeMixture(tmp_path, tokenizer).draw(Random(7), 80)
        if example.task in TASKS
    ]
    assert not {story_key(story.facts, story.question) for story in again} & tested


def test_validation_never_changes(mixture: NarrativeMixture) -> None:
    def validation() -> list[tuple[str, str, tuple[str, ...], tuple[int, ...]]]:
        return [(e.task, e.question, e.chunks[:], e.support) for e in mixture.validation(21)]

    before = validation()
    mixture.draw(Random(1), 20)
    assert validation() == before
    for i, (task, *_) in enumerate(before):
        name = list(SHARES)[i % len(SHARES)]
        assert (
            task == name
            or (name == "stories" and task == "generated")
            or (name == "needles" and task.startswith("niah-"))
        )


@pytest.mark.campaign
def test_training_never_reads_validation_noise(mixture: NarrativeMixture) -> None:
    drawn = [
        [chunks for e in mixture.draw(Random(seed), 16) if isinstance(chunks := e.chunks, Woven)]
        for seed in range(40)
    ]
    kept = {chunks.noise for e in mixture.validation(140) if isinstance(chunks := e.chunks, Woven)}
    assert (
        {noise.name for noise in kept}
        == {chunks.noise.name for update in drawn for chunks in update}
        == {"books/train", "prose"}
    )
    assert len(kept) == len(WINDOW)
    assert not neighbours(kept) & neighbours({chunks.noise for update in drawn for chunks in update})
    for update in drawn:  # one window of each kind serves all episodes of an update
        assert len({chunks.noise for chunks in update}) <= len(WINDOW)
        assert max(len(chunks.noise.texts) for chunks in update) <= max(WINDOW.values())


def neighbours(noises: set[Noise]) -> set[tuple[str, ...]]:
    """Runs of five texts: composed sentences come up again, so many of them one after another don't."""
    return {run for noise in noises for run in zip(*(noise.texts[i:] for i in range(5)), strict=False)}
