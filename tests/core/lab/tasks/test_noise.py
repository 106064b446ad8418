"""Noise is the books' prose: unwrapped, whole, in order, counted as the encoder counts."""

from __future__ import annotations

import gzip
from pathlib import Path
from random import Random

import numpy as np
import pytest

from core.base.errors import BadRequest
from core.encode.tokens import FastTokenizer
from core.lab.tasks.example import Noise
from core.lab.tasks.noise import (
    SOURCES,
    cut_prose,
    find_calls,
    find_deeds,
    find_people,
    read_noise,
    rename_people,
)


def source_text(data: Path, source: str) -> str:
    return " ".join(
        " ".join(
            gzip.open(path, "rt", encoding="utf-8").read() for path in sorted((data / source).glob("*.gz"))
        ).split()
    )


@pytest.mark.parametrize("max_tokens", [None, 40, 64])
def test_books_come_whole_and_in_order(data: Path, tokenizer: FastTokenizer, max_tokens: int | None):
    noise = read_noise("books/eval", tokenizer, max_tokens, data=data)
    assert " ".join(noise.texts) == source_text(data, "books/eval")
    assert all("\n" not in text for text in noise.texts)
    assert np.array_equal(noise.n_tokens, tokenizer.count(noise.texts))
    assert noise.n_tokens.max() <= (max_tokens or 64)


def test_reading_stops_when_there_is_enough(data: Path, tokenizer: FastTokenizer):
    whole = read_noise("books/train", tokenizer, data=data)
    for wanted in (1, 50, 600, int(whole.n_tokens.sum())):
        part = read_noise("books/train", tokenizer, n_tokens=wanted, data=data)
        assert wanted <= part.n_tokens.sum() < wanted + 64
        assert part.texts == whole.texts[: len(part.texts)]


def test_every_source_is_read_and_no_other(data: Path, tokenizer: FastTokenizer, tmp_path: Path):
    assert all(len(read_noise(source, tokenizer, data=data).texts) > 10 for source in SOURCES)
    with pytest.raises(BadRequest, match="noise 'poems' does not exist"):
        read_noise("poems", tokenizer, data=data)  # type: ignore[arg-type]
    with pytest.raises(BadRequest, match="holds no texts"):
        read_noise("essays", tokenizer, data=tmp_path)
    (tmp_path / "essays").mkdir()
    (tmp_path / "essays" / "cut.jsonl.gz").write_bytes(gzip.compress(b"{}")[:12])
    with pytest.raises(BadRequest, match=r"cut\.jsonl\.gz can't be read"):
        read_noise("essays", tokenizer, data=tmp_path)


def test_wrapped_lines_are_joined_and_what_has_no_letter_is_left_out(tokenizer: FastTokenizer):
    text = "It was late,\n  and nobody\nspoke. The lamp\nburned.\n\n* * *\n\nMorning came."
    assert cut_prose(text, tokenizer, None)[0] == [
        "It was late, and nobody spoke.",
        "The lamp burned.",
        "Morning came.",
    ]


NOVEL = (
    "Emma said nothing.",
    "Emma looked away, and Emma sighed.",
    "At last Emma answered him.",
    "Then Emma slowly went to the orchard.",
    "Mr. Knightley came too, and Knightley said so; Knightley asked twice.",
    "London was wet, and London slept.",
    "She said no; he and she went home.",
)


def novel(tokenizer: FastTokenizer) -> Noise:
    return Noise("novel", NOVEL, np.array(tokenizer.count(NOVEL), dtype=np.int32))


def test_people_are_told_from_places_and_pronouns() -> None:
    assert find_people(NOVEL) == {"Emma", "Knightley"}


def test_deeds_are_the_short_sentences_in_which_people_move(tokenizer: FastTokenizer) -> None:
    noise = novel(tokenizer)
    deeds = find_deeds(noise, find_people(NOVEL))
    assert deeds.texts == (NOVEL[3], NOVEL[4], "She said no; he and Emma went home.")
    assert np.array_equal(deeds.n_tokens, noise.n_tokens[[3, 4, 6]])
    long = Noise("novel", (f"Emma went {'on and ' * 40}on.",), np.array([82], dtype=np.int32))
    assert find_deeds(long, frozenset({"Emma"})).texts == ()


def test_calls_are_the_sentences_of_a_few_words_that_name_somebody() -> None:
    noise = Noise(
        "novel",
        ('"Emma?"', "So it rained.", "Emmas went.", f"Emma was {'very ' * 12}tired."),
        np.array([4, 4, 4, 17], dtype=np.int32),
    )
    calls = find_calls(noise, frozenset({"Emma"}))
    assert calls.texts == ('"Emma?"',)
    assert calls.n_tokens.tolist() == [4]


def test_renamed_people_bear_names_of_the_cast_and_nothing_else_changes(tokenizer: FastTokenizer) -> None:
    renamed = rename_people(
        novel(tokenizer), frozenset({"Emma", "Knightley"}), ["Mary", "John"], Random(1), tokenizer
    )
    assert not any(name in text for text in renamed.texts for name in ("Emma", "Knightley", "Mr."))
    assert {text.replace("Mary", "John") for text in renamed.texts[3:]} == {
        "Then John slowly went to the orchard.",
        "John came too, and John said so; John asked twice.",
        *NOVEL[5:],
    }
    assert {"Mary", "John"} == {
        word for text in renamed.texts for word in text.replace(";", "").split() if word in ("Mary", "John")
    }
    assert np.array_equal(renamed.n_tokens, tokenizer.count(renamed.texts))
