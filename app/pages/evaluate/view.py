"""Evaluations as trees of plain data, a function a panel."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence

from app.pages.widgets.notices import notice, progress_bar, time_left
from app.services.evaluations import LONG, Measured, Measuring, StopCurve, Stops
from core.base.metrics import fact_f1
from core.base.rows import EpisodeRow
from core.base.statistics import PairedTest
from core.lab.evaluate.outcomes import Failure, Stop, completed_at, failure_class, own_evidence, own_steps
from core.lab.evaluate.summary import Comparison, Summary
from core.lab.studies.tables import agent_name, conditions, task_name
from core.lab.tasks.example import Example
from core.methods.registry import facts_of
from core.runs.log import EvaluationEntry
from core.runs.log.transfer import disarmed
from core.views.draw.nodes import Node, act, h, link_to, sends, tip
from core.views.draw.tables import on_page, pager, table, table_row
from core.views.draw.words import counted, duration, shorten

MOST_EXPORTED = 2_000
"""Rows that go through the page as one file."""
TOKENS_A_SECOND = 4e5
"""At which a haystack is read and counted twice, on a machine with two cores."""

EMPTY = "None yet. Run one above, or with python -m core evaluate --log."
METRIC_WORDS = {
    "fact_f1": (
        "Fact F1",
        (
            "Harmonic mean of precision and recall of the chosen chunks, under the agent's own stop threshold"
            " (Q-RAG tables 4 and 5)"
        ),
    ),
    "fact_em": (
        "Fact EM",
        "Share of questions whose chosen chunks include all support (Q-RAG appendix H), own threshold",
    ),
    "fact_f1_reviewed": ("Fact F1, reviewed", "Fact F1 of what the agent's review left of its choices"),
    "fact_em_reviewed": (
        "Fact EM, reviewed",
        "Share of questions with all support in what the agent's review left",
    ),
    "exact": ("Exact", "Share of questions whose choices are the support and nothing else, own threshold"),
    "exact_reviewed": ("Exact, reviewed", "The same of what the agent's review left"),
    "fact_f1_oracle_stop": (
        "Fact F1, oracle stop",
        "Fact F1 when retrieval is cut as soon as all support is in, else at the budget (Q-RAG table 3)",
    ),
    "fact_f1_no_stop": ("Fact F1, no stop", "Fact F1 of all T chunks (Q-RAG table 2, where T is fixed)"),
    "fact_em_no_stop": ("Fact EM, no stop", "Share of questions with all support among all T chunks"),
    "fact_recall": ("Recall", "Share of the support that was chosen, own threshold"),
    "fact_precision": ("Precision", "Share of the chosen chunks that are support, own threshold"),
    "false_positive_rate": (
        "False positive rate",
        "Share of the other chunks that were chosen (Q-RAG appendix B)",
    ),
    "stopped_perfectly": (
        "Stopped perfectly",
        "Share of questions where the agent stopped just when all support was in",
    ),
    "stopped_early": (
        "Stopped early",
        "Share where it stopped before all support was in, though going on would have found it",
    ),
    "stopped_late": ("Stopped late", "Share where it went on after all support was in"),
    "never_complete": (
        "Never complete",
        "Share where the support is not all in even after T chunks; the paper leaves these out",
    ),
    "steps": ("Chunks chosen", "Mean length of an episode, own threshold"),
    "steps_to_completion": (
        "Steps to completion",
        "Mean step at which all support was in, where it ever was",
    ),
    "evidence_tokens": ("Evidence tokens", "Mean length of what was chosen, own threshold"),
    "evidence_tokens_reviewed": ("Evidence tokens, reviewed", "Mean length of what the agent's review left"),
    "milliseconds": ("Milliseconds", "Mean time of an episode, without embedding the chunks"),
    "answer_em": (
        "Answer EM",
        (
            "Share of questions that the reader answers right from the evidence; measured by the command"
            " evaluate"
        ),
    ),
    "answer_f1": (
        "Answer F1",
        "Words that the reader's answers share with the right ones; measured by the command evaluate",
    ),
}
"""Label and sentence of each metric, the most telling first."""
DIFFERENCE = "Mean difference over the questions that both answered, with its 95 % bootstrap interval"
P_VALUE = (
    "Two-sided sign-flip permutation test, question by question: how often chance alone would differ as much"
)
FAILURE_WORDS: dict[Failure, str] = {
    "wrong twin": (
        "All support was found, but a wrong chunk was chosen on the way, often one that reads like the right"
        " one"
    ),
    "stopped early": "The agent stopped, and the chunk that it would have taken next was support",
    "right chunk too late": (
        "Other chunks ranked before a support chunk until the agent stopped or the budget was used up"
    ),
    "taken back": "All support was found, but the review took some of it back",
    "complete and stopped late": "All support was found first, then more was chosen",
    "perfect": "Exactly the support was chosen",
}
"""Classes of episodes, failures first."""
_STOPS: dict[Stop, tuple[str, str]] = {
    "perfect": ("perfect stops", "stopped_perfectly"),
    "late": ("late stops", "stopped_late"),
    "early": ("early stops", "stopped_early"),
    "never": ("never complete", "never_complete"),
}
"""What each is called, and the metric that counts it."""


def number(label: str, value: str, sentence: str) -> Node:
    """A large number over its label, with its sentence."""
    return tip("div.qx-number", sentence, h("strong", value), h("span.qx-mut.qx-sm", label))


def _metric(name: str, value: str, after: str = "") -> Node:
    label, sentence = METRIC_WORDS[name]
    return number(f"{label}{after}", value, sentence)


def figures(first: Sequence[Node], every: Sequence[Node], n: int, *, opened: bool = False) -> list[Node]:
    """The `number`s that say most, then all `n` figures on demand."""
    more = h("details.qx-sm", {"open": opened}, h("summary", f"All {n} figures"), *every)
    return [h("div.qx-numbers", *first), more]


def heading(*takes: Node) -> Node:
    """Of the scores, with buttons that take them along."""
    return h("div.qx-row", h("h3", "Scores"), h("span.qx-grow"), *takes)


def measuring(now: Measuring) -> list[Node]:
    """Progress of an evaluation, and its means so far."""
    words = {
        "loading": f"{now.agent}: reading the task",
        "embedding": f"{now.agent}: embedding chunks",
        "retrieving": f"{now.agent}: asking questions",
    }[now.stage]
    how_far = f" · {now.done:,} of {now.total:,}{time_left(now.seconds_left)}" if now.total else "…"
    bar = progress_bar(words + how_far, words, now.done if now.total else None, now.total)
    means = [_metric(name, _short(name, value), " so far") for name, value in now.means]
    return [*bar, h("div.qx-numbers", *means)] if means else bar


def estimate(pace: float | None, n: int) -> list[Node]:
    """How long `n` questions will take, at `pace` seconds each."""
    words = "Not measured on this machine yet: try 10 questions to see how long one takes."
    if pace is not None:
        took = duration(pace) if pace >= 1 else f"{1000 * pace:,.0f} ms"
        words = f"A question took {took} the last time"
        words += f": about {duration(pace * n)} for {n:,}." if n else "."
    return [h("p.qx-mut.qx-sm", words)]


def evaluation_list(
    entries: Sequence[EvaluationEntry], scores: Mapping[str, Measured], first: str, second: str, page: int
) -> list[Node]:
    """A page of the log's evaluations; `scores` has Fact F1 of those on it."""
    if not entries:
        return [h("p.qx-empty", EMPTY)]
    head = (
        "show",
        "task",
        "agent",
        ("n", "Questions"),
        ("T", "Step budget: the most chunks of an episode"),
        ("stop below", "The agent's stop threshold when it was evaluated"),
        ("Fact F1", f"{METRIC_WORDS['fact_f1'][1]}, with its 95 % interval"),
        "part",
        "made",
    )
    shown = on_page(entries, page)
    rows = [_evaluation_row(entry, scores[entry.evaluation_id], first, second) for entry in shown]
    return [table(head, rows, "Evaluations"), *pager("evaluations-page", page, len(entries))]


def _evaluation_row(entry: EvaluationEntry, score: Measured, first: str, second: str) -> Node:
    config, key = entry.config, entry.evaluation_id
    threshold = config.get("stop_threshold")
    show = f"Show the evaluation of {entry.task} by {entry.checkpoint}"
    choose = h(
        "div.qx-choose",
        _toggle("first", key, "A", key == first, show),
        _toggle("second", key, "B", key == second, "Compare A with this one; press again to take it back"),
    )
    length = f" at {entry.length:,} tokens" if entry.length else ""
    cut = " (cancelled)" if config.get("cancelled") else ""
    cells: list[Node] = [
        choose,
        f"{entry.task}{length}",
        entry.checkpoint if facts_of(entry.method).trained else entry.method,
        f"{entry.n:,}{cut}",
        str(config.get("step_budget", "")),
        "never" if threshold is None else f"{threshold:.2f}",
        _around("fact_f1", *score),
        str(config.get("split", "")),
        f"{entry.created_at.astimezone():%Y-%m-%d %H:%M}",
    ]
    return table_row(*cells, on=key in (first, second))


def _toggle(action: str, key: str, label: str, pressed: bool, sentence: str) -> Node:
    kind, aria = "qx-btn" + ".qx-pressed" * pressed, f"{label}: {sentence}"
    return sends(kind, action, key, label, aria_pressed=pressed, aria_label=aria, title=sentence)


def score_heading(first: Sequence[EpisodeRow], second: Sequence[EpisodeRow] | None) -> list[Node]:
    """What is compared, the conditions without which the numbers mislead, and the rows to take along."""
    nodes = [heading(_export(first))]
    for letter, rows in (("A", first), ("B", second)):
        if rows:
            name = h("strong", f"{letter}  {task_name(rows[0])}, {agent_name(rows[0])}. ")
            nodes.append(h("p.qx-sm", name, h("span.qx-mut", conditions(rows))))
    return nodes


def _export(rows: Sequence[EpisodeRow]) -> Node:
    if len(rows) > MOST_EXPORTED:
        words = f"evaluate --rows on the command line writes all {len(rows):,} rows"
        return h("span.qx-mut.qx-sm", words)
    written = io.StringIO()
    sheet = csv.writer(written)
    sheet.writerow(["id", "outcome", "fact_f1", "support", "chosen", "evidence", "q_values", "milliseconds"])
    for row in rows:
        evidence = own_evidence(row)
        ids = (" ".join(map(str, chunks)) for chunks in (row.support, row.chosen, evidence))
        q_values = " ".join(f"{value:.4f}" for value in row.q_values)
        f1 = f"{fact_f1(evidence, row.support):.4f}"
        sheet.writerow([disarmed(row.id), failure_class(row), f1, *ids, q_values, f"{row.milliseconds:.1f}"])
    return act("download", written.getvalue(), "Rows as CSV", data_name="evaluation.csv")


def score_table(first: Summary, second: Summary | None, comparison: Comparison | None) -> list[Node]:
    """Means with 95 % intervals, and the paired test between two."""
    head: list[str | tuple[str, str]] = ["metric", ("A", "Mean, and its 95 % confidence interval")]
    if second is not None:
        head += [("B", "Mean, and its 95 % confidence interval"), ("A minus B", DIFFERENCE), ("p", P_VALUE)]
    rows = []
    for name in METRIC_WORDS:
        if first.metrics[name] is None and (second is None or second.metrics[name] is None):
            continue
        label, sentence = METRIC_WORDS[name]
        cells = [_with_interval(name, first)]
        if second is not None:
            test = comparison.tests.get(name) if comparison else None
            tested = ["", ""] if test is None else [_difference(test), f"{test.p_value:.3g}"]
            cells += [_with_interval(name, second), *tested]
        header = tip("th", sentence, label, scope="row")
        rows.append(h("tr", header, *(h("td", cell) for cell in cells)))
    every = [table(head, rows, "Scores")]
    nodes = figures(_first_figures(first, second), every, len(rows), opened=second is not None)
    if comparison is not None and comparison.n_left_out:
        left_out = counted(comparison.n_left_out, "question")
        words = (
            f"Left out of the test: {left_out} that only one of the two has. It rests on {comparison.n:,}."
        )
        nodes += notice(words, "info")
    return nodes


def _first_figures(first: Summary, second: Summary | None) -> list[Node]:
    """The three that say most: what was found, whether all of it was, and the answer or what it cost."""
    last = "evidence_tokens" if first.metrics["answer_f1"] is None else "answer_f1"
    values = {name: _with_interval(name, first) for name in ("fact_f1", "fact_em", last)}
    if second is not None:
        values = {name: f"A {value} · B {_with_interval(name, second)}" for name, value in values.items()}
    return [_metric(name, value) for name, value in values.items()]


def _short(name: str, value: float | None) -> str:
    if value is None:
        return "–"
    if name in ("evidence_tokens", "evidence_tokens_reviewed", "milliseconds"):
        return f"{value:,.0f}"
    if "steps" in name:
        return f"{value:.2f}"
    return f"{value:.3f}"


def _with_interval(name: str, summary: Summary) -> str:
    return _around(name, summary.metrics[name], summary.intervals[name])


def _around(name: str, value: float | None, ends: tuple[float, float] | None) -> str:
    """A mean with its interval."""
    if ends is None:
        return _short(name, value)
    return f"{_short(name, value)} [{_short(name, ends[0])}, {_short(name, ends[1])}]"


def _difference(test: PairedTest) -> str:
    around = "" if test.interval is None else f" [{test.interval[0]:+.3f}, {test.interval[1]:+.3f}]"
    return f"{test.difference:+.3f}{around}"


def stops(
    now: Stops, ends: Mapping[str, tuple[float, float] | None], curve: StopCurve, own: float | None
) -> list[Node]:
    """What the threshold that is looked at would do. `ends`: its intervals, see `stop_intervals`."""

    def share(name: Stop) -> str:
        around = ends[name]
        words = "" if around is None else f" [{100 * around[0]:.0f}, {100 * around[1]:.0f}]"
        return f"{100 * now.shares[name]:.0f}{words} %"

    shares = [number(words, share(name), METRIC_WORDS[metric][1]) for name, (words, metric) in _STOPS.items()]
    never = "The agent has no threshold: it never stops early."
    own_words = never if own is None else f"The agent's own is {own:.3f}."
    lo, hi = curve.plateau
    advice = f"Fact F1 is best at {curve.best:.3f}, and nearly as good from {lo:.3f} to {hi:.3f}. {own_words}"
    means = [
        _metric(name, _around(name, value, ends[name]))
        for name, value in (("fact_f1", now.fact_f1), ("fact_em", now.fact_em), ("steps", now.steps))
    ]
    return [h("div.qx-numbers", *shares, *means), h("p.qx-mut.qx-sm", advice)]


def default_words(row: EpisodeRow, is_own: bool) -> list[Node]:
    """What choosing a default here means."""
    fitted = (
        "These are test questions: a threshold chosen here is fitted to them. Evaluate the training part"
        " to choose a default."
    )
    stays = (
        f"{row.checkpoint} was not trained here, so its default stays; another threshold lasts until the"
        " app is closed."
    )
    nodes = notice(fitted if row.split == "test" else "", "outdated")
    return nodes if is_own else [*nodes, h("p.qx-mut.qx-sm", stays)]


def reliability_heading(note: str) -> list[Node]:
    """What the reliability diagram shows, and its error."""
    sentence = (
        "Q of each choice, in ten bins, against the discounted reward that the episode still gained from"
        " there; on the diagonal Q is right"
    )
    error = note.partition("expected calibration error ")[2].partition(" ")[0]
    words = f"Expected calibration error {error}: the mean distance from the diagonal" if error else ""
    return [tip("h3.qx-help", sentence, "Does Q say what is still to gain?"), h("p.qx-mut.qx-sm", words)]


def failure_filter(episodes: Mapping[Failure, Sequence[int]], chosen: str) -> list[Node]:
    """How many episodes are of each class, as buttons."""
    counts: dict[str, int] = {name: len(some) for name, some in episodes.items()}
    counts[""] = sum(counts.values())
    buttons = []
    for key, sentence in [("", "Every episode"), *FAILURE_WORDS.items()]:
        kind, n = "qx-btn" + ".qx-pressed" * (key == chosen), h("span.qx-mut", f"{counts[key]:,}")
        shown = {"aria_pressed": key == chosen, "title": sentence}
        buttons.append(sends(kind, "class", key, f"{key or 'all'} ", n, **shown))
    return [h("div.qx-row", *buttons)]


def failure_table(
    rows: Sequence[EpisodeRow],
    positions: Sequence[int],
    others: Mapping[tuple[object, ...], EpisodeRow],
    opened: int | None,
    page: int,
    questions: Mapping[str, str] | None = None,
) -> list[Node]:
    """A page of episodes; `others` are the rows of a second agent, by the key of their question.
    `questions`: what was asked, by the row's id, as far as that is known.
    """
    if not positions:
        return [h("p.qx-empty", "No episode is of this class.")]
    order = "Chunks in order of choice; a tick marks support, faded ones come after the agent's stop"
    head: list[str | tuple[str, str]] = [
        "question",
        "outcome",
        ("support", "Support chunks among those chosen under the agent's own threshold"),
        ("A chose", order),
        *[("B chose", "The same question through the second agent")] * bool(others),
    ]
    lines = []
    for position in on_page(positions, page):
        row = rows[position]
        words, kind = shorten((questions or {}).get(row.id, row.id), 70), failure_class(row)
        cells: list[Node] = [
            link_to("episode", position, words, aria_expanded=position == opened, title=row.id),
            h("span", {"title": FAILURE_WORDS[kind]}, kind),
            f"{len({*own_evidence(row)} & {*row.support})} of {len(row.support)}",
            _choices(row),
        ]
        if others:
            cells.append(_choices(others[row.key]) if row.key in others else "not asked")
        lines.append(table_row(*cells, on=position == opened))
    return [table(head, lines, "Episodes"), *pager("episodes-page", page, len(positions))]


def _choices(row: EpisodeRow) -> Node:
    taken = own_steps(row)
    return h("div.qx-choices", *(_choice(row, i, i < taken) for i in range(len(row.chosen))))


def _choice(row: EpisodeRow, i: int, taken: bool) -> Node:
    chunk_id = row.chosen[i]
    hit = chunk_id in row.support
    back = taken and chunk_id not in own_evidence(row)
    after = ", taken back by the review" if back else "" if taken else ", after the stop"
    sentence = (
        f"Step {i + 1}: chunk {chunk_id:,}, Q {row.q_values[i]:.3f},"
        f" {'support' if hit else 'not support'}{after}"
    )
    kind = "span.qx-mark" + ".qx-hit" * hit + ".qx-after" * (back or not taken)
    return h(kind, {"title": sentence}, f"{chunk_id:,}{' ✓' * hit}")


def episode(row: EpisodeRow, other: EpisodeRow | None, example: Example | None, refused: str) -> list[Node]:
    """One question: what was asked, what supports it, and what each agent chose, text beside text."""
    facts = f"{failure_class(row)} · {counted(row.n_chunks, 'chunk')} · T = {row.step_budget}"
    acts = (act("explore", "", "Open in Explore"), act("close", "", "Close"))
    about = h("span.qx-mut.qx-sm", facts)
    head = h("div.qx-row", h("strong", row.id), about, h("span.qx-grow"), *acts)
    nodes: list[Node] = [head, *notice(refused, "info")]
    if example is not None:
        answer = f"  Answer: {', '.join(example.answers[:3])}." if example.answers else ""
        nodes.append(h("p.qx-quote", h("strong", example.question), h("span.qx-mut", answer)))
    second = None if other is None else _episode_column("B", other, example)
    nodes.append(h("div.qx-beside", _episode_column("A", row, example), second))
    missed = [chunk_id for chunk_id in row.support if chunk_id not in own_evidence(row)]
    if missed:
        lacks = [
            h("div.qx-sm", h("span.qx-mut", f"chunk {i:,}, {_when(row, i)}"), _text(example, i))
            for i in missed
        ]
        nodes.append(h("div", h("h4", "Support that A's evidence lacks"), *lacks))
    return nodes


def _when(row: EpisodeRow, chunk_id: int) -> str:
    if chunk_id in row.chosen[: own_steps(row)]:
        return "taken back by the review"
    if chunk_id in row.chosen:
        return f"step {row.chosen.index(chunk_id) + 1} had it stopped later"
    return "not within the budget"


def _episode_column(letter: str, row: EpisodeRow, example: Example | None) -> Node:
    taken = own_steps(row)
    earliest = completed_at(row)
    rows = []
    for i, chunk_id in enumerate(row.chosen):
        if i == taken:
            rows.append(_stop_line(row, taken))
        step = h("span.qx-mut", f"{i + 1} · Q {row.q_values[i]:.3f} ")
        kind = "li" + ".qx-after" * (i >= taken)
        rows.append(h(kind, step, _choice(row, i, i < taken), _text(example, chunk_id)))
    if taken == len(row.chosen):
        rows.append(_stop_line(row, taken))
    complete = "never complete" if earliest is None else f"complete after step {earliest}"
    f1 = fact_f1(own_evidence(row), row.support)
    heading = h("h4", f"{letter}  {agent_name(row)}: Fact F1 {f1:.2f}, {complete}")
    return h("div", heading, h("ol.qx-steps-list", *rows))


def _stop_line(row: EpisodeRow, taken: int) -> Node:
    words, threshold = f"the budget of {row.step_budget} is used up", row.stop_threshold
    if taken < len(row.best_q) and threshold is not None and row.best_q[taken] < threshold:
        words = f"best Q {row.best_q[taken]:.3f} is below {threshold:.3f}"
    return h("li.qx-stop.qx-sm", f"stops: {words}")


def _text(example: Example | None, chunk_id: int) -> Node | None:
    text = "" if example is None else shorten(example.chunks[chunk_id], 300)
    return h("p.qx-quote", text) if text else None


def cost(row: EpisodeRow, dim: int) -> list[Node]:
    """What opening a long haystack takes, before it is taken."""
    length, memory = row.length or 0, row.n_chunks * dim * 4 / 2**20
    words = (
        f"This haystack has {length:,} tokens in {row.n_chunks:,} chunks. Making it takes about"
        f" {duration(length / TOKENS_A_SECOND)} and {memory:,.0f} MB of memory; vectors that are no longer in"
        " the cache take minutes more."
    )
    return notice(words, "info", act("explore-anyway", "", "Open it all the same"))


def is_long(row: EpisodeRow) -> bool:
    """Whether opening its haystack is announced first."""
    return (row.length or 0) > LONG
