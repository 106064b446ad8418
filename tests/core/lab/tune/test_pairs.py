"""Files of pairs: back as they were, and one sentence for every line that can't be used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.base.errors import BadRequest
from core.lab.tune import pairs
from core.lab.tune.pairs import Preference, pair_lines, read_pairs
from core.llm.protocol import Message

PAIR = Preference("rewrite", "Who?", (Message("user", "Search."),), "good", "bad")


def test_a_line_is_in_the_form_that_preference_trainers_take(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    other = Preference("stop_over_continue", "☃", (Message("system", ""), *PAIR.prompt), "y\n", "", 2.5)
    path.write_text("".join(pair_lines([PAIR, other])), encoding="utf-8")
    assert read_pairs(path) == [PAIR, other]
    assert json.loads(next(pair_lines([PAIR]))) == {
        "prompt": [{"role": "user", "content": "Search."}],
        "chosen": [{"role": "assistant", "content": "good"}],
        "rejected": [{"role": "assistant", "content": "bad"}],
        "weight": 1.0,
        "kind": "rewrite",
        "question": "Who?",
    }


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"prompt": []}, "prompt: List should have at least 1 item"),
        ({"prompt": [{"role": "tool", "content": ""}]}, "prompt.0.role: Input should be 'system'"),
        ({"prompt": [{"role": "system", "content": "Go."}]}, "the last message of prompt must be the user's"),
        ({"chosen": [{"role": "user", "content": "good"}]}, "chosen and rejected must each be one message"),
        ({"rejected": [{"role": "assistant", "content": "good"}]}, "chosen and rejected are the same"),
        ({"weight": -1}, "weight: Input should be greater than 0"),
        ({"kind": "other"}, "kind: Input should be 'rewrite'"),
    ],
)
def test_a_line_that_can_not_be_used_is_one_sentence(
    tmp_path: Path, changes: dict[str, Any], sentence: str
) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text(next(pair_lines([PAIR])) + "\n" + json.dumps(PAIR.to_json() | changes), encoding="utf-8")
    with pytest.raises(BadRequest, match=f"pairs.jsonl line 3: {sentence}"):
        read_pairs(path)


def test_what_is_no_file_of_pairs_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "pairs.jsonl"
    with pytest.raises(BadRequest, match=r"can't be read \(.*No such file"):
        read_pairs(path)
    for text, sentence in (
        ("", "holds no pairs"),
        ("[" * 100_000, "line 1 is no JSON"),
        ("[]", "line 1 is JSON, but no object"),
    ):
        path.write_text(text)
        with pytest.raises(BadRequest, match=sentence):
            read_pairs(path)
    path.write_text("".join(pair_lines([PAIR] * 3)))
    monkeypatch.setattr(pairs, "MAX_PAIRS", 2)
    with pytest.raises(BadRequest, match="has more than 2 pairs; split it"):
        read_pairs(path)
    monkeypatch.setattr(pairs, "MAX_LINE_BYTES", 50)
    with pytest.raises(BadRequest, match="line 1 has more than 50 bytes"):
        read_pairs(path)
