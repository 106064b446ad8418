"""A replayed run beside the logged one, as far as it got."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from core.base.events import Trace
from core.methods.sparc.trace import SparcBranch, SparcTrace

MAX_Q_DIFFERENCE = 1e-4
"""Largest |dQ| at which a replay from the same vectors still counts as the same."""


@dataclass(frozen=True)
class ReplayReport:
    """What a replay showed."""

    same_choices: bool
    """Same chunks in the same order, and the same end."""
    largest_difference: float | None
    """Largest |dQ| over all chunks of all looks that both traces hold; None when they hold none in common."""
    n_compared: int
    first_difference: str | None

    @property
    def holds(self) -> bool:
        """The verdict: same choices, Q compared, and no |dQ| above 1e-4."""
        largest = self.largest_difference
        return self.same_choices and largest is not None and largest <= MAX_Q_DIFFERENCE

    @property
    def summary(self) -> str:
        """One sentence."""
        if self.largest_difference is None:
            measured = "no Q-values could be compared"
        else:
            measured = f"largest |dQ| {self.largest_difference:.2g} over {self.n_compared:,} values"
        choices = "same choices" if self.same_choices else "different choices"
        return f"{choices}; {measured}" + (f"; {self.first_difference}" if self.first_difference else "")


def compare_traces(logged: Trace, fresh: Trace) -> ReplayReport:
    """Compare choices, the end, and the Q-values of all chunks at every look both traces hold."""
    looks = list(_looks(logged, fresh))
    n_compared = sum(old.size for _, old, new in looks if old.shape == new.shape)
    differences = [(look, *_difference(old, new)) for look, old, new in looks]
    largest_difference = max((largest for _, largest, _ in differences), default=None)
    of_q = [(look, words) for look, largest, words in differences if largest > MAX_Q_DIFFERENCE]
    of_choice = [*_different_choices(logged, fresh)]
    firsts = sorted([*of_q[:1], *of_choice[:1]], key=lambda first: first[0])
    return ReplayReport(not of_choice, largest_difference, n_compared, firsts[0][1] if firsts else None)


def compare_sparc(logged: SparcTrace, fresh: SparcTrace) -> ReplayReport:
    """Compare queries, chunks found, answers and verdicts of all branches, the branch that was chosen, and
    the end; scores of the chunks that both found.
    """
    differences = [
        difference
        for old_round, new_round in zip(logged.rounds, fresh.rounds, strict=False)
        for old, new in zip(old_round.branches, new_round.branches, strict=False)
        for difference in _score_differences(old, new)
    ]
    different = next(_sparc_differences(logged, fresh), None)
    return ReplayReport(different is None, max(differences, default=None), len(differences), different)


def _sparc_differences(logged: SparcTrace, fresh: SparcTrace) -> Iterator[str]:
    """What differs, in words, the first first."""
    for old_round, new_round in zip(logged.rounds, fresh.rounds, strict=False):
        n, n_branches = old_round.number, len(new_round.branches)
        for old, new in zip(old_round.branches, new_round.branches, strict=False):
            yield from _branch_differences(n, old, new)
        if len(old_round.branches) != n_branches:
            yield f"round {n} has {n_branches} branches instead of {len(old_round.branches)}"
        elif old_round.merged and new_round.merged:
            before, after = old_round.merged.best_branch, new_round.merged.best_branch
            if before != after:
                yield f"round {n} chose branch {after} instead of {before}"
    if logged.stopped is not None and len(logged.rounds) != len(fresh.rounds):
        yield f"the run took {len(fresh.rounds)} rounds instead of {len(logged.rounds)}"
    elif logged.stopped is not None and logged.answer != fresh.answer:
        yield f"the answer is {fresh.answer!r} instead of {logged.answer!r}"


def _branch_differences(number: int, old: SparcBranch, new: SparcBranch) -> Iterator[str]:
    """Between a branch and the same one made again, as far as the logged one went."""
    for did, before, after in (
        ("searched for", old.query.query, new.query.query),
        ("searched with", old.query.strategy, new.query.strategy),
        ("retrieved chunks", _chunk_ids(old), _chunk_ids(new)),
        ("answered", old.answered and old.answered.answer, new.answered and new.answered.answer),
        ("judged", old.judged and old.judged.verdict, new.judged and new.judged.verdict),
    ):
        if before is not None and before != after:
            yield f"branch {number}.{old.number} {did} {after!r} instead of {before!r}"


def _chunk_ids(branch: SparcBranch) -> tuple[int, ...] | None:
    return None if branch.retrieved is None else tuple(one.chunk_id for one in branch.retrieved.found)


def _score_differences(old: SparcBranch, new: SparcBranch) -> list[float]:
    if old.retrieved is None or new.retrieved is None:
        return []
    scores = {one.chunk_id: one.score for one in new.retrieved.found}
    return [abs(one.score - scores[one.chunk_id]) for one in old.retrieved.found if one.chunk_id in scores]


def _different_choices(logged: Trace, fresh: Trace) -> Iterator[tuple[int, str]]:
    """(look, words) of choices that differ, the first first, the decision to stop being one."""
    steps = fresh.steps if logged.stopped else fresh.steps[: len(logged.steps)]
    for old, new in zip(logged.steps, steps, strict=False):
        if old.chunk_id != new.chunk_id:
            yield old.step, f"step {old.step} chose chunk {new.chunk_id} instead of {old.chunk_id}"
    n, n_before, end, end_before = len(steps), len(logged.steps), fresh.stopped, logged.stopped
    if n != n_before:
        yield min(n, n_before) + 1, f"the run took {n} steps instead of {n_before}"
    if end_before and end and end_before.reason != end.reason:
        yield n + 1, f"the run stopped by {end.reason} instead of {end_before.reason}"
    if end_before and end and end_before.taken_back != end.taken_back:
        back, back_before = _ids(end.taken_back), _ids(end_before.taken_back)
        yield n + 1, f"the review took back {back} instead of {back_before}"


def _ids(chunk_ids: Sequence[int]) -> str:
    return ", ".join(f"chunk {chunk_id}" for chunk_id in chunk_ids) or "nothing"


def _looks(logged: Trace, fresh: Trace) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """(look, Q then, Q now) of the looks that both have."""
    for look in range(1, min(logged.n_looks, fresh.n_looks) + 1):
        old, new = logged.scores_at(look), fresh.scores_at(look)
        if old is not None and new is not None:
            yield look, old.q_values, new.q_values


def _difference(old: np.ndarray, new: np.ndarray) -> tuple[float, str]:
    """Largest |dQ| of one look, infinite where a value is missing on one side, and where it is."""
    if old.shape != new.shape:
        return float("inf"), f"there are {new.size} chunks instead of {old.size}"
    if not old.size:
        return 0.0, ""
    before, after = old.astype(np.float64), new.astype(np.float64)
    with np.errstate(invalid="ignore"):
        gaps = np.where((before == after) | (np.isnan(before) & np.isnan(after)), 0.0, np.abs(after - before))
    gaps = np.nan_to_num(gaps, nan=np.inf)
    chunk_id = int(gaps.argmax())
    words = f"Q of chunk {chunk_id} is {after[chunk_id]:.6g} instead of {before[chunk_id]:.6g}"
    return float(gaps[chunk_id]), words
