"""Evaluations for the page.

An evaluation runs in this process, since its vectors and Explore's are the same, and what was measured before
a cancel is kept. A row names its question by id only, so the task is loaded again for its texts.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast, get_args

import numpy as np

from app.services.explorer import Explorer
from app.services.in_view import Labelled
from app.services.library import OpenOrder
from app.services.pulse import Idle
from app.services.recent import Recent
from app.services.session import Session
from app.services.settings import Settings
from app.services.shared import Services
from app.services.visitors import check_known, check_steps
from core.base.config import EpisodeConfig
from core.base.errors import BadCheckpoint, BadRequest, Cancelled
from core.base.home import home, make_folder
from core.base.metrics import fact_em, fact_f1
from core.base.rows import EpisodeRow
from core.base.statistics import interval, mean
from core.base.types import workspace_of_chunks
from core.corpus.opening import Opening
from core.encode.checkpoint import read_spec, with_defaults, write_spec
from core.encode.tokens import FastTokenizer
from core.lab.evaluate.calibrate import best_threshold
from core.lab.evaluate.corpora import join_chunks
from core.lab.evaluate.outcomes import FAILURES, STOPS, Failure, Stop, failure_class, steps_taken, stop_class
from core.lab.evaluate.run import EvaluationProgress, Setting, evaluate, training_set
from core.lab.evaluate.summary import METRICS, Comparison, Summary, compare, summarise
from core.lab.studies.stopping import reliability
from core.lab.studies.tables import check_greedy
from core.lab.tasks.babilong import Part, parse_length
from core.lab.tasks.catalog import TASKS, TaskSet, load_task
from core.lab.tasks.data import data_folder
from core.lab.tasks.example import Example
from core.methods.qrag.agent import Agent
from core.methods.qrag.retriever import AgentRetriever
from core.methods.registry import facts_of
from core.runs.log import Evaluation, EvaluationEntry, list_evaluations, new_evaluation, read_evaluation
from core.runs.log.atomic import write_whole
from core.views.charts import Report

OWN = "own questions"
"""Stands for a file among the tasks."""
MAX_N = 100_000
USUAL_CONTEXT = 2_000
"""Tokens of a question's own paragraphs, about, for what a visitor may read a day."""
LONG = 200_000
"""Tokens of a haystack above which opening one is announced with what it costs."""
MAX_KEPT_FIGURES = 200
"""Evaluations whose means, intervals and curves stay in memory."""
MAX_KEPT_ROWS = 50_000
"""Rows of evaluations that stay in memory."""
CURVE_POINTS = 61
"""Thresholds of a stop curve."""
FOUND_METRICS = ("fact_f1", "fact_em", "stopped_perfectly", "steps")
"""Shown while an evaluation runs."""


@dataclass(frozen=True)
class EvaluationOrder:
    """What a person asks for."""

    task: str
    agents: tuple[str, ...]
    """One, or two to compare."""
    part: Part = "test"
    """Test to judge, train to set a threshold. A threshold is judged on what it was not chosen on."""
    length: str | None = None
    """Tokens of each text. None: the task's own."""
    n: int | None = None
    """None: all of them."""
    step_budget: int | None = None
    """None: the task's own."""
    seed: int = 0
    """Which questions are drawn."""
    questions: Path | None = None
    """For OWN."""
    owner: str | None = None
    """Hash of the visitor's key; None in local mode."""


@dataclass(frozen=True)
class Measuring:
    """How far an evaluation is."""

    agent: str
    stage: Literal["loading", "embedding", "retrieving"]
    done: int = 0
    total: int = 0
    seconds_left: float | None = None
    means: tuple[tuple[str, float | None], ...] = ()
    """Of the metrics, so far."""


@dataclass(frozen=True)
class Stops:
    """What a threshold would do: shares of all episodes, means over them."""

    threshold: float
    shares: dict[Stop, float]
    fact_f1: float
    fact_em: float
    steps: float


@dataclass(frozen=True)
class StopCurve:
    """Stops at evenly spaced thresholds, and the one with the best Fact F1."""

    points: tuple[Stops, ...]
    best: float
    plateau: tuple[float, float]
    """Thresholds with nearly the same Fact F1 (see `core.lab.evaluate.calibrate`)."""


@dataclass(frozen=True)
class ShownEpisode:
    """The example behind a row, and what made the row."""

    title: str
    example: Example
    agent: str
    config: EpisodeConfig


Measured: TypeAlias = tuple[float | None, tuple[float, float] | None]
"""A mean with its 95 % interval; None for what was not measured, and of one value alone."""


class Evaluations:
    """One per process."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self._recent: Recent[Evaluation] = Recent(MAX_KEPT_ROWS, lambda evaluation: len(evaluation.rows))
        self._summaries: Recent[Summary] = Recent(MAX_KEPT_FIGURES, lambda _: 1)
        self._curves: Recent[StopCurve] = Recent(MAX_KEPT_FIGURES, lambda _: 1)
        self._f1: Recent[Measured] = Recent(MAX_KEPT_FIGURES, lambda _: 1)
        self._loading = threading.Lock()
        self._task: tuple[Any, TaskSet] | None = None
        self.idle = Idle()

    def run(self, order: EvaluationOrder, report: Callable[[Measuring], None]) -> list[str]:
        """Ids of the logged evaluations, one an agent. Raises BadRequest; if cancelled, rows so far stay."""
        _check(order, self.services.settings)
        with self.idle:
            report(Measuring(order.agents[0], "loading"))
            agents, allowance = self.services.agents, self.services.library.allowance
            loaded = [agents.load(name) for name in order.agents]
            questions = None if order.questions is None else _keep_questions(order.questions)
            name = str(questions or order.task)
            length = _length(order.task, order.length)
            asked = (order.n or TASKS[order.task].n) if length else None
            if length and asked:  # first: composing haystacks takes most of a minute, refused or not
                allowance.read(order.owner, len(loaded) * asked * length)
            task = self._load(name, order.part, length, order.n, order.seed, loaded[0].encoder.tokenizer)
            if not asked:
                n_tokens = len(loaded) * len(task.examples) * (length or USUAL_CONTEXT)
                allowance.read(order.owner, n_tokens)
            return [self._measure(agent, order, task, length, questions, report) for agent in loaded]

    def _measure(
        self,
        agent: Agent,
        order: EvaluationOrder,
        task: TaskSet,
        length: int | None,
        questions: Path | None,
        report: Callable[[Measuring], None],
    ) -> str:
        spec = self.services.agents.served(agent.spec)
        config = EpisodeConfig(
            step_budget=order.step_budget or task.step_budget,
            temperature=spec.temperature,
            stop_threshold=spec.stop_threshold,
            review_threshold=spec.review_threshold,
            seed=order.seed,
        )
        rows: list[EpisodeRow] = []
        began = time.perf_counter()

        def progress(now: EvaluationProgress) -> None:
            means: tuple[tuple[str, float | None], ...] = ()
            if rows:
                means = tuple((name, mean(METRICS[name](row) for row in rows)) for name in FOUND_METRICS)
            report(Measuring(spec.name, now.stage, now.done, now.total, now.seconds_left, means))

        def keep(*, cancelled: bool) -> str:
            about: dict[str, Any] = {
                "method": agent.name,
                "split": order.part,
                "length": length,
                "left_out": task.left_out,
                "description": task.description,
                "fingerprint": agent.encoder.fingerprint,
                "trained_on": training_set(agent.encoder),
                "n_asked": order.n,
                "seconds": round(time.perf_counter() - began, 3),
                "cancelled": cancelled,
                **({} if questions is None else {"questions": str(questions)}),
            }
            evaluation = new_evaluation(rows, config.to_json() | about, order.owner)
            self._recent.put(evaluation.evaluation_id, evaluation)
            self.services.keep_evaluation(evaluation)
            return evaluation.evaluation_id

        setting, retriever = Setting(split=order.part, length=length), AgentRetriever(agent)
        try:
            for row in evaluate(task.examples, setting, retriever, agent.encoder, config, progress):
                rows.append(row)
        except Cancelled:
            if rows:
                keep(cancelled=True)
            raise
        return keep(cancelled=False)

    def all(self, owner: str | None = None) -> list[EvaluationEntry]:
        """A visitor's, newest first; of this process alone where another owns the log. Raises LogError."""
        if not self.services.log_notice:
            return list_evaluations(self.services.own_log, owner)
        return [_entry(shown) for shown in reversed(self._recent.all()) if shown.owner == owner]

    def pace(self, task: str, length: str | None, owner: str | None = None) -> float | None:
        """Seconds that a question of a task took the last time, if ever. Raises BadRequest, LogError."""
        alike = task, _length(task, length)
        made = [entry for entry in self.all(owner) if (entry.task, entry.length) == alike]
        return next((entry.config["seconds"] / entry.n for entry in made if "seconds" in entry.config), None)

    def get(self, evaluation_id: str, owner: str | None = None) -> Evaluation:
        """One evaluation of a visitor with its rows. Raises RunNotFound, LogError."""
        shown = self._recent.get(evaluation_id)
        if shown is None or shown.owner != owner:
            if notice := self.services.log_notice:
                raise BadRequest(f"evaluation {evaluation_id[:8]} is not in memory any more, and {notice}")
            shown = read_evaluation(self.services.own_log, evaluation_id, owner)
            self._recent.put(evaluation_id, shown)
        return shown

    def summary(self, evaluation_id: str, owner: str | None = None) -> Summary:
        """Means and intervals; the intervals of 500 rows take a second, so they are made once."""
        rows = self.get(evaluation_id, owner).rows
        return self._summaries.made_once(evaluation_id, lambda: summarise(rows))

    def fact_f1(self, evaluation_id: str, owner: str | None = None) -> Measured:
        """Under the agent's own threshold; made once, as `summary`."""
        rows = self.get(evaluation_id, owner).rows

        def measured() -> Measured:
            values = [METRICS["fact_f1"](row) for row in rows]
            return mean(values), interval(values)

        return self._f1.made_once(evaluation_id, measured)

    def comparison(self, first: str, second: str, owner: str | None = None) -> Comparison:
        """Paired tests. Raises BadRequest when they have no question in common."""
        if not self.beside(first, second, owner):
            raise BadRequest(
                "the two evaluations are of different files of questions, or of one that has changed since;"
                " ask both agents the same file"
            )
        return compare(self.get(first, owner).rows, self.get(second, owner).rows)

    def beside(
        self, first: str, second: str, owner: str | None = None
    ) -> dict[tuple[object, ...], EpisodeRow]:
        """Rows of the second by their keys; none where a person's own file differs, which names questions by
        their lines.
        """
        pair = self.get(first, owner), self.get(second, owner)
        files = {Path(str(one.config["questions"])).parent for one in pair if "questions" in one.config}
        return {} if len(files) > 1 else {row.key: row for row in pair[1].rows}

    def stop_curve(self, evaluation_id: str, owner: str | None = None) -> StopCurve:
        """What every threshold would do. Raises BadRequest for rows that no threshold can be read off."""
        rows = self.get(evaluation_id, owner).rows
        return self._curves.made_once(evaluation_id, lambda: stop_curve(rows))

    def reliability(self, evaluation_id: str, owner: str | None = None) -> Report:
        """Q against what was really still gained. Raises BadRequest as `stop_curve`."""
        return reliability(self.get(evaluation_id, owner).rows)

    def make_default(self, evaluation_id: str, threshold: float) -> str:
        """Writes the threshold into qrag.json; says what was done. Raises BadRequest but for own agents."""
        agents = self.services.agents
        agents.check_local_defaults()
        rows = self.get(evaluation_id).rows
        row = rows[0]
        if not agents.is_own(row.checkpoint):
            raise BadRequest(
                f"{row.checkpoint} was not trained here, so its defaults stay as they are; use the threshold"
                " until the app is closed instead"
            )
        folder = agents.checkpoints[row.checkpoint]
        spec = read_spec(folder)
        record = {
            "value": threshold,
            "evaluation_id": evaluation_id,
            "task": row.task,
            "split": row.split,
            "length": row.length,
            "n": len(rows),
        }
        scores = {**(spec.scores or {}), "stop_threshold": record}
        try:
            write_spec(folder, with_defaults(spec, {"stop_threshold": threshold, "scores": scores}))
        except OSError as error:
            raise BadCheckpoint(
                f"{folder / 'qrag.json'} can't be written ({error.strerror}); make it writable"
            ) from error
        agents.use_threshold(row.checkpoint, None)
        return f"{row.checkpoint} now stops below Q = {threshold:.3f}, here and on the command line."

    def use_for_now(self, evaluation_id: str, threshold: float) -> str:
        """The threshold until the app is closed; says what was done. Raises BadRequest in public mode."""
        self.services.agents.check_local_defaults()
        name = self.get(evaluation_id).rows[0].checkpoint
        self.services.agents.use_threshold(name, threshold)
        until = f"{name} stops below Q = {threshold:.3f} until the app is closed"
        return f"{until}: documents opened from now on begin with it."

    def example(self, evaluation_id: str, position: int, owner: str | None = None) -> Example:
        """The example of a row, loaded again. Raises BadRequest when it is gone, or another one by now."""
        row = self.get(evaluation_id, owner).rows[position]
        task = self._task_of(evaluation_id, row, owner)
        example = next((example for example in task.examples if example.id == row.id), None)
        if example is not None and row.chunk_tokens is not None:
            example = join_chunks(example, self._agent_of(row).encoder.tokenizer, row.chunk_tokens)
        if example is None or len(example.chunks) != row.n_chunks or tuple(example.support) != row.support:
            raise BadRequest(
                f"question {row.id} of {row.task} is not found as it was evaluated; data or reader have"
                " changed since, so evaluate it again"
            )
        return example

    def questions(self, evaluation_id: str, owner: str | None = None) -> dict[str, str]:
        """What was asked, by the rows' ids. Raises BadRequest when the task can't be loaded again."""
        row = self.get(evaluation_id, owner).rows[0]
        return {example.id: example.question for example in self._task_of(evaluation_id, row, owner).examples}

    def _task_of(self, evaluation_id: str, row: EpisodeRow, owner: str | None) -> TaskSet:
        """The task that a row is of, loaded again."""
        evaluation = self.get(evaluation_id, owner)
        config = evaluation.config
        if row.task not in TASKS and "questions" not in config:
            raise BadRequest(
                f"the questions of {row.task} came from a file that the log doesn't name; evaluate that file"
                " here to see them"
            )
        tokenizer = self._agent_of(row).encoder.tokenizer
        name = str(config.get("questions", row.task))
        n = config.get("n_asked", len(evaluation.rows))
        return self._load(name, _part(row.split), row.length, n, row.seed, tokenizer)

    def episode(self, evaluation_id: str, position: int, owner: str | None = None) -> ShownEpisode:
        """What Explore needs to make a row's run again, with the agent's own threshold. Raises BadRequest."""
        row = self.get(evaluation_id, owner).rows[position]
        if not facts_of(row.method).trained:
            raise BadRequest(
                f"this row was made by {row.method}, and Explore shows agents; choose an evaluation of an"
                " agent"
            )
        example = self.example(evaluation_id, position, owner)
        config = EpisodeConfig(
            step_budget=row.step_budget,
            temperature=row.temperature,
            stop_threshold=row.stop_threshold,
            review_threshold=None if row.kept is None else self._agent_of(row).spec.review_threshold,
            seed=row.seed,
            beam_width=row.beam_width,
            top_k_actions=row.top_k_actions,
        )
        return ShownEpisode(f"{row.task}, {row.id}", example, row.checkpoint, config)

    def _agent_of(self, row: EpisodeRow) -> Agent:
        name = row.checkpoint if row.checkpoint in self.services.agents.checkpoints else None
        if name is None and facts_of(row.method).trained:
            raise BadRequest(
                f"the agent {row.checkpoint!r} of this evaluation is not on offer here; put its folder beside"
                " the others"
            )
        return self.services.agents.load(name or self.services.agents.default_checkpoint)

    def _load(
        self, name: str, part: Part, length: int | None, n: int | None, seed: int, tokenizer: FastTokenizer
    ) -> TaskSet:
        """A task's examples; the last one loaded is kept."""
        key = (name, part, length, n, seed, tokenizer.sha256)
        with self._loading:
            if self._task is None or self._task[0] != key:
                self._task = None  # two of ten million tokens need not lie in memory together
                task = load_task(name, part=part, length=length, n=n, seed=seed, tokenizer=tokenizer)
                self._task = key, task
            return self._task[1]


def open_episode(explorer: Explorer, session: Session, episode: ShownEpisode) -> Opening[Session]:
    """The chunks of an example as they are, opened under its agent, with its question known."""
    agent, example = explorer.services.agents.load(episode.agent), episode.example
    texts = example.chunks[:]
    workspace = workspace_of_chunks(texts, agent.encoder.tokenizer.count(texts), episode.title)
    label = Labelled(example.question, next(iter(example.answers), ""), 0, example.support)
    order = OpenOrder(agent, session.owner, lambda _: (label,))
    opened = yield from explorer.services.library.reopen(order, workspace)
    return explorer.fresh(replace(session, forbidden=()), opened)


def available_tasks(settings: Settings) -> list[str]:
    """Tasks whose data are here; the project's stories always are, a person's questions in local mode."""
    own = [] if settings.public else [OWN]
    try:
        data_folder()
    except BadRequest:
        return ["generated", *own]
    return [*TASKS, *own]


def at_threshold(rows: Sequence[EpisodeRow], threshold: float) -> Stops:
    """What a stop threshold would do to the episodes of an evaluation, read off its rows."""
    means = {name: float(np.mean(values)) for name, values in _by_episode(rows, threshold).items()}
    return Stops(threshold, {name: means.pop(name) for name in STOPS}, **means)


def stop_intervals(rows: Sequence[EpisodeRow], threshold: float) -> dict[str, tuple[float, float] | None]:
    """95 % intervals of what `at_threshold` says, by the same names."""
    return {name: interval(values) for name, values in _by_episode(rows, threshold).items()}


def _by_episode(rows: Sequence[EpisodeRow], threshold: float) -> dict[str, list[float]]:
    """A value an episode, by the class of its stop and by metric."""
    classes = [stop_class(row, threshold) for row in rows]
    taken = [steps_taken(row, threshold) for row in rows]
    chosen = [(row.chosen[:n], row.support) for row, n in zip(rows, taken, strict=True)]
    return {
        **{name: [float(own == name) for own in classes] for name in STOPS},
        "fact_f1": [fact_f1(*both) for both in chosen],
        "fact_em": [float(fact_em(*both)) for both in chosen],
        "steps": [float(n) for n in taken],
    }


def stop_curve(rows: Sequence[EpisodeRow]) -> StopCurve:
    """`at_threshold` over the rows' best Q, its ends rounded outwards to 0.05. Raises BadRequest."""
    check_greedy(rows)
    pooled = [q for row in rows for q in row.best_q]
    lo, hi = np.floor(min(pooled) / 0.05) * 0.05, np.ceil(max(pooled) / 0.05) * 0.05
    thresholds = np.linspace(lo, max(hi, lo + 0.05), CURVE_POINTS).round(4)
    best, plateau = best_threshold([rows])
    return StopCurve(tuple(at_threshold(rows, float(threshold)) for threshold in thresholds), best, plateau)


def failures(rows: Sequence[EpisodeRow]) -> dict[Failure, list[int]]:
    """Positions of the rows of each class, every class named."""
    positions: dict[Failure, list[int]] = {name: [] for name in FAILURES}
    for position, row in enumerate(rows):
        positions[failure_class(row)].append(position)
    return positions


def _check(order: EvaluationOrder, settings: Settings) -> None:
    """Raises BadRequest."""
    check_known(order.owner)
    check_steps(order.owner, order.step_budget or 1)
    if not 1 <= len(order.agents) <= 2 or not all(order.agents):
        raise BadRequest("no agent is chosen; choose one, or two to compare")
    if len(set(order.agents)) < len(order.agents):
        raise BadRequest(
            f"{order.agents[0]} against itself shows nothing; choose another second agent, or none"
        )
    if order.task == OWN and settings.public:
        raise BadRequest(
            "your own questions are kept as a file, which a public server doesn't do for visitors; start the"
            " app on your machine for that"
        )
    if order.task == OWN and order.questions is None:
        raise BadRequest("no file of questions is chosen; drop one first")
    if order.task not in (*TASKS, OWN):
        raise BadRequest(f"task {order.task!r} does not exist; choose one of the list")
    if order.n is not None and not 1 <= order.n <= MAX_N:
        raise BadRequest(f"{order.n} questions must be between 1 and {MAX_N:,}; give 0 for all")
    if order.step_budget is not None and order.step_budget < 1:
        raise BadRequest(f"step budget {order.step_budget} must be at least 1; give 0 for the task's own")


def _length(task: str, asked: str | None) -> int | None:
    """Tokens of a task's texts; None for one whose texts have the length that they have."""
    own = TASKS[task].length if task in TASKS else None
    return None if own is None else parse_length(asked or str(own))


def _keep_questions(file: Path) -> Path:
    """A copy that outlasts the upload, named by its content's hash. Raises BadRequest without room for it."""
    try:
        with file.open("rb") as opened:
            digest = hashlib.file_digest(opened, "sha256").hexdigest()[:16]
        kept = home() / "questions" / digest / file.name
        if not kept.exists():
            make_folder(kept.parent)
            write_whole(kept, file.read_bytes())
    except OSError as error:
        raise BadRequest(
            f"{file.name} can't be kept ({error.strerror}); make room, or set QRAG_HOME to another folder"
        ) from error
    return kept


def _part(split: str) -> Part:
    if split not in get_args(Part):
        raise BadRequest(
            f"the {split} part of a training can't be loaded here; choose an evaluation of the test or the"
            " training part"
        )
    return cast(Part, split)


def _entry(evaluation: Evaluation) -> EvaluationEntry:
    row = evaluation.rows[0]
    about = row.task, row.length, row.method, row.checkpoint, len(evaluation.rows), evaluation.config
    return EvaluationEntry(evaluation.evaluation_id, evaluation.created_at, *about)
