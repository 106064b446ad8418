"""Every task loads by its name, lazily and the same way each time; what doesn't exist is one sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.base.errors import BadRequest
from core.encode.tokens import FastTokenizer
from core.lab.tasks.catalog import TASKS, load_task

SHORT = {"qa3": "10K", "generated": "1K"}


@pytest.mark.parametrize("name", TASKS)
def test_every_task_loads(name: str, data: Path, tokenizer: FastTokenizer):
    length = SHORT.get(name, "2K") if TASKS[name].length else None
    loaded = load_task(name, length=length, n=3, seed=1, data=data, tokenizer=tokenizer)
    again = load_task(name, length=length, n=3, seed=1, data=data, tokenizer=tokenizer)
    assert loaded.name == name
    assert len(loaded.examples) == 3
    assert 1 <= loaded.step_budget <= 4
    assert loaded.description.startswith("3 questions of ")
    for example, same in zip(loaded.examples, again.examples, strict=True):
        assert (example.id, example.question, list(example.chunks), example.support) == (
            same.id,
            same.question,
            list(same.chunks),
            same.support,
        )
        assert example.support == tuple(sorted(set(example.support)))
        assert 0 <= example.support[0] <= example.support[-1] < len(example.chunks)
        assert example.task == name
    assert len({example.id for example in loaded.examples}) == 3


@pytest.mark.parametrize("name", ["qa1", "hotpotqa", "nq-long"])
def test_parts_share_no_text(name: str, data: Path, tokenizer: FastTokenizer):
    parts = [load_task(name, part=part, n=4, data=data, tokenizer=tokenizer) for part in ("train", "test")]  # type: ignore[arg-type]
    train, test = (
        {text for example in loaded.examples for text in example.chunks if len(text) > 60} for loaded in parts
    )
    assert train
    assert train.isdisjoint(test)


def test_a_file_of_questions_is_a_task(tmp_path: Path, tokenizer: FastTokenizer):
    path = tmp_path / "mine.jsonl"
    path.write_text(json.dumps({"question": "Who?", "chunks": ["a", "b"], "support": [1]}), encoding="utf-8")
    loaded = load_task(str(path), tokenizer=tokenizer)
    assert loaded.examples[0].chunks == ("a", "b")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "qa99"}, "task 'qa99' does not exist; choose among qa1, "),
        ({"name": "hotpotqa", "length": "1K"}, "hotpotqa has no length 1K"),
        ({"name": "generated", "part": "train"}, "generated has no part 'train'; choose test"),
        ({"name": "qa1", "part": "dev"}, "qa1 has no part 'dev'; choose train or test"),
        ({"name": "qa1", "n": 0}, "n=0 must be at least 1"),
        ({"name": "qa1", "length": "long"}, "length 'long' is no number"),
        ({"name": "qa3", "length": 5}, "no question of qa3 fits in 5 tokens"),
        ({"name": "squad-long", "length": 30}, "no question of squad-long fits in 30 tokens"),
    ],
)
def test_what_cannot_be_loaded(data: Path, tokenizer: FastTokenizer, arguments: dict[str, Any], message: str):
    with pytest.raises(BadRequest, match=message):
        load_task(**arguments, data=data, tokenizer=tokenizer)
