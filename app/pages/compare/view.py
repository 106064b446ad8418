"""Comparisons as trees of plain data for the page.

Pure functions, one per panel (see components.tree): the form, what can be done with a column, and the reading
pane. What columns look like is in core.views.draw.comparison.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from app.components.address import part_of
from app.pages.widgets.asking import settings_toggle
from app.pages.widgets.notices import changed_since, progress_bar, time_left
from app.services.comparisons import AGENT, Compared, Comparing, ComparisonOrder, ShownColumn, ToEmbed
from app.services.in_view import RunInView
from core.base.config import SETS, EpisodeConfig
from core.base.types import Workspace
from core.methods.registry import facts_of
from core.methods.sparc.retriever import SPARC
from core.runs.whatif.comparison import comparison_csv, comparison_json
from core.runs.whatif.influence import Influence
from core.views.draw import comparison
from core.views.draw.comparison import MOST_NAMED, ShownComparison
from core.views.draw.nodes import Node, act, h, sends
from core.views.draw.text import found_by, reading_pane
from core.views.draw.words import counted, duration


def shown_comparison(columns: Sequence[ShownColumn], opened: int | None = None) -> ShownComparison:
    """Columns as they are drawn. `opened`: the chunk that is read."""
    run = next((column.run for column in columns if column.run is not None), None)
    if run is None:
        return ShownComparison(columns, (), (), None, opened)
    workspace = run.documents.workspace
    return ShownComparison(columns, workspace.borders.tolist(), run.gold, workspace, opened)


def as_in_explore(
    key: str, order: ComparisonOrder, usual: EpisodeConfig, lifted: Sequence[int] = ()
) -> list[Node]:
    """What Explore has to say about the columns of agents: settings that differ from the agent's own, and
    chunks that are never chosen.

    key: of the method that the agent there is; `usual`: its own settings; `lifted`: chunks forbidden in
    Explore that may be chosen here.
    """
    nodes: list[Node] = []
    words = [] if order.settings is None else settings_words(order.settings, usual)
    if words:
        title = "Temperature, sampling, beam and positions as the agent begins with"
        back = act("defaults", "", "Use its own settings", title=title)
        line = h("span.qx-mut", f"{method_label(key)} runs as in Explore: {', '.join(words)}.")
        nodes.append(h("div.qx-row.qx-sm", line, back))
    if order.forbidden:
        agents = "Q-RAG's columns" if key.startswith(AGENT) else f"Q-RAG's columns and {facts_of(key).label}"
        rest = f"{agents} keep to that, the other methods don't."
        sentence = f"{_chunks(order.forbidden)} forbidden here, as in Explore. {rest}"
        allow = act("lift", "", f"Allow {_them(order.forbidden)} here")
        nodes.append(h("div.qx-row.qx-sm", h("span", sentence), allow))
    if lifted:
        forbid = act("keep", "", f"Forbid {_them(lifted)} here, too")
        line = h("span", f"{_chunks(lifted)} forbidden in Explore, but not here.")
        nodes.append(h("div.qx-row.qx-sm", line, forbid))
    return nodes


def _them(chunk_ids: Sequence[int]) -> str:
    return "it" if len(chunk_ids) == 1 else "them"


def _chunks(chunk_ids: Sequence[int]) -> str:
    """Subject and verb of a sentence, such as "Chunks 3, 8 are"."""
    n, named = len(chunk_ids), ", ".join(f"{chunk_id:,}" for chunk_id in chunk_ids[:MOST_NAMED])
    if n == 1:
        return f"Chunk {named} is"
    return f"Chunks {named}{f' and {n - MOST_NAMED:,} more' if n > MOST_NAMED else ''} are"


def settings_words(config: EpisodeConfig, usual: EpisodeConfig) -> list[str]:
    """Settings that a comparison doesn't set itself and that differ from the agent's own."""
    review, stop = config.review_threshold, config.stop_threshold
    differs = {
        f"temperature {config.temperature:g}": config.temperature != usual.temperature,
        f"seed {config.seed}": config.temperature > 0 and config.seed != usual.seed,
        f"sampling among the best {config.top_k_actions}": config.top_k_actions != usual.top_k_actions,
        f"beam {config.beam_width}": config.beam_width != usual.beam_width,
        "without positions": config.use_positions != usual.use_positions,
        "without a review": review is None is not usual.review_threshold,
        f"a review at Q {review or 0:.2f}": review not in (None, usual.review_threshold),
        f"its own stop at Q {stop or 0:.2f}": stop not in (None, usual.stop_threshold),
    }
    return [words for words, other in differs.items() if other]


def method_label(key: str) -> str:
    """What stands in the list of methods."""
    if key.startswith(AGENT):
        return f"Q-RAG {key.removeprefix(AGENT)}"
    return facts_of(key).long_label or facts_of(key).label


def settings_line(order: ComparisonOrder | None, waits: ToEmbed | None = None) -> list[Node]:
    """What is set, as one sentence that opens the settings; None where a setting is not valid. `waits`: what
    has to be embedded first.
    """
    if order is None:
        return [settings_toggle("qx-compare-settings", h("strong", "Settings to be completed"), [])]
    names = ", ".join(map(method_label, order.methods)) or "no method"
    size = f"stops where the agent does, at {order.k} at most" if order.own_stop else f"{order.k} each"
    words = [size]
    if waits is not None and waits.n_chunks:
        about = "" if waits.seconds is None else f", about {duration(waits.seconds)}"
        for_whom = "all" if len(waits.methods) == len(order.methods) else shorten_list(waits.methods)
        words.append(f"embeds {counted(waits.n_chunks, 'chunk')} first{about}: {for_whom}")
    return [settings_toggle("qx-compare-settings", h("span", h("strong", names)), words)]


def shorten_list(keys: Sequence[str]) -> str:
    """The first methods by their names."""
    named = ", ".join(map(method_label, keys[:3]))
    return f"{named} and {len(keys) - 3} more" if len(keys) > 3 else named


_DOING = {
    "cutting": "cutting, character",
    "embedding": "embedding, chunk",
    "retrieving": "step",
    "branching": "round",
}


def comparing(now: Comparing[Any]) -> list[Node]:
    """Which method or way of cutting is at work, and how far."""
    how_far = f"{now.done:,} of {now.total:,}{time_left(now.seconds_left)}"
    return progress_bar(f"{now.name}: {_DOING[now.stage]} {how_far}", now.name, now.done, max(now.total, 1))


def changes(compared: Compared, order: ComparisonOrder, same_documents: bool) -> list[Node]:
    """Whether what is shown still fits what is asked for."""
    if not compared.columns:
        return []
    then = compared.order
    differs = {
        "document": not same_documents,
        "question": then.query != order.query.strip(),
        "methods": set(then.methods) != set(order.methods),
        "number of chunks": (then.k, then.own_stop) != (order.k, order.own_stop),
        "forbidden chunks": then.forbidden != order.forbidden,
        "agent settings": then.settings != order.settings,
    }
    return changed_since("these columns were made", differs, act("again", "", "Compare again"))


EMPTY = "Ask a question. You will see what each method finds, and what only one of them finds."


def results(
    compared: Compared, columns: Sequence[ShownColumn], owed: Mapping[int, Influence] | None = None
) -> list[Node]:
    """The columns side by side. `owed`: by position, what the choices of a column owe to those before."""
    if not columns:
        return [h("p.qx-empty", EMPTY)]
    acts = {
        at: _acts(at, column.run, explained=at in (owed or {}))
        for at, column in enumerate(columns)
        if column.run is not None
    }
    return [comparison.columns(shown_comparison(columns, compared.chunk_id), acts, owed)]


def _acts(at: int, run: RunInView, *, explained: bool) -> list[Node]:
    """What can be done with a column."""
    opens: list[Node] = []
    method = run.trace.started.method
    if run.method.looks_again:
        title = "What each choice owes to those before it: Q without each of them"
        if len(run.trace.steps) > 1:
            kind = "qx-btn" + ".qx-pressed" * explained
            opens.append(sends(kind, "why", at, "Why", aria_pressed=explained, title=title))
        opens.append(_opens(at, "Explore", "all its steps, to go on from"))
    if method == SPARC:
        opens.append(_opens(at, "SPARC", "all its branches"))
    if method in SETS:
        opens.append(_opens(at, "Evidence sets", "the chance of every chunk, at any budget"))
    return opens


def _opens(at: int, page: str, brings: str) -> Node:
    """The name of the page would take a line more in a column's head than the other columns have."""
    title = f"Open this in {page}, with {brings}"
    return act("explore", at, "Open", aria_label=f"Open in {page}", title=title)


def heading(compared: Compared, columns: Sequence[ShownColumn], workspace: Workspace | None) -> list[Node]:
    """What was asked, how the columns were sized, and the exports."""
    if not columns or workspace is None:
        return [h("h3", "Side by side")]
    query, order = compared.order.query.strip(), compared.order
    size = f"{counted(order.k, 'chunk')} each"
    if order.own_stop:
        size = f"agents stop by themselves, at {order.k} at the latest; the others follow the first"
    support = next((column.run.gold for column in columns if column.run), ())
    record = json.dumps(comparison_json(query, columns, workspace, support), ensure_ascii=False, indent=1)
    sheet = comparison_csv(query, columns, workspace, support)
    address = part_of(compare=[column.run.run_id for column in columns if column.run])
    takes = [
        act("copy-link", f"?tab=compare&{address}", "Copy link", title="The address of this comparison"),
        act("export", "", "Page (HTML)", title="These columns as one page, live without a network"),
        act("download", record, "JSON", data_name="comparison.json"),
        act("download", sheet, "CSV", data_name="comparison.csv"),
    ]
    asked = h("h3", {"dir": "auto"}, query)
    return [h("div.qx-row", asked, h("span.qx-mut.qx-sm", size), h("span.qx-grow"), *takes)]


def support(columns: Sequence[ShownColumn]) -> list[Node]:
    """On a labelled question: where each support chunk stood at each method's first look, and if chosen."""
    return comparison.support(shown_comparison(columns))


def common(columns: Sequence[ShownColumn]) -> list[Node]:
    """Which chunks were found by all, by some, by one; and how much any two methods share."""
    return comparison.common(shown_comparison(columns))


def reading(compared: Compared, columns: Sequence[ShownColumn], workspace: Workspace) -> list[Node]:
    """The text around the open chunk; what any method found carries its colour and how many found it."""
    if compared.chunk_id is None:
        return []
    comparison = shown_comparison(columns)
    pins = {
        chunk_id: (comparison.paint[chunk_id], found_by(names, f"{len(names)}×"))
        for chunk_id, names in comparison.finders.items()
    }
    title = "Edit its text or leave it out, and ask the agents again"
    change = act("change", compared.chunk_id, "Change this chunk", title=title)
    names = comparison.finders.get(compared.chunk_id, ())
    words = f"Found by {', '.join(names)}." if names else "No method found it."
    place = compared.chunk_id, compared.anchor
    return reading_pane(workspace, *place, words, comparison.support, pins, change)
