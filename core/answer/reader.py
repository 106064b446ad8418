"""The extractive reader: it points at the span that answers.

Every window of a question competes in one distribution. A span's odds are those against its own window's
"none", so "no answer" has the odds 1 once for all windows, and more for many where the reader's record says
so; places with the same words share their probability. The best answer is given where its calibrated
confidence is enough for a guess, and none otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from core.answer.agreement import agreement
from core.answer.borders import whole
from core.answer.checkpoint import LARGE, SMALL, fingerprint_of, load_network, read_reader_spec, shipped
from core.answer.confidence import confidence
from core.answer.network import CLASSES, NONE, Logits
from core.answer.protocol import Answer, Span, State
from core.answer.windows import NOWHERE, Window, read_windows, without_halves
from core.base.metrics import plain_answer, word_f1
from core.encode.encoder import fast_dtype, find_device
from core.encode.forward import batches_by_length
from core.encode.in_use import InUse
from core.encode.traced import TracedLater
from core.encode.turns import urgent

_BATCH_TOKENS = {"cpu": 4_096, "cuda": 65_536}
"""Padded tokens a batch."""
_BEST_SPANS = 20
"""Spans of a window that are looked at; the rest only counts against them."""
_RANK_POWER = -0.75
"""How the chance of a window falls with the rank of its best passage; docs/answers.md has others."""
_LAST_RANK = 7
"""From this rank on, passages cost the same."""
_MOST_COMPARED = 20
"""Answers of a question that are compared with each other, the likeliest."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One answer that a window gives."""

    text: str
    log_odds: float
    """Against "none" of its window."""
    span: Span | None


@dataclass(frozen=True)
class Reading:
    """What a reader makes of a question before it decides."""

    answers: tuple[tuple[Candidate, float], ...]
    """The best wording of each answer with the log-odds of all its places, falling."""
    total: float
    """Log-odds of all answers together, those beyond the best included."""
    ranks: tuple[int, ...] = ()
    """Of each passage among what was found; nothing where they have no order."""

    @property
    def likeliest(self) -> Span | None:
        """The likeliest answer that is a span; None without one."""
        return next((candidate.span for candidate, _ in self.answers if candidate.span is not None), None)

    def nobody(self, bias: float) -> float:
        """The probability of "no answer". `bias` is added to its log-odds, which are 0."""
        return float(np.exp(bias - np.logaddexp(self.total, bias)))

    def best(self, bias: float) -> tuple[Candidate, float]:
        """The answer that is expected to share most words (F1) with the right one, and what is expected of
        it, 0 to 1; an empty one where nothing was read. `bias`: as in `nobody`.
        """
        if not self.answers:
            return Candidate("", -np.inf, None), 0.0
        everything = float(np.logaddexp(self.total, bias))
        answers = self.answers[:_MOST_COMPARED]
        probabilities = np.exp([log_odds - everything for _, log_odds in answers])
        expected = self._shared_words @ probabilities
        best = int(expected.argmax())
        return answers[best][0], float(expected[best])

    def certainty(self, best: Candidate, expected: float, rank_cost: float) -> float:
        """What is expected of an answer, less for each passage that was found before its own: where the
        first ones hold it, retrieval and reader agree.
        """
        rank = min(self.ranks[best.span.passage], _LAST_RANK) if best.span and self.ranks else 0
        odds = expected / max(1.0 - expected, 1e-9) * np.exp(-rank_cost * rank)
        return float(odds / (1.0 + odds))

    @cached_property
    def _shared_words(self) -> np.ndarray:
        """(N, N) F1 of every two of the likeliest answers; whoever tunes asks for the best at many biases."""
        words = [plain_answer(candidate.text).split() for candidate, _ in self.answers[:_MOST_COMPARED]]
        return np.array([[word_f1(one, other) for other in words] for one in words])


class ExtractiveReader:
    """A trained reader on one device; a `Reader`."""

    def __init__(self, folder: Path, device: str | None = None) -> None:
        """Raises BadCheckpoint, and BadRequest for a device that isn't there."""
        self.spec = read_reader_spec(folder)
        self.name = self.spec.name
        self.fingerprint = fingerprint_of(folder, self.spec)
        """Hash over settings and weights."""
        self.device = find_device(device)
        network, self.tokenizer = load_network(folder, self.spec)
        self._network = network.to(self.device)
        self._network.encoder.to(fast_dtype(self.device))
        n_inputs = 3 if network.reads_segments else 2
        network.hidden_states = TracedLater(network.hidden_states, network.encoder, n_inputs)

    def read(self, question: str, passages: Sequence[str]) -> Answer:
        return self.read_many([question], [passages])[0]

    def read_many(
        self,
        questions: Sequence[str],
        passages: Sequence[Sequence[str]],
        ranks: Sequence[Sequence[int]] = (),
    ) -> list[Answer]:
        return [self.decide(reading) for reading in self.readings(questions, passages, ranks)]

    def support(self, statement: str, passage: str) -> float:
        """See `Reader` and `agreement`."""
        return agreement(statement, passage)

    def decide(self, reading: Reading) -> Answer:
        """The answer that a reading comes to."""
        if not reading.answers:
            return Answer("", 0.0)
        spec, nobody = self.spec, reading.nobody(self.spec.no_answer_bias)
        best, expected = reading.best(spec.no_answer_bias)
        sure = confidence(reading.certainty(best, expected, spec.rank_cost), spec.confidence)
        likeliest = best.span or reading.likeliest
        if sure >= spec.least_guess:
            state: State = "answer" if sure >= spec.least_confidence else "guess"
            return Answer(best.text, sure, best.span, state, likeliest)
        if nobody >= expected:
            return Answer("", confidence(nobody, spec.no_answer_confidence), likeliest=likeliest)
        return Answer(best.text, sure, best.span, "unsure", likeliest)

    def readings(
        self,
        questions: Sequence[str],
        passages: Sequence[Sequence[str]],
        ranks: Sequence[Sequence[int]] = (),
    ) -> list[Reading]:
        """What the reader thinks of each question, all windows in common batches. `ranks` as in `Reader`."""
        windows = [
            read_windows(self.tokenizer, question, texts, self.spec.window)
            for question, texts in zip(questions, passages, strict=True)
        ]
        rows = [window for several in windows for window in several]
        candidates = iter(self._candidates(rows))
        return [
            _pooled([next(candidates) for _ in several], self._log_weights(several, order), texts, order)
            if several
            else Reading((), -np.inf)
            for several, texts, order in zip(windows, passages, ranks or [()] * len(windows), strict=True)
        ]

    def _log_weights(self, windows: Sequence[Window], ranks: Sequence[int]) -> np.ndarray:
        """(W,) log of what the odds of each window count: the chance that it is the one to answer from, less
        what "no answer" gains by so many windows. The chance falls with the rank of the best passage in it,
        and is the same for all where passages have no order.
        """
        read = [set(window.passages.tolist()) - {NOWHERE} for window in windows]
        best = [min(ranks[passage] for passage in passages) if ranks else 0 for passages in read]
        chances = (1.0 + np.array(best)) ** _RANK_POWER
        gain = self.spec.no_answer_growth * np.log(len(windows))
        log_weights: np.ndarray = np.log(chances / chances.sum()) - gain
        return log_weights

    def _candidates(self, rows: Sequence[Window]) -> list[_Scored]:
        """What each window says, in order."""
        if not rows:
            return []
        scored: dict[int, _Scored] = {}
        for batch in batches_by_length([len(row.ids) for row in rows], _BATCH_TOKENS[self.device.type]):
            with urgent(), torch.inference_mode():
                logits = self._network([rows[i] for i in batch])
            scored.update(zip(batch, _scored([rows[i] for i in batch], logits), strict=True))
        return [scored[i] for i in range(len(rows))]


@dataclass(frozen=True, slots=True)
class _Scored:
    """A window's best answers, spans without their texts."""

    best: tuple[Candidate, ...]
    total: float
    """Log of the odds of all answers together."""


def _scored(windows: Sequence[Window], logits: Logits) -> Iterator[_Scored]:
    spans, longest = logits.spans.flatten(1), logits.spans.shape[2]
    totals = torch.cat([spans, logits.classes[:, NONE + 1 :]], dim=1).logsumexp(1).tolist()
    values, places = spans.topk(min(_BEST_SPANS, spans.shape[1]), dim=1)
    for row, (window, classes) in enumerate(zip(windows, logits.classes.tolist(), strict=True)):
        none = classes[NONE]
        best = [
            Candidate(CLASSES[number], classes[number] - none, None)
            for number in range(NONE + 1, len(CLASSES))
        ]
        for value, place in zip(values[row].tolist(), places[row].tolist(), strict=True):
            first, more = divmod(place, longest)
            if np.isfinite(value):
                at = (window.passages[first], window.starts[first], window.ends[first + more])
                best.append(Candidate("", value - none, Span(*map(int, at))))
        yield _Scored(tuple(best), totals[row] - none)


def _pooled(
    windows: Sequence[_Scored], log_weights: np.ndarray, passages: Sequence[str], ranks: Sequence[int]
) -> Reading:
    """One distribution over the answers of all windows of a question: the weighted sum of their odds."""
    groups: dict[str, list[Candidate]] = {}
    for window, weight in zip(windows, log_weights.tolist(), strict=True):
        for one in window.best:
            text, span = one.text, one.span
            if span is not None:
                passage = passages[span.passage]
                place = whole(passage, span.start, span.end)
                if place is None:
                    continue
                text, span = without_halves(passage[slice(*place)]), Span(span.passage, *place)
            group = groups.setdefault(plain_answer(text) or text, [])
            group.append(Candidate(text, one.log_odds + weight, span))
    answers = []
    for group in groups.values():
        total = float(np.logaddexp.reduce([one.log_odds for one in group]))
        answers.append((max(group, key=lambda one: one.log_odds), total))
    falling = tuple(sorted(answers, key=lambda answer: -answer[1]))
    all_of_them = float(np.logaddexp.reduce([window.total for window in windows] + log_weights))
    return Reading(falling, all_of_them, tuple(ranks))


readers_in_use = InUse(lambda folder, device: ExtractiveReader(folder, str(device)))


def load_reader(folder: Path | None = None, device: str | None = None) -> ExtractiveReader:
    """The reader that ships, or the one in a folder; the one in use where there is one.

    Raises BadCheckpoint, and BadRequest for a device that isn't there.
    """
    return readers_in_use.get(folder or shipped(), find_device(device))


def reader_named(name: str, device: str | None = None) -> ExtractiveReader:
    """The reader of that name among those that ship, else the one that answers. Raises as `load_reader`."""
    named = (folder for folder in (SMALL, LARGE) if read_reader_spec(folder).name == name)
    return load_reader(next(named, None), device)
