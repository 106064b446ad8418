"""bAbI's format: what a question sees, how its support is numbered, and what isn't the format."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from core.base.errors import BadRequest
from core.lab.tasks.babilong import FactQuestion, read_babi

STORY = """\
1 Mary moved to the office.
2 Mary got the milk there.
3 Where is Mary? \toffice\t1
4 Mary went to the garden.
5 Where is the milk? \tgarden\t4 2
1 John went to the kitchen.
2 Where is John? \tkitchen\t1
"""


def write(folder: Path, text: str, name: str = "qa2_two_train.txt") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_a_question_sees_the_facts_above_it_and_support_counts_facts_only(tmp_path: Path):
    first, second, third = read_babi(write(tmp_path, STORY), "qa2", "train")
    assert first == FactQuestion(
        "Where is Mary?",
        ("Mary moved to the office.", "Mary got the milk there."),
        (0,),
        "office",
        "qa2-train-1",
    )
    assert second.facts == (*first.facts, "Mary went to the garden.")
    assert second.support == (1, 2)
    assert (third.facts, third.support, third.story) == (("John went to the kitchen.",), (0,), "qa2-train-2")


def test_packed_files_are_read_too_and_qa1_is_not_qa10(tmp_path: Path):
    for name in ("qa1_a_test.txt.gz", "qa10_b_test.txt.gz"):
        with gzip.open(tmp_path / name, "wt", encoding="utf-8") as file:
            file.write(STORY if name.startswith("qa1_") else STORY * 2)
    assert len(read_babi(tmp_path, "qa1", "test")) == 3


@pytest.mark.parametrize(
    "line",
    [
        "3 Where is Mary? \toffice",
        "3 Where is Mary? \toffice\t2 9",
    ],
)
def test_a_broken_question_names_file_and_line(tmp_path: Path, line: str):
    write(tmp_path, "1 Mary moved to the office.\n2 Mary got the milk there.\n" + line)
    with pytest.raises(BadRequest, match=r"qa2_two_train\.txt line 3: .*earlier facts"):
        read_babi(tmp_path, "qa2", "train")


def test_a_missing_or_broken_file_is_one_sentence(tmp_path: Path):
    with pytest.raises(BadRequest, match=r"has 0 files qa2_\*_test"):
        read_babi(write(tmp_path, STORY), "qa2", "test")
    for content in (b"no gzip", gzip.compress(b"")[:10] + b"\xff" * 40):
        (tmp_path / "qa3_x_train.txt.gz").write_bytes(content)
        with pytest.raises(BadRequest, match="can't be read"):
            read_babi(tmp_path, "qa3", "train")
