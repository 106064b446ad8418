"""What a reader promises whatever it has learned."""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from random import Random
from typing import Any

import pytest

from core.answer.checkpoint import AS_IT_IS, read_reader_spec, write_reader_spec
from core.answer.protocol import Answer, Span
from core.answer.reader import Candidate, ExtractiveReader, Reading
from core.answer.windows import read_windows
from tests.core.answer.conftest import NAMES, NOISE, PLACES, TrainedReader, WhereCourse


def asked(n: int) -> tuple[list[str], list[tuple[str, ...]]]:
    lessons = WhereCourse().draw(Random("read"), n)
    return [lesson.question for lesson in lessons], [lesson.passages for lesson in lessons]


def with_spec(trained: TrainedReader, folder: Path, **changes: Any) -> ExtractiveReader:
    copy = shutil.copytree(trained.folder, folder / "careful")
    write_reader_spec(copy, read_reader_spec(copy).model_copy(update=changes))
    return ExtractiveReader(copy, "cpu")


def test_answers_are_exact_slices_alone_and_in_a_batch(trained: TrainedReader) -> None:
    questions, passages = asked(40)
    passages[3] = (*passages[3], *NOISE)
    answers = trained.reader.read_many(questions, passages)
    assert sum(answer.span is not None for answer in answers) > 10
    for answer, told in zip(answers, passages, strict=True):
        assert 0 <= answer.confidence <= 1
        if (span := answer.span) is not None:
            assert told[span.passage][span.start : span.end] == answer.text != ""
    for question, told, answer in list(zip(questions, passages, answers, strict=True))[:12]:
        alone = trained.reader.read(question, told)
        assert (alone.text, alone.span) == (answer.text, answer.span)
        assert alone.confidence == pytest.approx(answer.confidence, abs=0.05)  # bfloat16 rounds by batch


def test_no_passages_no_answer_and_no_certainty(trained: TrainedReader) -> None:
    assert trained.reader.read_many([], []) == []
    for passages in ([], [""], ["  ", "\n"]):
        assert trained.reader.read("Where is mary?", passages) == Answer("", 0.0)


def test_the_evidence_may_lie_behind_many_windows(trained: TrainedReader) -> None:
    fact = f"{NAMES[0]} went to the {PLACES[0]}."
    passages = [*NOISE * 6, fact, *NOISE * 6]
    assert len(read_windows(trained.reader.tokenizer, "Where?", passages, trained.reader.spec.window)) > 10
    [reading] = trained.reader.readings([f"Where is {NAMES[0]}?"], [passages])
    assert PLACES[0] in {candidate.text for candidate, _ in reading.answers}
    assert sum(math.exp(log_odds) for _, log_odds in reading.answers) <= math.exp(reading.total) * 1.001


def test_windows_share_one_chance_and_what_was_found_first_has_more_of_it(trained: TrainedReader) -> None:
    question, fact = f"Where is {NAMES[0]}?", f"{NAMES[0]} went to the {PLACES[0]}. "
    tokenizer, window = trained.reader.tokenizer, trained.reader.spec.window
    noise = "the " * (window // 2)
    with_fact, without = fact + noise, noise
    assert len(read_windows(tokenizer, question, [with_fact, without], window)) == 2
    alone, twice, mixed, first, second = trained.reader.readings(
        [question] * 5,
        [[with_fact], [with_fact] * 2, *[[with_fact, without]] * 3],
        [[], [], [], [0, 1], [1, 0]],
    )
    assert twice.total == pytest.approx(alone.total, abs=0.05)
    assert second.total < mixed.total < first.total < alone.total


def test_no_answer_gains_by_every_further_window(trained: TrainedReader, tmp_path: Path) -> None:
    question, noise = f"Where is {NAMES[0]}?", "the " * (trained.reader.spec.window // 2)
    fact = f"{NAMES[0]} went to the {PLACES[0]}. {noise}"
    told = [[fact], [fact] * 4]
    as_it_was = trained.reader.readings([question] * 2, told)
    alone, many = with_spec(trained, tmp_path, no_answer_growth=0.5).readings([question] * 2, told)
    assert alone.total == pytest.approx(as_it_was[0].total, abs=0.05)
    assert many.total == pytest.approx(as_it_was[1].total - math.log(2), abs=0.05)
    assert many.answers[0][1] == pytest.approx(as_it_was[1].answers[0][1] - math.log(2), abs=0.05)


def test_hostile_text(trained: TrainedReader) -> None:
    for text in ("\ud800 mary \udfff", "\x00\x07", "word" * 50_000):
        answer = trained.reader.read(text, [text, "mary went to the garden.", ""])
        assert 0 <= answer.confidence <= 1
        answer.text.encode()
        assert answer.span is None or answer.span.passage in (0, 1)
        assert 0 <= trained.reader.support(text, text) <= 1


def test_less_is_expected_of_an_answer_the_likelier_there_is_none() -> None:
    reading = Reading(((Candidate("garden", 1.0, None), 1.0),), 1.2)
    expected = [reading.best(bias)[1] for bias in (-2.0, -1.0, 0.0, 2.0)]
    assert expected == sorted(expected, reverse=True)
    assert reading.nobody(2.0) > expected[-1]
    assert reading.nobody(-2.0) < expected[0]


def test_an_answer_of_what_was_found_late_is_less_certain() -> None:
    candidate = Candidate("garden", 1.0, Span(1, 0, 6))
    first, later = (Reading(((candidate, 1.0),), 1.2, ranks) for ranks in ((1, 0), (0, 1)))
    assert first.certainty(candidate, 0.6, 0.3) == pytest.approx(0.6)
    assert later.certainty(candidate, 0.6, 0.3) < 0.6
    assert Reading(((candidate, 1.0),), 1.2).certainty(candidate, 0.6, 0.3) == pytest.approx(0.6)


def test_confidence_parts_answers_guesses_and_what_is_absent(trained: TrainedReader, tmp_path: Path) -> None:
    questions, passages = asked(20)
    own: dict[str, Any] = {"confidence": AS_IT_IS, "least_guess": 0.0}
    reader = with_spec(trained, tmp_path / "a", **own)
    sure = sorted(answer.confidence for answer in reader.read_many(questions, passages))
    own |= {"least_confidence": sure[-3], "least_guess": sure[3]}
    answers = with_spec(trained, tmp_path / "b", **own).read_many(questions, passages)
    assert {answer.state for answer in answers} == {"answer", "guess", "absent"}
    for answer in answers:
        if answer.state != "absent":
            assert (answer.state == "answer") == (answer.confidence >= own["least_confidence"])
            assert answer.text
            assert answer.span in (None, answer.likeliest)
        assert answer.likeliest is not None


def test_nothing_is_said_to_be_missing_while_an_answer_is_likelier(
    trained: TrainedReader, tmp_path: Path
) -> None:
    """However unsure the reader is of its words."""
    reader = with_spec(trained, tmp_path, confidence=AS_IT_IS, least_guess=0.9, least_confidence=0.95)
    several = tuple((Candidate(text, 1.0, Span(0, 0, 1)), 1.0) for text in ("garden", "mill", "barn"))
    likelier = reader.decide(Reading(several, math.log(3) + 1))
    assert (likelier.state, likelier.text) == ("unsure", "garden")
    rather_none = reader.decide(Reading(tuple((one, -3.0) for one, _ in several), math.log(3) - 3))
    assert (rather_none.state, rather_none.text) == ("absent", "")


def test_wordings_that_share_words_stand_by_each_other() -> None:
    """The likeliest single wording is not the one that is expected to share most words with
    the right answer.
    """
    wordings = {"Bo": -0.1, "garden": -0.4, "old garden": -0.45, "old garden gate": -0.5}
    candidates = tuple((Candidate(text, value, Span(0, 0, 1)), value) for text, value in wordings.items())
    total = math.log(sum(math.exp(value) for value in wordings.values()))
    best, expected = Reading(candidates, total).best(-1.0)
    assert best.text == "old garden"
    assert 0 < expected < 1


def test_spans_that_become_whole_share_their_probability(trained: TrainedReader) -> None:
    passages = ["mary-ann went to the (old garden)."]
    [reading] = trained.reader.readings(["Where is mary?"], [passages])
    texts = [candidate.text for candidate, _ in reading.answers if candidate.span is not None]
    assert texts
    assert all(text.count("(") == text.count(")") for text in texts)
    assert not any(text == "mary" or text.startswith("ann") for text in texts)
