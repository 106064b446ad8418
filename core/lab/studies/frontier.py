"""What evidence of every size costs and brings.

At equal tokens, RES-RAG is compared with a mixture of two settings of another method, whose mean tokens lie
around those of RES-RAG: a question's score is mixed from its scores under the two, with the same shares for
all questions. The same rows tell of several readers or language models that answer from the same sets
(section 4.4), and of rewards left out or changed (table 2, section 4.3): policies are then named
VARIANT-SEED, and a question's score is its mean over the seeds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from pydantic.dataclasses import dataclass as checked_dataclass

from core.base.config import RESRAG
from core.base.errors import BadRequest
from core.base.rows import CHECKED, grouped, read_lines
from core.base.statistics import PairedTest, paired_test
from core.lab.studies.tables import check_groups, lines_of
from core.methods.sparc.retriever import SPARC
from core.views.charts import Cell, Chart, Report, Table, mean_with_interval, with_p


@checked_dataclass(frozen=True, slots=True, kw_only=True, config=CHECKED)
class FrontierRow:
    """One question through one method at every setting; tuples after `settings` have a value for each."""

    task: str
    id: str
    method: str
    policy: str
    """Name of the RES-RAG policy or Q-RAG agent, width of SPARC; empty for other methods."""
    reader: str
    """Or the language model that answered."""
    n_documents: int
    n_chunks: int
    settings: tuple[float, ...]
    """Largest number of chunks; least cosine or Q of a threshold; depth of SPARC."""
    tokens: tuple[int, ...]
    """Of the evidence, counted by the encoder's tokenizer."""
    chunks: tuple[int, ...]
    f1: tuple[float, ...]
    """Of the answer read from it; an empty one has 0."""
    em: tuple[float, ...]
    recall: tuple[float, ...]
    support_f1: tuple[float, ...]


def read_frontier(path: Path) -> list[FrontierRow]:
    """The rows of a file, gzipped if its name ends in .gz. Raises BadRequest, naming the wrong line."""
    return read_lines(path, FrontierRow, "row of a frontier", "study frontier --rows")


def group_frontier(rows: Sequence[FrontierRow]) -> list[tuple[FrontierRow, ...]]:
    """Rows of one task, method and policy, in order of their first rows."""
    return grouped(rows, lambda row: (row.task, row.method, row.policy, row.reader))


Group = Sequence[FrontierRow]
Means = tuple[float, ...]


def values_of(group: Group, column: str) -> np.ndarray:
    """(settings, questions)."""
    return np.array([getattr(row, column) for row in group], dtype=np.float64).T.copy()


def means_of(group: Group, column: str) -> Means:
    """A mean a setting."""
    return tuple(values_of(group, column).mean(axis=1).tolist())


@dataclass(frozen=True)
class Curve:
    """Means of one method over the questions of one task, a value a setting in each tuple."""

    task: str
    method: str
    policy: str
    reader: str
    n: int
    settings: Means
    tokens: Means
    f1: Means
    recall: Means
    f1_half: Means = ()
    """Half the width of the 95 % interval of each mean."""
    recall_half: Means = ()


def curves(rows: Group) -> list[Curve]:
    """A curve a task and method, in order of their first rows."""
    made = []
    for group in group_frontier(rows):
        first, means = group[0], [means_of(group, column) for column in ("tokens", "f1", "recall")]
        about = (first.task, first.method, first.policy, first.reader, len(group), first.settings)
        made.append(Curve(*about, *means, *(_halves(group, column) for column in ("f1", "recall"))))
    return made


_SIZED = (
    *("questions", "method", "setting", "chunks", "most chunks", "tokens", "most tokens"),
    *("answer F1", "EM", "support recall", "support F1"),
)
_AGAINST = (
    *("questions", "policy", "budget", "tokens", "against", "its setting"),
    *("answer F1, RES-RAG's minus its", "p", "support recall, RES-RAG's minus its"),
)


def frontier(rows: Group) -> Report:
    """All tables and charts. Raises BadRequest for no rows."""
    groups = group_frontier(rows)
    check_groups(groups, "evaluate at least one question")
    ours, theirs = ([g for g in groups if (g[0].method == RESRAG) is own] for own in (True, False))
    pairs = [(own, other) for own in ours for other in theirs if other[0].task == own[0].task]
    tests = tuple(line for own, other in pairs for line in _against(own, other))
    sized = tuple(line for group in groups for line in _sized(group))
    tables = (
        Table("Evidence and what it brings", _SIZED, sized),
        Table("At equal evidence tokens", _AGAINST, tests),
    )
    return Report("frontier", tables, tuple(_charts(rows)), tuple(dict.fromkeys(map(_conditions, groups))))


def _name(of: FrontierRow | Curve) -> str:
    """A method, with its policy, agent or width."""
    return f"{'RES-RAG' if of.method == RESRAG else of.method} {of.policy}".strip()


def _conditions(group: Group) -> str:
    documents, chunks = (np.mean([getattr(row, of) for row in group]) for of in ("n_documents", "n_chunks"))
    return (
        f"{group[0].task}: n = {len(group)} questions over {documents:.0f} documents and {chunks:,.0f} chunks"
        f" each, answered by {group[0].reader}."
    )


def _sized(group: Group) -> Iterator[tuple[Cell, ...]]:
    """A line a setting."""
    chunks, tokens, f1 = (values_of(group, column) for column in ("chunks", "tokens", "f1"))
    quality = zip(*(means_of(group, column) for column in ("em", "recall", "support_f1")), strict=True)
    for place, (setting, rest) in enumerate(zip(group[0].settings, quality, strict=True)):
        sizes = (f"{chunks[place].mean():.1f}", int(chunks[place].max()))
        costs = (f"{tokens[place].mean():.0f}", int(tokens[place].max()))
        named = (group[0].task, _name(group[0]), f"{setting:g}")
        yield (*named, *sizes, *costs, mean_with_interval(f1[place].tolist()), *rest)


def _halves(group: Group, column: str) -> Means:
    """Half the width of the 95 % interval of each mean."""
    values = values_of(group, column)
    if len(group) < 2:
        return (0.0,) * len(values)
    return tuple((1.96 * values.std(axis=1, ddof=1) / len(group) ** 0.5).tolist())


def _against(group: Group, other: Group) -> Iterator[tuple[Cell, ...]]:
    """RES-RAG at each budget against the mixture of another method's settings that spends as much."""
    theirs = {row.id: row for row in other}
    common = [row for row in group if row.id in theirs]
    pairs = [
        (values_of(common, column), values_of([theirs[row.id] for row in common], column))
        for column in ("f1", "recall")
    ]
    costs, spent = means_of(other, "tokens"), 0.0
    for place, tokens in enumerate(means_of(group, "tokens")):
        mix = mixture(costs, tokens)
        if mix is None or tokens <= spent:
            continue
        spent, (low, high, share) = tokens, mix
        answer, recall = (
            paired_test(own[place].tolist(), ((1 - share) * its[low] + share * its[high]).tolist())
            for own, its in pairs
        )
        between = " to ".join(dict.fromkeys(f"{other[0].settings[at]:g}" for at in (low, high)))
        yield (
            *(group[0].task, group[0].policy, f"{group[0].settings[place]:g}", f"{tokens:.0f}"),
            *(_name(other[0]), between, _difference(answer)),
            None if answer is None else f"{answer.p_value:.2g}",
            _difference(recall),
        )


def _difference(test: PairedTest | None) -> str | None:
    if test is None:
        return None
    ends = "" if test.interval is None else f" [{test.interval[0]:+.3f}, {test.interval[1]:+.3f}]"
    return f"{test.difference:+.3f}{ends}"


def mixture(costs: Sequence[float], wanted: float) -> tuple[int, int, float] | None:
    """(cheaper setting, dearer setting, its share) that cost as much as wanted; None where all cost more, or
    less.

    >>> mixture([10.0, 20.0, 40.0], 25.0), mixture([10.0, 20.0], 21.0)
    ((1, 2, 0.25), None)
    """
    order = sorted(range(len(costs)), key=lambda at: costs[at])
    for low, high in pairwise(order):
        if costs[low] <= wanted <= costs[high] and costs[low] < costs[high]:
            return low, high, (wanted - costs[low]) / (costs[high] - costs[low])
    return None


def _charts(rows: Group) -> list[Chart]:
    drawn = curves(rows)
    charts = []
    for task in dict.fromkeys(curve.task for curve in drawn):
        for title, column in (("answer F1", "f1"), ("support recall", "recall")):
            points = (
                (_name(curve), x, y)
                for curve in drawn
                if curve.task == task
                for x, y in sorted(zip(curve.tokens, getattr(curve, column), strict=True))
            )
            charts.append(Chart(f"{task}: {title}", "evidence tokens", title, lines_of(points), log_x=True))
    return charts


def answering(rows: Group) -> Report:
    """Over the questions that all have answered. Raises BadRequest for one reader, or no common question."""
    readers = list(dict.fromkeys(row.reader for row in rows))
    asked = [{(row.task, row.id) for row in rows if row.reader == reader} for reader in readers]
    common = set.intersection(*asked) if asked else set()
    if len(readers) < 2 or not common:
        raise BadRequest(
            f"the rows have {len(readers)} answering and {len(common)} questions in common; join those of two"
            " or more runs of study frontier over the same questions"
        )
    kept = [row for row in rows if (row.task, row.id) in common and row.method != SPARC]
    reports = [frontier([row for row in kept if row.reader == reader]) for reader in readers]
    sized, leads = zip(*(report.tables for report in reports), strict=True)
    lead = "answer F1, RES-RAG's minus its"
    tables = (
        _beside(sized, readers, ("questions", "method", "setting", "tokens"), "answer F1"),
        _beside(leads, readers, ("questions", "policy", "budget", "against"), lead),
    )
    return Report("answering", tables, notes=tuple(note for report in reports for note in report.notes))


def _beside(tables: Sequence[Table], readers: Sequence[str], keys: Sequence[str], value: str) -> Table:
    """One column of several tables, side by side under who answers."""
    lines: dict[tuple[Cell, ...], dict[str, Cell]] = {}
    for reader, table in zip(readers, tables, strict=True):
        places = [table.columns.index(key) for key in keys]
        for row in table.rows:
            lines.setdefault(tuple(row[at] for at in places), {})[reader] = row[table.columns.index(value)]
    rows = tuple((*key, *map(cells.get, readers)) for key, cells in lines.items())
    return Table(f"{tables[0].title}: {value}", (*keys, *readers), rows)


WHOLE = "joint"
"""The variant that the others are compared with."""
_COLUMNS = (
    *("questions", "variant", "budget", "chunks", "tokens", "answer F1", "of each seed", "EM"),
    *("support recall", "support F1", "answer F1, minus the whole reward's"),
)


def set_ablations(rows: Group) -> Report:
    """A line a variant and budget, over the questions that all policies have. Raises BadRequest where a
    policy is named otherwise, or none has the whole reward.
    """
    variants: dict[str, dict[str, list[dict[str, FrontierRow]]]] = {}
    """By task and variant its seeds, each by question."""
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
        asked = {name: [[seed[key] for key in ids] for seed in seeds] for name, seeds in own.items()}
        whole = _over_seeds(asked[WHOLE], "f1")
        for place, budget in enumerate(asked[WHOLE][0][0].settings):
            for variant, seeds in asked.items():
                f1 = _over_seeds(seeds, "f1")[place].tolist()
                test = None if variant == WHOLE else paired_test(f1, whole[place].tolist())
                lines.append((task, variant, f"{budget:g}", *_means(seeds, place), with_p(test)))
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


def _over_seeds(seeds: Sequence[Group], column: str) -> np.ndarray:
    """(settings, questions) means over the seeds."""
    means: np.ndarray = np.mean([values_of(seed, column) for seed in seeds], axis=0)
    return means


def _means(seeds: Sequence[Group], place: int) -> tuple[Cell, ...]:
    """The columns from chunks to support F1."""
    names = ("chunks", "tokens", "f1", "em", "recall", "support_f1")
    chunks, tokens, f1, *rest = (float(_over_seeds(seeds, name)[place].mean()) for name in names)
    by_seed = ", ".join(f"{means_of(seed, 'f1')[place]:.3f}" for seed in seeds)
    return (f"{chunks:.2f}", f"{tokens:.0f}", f1, by_seed, *rest)
