"""Comparisons as trees of plain data for the page.

Pure functions, one per panel (see components.tree). Decides wording, and that a chunk which several methods
found has one colour everywhere, while one that a single method found is hollow.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from app.in_view import RunInView
from app.pages.compare.actions import (
    AGENT,
    OFFERED,
    Compared,
    Comparing,
    ComparisonOrder,
    ShownColumn,
)
from app.pages.widgets.asking import settings_toggle
from app.pages.widgets.notices import notice
from core.config import EpisodeConfig
from core.draw.answers import in_column
from core.draw.nodes import Node, act, h
from core.draw.tables import table
from core.draw.text import crumb, document_page, page_around, turn_pages
from core.draw.trail import trail_table
from core.draw.words import EXPLAIN, counted, duration, shorten, step_class, stop_words
from core.log.page import review_words
from core.prose import plain
from core.resrag.action import SETS
from core.sparc.retriever import SPARC
from core.tiles import tile
from core.types import Workspace
from core.whatif.comparison import (
    comparison_csv,
    comparison_json,
    first_look_rank,
    found_by,
    looks,
    overlap,
    sets,
)
from core.whatif.influence import Influence

BARS = 160
"""Bars of a picture at most: each is the best of its chunks."""
PICTURE_HEIGHT = 80
LEADERS = 10
"""Height of the lines from the pins to their chunks, in pixels."""
_LEAST_ROW = 13
_PIN_GAP = 8.0
"""Percent of a column's width between two pins."""
_LEVELS = 9
"""Of the colour scale."""
_MOST_NAMED = 12
"""Forbidden chunks that are listed."""
HOLLOW = "qx-solo"
"""Class of a chunk that one method alone found."""

Colours = Mapping[int, str]
"""CSS class of each chunk that was chosen."""


def colours(finders: Mapping[int, Sequence[str]], taken_back: Iterable[int] = ()) -> dict[int, str]:
    """A class a chunk: the steps' colours one after the other for what several found, hollow
    for the others.
    """
    shared = [chunk_id for chunk_id, names in finders.items() if len(names) > 1]
    return {
        chunk_id: step_class(shared.index(chunk_id) + 1) if chunk_id in shared else HOLLOW
        for chunk_id in (*finders, *taken_back)
    }


def kept_by(columns: Sequence[ShownColumn]) -> dict[str, tuple[int, ...]]:
    """Chunks in order of choice, without those taken back, by column; columns that refused are left out."""
    return {column.name: column.run.trace.kept for column in columns if column.run is not None}


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
        back = act(
            "defaults",
            "",
            "Use its own settings",
            title="Temperature, sampling, beam and positions as the agent begins with",
        )
        nodes.append(
            h(
                "div",
                {"class": "qx-row qx-sm"},
                h(
                    "span",
                    {"class": "qx-mut"},
                    f"{method_label(key)} runs as in Explore: {', '.join(words)}.",
                ),
                back,
            )
        )
    if order.forbidden:
        agents = "Q-RAG's columns" if key.startswith(AGENT) else f"Q-RAG's columns and {OFFERED[key].label}"
        sentence = (
            f"{_chunks(order.forbidden)} forbidden here, as in Explore. {agents} keep to that, the other"
            " methods don't."
        )
        allow = act("lift", "", "Allow it here" if len(order.forbidden) == 1 else "Allow them here")
        nodes.append(h("div", {"class": "qx-row qx-sm"}, h("span", None, sentence), allow))
    if lifted:
        forbid = act("keep", "", "Forbid it here, too" if len(lifted) == 1 else "Forbid them here, too")
        nodes.append(
            h(
                "div",
                {"class": "qx-row qx-sm"},
                h("span", None, f"{_chunks(lifted)} forbidden in Explore, but not here."),
                forbid,
            )
        )
    return nodes


def _chunks(chunk_ids: Sequence[int]) -> str:
    """Subject and verb of a sentence, such as "Chunks 3, 8 are"."""
    n, named = len(chunk_ids), ", ".join(f"{chunk_id:,}" for chunk_id in chunk_ids[:_MOST_NAMED])
    return (
        f"Chunk {named} is"
        if n == 1
        else f"Chunks {named}{f' and {n - _MOST_NAMED:,} more' if n > _MOST_NAMED else ''} are"
    )


def settings_words(config: EpisodeConfig, usual: EpisodeConfig) -> list[str]:
    """Settings that a comparison doesn't set itself and that differ from the agent's own."""
    differs = {
        f"temperature {config.temperature:g}": config.temperature != usual.temperature,
        f"seed {config.seed}": config.temperature > 0 and config.seed != usual.seed,
        f"sampling among the best {config.top_k_actions}": config.top_k_actions != usual.top_k_actions,
        f"beam {config.beam_width}": config.beam_width != usual.beam_width,
        "without positions": config.use_positions != usual.use_positions,
        "without a review": config.review_threshold is None is not usual.review_threshold,
        f"a review at Q {config.review_threshold or 0:.2f}": (
            config.review_threshold not in (None, usual.review_threshold)
        ),
        f"its own stop at Q {config.stop_threshold or 0:.2f}": (
            config.stop_threshold not in (None, usual.stop_threshold)
        ),
    }
    return [words for words, other in differs.items() if other]


def method_label(key: str) -> str:
    """What stands in the list of methods."""
    return (
        f"Q-RAG {key.removeprefix(AGENT)}"
        if key.startswith(AGENT)
        else OFFERED[key].long_label or OFFERED[key].label
    )


def settings_line(order: ComparisonOrder | None) -> list[Node]:
    """What is set, as one sentence that opens the settings; None where a setting is not valid."""
    if order is None:
        return [settings_toggle("qx-compare-settings", h("strong", None, "Settings to be completed"), [])]
    names = ", ".join(map(method_label, order.methods)) or "no method"
    size = f"stops where the agent does, at {order.k} at most" if order.own_stop else f"{order.k} each"
    return [settings_toggle("qx-compare-settings", h("span", None, h("strong", None, names)), [size])]


_DOING = {
    "cutting": "cutting, character",
    "embedding": "embedding, chunk",
    "retrieving": "step",
    "branching": "round",
}


def comparing(now: Comparing[Any]) -> list[Node]:
    """Which method or way of cutting is at work, and how far."""
    left = "" if now.seconds_left is None else f" · about {duration(now.seconds_left)} left"
    words = f"{now.name}: {_DOING[now.stage]} {now.done:,} of {now.total:,}{left}"
    bar = h("progress", {"value": now.done, "max": max(now.total, 1), "aria-label": now.name})
    return [h("div", {"class": "qx-progress", "role": "status"}, h("span", None, words), bar)]


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
    words = ", ".join(name for name, changed in differs.items() if changed)
    return notice(
        f"The columns below were made with another {words}." if words else "",
        "outdated",
        act("again", "", "Compare again"),
    )


EMPTY = (
    "Press Compare: the same question goes through each method, and what each one found stands in a column of"
    " its own."
)


def results(
    compared: Compared, columns: Sequence[ShownColumn], owed: Mapping[int, Influence] | None = None
) -> list[Node]:
    """The columns side by side. `owed`: by position, what the choices of a column owe to those before."""
    if not columns:
        return [h("p", {"class": "qx-empty"}, EMPTY)]
    found = found_by(kept_by(columns))
    paint = colours(
        found,
        (
            chunk_id
            for column in columns
            if column.run is not None
            for chunk_id in column.run.trace.taken_back
        ),
    )
    n_columns = sum(column.run is not None for column in columns)
    cells = [
        _column(at, column, found, paint, n_columns, compared, (owed or {}).get(at))
        for at, column in enumerate(columns)
    ]
    return [h("div", {"class": "qx-columns"}, *cells)]


def heading(compared: Compared, columns: Sequence[ShownColumn], workspace: Workspace | None) -> list[Node]:
    """What was asked, how the columns were sized, and the exports."""
    if not columns or workspace is None:
        return [h("h3", None, "Columns")]
    query, order = compared.order.query.strip(), compared.order
    size = (
        f"agents stop by themselves, at {order.k} at the latest; the others follow the first"
        if order.own_stop
        else f"{counted(order.k, 'chunk')} each"
    )
    support = next((column.run.gold for column in columns if column.run), ())
    told = [column.column for column in columns]
    record = json.dumps(comparison_json(query, told, workspace, support), ensure_ascii=False, indent=1)
    sheet = comparison_csv(query, told, workspace, support)
    return [
        h(
            "div",
            {"class": "qx-row"},
            h("h3", None, query),
            h("span", {"class": "qx-mut qx-sm"}, size),
            h("span", {"class": "qx-grow"}),
            h(
                "button",
                {
                    "class": "qx-btn",
                    "data-act": "download",
                    "data-arg": record,
                    "data-name": "comparison.json",
                },
                "Download JSON",
            ),
            h(
                "button",
                {"class": "qx-btn", "data-act": "download", "data-arg": sheet, "data-name": "comparison.csv"},
                "CSV",
            ),
        )
    ]


def _column(
    at: int,
    column: ShownColumn,
    finders: Mapping[int, Sequence[str]],
    paint: Colours,
    n_columns: int,
    compared: Compared,
    owed: Influence | None,
) -> Node:
    if column.run is None:
        head = h("div", {"class": "qx-column-head"}, h("h4", None, column.name))
        return h(
            "section",
            {"class": "qx-column", "aria-label": column.name},
            head,
            h("div", None),
            h("div", None, *notice(column.refused)),
        )
    run = column.run
    cards = [
        _card(
            at,
            run,
            place,
            finders,
            paint,
            n_columns,
            compared.chunk_id,
            _owed(run, place, owed[place], paint) if owed and place else None,
        )
        for place in range(len(run.trace.steps))
    ]
    nothing = h("p", {"class": "qx-empty"}, "It chose nothing.")
    stops = h(
        "p",
        {"class": "qx-sm qx-mut qx-column-stop"},
        f"{stop_words(run.trace, run.method.score_name)} {review_words(run.trace)}".rstrip(),
    )
    return h(
        "section",
        {"class": "qx-column", "aria-label": column.name},
        _head(at, column, run, explained=owed is not None),
        _picture(at, run, paint),
        h("div", None, h("ol", {"class": "qx-found"}, *cards) if cards else nothing, stops),
    )


def _head(at: int, column: ShownColumn, run: RunInView, *, explained: bool) -> Node:
    method = run.trace.started.method
    tokens = sum(run.documents.workspace[chunk_id].n_tokens for chunk_id in run.trace.evidence)
    facts = [
        h(
            "span",
            {"class": "qx-kv", "title": "Length of its evidence, in tokens", "tabindex": "0"},
            f"{tokens:,} tokens",
        ),
        h(
            "span",
            {
                "class": "qx-kv",
                "title": "Wall clock of retrieval, vectors and indexes being there",
                "tabindex": "0",
            },
            f"{column.milliseconds:,.0f} ms",
        ),
    ]
    if run.gold:
        hits = len({*run.gold} & {*run.trace.evidence})
        full = " qx-hit" if hits == len(run.gold) else ""
        facts.append(
            h(
                "span",
                {"class": f"qx-mark{full}", "title": "Support chunks in its evidence"},
                f"{hits} of {len(run.gold)} support",
            )
        )
    if run.config.forbidden:
        without = (
            "Forbidden in Explore: chunk"
            f" {', '.join(f'{chunk_id:,}' for chunk_id in run.config.forbidden[:_MOST_NAMED])}"
        )
        facts.append(
            h(
                "span",
                {"class": "qx-mark", "title": without, "tabindex": "0"},
                f"{counted(len(run.config.forbidden), 'chunk')} forbidden",
            )
        )
    if run.method.trained and run.documents.notices:
        about = ". ".join(run.documents.notices)
        facts.append(
            h(
                "span",
                {"class": "qx-mark qx-warn", "title": about, "tabindex": "0", "aria-label": about},
                "notice",
            )
        )
    opens: list[Node] = []
    if run.method.looks_again:
        pressed = {
            "aria-pressed": str(explained).lower(),
            "title": "What each choice owes to those before it: Q without each of them",
        }
        if len(run.trace.steps) > 1:
            opens.append(
                h(
                    "button",
                    {
                        "class": "qx-btn" + " qx-pressed" * explained,
                        "data-act": "why",
                        "data-arg": str(at),
                        **pressed,
                    },
                    "Why",
                )
            )
        opens.append(
            act("explore", at, "Open in Explore", title="This run with all its steps, to go on from")
        )
    if method == SPARC:
        opens.append(act("explore", at, "Open in SPARC", title="This run with all its branches"))
    if method in SETS:
        title = "This set with the chance of every chunk, at any budget"
        opens.append(act("explore", at, "Open in Evidence sets", title=title))
    return h(
        "div",
        {"class": "qx-column-head"},
        h(
            "div",
            {"class": "qx-row"},
            h("h4", {"title": run.method.sentence, "tabindex": "0", "class": "qx-help"}, column.name),
            h("span", {"class": "qx-grow"}),
            *opens,
        ),
        h("div", {"class": "qx-row qx-sm qx-mut"}, *facts),
        in_column(run.answer, at, run.known_answer),
    )


def _owed(run: RunInView, place: int, without: Sequence[float], paint: Colours) -> Node:
    """By how much each earlier choice raised Q of this one."""
    chips = []
    for earlier, q_value in enumerate(without):
        chunk_id, change = run.trace.chosen[earlier], run.trace.steps[place].q_value - q_value
        moved = f"raised it by {change:.3f}" if change >= 0 else f"lowered it by {-change:.3f}"
        sentence = (
            f"Without choice {earlier + 1}, chunk {chunk_id:,}, Q of this one would be {q_value:.3f}: that"
            f" choice {moved}"
        )
        pin = h("span", {"class": f"qx-pin {paint[chunk_id]}"}, str(earlier + 1))
        chips.append(
            h(
                "span",
                {"class": "qx-kv", "title": sentence, "tabindex": "0", "aria-label": sentence},
                pin,
                f"{change:+.3f}",
            )
        )
    return h("div", {"class": "qx-kvs qx-sm"}, h("span", {"class": "qx-mut"}, "owed to"), *chips)


def _card(
    at: int,
    run: RunInView,
    place: int,
    finders: Mapping[int, Sequence[str]],
    paint: Colours,
    n_columns: int,
    opened: int | None,
    owed: Node | None,
) -> Node:
    step = run.trace.steps[place]
    chunk_id, names = step.chunk_id, finders.get(step.chunk_id, ())
    marks: list[Node] = []
    if chunk_id in run.trace.taken_back:
        marks.append(
            h("span", {"class": "qx-mark qx-warn", "title": EXPLAIN["review"], "tabindex": "0"}, "taken back")
        )
    elif n_columns > 1:
        marks.append(_shared_by(names, n_columns))
    if chunk_id in run.gold:
        marks.append(
            h("span", {"class": "qx-mark qx-hit", "title": "The answer needs this chunk"}, "support")
        )
    link = {
        "class": "qx-link",
        "data-act": "open",
        "data-arg": f"{chunk_id} {at}",
        "aria-pressed": str(chunk_id == opened).lower(),
    }
    return h(
        "li",
        {"class": f"qx-step {paint[chunk_id]}" + " qx-on" * (chunk_id == opened), "data-same": str(chunk_id)},
        h(
            "div",
            {"class": "qx-step-head"},
            h("span", {"class": "qx-pin"}, str(place + 1)),
            h("button", link, f"chunk {chunk_id:,}"),
            *marks,
        ),
        h("div", {"class": "qx-sm qx-mut"}, f"{run.method.score_name} {step.q_value:.3f}"),
        owed,
        h("p", {"class": "qx-quote qx-sm"}, shorten(plain(step.text), 200)),
    )


def _shared_by(names: Sequence[str], n_columns: int) -> Node:
    words = (
        "all"
        if len(names) == n_columns
        else "only here"
        if len(names) == 1
        else f"{len(names)} of {n_columns}"
    )
    sentence = "No other method found it" if len(names) == 1 else f"Found by {', '.join(names)}"
    return h("span", {"class": "qx-mark", "title": sentence, "tabindex": "0"}, words)


# The picture on top of a column


def _picture(at: int, run: RunInView, paint: Colours) -> Node:
    """Where the method looked: a row of bars a look, each chosen chunk as a line in the look that chose it,
    pins on top, support below.
    """
    seen = looks(run.trace)
    n, chosen = run.n_chunks, run.trace.chosen
    if not seen and not chosen:
        return h("div", {"class": "qx-picture"}, h("p", {"class": "qx-empty qx-sm"}, "It looked at nothing."))
    lo, hi = _scale(seen) if seen else (0.0, 1.0)
    row = max(_LEAST_ROW, PICTURE_HEIGHT // max(len(seen), 1))
    height = LEADERS + row * len(seen)
    centres = {chunk_id: 100 * (chunk_id + 0.5) / n for chunk_id in chosen}
    pins = spread_pins(centres)
    drawing: list[Node] = []
    for look, (scores, taken) in enumerate(seen):
        base = LEADERS + row * (look + 1)
        drawing += _bars(scores, lo, hi, base, row - 2)
        drawing += [_line(centres[i], base - row + 2, base, f"qx-stem {paint[i]}") for i in taken]
    if not seen:  # SPARC's branches see only what they retrieve
        height = LEADERS + row
        drawing += [_line(centres[i], LEADERS, height, f"qx-stem {paint[i]}") for i in chosen]
    drawing += [
        _line(100 * int(first) / n, LEADERS, height, "qx-border")
        for first in run.documents.workspace.borders[1:-1]
    ]
    drawing += [
        h(
            "path",
            {"class": f"qx-stem {paint[i]}", "d": f"M{10 * pins[i]:.1f} 0L{10 * centres[i]:.1f} {LEADERS}"},
        )
        for i in chosen
    ]
    words = (
        f"{run.method.score_name} of {n:,} chunks along the document, {counted(len(seen), 'look')}; chosen:"
        f" {', '.join(map(str, chosen)) or 'none'}"
    )
    attributes = {
        "viewBox": f"0 0 1000 {height}",
        "preserveAspectRatio": "none",
        "height": str(height),
        "role": "img",
        "aria-label": words,
    }
    again = run.method.looks_again and len(seen) > 1
    told = f"{counted(len(seen), 'look')}, a row each · " if again else ""
    scale = (
        f"{told}{run.method.score_name} {lo:.2f} to {hi:.2f}"
        if seen
        else "its branches score only what they retrieve"
    )
    return h(
        "div",
        {"class": "qx-picture"},
        h(
            "div",
            {"class": "qx-pins"},
            *(_pin(at, i, place, pins[i], paint[i]) for place, i in enumerate(chosen, start=1)),
        ),
        h("svg", attributes, *drawing),
        h("div", {"class": "qx-golds"}, *(_gold(i, n) for i in run.gold)) if run.gold else None,
        h("p", {"class": "qx-sm qx-mut"}, scale),
    )


def _scale(seen: Sequence[tuple[np.ndarray, tuple[int, ...]]]) -> tuple[float, float]:
    """Ends of the bars: from 0, or the least score where that is lower, to the greatest of all looks."""
    lo, hi = min(float(scores.min()) for scores, _ in seen), max(float(scores.max()) for scores, _ in seen)
    return min(lo, 0.0), max(hi, lo + 1e-6, 1e-6)


def _bars(scores: np.ndarray, lo: float, hi: float, base: int, height: int) -> list[Node]:
    """One path a colour, of the bars that stand on `base`."""
    best = tile(scores, 0, len(scores), BARS).maxima
    share = np.clip((best - lo) / (hi - lo), 0.0, 1.0)
    level = np.minimum((share * _LEVELS).astype(int), _LEVELS - 1)
    edges = np.linspace(0, 1000, len(best) + 1)
    tops = base - np.maximum(1.0, share * height)
    nodes: list[Node] = []
    for shade in np.unique(level).tolist():
        d = "".join(
            f"M{edges[k]:.1f} {base}V{tops[k]:.1f}H{edges[k + 1]:.1f}V{base}Z"
            for k in np.flatnonzero(level == shade)
        )
        nodes.append(h("path", {"class": f"qx-shade{shade}", "d": d}))
    return nodes


def _line(percent: float, top: int, bottom: int, kind: str) -> Node:
    return h("path", {"class": kind, "d": f"M{10 * percent:.1f} {top}V{bottom}"})


def _pin(at: int, chunk_id: int, place: int, percent: float, colour: str) -> Node:
    attributes = {
        "class": f"qx-pin {colour}",
        "--x": f"{percent:.2f}%",
        "data-act": "show",
        "data-arg": f"{chunk_id} {at}",
        "data-same": str(chunk_id),
    }
    return h(
        "button",
        {
            **attributes,
            "title": f"Choice {place}: chunk {chunk_id:,}",
            "aria-label": f"Choice {place}: chunk {chunk_id:,}",
        },
        str(place),
    )


def _gold(chunk_id: int, n: int) -> Node:
    return h(
        "span",
        {
            "class": "qx-gold-ring",
            "--x": f"{100 * (chunk_id + 0.5) / n:.2f}%",
            "title": f"chunk {chunk_id:,} is support",
        },
    )


def spread_pins(centres: Mapping[int, float]) -> dict[int, float]:
    """Percent across for each pin: in the order of their chunks, as near to them as keeps the numbers
    readable (least squares).

    >>> spread_pins({5: 50.0, 6: 51.0})
    {5: 46.5, 6: 54.5}
    """
    order = sorted(centres, key=lambda chunk_id: centres[chunk_id])
    lo, hi = _PIN_GAP / 2, 100 - _PIN_GAP / 2
    gap = min(_PIN_GAP, (hi - lo) / max(1, len(order) - 1))
    groups: list[tuple[float, int]] = []  # (mean place of the first pin, pins) of those that touch
    for at, chunk_id in enumerate(order):
        groups.append((centres[chunk_id] - gap * at, 1))
        while len(groups) > 1 and groups[-2][0] > groups[-1][0]:
            (second, m), (first, n) = groups.pop(), groups.pop()
            groups.append(((first * n + second * m) / (n + m), n + m))
    firsts = [min(max(mean, lo), hi - gap * (len(order) - 1)) for mean, size in groups for _ in range(size)]
    return {chunk_id: firsts[at] + gap * at for at, chunk_id in enumerate(order)}


# Below the columns


def common(columns: Sequence[ShownColumn]) -> list[Node]:
    """Which chunks were found by all, by some, by one; and how much any two methods share."""
    kept = kept_by(columns)
    if len(kept) < 2:
        return []
    found, kinds = found_by(kept), sets(kept)
    paint = colours(found)
    shared: list[tuple[str, Sequence[int]]] = [("found by all", kinds.by_all), ("by some", kinds.by_some)]
    alone = [
        (f"by {name} only", [chunk_id for chunk_id in ids if chunk_id in kinds.by_one])
        for name, ids in kept.items()
    ]
    lists = [_set(words, ids, paint) for words, ids in (*shared, *alone) if ids]
    counts = [f"{len(ids):,} {words}" for words, ids in (*shared, ("by one only", kinds.by_one))]
    return [
        h("h3", None, "What they have in common"),
        h("p", {"class": "qx-sm qx-mut"}, " · ".join(counts)),
        h("dl", {"class": "qx-fields qx-sm"}, *(part for pair in lists for part in pair)),
        h(
            "h4",
            {
                "title": "Chunks that both found; in brackets their share of all that either found (Jaccard)",
                "tabindex": "0",
                "class": "qx-help",
            },
            "Overlap",
        ),
        _overlaps(kept),
    ]


def _set(words: str, ids: Sequence[int], paint: Colours) -> tuple[Node, Node]:
    chips = [
        h(
            "button",
            {
                "class": f"qx-mark qx-set-chip {paint[i]}",
                "data-act": "open",
                "data-arg": str(i),
                "data-same": str(i),
                "aria-label": f"chunk {i:,}",
            },
            f"{i:,}",
        )
        for i in ids
    ]
    return h("dt", {"class": "qx-mut"}, words), h("dd", {"class": "qx-chips"}, *chips)


def _overlaps(kept: Mapping[str, Sequence[int]]) -> Node:
    names = list(kept)
    rows = []
    for a in names:
        cells = []
        for b in names:
            share = overlap(kept[a], kept[b])
            both = len({*kept[a]} & {*kept[b]})
            cells.append(
                h(
                    "td",
                    {"class": "qx-mut"} if a == b else None,
                    "" if a == b else f"{both}" if share is None else f"{both} ({share:.2f})",
                )
            )
        rows.append(h("tr", None, h("th", {"scope": "row"}, a), *cells))
    return table(["method", *names], rows, "Overlap")


def support(columns: Sequence[ShownColumn]) -> list[Node]:
    """On a labelled question: where each support chunk stood at every method's first look, and whether it was
    chosen.
    """
    answered = [(column.name, column.run) for column in columns if column.run is not None]
    gold = answered[0][1].gold if answered else ()
    if not gold:
        return []
    workspace = answered[0][1].documents.workspace
    rows = []
    for chunk_id in gold:
        link = h(
            "button",
            {"class": "qx-link", "data-act": "open", "data-arg": str(chunk_id), "data-same": str(chunk_id)},
            f"chunk {chunk_id:,}",
        )
        text = h("div", {"class": "qx-support-text"}, shorten(plain(workspace[chunk_id].text), 90))
        rows.append(
            h(
                "tr",
                None,
                h("td", None, link, text),
                *(h("td", None, *_standing(run, chunk_id)) for _, run in answered),
            )
        )
    sentence = (
        "Place among all chunks when only the question was known: where one-step retrieval by this method"
        " would have put it"
    )
    return [
        h("h3", None, "Support of this question"),
        h("p", {"class": "qx-sm qx-mut"}, f"{sentence}; a tick where the method chose it, with the step."),
        table(["support chunk", *(name for name, _ in answered)], rows, "Support chunks"),
        h(
            "div",
            {"class": "qx-beside"},
            *(_trail(name, run) for name, run in answered if run.method.looks_again),
        ),
    ]


def _trail(name: str, run: RunInView) -> Node:
    """Rank of the support at every look of an agent."""
    title = f"{name}: rank at every step"
    return h("div", None, h("h4", None, title), trail_table(run.trace, run.gold, title))


def _standing(run: RunInView, chunk_id: int) -> list[Node]:
    rank = first_look_rank(run.trace, chunk_id)
    shown = (
        "no shared word"
        if rank is None and run.method.zero_is_none
        else "not ranked"
        if rank is None
        else f"rank {rank:,}"
    )
    place = h("span", {"class": "qx-mut"}, shown)
    if chunk_id not in run.trace.chosen:
        return [place]
    return [h("span", {"class": "qx-mark qx-hit"}, f"✓ {run.trace.chosen.index(chunk_id) + 1}"), " ", place]


def reading(compared: Compared, columns: Sequence[ShownColumn], workspace: Workspace) -> list[Node]:
    """The text around the open chunk; what any method found carries its colour and how many found it."""
    if compared.chunk_id is None:
        return []
    found = found_by(kept_by(columns))
    paint = colours(found)
    gold = {chunk_id for column in columns if column.run for chunk_id in column.run.gold}
    centre = compared.chunk_id if compared.anchor is None else compared.anchor
    page = page_around(workspace, centre)

    def mark(chunk_id: int) -> tuple[list[str], Node | None]:
        classes = ["qx-gold"] * (chunk_id in gold)
        if chunk_id not in found:
            return classes, None
        names = found[chunk_id]
        return ["qx-chosen", paint[chunk_id], *classes], h(
            "span", {"class": "qx-pin", "title": f"Found by {', '.join(names)}"}, f"{len(names)}×"
        )

    change = act(
        "change",
        compared.chunk_id,
        "Change this chunk",
        title="Edit its text or leave it out, and ask the agents again",
    )
    names = found.get(compared.chunk_id, ())
    told = f"Found by {', '.join(names)}." if names else "No method found it."
    return [
        h(
            "div",
            {"class": "qx-read-head"},
            h("div", None, crumb(workspace, centre, compared.chunk_id), h("div", {"class": "qx-sm"}, told)),
            h(
                "div",
                {"class": "qx-read-actions"},
                *turn_pages(workspace, page),
                change,
                act("close", "", "Close"),
            ),
        ),
        document_page(workspace, page, compared.chunk_id, mark),
    ]
