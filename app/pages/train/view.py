"""Trainings as trees of plain data, a function a panel."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from app.pages.widgets.notices import notice, progress_bar, time_left
from app.services.trainings import ShownTraining, State
from core.views.draw.nodes import Node, act, h, link_to, tip
from core.views.draw.tables import on_page, pager, table, table_row
from core.views.draw.words import counted, duration
from core.views.figures import block_of

CURVES = {
    "success": (
        "Episodes with all support",
        (
            "Share of an update's episodes that took every support chunk while the agent explored (Q-RAG"
            " figure 6)"
        ),
    ),
    "loss": (
        "TD loss",
        (
            "Mean squared difference between Q of the choices and their lambda-returns (Q-RAG algorithm 1);"
            " falls as Q learns what episodes bring"
        ),
    ),
    "q": (
        "Online Q and target V",
        (
            "Solid: Q that the trained towers gave each choice. Dashed: V of the state after it by the target"
            " towers, which follow slowly (Q-RAG eq. 2, 4)"
        ),
    ),
    "reward": (
        "Return, by the step that earned it",
        "Mean reward of each step, stacked: the upper edge is the return of an episode, at most 1",
    ),
    "entropy": (
        "Exploration",
        (
            "Entropy of the exploring policy at each step, in nats; 0 is a policy that always takes its best"
            " chunk"
        ),
    ),
    "score": (
        "Validation",
        (
            "Fact F1 with an oracle stop on examples that are never trained on; thick: mean of all examples,"
            " thin: each task"
        ),
    ),
}
"""Heading and sentence of every figure."""

EMPTY = (
    "No agent was trained here yet. Start one above: its curves show while it learns, and stay here"
    " afterwards."
)
_STATES: dict[State, tuple[str, str]] = {
    "starting": ("starting", "The child process is reading its data and measuring the untrained agent"),
    "running": ("training", "The child process is making updates"),
    "stopping": ("stopping", "It ends after the update that is running"),
    "finished": ("finished", "All updates are made"),
    "stopped": ("stopped", "You stopped it; it can go on from its last save"),
    "cut off": (
        "cut off",
        (
            "Its process ended before it was finished, as when a machine is switched off; it can go on from"
            " its last save"
        ),
    ),
    "failed": ("failed", "Its process ended with an error"),
    "elsewhere": ("elsewhere", "A command line trains it, so it can't be stopped from here"),
}


def chip(state: State) -> Node:
    """A training's state in a word."""
    word, sentence = _STATES[state]
    bad = state in ("failed", "cut off")
    live = state in ("starting", "running", "stopping", "elsewhere")
    return tip("span.qx-chip" + ".qx-chip-bad" * bad + ".qx-chip-live" * live, sentence, word)


def format_help(example: str) -> list[Node]:
    """How a file of own questions looks."""
    fields = (
        ("question", "what is asked"),
        ("chunks", "the texts to choose from, in their order: the right ones and others that look like them"),
        ("support", "0-based numbers of the chunks that the answer needs"),
        ("answer, id", "may be left out"),
    )
    words = (
        "One JSON object a line. At least 8 questions; a few hundred make a useful agent. 15 % are kept"
        " for validation."
    )
    listed = (part for name, means in fields for part in (h("dt", h("code", name)), h("dd", means)))
    return [
        h("p.qx-sm", words),
        h("dl.qx-fields.qx-sm", *listed),
        h("pre.qx-pre", {"tabindex": "0"}, example),
        h("div.qx-row", act("download", example, "Download this example", data_name="questions.jsonl")),
    ]


def estimate(seconds_an_update: float | None, shipped: float | None, updates: int) -> list[Node]:
    """How long it will take, as far as that was measured. seconds_an_update: of a training like it
    on this machine; `shipped`: of the agent that ships, elsewhere.
    """
    if seconds_an_update is not None:
        words = (
            f"About {duration(seconds_an_update * updates)}: an update of an earlier training with the same"
            f" data, episodes, steps and rank took {seconds_an_update:.1f} s on this machine."
        )
    elif shipped is not None:
        words = (
            f"About {duration(shipped * updates)} on two cores with bfloat16, three to four times as long"
            " without. Not measured on this machine yet."
        )
    else:
        words = (
            "Not measured on this machine yet: the time left is shown from the second update on. You can stop"
            " and go on."
        )
    return [h("p.qx-mut.qx-sm", words)]


def training_list(trainings: Sequence[ShownTraining], chosen: str, page: int) -> list[Node]:
    """A table of trainings, one page of it."""
    if not trainings:
        return [h("p.qx-empty", EMPTY)]
    head = ("agent", "state", "data", "updates", "validation", "begun")
    rows = [_training_row(training, training.name == chosen) for training in on_page(trainings, page)]
    return [table(head, rows, "Trainings"), *pager("trainings-page", page, len(trainings))]


def _training_row(training: ShownTraining, is_chosen: bool) -> Node:
    best = training.best_validation
    done = training.updates[-1]["update"] if training.updates else 0
    wanted = training.config.get("updates")
    cells: list[Node] = [
        link_to("training", training.name, training.name, aria_pressed=is_chosen),
        chip(training.state),
        str(training.config.get("data", "")),
        f"{done:,} of {wanted:,}" if wanted else "",
        "" if best is None else f"{best['score']:.3f}",
        "" if training.created_at is None else f"{training.created_at.astimezone():%Y-%m-%d %H:%M}",
    ]
    return table_row(*cells, on=is_chosen)


def header(training: ShownTraining) -> list[Node]:
    """What a training is doing, how far it is, and its main numbers."""
    name, about = h("strong.qx-doc-title", training.name), h("span.qx-mut.qx-sm", _about(training))
    head = h("div.qx-row", name, chip(training.state), about)
    nodes = [head, *_progress(training), *notice(training.message)]
    if training.arguments:
        line = shlex.join(["python", "-m", "core", *training.arguments])
        nodes.append(h("div.qx-row.qx-sm", act("copy", line, "Copy command line", title=line[:600])))
    return nodes


def _about(training: ShownTraining) -> str:
    config = training.config
    if not config:
        return ""
    kind = config["position_kind"]
    positions, weights = f"{'no' if kind == 'none' else kind} positions", f"LoRA of rank {config['rank']}"
    started = next((event for event in training.events if event["event"] == "started"), None)
    where = ""
    if started is not None:
        where = f" · {started['n_parameters'] / 1e6:.2g} M parameters on {started['device']}"
    played = f"{counted(config['episodes'], 'episode')} an update · T = {config['steps']}"
    further = f"{Path(config['start_from']).name} trained further · " if config.get("start_from") else ""
    return f"{further}{config['data']} · {played} · {positions} · {weights} · seed {config['seed']}{where}"


def _progress(training: ShownTraining) -> list[Node]:
    done = training.updates[-1]["update"] if training.updates else 0
    reached = None if training.state == "starting" else done  # until then the bar moves by itself
    total = max(int(training.config.get("updates", 1)), 1)
    return progress_bar(standing(training), "Updates made", reached, total)


def standing(training: ShownTraining) -> str:
    """How far a training is, in a sentence."""
    updates = training.updates
    done, total = (updates[-1]["update"] if updates else 0), training.config.get("updates", 0)
    spent = duration(updates[-1]["seconds"]) if updates else ""
    again = "it begins again when it goes on"
    if training.last_save:
        again = f"it goes on from update {training.last_save}, its last save"
    match training.state:
        case "starting":
            return (
                "Preparing: reading the data, loading the encoder, measuring the untrained agent. This can"
                " take a few minutes."
            )
        case "running" if updates and done < total:
            left = time_left(updates[-1]["seconds_left"] if done > 1 else None)  # the first is slow
            return f"Update {done:,} of {total:,}{left} · {spent} so far"
        case "running":
            return "Validating the last update" if updates else "The first update is being made"
        case "elsewhere":
            left = time_left(updates[-1]["seconds_left"] if updates else None)
            return f"Update {done:,} of {total:,}{left}; a command line trains it, so stop it there"
        case "stopping":
            return f"Stopping: update {done:,} of {total:,} was the last"
        case "finished":
            return f"{counted(done, 'update')} in {spent}"
        case "stopped":
            return f"Stopped after update {done:,} of {total:,}; {again}"
        case "failed":
            return f"Failed after update {done:,} of {total:,}" if total else "It did not begin"
        case "cut off":
            again = again if training.arguments else "go on with the command line that began it"
            return f"Cut off after update {done:,} of {total:,}; {again}"


def curve_heading(name: str, words: str = "") -> list[Node]:
    """Heading of a figure, with its sentence, and what it says in words."""
    title, sentence = CURVES[name]
    return [tip("h3.qx-help", sentence, title), h("p.qx-mut.qx-sm", words or sentence)]


def curve_words(training: ShownTraining) -> dict[str, str]:
    """The latest value of every figure, in words: means over as many updates as a point of the curves."""
    updates = training.updates
    if not updates:
        return {}
    size = block_of(len(updates))
    last = updates[-size:]

    def mean(values: Sequence[float]) -> float:
        return sum(values) / len(values)

    over = "the last update" if size == 1 else f"the last {size} updates"
    first_step = mean([event["q"][0] for event in last])
    lines = "solid: Q of the choice, dashed: V of the state after it"
    words = {
        "success": f"{100 * mean([event['success'] for event in last]):.0f} % over {over}",
        "loss": f"{mean([event[loss_name(training)] for event in last]):.3f} over {over}; log scale",
        "q": f"Q of the first choice is {first_step:.2f}; {lines}",
        "reward": f"{mean([sum(event['reward']) for event in last]):.2f} over {over}, of at most 1",
        "entropy": (
            f"{mean([mean(event['entropy']) for event in last]):.2f} nats over {over}; temperature"
            f" {last[-1]['alpha']:.3g}"
        ),
    }
    if (best := training.best_validation) is not None:
        kept = f"{best['score']:.3f} after update {best['update']:,}: that agent is kept"
        words["score"] = f"{kept}. Thick: mean of all examples"
    return words


def loss_name(training: ShownTraining) -> str:
    """The loss that is minimised: fine-tuning on labels has no TD loss."""
    return "ranking_loss" if is_supervised(training) else "td_loss"


def is_supervised(training: ShownTraining) -> bool:
    """Whether there are no Q targets to show."""
    return bool(training.config.get("objective") == "supervised")


def validation_table(training: ShownTraining) -> list[Node]:
    """Every task at the untrained agent, the one that is kept and the latest."""
    validations, best = training.validations, training.best_validation
    if best is None:
        return []
    columns = {
        f"after {event['update']:,}{' (best)' * (event is best)}": event
        for event in (validations[0], best, validations[-1])
    }
    f1 = (
        "Fact F1 with an oracle stop: retrieval is cut when all support is in, else at the step cap (Q-RAG"
        " table 3)"
    )
    head: list[str | tuple[str, str]] = [
        "task",
        ("n", "Validation examples of the task"),
        *((label, f1) for label in columns),
    ]
    cells = list(columns.values())
    rows = [
        table_row(task, str(of_task["n"]), *(_score(event["tasks"].get(task)) for event in cells))
        for task, of_task in sorted(best["tasks"].items())
    ]
    of_all = ("all examples", "", *(f"{event['score']:.3f}" for event in cells))
    rows.append(h("tr.qx-sum", *(h("td", cell) for cell in of_all)))
    return [h("h3", "Validation by task"), table(head, rows, "Validation by task")]


def _score(values: dict[str, Any] | None) -> str:
    if values is None or values["fact_f1_oracle_stop"] is None:
        return ""
    return f"{values['fact_f1_oracle_stop']:.3f}"


def _by_step(values: Sequence[float]) -> str:
    return " · ".join(f"{value:.2f}" for value in values)


def update_table(training: ShownTraining, page: int) -> list[Node]:
    """The numbers behind the curves, the latest update first, one page of them."""
    updates = training.updates[::-1]
    if not updates:
        return []
    head = (
        "update",
        ("success", CURVES["success"][1]),
        ("TD loss", CURVES["loss"][1]),
        ("ranking loss", "Cross-entropy of the policy on support not yet taken"),
        ("Q by step", CURVES["q"][1]),
        ("V after it", CURVES["q"][1]),
        ("reward by step", CURVES["reward"][1]),
        ("entropy by step", CURVES["entropy"][1]),
        ("gradient norm", "L2 norm before clipping"),
    )
    rows = [
        table_row(
            f"{event['update']:,}",
            f"{event['success']:.2f}",
            f"{event['td_loss']:.4f}",
            f"{event['ranking_loss']:.4f}",
            *(_by_step(event[name]) for name in ("q", "v", "reward", "entropy")),
            f"{event['gradient_norm']:.2f}",
        )
        for event in on_page(updates, page)
    ]
    return [table(head, rows, "Updates"), *pager("updates-page", page, len(updates))]
