"""Why a run ended, for every method and reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.base.config import EpisodeConfig
from core.base.events import RunStarted, StepTaken, Stopped, StopReason, Trace
from core.views.ending import end_sentence, review_sentence


def ended(method: str, reason: StopReason, q_value: float | None = 0.2) -> Trace:
    config = EpisodeConfig(step_budget=2, stop_threshold=0.5, review_threshold=0.3)
    step = StepTaken(1, 1, 0.9, 1.0, 0.9, None, "", 1.0)
    stopped = Stopped(reason, 1, 3, q_value, review=(0.1,), taken_back=(1,))
    return Trace(RunStarted("Where is the key?", method, "", 4, config), (step,), stopped)


@pytest.mark.parametrize(
    ("method", "reason", "sentence"),
    [
        ("qrag", "threshold", "Nothing left is worth 0.50: best Q is 0.20."),
        ("threshold", "threshold", "Nothing left is worth 0.50: best cosine is 0.20."),
        ("resrag", "threshold", "Nothing left is worth 0.50: best chance is 0.20."),
        ("resrag-llm", "threshold", "The language model took no other chunk."),
        ("sparc", "threshold", "Its evaluator accepted the answer."),
        ("sparc", "budget", "Its depth or budget is used up."),
        ("qrag", "budget", "The budget of 1 step is used up."),
        ("bm25", "exhausted", "No other chunk shares a word with the question."),
        ("topk", "exhausted", "No chunk is left that may be chosen."),
    ],
)
def test_every_method_says_why_it_ended(method: str, reason: StopReason, sentence: str) -> None:
    assert end_sentence(ended(method, reason)) == sentence


def test_what_was_refused_is_told_from_what_it_had_to_be_worth() -> None:
    assert end_sentence(ended("qrag", "threshold", 0.498)) == "Nothing left is worth 0.500: best Q is 0.498."


def test_a_run_that_took_every_chunk_says_so() -> None:
    whole = ended("qrag", "budget")
    alone = replace(whole, started=replace(whole.started, n_chunks=1))
    assert end_sentence(alone) == "Every chunk is chosen; smaller ones would tell more apart."


def test_a_question_of_nothing_to_search_for_says_so() -> None:
    whole = ended("bm25", "exhausted")
    assert end_sentence(replace(whole, steps=())) == "No chunk shares a word with the question."
    nothing = replace(whole, started=replace(whole.started, query="Is it the ?"), steps=())
    assert end_sentence(nothing).startswith("The question holds no word to search for")


def test_a_run_without_its_numbers_or_its_end_says_what_is_known() -> None:
    whole = ended("qrag", "threshold", None)
    assert end_sentence(whole) == "Stopped by its threshold."
    assert end_sentence(Trace(whole.started, whole.steps)) == ""
    assert review_sentence(whole) == "Review: chunk 1 taken back, worth less than 0.30 beside the others."
