"""Whether the rules by which the generator derives support are bAbI's.

Share of published questions whose support they give exactly.
"""

from __future__ import annotations

from benchmarks import Row
from core.lab.tasks.babi import Part, read_babi
from core.lab.tasks.babi_world import TASKS, find_support
from core.lab.tasks.data import babi_folder

PARTS: tuple[Part, ...] = ("train", "test")


def rows() -> list[Row]:
    """A row per task and part."""
    out = []
    for task in TASKS:
        for part in PARTS:
            questions = read_babi(babi_folder(), task, part)
            found = [find_support(question.facts, question.question) for question in questions]
            agree = [
                asked is not None and tuple(sorted(asked.support)) == question.support
                for asked, question in zip(found, questions, strict=True)
            ]
            out.append(Row(f"{task} {part}, {len(questions):,} questions", sum(agree) / len(agree), "share"))
    return out
