"""Settings, standing and reading place of the SPARC page.

Pure functions, one per panel (see components.tree). The run itself is drawn by core.views.draw.sparc, as
exported pages draw it.
"""

from __future__ import annotations

import json

from app.pages.widgets.asking import settings_toggle
from app.pages.widgets.notices import changed_since
from app.pages.widgets.sharing import page_button
from app.services.sparc_runs import SparcRun
from core.methods.sparc.events import SparcConfig
from core.methods.sparc.naming import STRATEGY_NAMES
from core.views.draw.nodes import Node, act, h, sends, tip
from core.views.draw.sparc import finders_of, read_and_kept
from core.views.draw.text import found_by, reading_pane
from core.views.draw.words import counted, duration, step_class

# What is asked for, and how far it is


def settings_line(config: SparcConfig | None, llm: str) -> list[Node]:
    """What is set, as one sentence that opens the settings. `config`: None while a setting is
    empty; `llm`: name of the language model that will be asked, empty without one.
    """
    decides = f"{llm} decides" if llm else "no language model: rules and reader decide"
    if config is None:
        return [settings_toggle("qx-sparc-settings", h("span", "a setting is empty"), [decides])]
    words = [f"up to {counted(config.depth, 'round')}", f"{counted(config.k, 'chunk')} a branch"]
    words += ["round 1 rewrites the question"] * (config.first_round == "rewrite")
    words += [f"{config.max_tokens:,} tokens at most"] if config.max_tokens is not None else []
    words += [f"{config.max_calls:,} calls at most"] if config.max_calls is not None else []
    branches = h("span", h("strong", counted(config.width, "branch")))
    return [settings_toggle("qx-sparc-settings", branches, [*words, decides])]


def changes(run: SparcRun | None, question: str, config: SparcConfig, same_documents: bool) -> list[Node]:
    """Whether what is shown still fits what is asked for."""
    if run is None or run.status == "running":
        return []
    then = run.trace.started
    differs = {
        "document": not same_documents,
        "question": then.question != question.strip(),
        "settings": then.config != config,
    }
    again = act("again", "", "Run again")
    return changed_since("these rounds were made", differs, again, joint=" and ")


def standing_at(run: SparcRun) -> list[Node]:
    """At the right end of the line of settings: how a run stands, what it took, and where it can be taken."""
    trace, cost = run.trace, run.trace.cost
    ran = dict.fromkeys(branch.query.strategy for one in trace.rounds for branch in one.branches)
    read = ", ".join(number + words for number, words in read_and_kept(run))
    seconds = cost.milliseconds / 1000
    took = f"{seconds:,.1f} s" if seconds < 90 else duration(seconds)
    by = f" · {', '.join(STRATEGY_NAMES[name] for name in ran)}" if ran else ""
    facts = f"{took} · {read}{by}" + (f" · {counted(cost.calls, 'call')}" if cost.calls else "")
    sentence = (
        "Time of all agents and retrievals added up (branches work side by side, so the clock shows less),"
        f" chunks that branches read, calls of a language model. Their tokens: {cost.prompt_tokens:,} read,"
        f" {cost.completion_tokens:,} written"
    )
    return [_chip(run), tip("span", sentence, facts), _share(run)]


def _share(run: SparcRun) -> Node:
    title = "The address of this run, which opens it as it is, without asking any model again"
    rows = [sends("qx-menu-row", "copy-link", f"?run={run.run_id}", "Copy link", title=title)]
    if run.status != "running":
        record = json.dumps({"run_id": run.run_id, **run.trace.to_json()}, ensure_ascii=False, indent=1)
        name = f"sparc-{run.run_id[:8]}.json"
        rows.append(sends("qx-menu-row", "download", record, "Download trace", data_name=name))
        rows.append(page_button("qx-menu-row"))
    return h("details.qx-menu", h("summary.qx-btn", "Share ▾"), h("div.qx-menu-panel", *rows))


def _chip(run: SparcRun) -> Node:
    kind = {"running": ".qx-chip-live", "complete": ""}.get(run.status, ".qx-chip-bad")
    return h(f"span.qx-chip{kind}", run.status)


def reading(
    run: SparcRun, chunk_id: int | None, anchor: int | None, *, in_explore: bool = False
) -> list[Node]:
    """The text around the open chunk, finds marked. `in_explore`: its documents are open there, too."""
    if chunk_id is None:
        return []
    workspace, finders = run.workspace, finders_of(run.trace)
    names = finders.get(chunk_id, [])
    found = f"Found by {'branch' if len(names) == 1 else 'branches'} {', '.join(names)}."
    sentence = found if names else "No branch found it."
    if workspace is None:
        text = run.texts.get(chunk_id, "")
        why = "The document's text was not kept with this run, so only the chunk can be shown."
        words = h("p.qx-mut.qx-sm", why)
        close = h("div.qx-read-actions", act("close", "", "Close"))
        head = h("div.qx-read-head", h("strong", f"chunk {chunk_id:,}"), close)
        return [head, h("p.qx-sm", sentence), h("p.qx-quote", {"dir": "auto"}, text) if text else words]
    pins = {
        other: (step_class(int(first.partition(".")[2])), found_by([first, *more], first))
        for other, (first, *more) in finders.items()
    }
    explore = act("explore", chunk_id, "Show in Explore", title="Opens this chunk in Explore's reading pane")
    return reading_pane(workspace, chunk_id, anchor, sentence, run.gold, pins, *[explore] * in_explore)
