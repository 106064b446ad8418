"""Rewards of RES-RAG left out or changed, over seeds.

RES-RAG table 2, section 4.3. Policies are named VARIANT-SEED. A question's score is its mean over the seeds;
every variant is tested against the whole reward, question by question.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.base.config import RESRAG
from core.base.errors import BadRequest
from core.base.statistics import mean, paired_test
from core.lab.evaluate.frontier import FrontierRow, group_frontier
from core.views.charts import Cell, Report, Table, with_p

WHOLE = "joint"
"""The variant that the others are compared with."""
_COLUMNS = (
    *("questions", "variant", "budget", "chunks", "tokens", "answer F1", "of each seed", "EM"),
    *("support recall", "support F1", "answer F1, minus the whole reward's"),
)


Rows = dict[str, FrontierRow]
"""By question."""


def set_ablations(rows: Sequence[FrontierRow]) -> Report:
    """One table, a line a variant and budget, over the questions that all policies have. Raises BadRequest
    where a policy is named otherwise, or none has the whole reward.
    """
    variants: dict[str, dict[str, list[Rows]]] = {}
    for group in group_frontier(rows):
        if group[0].method == RESRAG:
            of_task = variants.setdefault(group[0].task, {})
            of_task.setdefault(_variant(group[0].policy), []).append({row.id: row for row in group})
    if not variants:
        raise BadRequest("there are no rows of RES-RAG; name its policies with --policy")
    lines, notes = [], []
    for task, own in variants.items():
        if WHOLE not in own:
            raise BadRequest(f"no policy over {task} is named {WHOLE}-SEED; name those, too")
        ids = [key for key in own[WHOLE][0] if all(key in seed for seeds in own.values() for seed in seeds)]
        if not ids:
            raise BadRequest(f"no question of {task} has rows of all policies; make the rows anew")
        for place, budget in enumerate(own[WHOLE][0][ids[0]].settings):
            whole = _scores(own[WHOLE], ids, "f1", place)
            for variant, seeds in own.items():
                test = None if variant == WHOLE else paired_test(_scores(seeds, ids, "f1", place), whole)
                lines.append((task, variant, f"{budget:g}", *_means(seeds, ids, place), with_p(test)))
        notes.append(f"{task}: n = {len(ids)} questions, {len(own[WHOLE])} seeds of the whole reward.")
    return Report("set-ablations", (Table("Rewards", _COLUMNS, tuple(lines)),), notes=tuple(notes))


def check_policies(names: Sequence[str]) -> None:
    """Raises BadRequest for policies that could not be told apart, or without one of the whole reward."""
    if WHOLE not in {*map(_variant, names)}:
        raise BadRequest(f"no policy is named {WHOLE}-SEED; name policies with --policy, those among them")


def _variant(policy: str) -> str:
    name, _, seed = policy.rpartition("-")
    if not name or not seed.isdecimal():
        raise BadRequest(f"policy {policy!r} is not named VARIANT-SEED; train it again with --name {WHOLE}-0")
    return name


def _scores(seeds: Sequence[Rows], ids: Sequence[str], column: str, place: int) -> list[float]:
    """(questions,) means over the seeds."""
    return [mean(float(getattr(seed[key], column)[place]) for seed in seeds) or 0.0 for key in ids]


def _means(seeds: Sequence[Rows], ids: Sequence[str], place: int) -> tuple[Cell, ...]:
    """The columns from chunks to support F1."""
    chunks, tokens, f1, em, recall, support_f1 = (
        mean(_scores(seeds, ids, column, place))
        for column in ("chunks", "tokens", "f1", "em", "recall", "support_f1")
    )
    by_seed = ", ".join(f"{mean(_scores([seed], ids, 'f1', place)):.3f}" for seed in seeds)
    return (f"{chunks:.2f}", f"{tokens:.0f}", f1, by_seed, em, recall, support_f1)
