"""Comparisons as trees of plain data, for pages here and exported.

A function a panel. A chunk which several methods found has one colour everywhere, while one that a single
method found is hollow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from core.answer.evidence import EvidenceAnswer
from core.base.events import StepTaken, Trace
from core.base.metrics import jaccard
from core.base.types import Workspace
from core.corpus.tiles import tile
from core.corpus.words import content_words
from core.methods.registry import facts_of
from core.views.draw.answers import PassageOf, in_column, marked
from core.views.draw.nodes import Node, chunk_link, h, link_to, sends, tip
from core.views.draw.tables import table
from core.views.draw.trail import trail_table
from core.views.draw.words import EXPLAIN, counted, step_class
from core.views.ending import end_sentence, review_sentence
from core.views.findings import Column, first_look_rank, found_by, looks, sets
from core.views.quotes import CARD, alone, choice_in, passage_in, quoted

BARS = 160
"""Bars of a picture at most: each is the best of its chunks."""
PICTURE_HEIGHT = 80
LEADERS = 10
"""Height of the lines from the pins to their chunks, in pixels."""
_LEAST_ROW = 13
_PIN_GAP = 8.0
"""Percent of a column's width between two pins."""
_LEVELS = 9
MOST_NAMED = 12
"""Forbidden chunks that are listed."""
WALL_CLOCK = "Time of retrieval, without embedding"
HOLLOW = "qx-solo"
"""Class of a chunk that one method alone found."""

Colours = Mapping[int, str]
"""CSS class of each chunk that was chosen."""


@dataclass(frozen=True, eq=False)
class ShownComparison:
    """Columns over the same chunks."""

    columns: Sequence[Column]
    borders: Sequence[int]
    """First chunk of every document, and the number of all."""
    support: tuple[int, ...] = ()
    workspace: Workspace | None = None
    """What was searched; None where its texts stay out."""
    opened: int | None = None
    """Chunk that is read."""

    @cached_property
    def answered(self) -> dict[str, Trace]:
        """Runs by column; columns that refused are left out."""
        return {column.name: column.trace for column in self.columns if column.trace is not None}

    @cached_property
    def picks(self) -> dict[str, tuple[int, ...]]:
        """Chunks in order of choice, without those taken back, by column."""
        return {name: trace.picks for name, trace in self.answered.items()}

    def passage_of(self, trace: Trace) -> PassageOf | None:
        """The chunks of a run by their ids; None where texts stay out."""
        if self.workspace is not None:
            return partial(passage_in, self.workspace)
        texts = {step.chunk_id: step.text for step in trace.steps if step.text}
        return (lambda chunk_id: alone(texts.get(chunk_id, ""))) if texts else None

    @cached_property
    def finders(self) -> dict[int, tuple[str, ...]]:
        """Who found each chunk."""
        return found_by(self.picks)

    @cached_property
    def paint(self) -> Colours:
        """Colours of all that was chosen."""
        return colours(self.finders, (i for trace in self.answered.values() for i in trace.taken_back))


def colours(finders: Mapping[int, Sequence[str]], taken_back: Iterable[int] = ()) -> dict[int, str]:
    """A class a chunk: the steps' colours in turn for what several found, hollow for the others."""
    shared = [chunk_id for chunk_id, names in finders.items() if len(names) > 1]
    return {
        chunk_id: step_class(shared.index(chunk_id) + 1) if chunk_id in shared else HOLLOW
        for chunk_id in (*finders, *taken_back)
    }


def columns(
    comparison: ShownComparison,
    acts: Mapping[int, Sequence[Node]] | None = None,
    owed: Mapping[int, Sequence[Sequence[float]]] | None = None,
) -> Node:
    """The columns side by side. By position of the column, `acts`: what can be done with it,
    `owed`: for each of its choices Q without each of those before, where that is asked for.
    """
    acts, owed = acts or {}, owed or {}
    places = range(len(comparison.columns))
    return h("div.qx-columns", *(_column(comparison, at, acts.get(at, ()), owed.get(at)) for at in places))


def _refusal(column: Column) -> Node:
    head = h("div.qx-column-head", h("h4", column.name))
    notice = h("div.qx-notice.qx-error", {"role": "alert"}, h("span", column.refused))
    return h("section.qx-column", {"aria-label": column.name}, head, h("div"), notice)


def _column(
    comparison: ShownComparison, at: int, acts: Sequence[Node], owed: Sequence[Sequence[float]] | None
) -> Node:
    column = comparison.columns[at]
    trace = column.trace
    if trace is None:
        return _refusal(column)
    cards, words = [], content_words(trace.started.query)
    for place, step in enumerate(trace.steps):
        owes = _owed(trace, place, owed[place], comparison.paint) if owed and place else None
        quote = _quote(comparison, step, column.answer, words)
        cards.append(_card(comparison, at, trace, place, owes, quote))
    end = f"{end_sentence(trace) or 'Cancelled.'} {review_sentence(trace)}".rstrip()
    found = h("ol.qx-found", *cards) if cards else h("p.qx-empty", "It chose nothing.")
    return h(
        "section.qx-column",
        {"aria-label": column.name},
        _head(comparison, at, column, trace, acts),
        _picture(comparison, at, trace),
        h("div", found, h("p.qx-sm.qx-mut.qx-column-stop", end)),
    )


def _head(comparison: ShownComparison, at: int, column: Column, trace: Trace, acts: Sequence[Node]) -> Node:
    method, forbidden = facts_of(trace.started.method), trace.started.config.forbidden
    facts: list[Node] = []
    if comparison.workspace is not None:
        tokens = sum(comparison.workspace[chunk_id].n_tokens for chunk_id in trace.evidence)
        facts.append(tip("span.qx-kv", "Length of its evidence, in tokens", counted(tokens, "token")))
    if column.milliseconds is not None:
        facts.append(tip("span.qx-kv", WALL_CLOCK, f"{column.milliseconds:,.0f} ms"))
    if comparison.support:
        hits, n = len({*comparison.support} & {*trace.evidence}), len(comparison.support)
        about = {"title": "Support chunks in its evidence"}
        facts.append(h("span.qx-mark" + ".qx-hit" * (hits == n), about, f"{hits} of {n} support"))
    if forbidden:
        named = ", ".join(f"{chunk_id:,}" for chunk_id in forbidden[:MOST_NAMED])
        words = f"{counted(len(forbidden), 'chunk')} forbidden"
        facts.append(tip("span.qx-mark", f"Forbidden in Explore: chunk {named}", words))
    if method.trained and column.notices:
        notices = ". ".join(column.notices)
        facts.append(tip("span.qx-mark.qx-warn", notices, "notice", **{"aria-label": notices}))
    name = tip("h4.qx-help", method.sentence, column.name)
    return h(
        "div.qx-column-head",
        h("div.qx-row", name, h("span.qx-grow"), h("span.qx-column-acts", *acts)),
        h("div.qx-row.qx-sm.qx-mut", *facts),
        in_column(column.answer, at, column.known_answer, comparison.passage_of(trace)),
    )


def _owed(trace: Trace, place: int, without: Sequence[float], paint: Colours) -> Node:
    """By how much each earlier choice raised Q of this one."""
    chips = []
    for earlier, q_value in enumerate(without):
        chunk_id, change = trace.chosen[earlier], trace.steps[place].q_value - q_value
        moved = f"raised it by {change:.3f}" if change >= 0 else f"lowered it by {-change:.3f}"
        without_it = f"Without choice {earlier + 1}, chunk {chunk_id:,}, Q of this one would be {q_value:.3f}"
        sentence = f"{without_it}: that choice {moved}"
        pin = h(f"span.qx-pin.{paint[chunk_id]}", str(earlier + 1))
        chips.append(tip("span.qx-kv", sentence, pin, f"{change:+.3f}", **{"aria-label": sentence}))
    return h("div.qx-kvs.qx-sm", h("span.qx-mut", "owed to"), *chips)


def _quote(
    comparison: ShownComparison, step: StepTaken, answer: EvidenceAnswer | None, words: Sequence[str]
) -> Node | None:
    """What counts in a choice; None where texts stay out."""
    if not step.text:
        return None
    place = None if answer is None else answer.place_in(step.chunk_id)
    quote = quoted(choice_in(comparison.workspace, step), place, words, most=CARD)
    return h("p.qx-quote.qx-sm", {"dir": "auto"}, *marked(quote, "em.qx-telling"))


def _card(
    comparison: ShownComparison, at: int, trace: Trace, place: int, owed: Node | None, quote: Node | None
) -> Node:
    step, score_name = trace.steps[place], facts_of(trace.started.method).score_name
    chunk_id, is_open = step.chunk_id, step.chunk_id == comparison.opened
    marks: list[Node] = []
    if chunk_id in trace.taken_back:
        marks.append(tip("span.qx-mark.qx-warn", EXPLAIN["review"], "taken back"))
    elif len(comparison.answered) > 1:
        marks.append(_shared_by(comparison.finders.get(chunk_id, ()), len(comparison.answered)))
    if chunk_id in comparison.support:
        marks.append(h("span.qx-mark.qx-hit", {"title": "The answer needs this chunk"}, "support"))
    link = link_to("open", f"{chunk_id} {at}", f"chunk {chunk_id:,}", aria_pressed=is_open)
    return h(
        f"li.qx-step.{comparison.paint[chunk_id]}" + ".qx-on" * is_open,
        {"data-same": str(chunk_id)},
        h("div.qx-step-head", h("span.qx-pin", str(place + 1)), link, *marks),
        h("div.qx-sm.qx-mut", f"{score_name} {step.q_value:.3f}"),
        owed,
        quote,
    )


def _shared_by(names: Sequence[str], n_columns: int) -> Node:
    words = {n_columns: "all", 1: "only here"}.get(len(names), f"{len(names)} of {n_columns}")
    sentence = "No other method found it" if len(names) == 1 else f"Found by {', '.join(names)}"
    return tip("span.qx-mark", sentence, words)


# The picture on top of a column


def _picture(comparison: ShownComparison, at: int, trace: Trace) -> Node:
    """Where the method looked: a row of bars a look, its choice as a line, pins on top, support below."""
    seen, method = looks(trace), facts_of(trace.started.method)
    n, chosen, paint = trace.started.n_chunks, trace.chosen, comparison.paint
    if not seen and not chosen:
        return h("div.qx-picture", h("p.qx-empty.qx-sm", "It looked at nothing."))
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
    drawing += [_line(100 * int(i) / n, LEADERS, height, "qx-border") for i in comparison.borders[1:-1]]
    for i in chosen:
        way = f"M{10 * pins[i]:.1f} 0L{10 * centres[i]:.1f} {LEADERS}"
        drawing.append(h("path", {"class": f"qx-stem {paint[i]}", "d": way}))
    ids, n_looks = ", ".join(map(str, chosen)) or "none", counted(len(seen), "look")
    words = f"{method.score_name} of {n:,} chunks along the document, {n_looks}; chosen: {ids}"
    view = {"viewBox": f"0 0 1000 {height}", "preserveAspectRatio": "none", "height": str(height)}
    scale = "its branches score only what they retrieve"
    if seen:
        scale = f"{method.score_name} " + f"{lo:.2f} to {hi:.2f}".replace("-", "−")
        scale = f"{n_looks}, a row each · " * (method.looks_again and len(seen) > 1) + scale
    return h(
        "div.qx-picture",
        h("div.qx-pins", *(_pin(at, i, place, pins[i], paint[i]) for place, i in enumerate(chosen, start=1))),
        h("svg", {**view, "role": "img", "aria-label": words}, *drawing),
        h("div.qx-golds", *(_gold(i, n) for i in comparison.support)) if comparison.support else None,
        h("p.qx-sm.qx-mut", scale),
    )


def _scale(seen: Sequence[tuple[np.ndarray, tuple[int, ...]]]) -> tuple[float, float]:
    """Ends of the bars: from 0, or the least score where that is lower, to the greatest of all looks."""
    scores = np.concatenate([scores[np.isfinite(scores)] for scores, _ in seen])
    lo, hi = float(scores.min(initial=0.0)), float(scores.max(initial=-np.inf))
    return lo, max(hi, lo + 1e-6, 1e-6)


def _bars(scores: np.ndarray, lo: float, hi: float, base: int, height: int) -> list[Node]:
    """One path a colour, of the bars that stand on `base`."""
    best = tile(scores, 0, len(scores), BARS).maxima
    share = np.clip((np.nan_to_num(best, nan=lo, posinf=hi, neginf=lo) - lo) / (hi - lo), 0.0, 1.0)
    level = np.minimum((share * _LEVELS).astype(int), _LEVELS - 1)
    edges = np.linspace(0, 1000, len(best) + 1)
    tops = base - np.maximum(1.0, share * height)
    d = dict.fromkeys(np.unique(level).tolist(), "")
    for k, shade in enumerate(level.tolist()):
        d[shade] += f"M{edges[k]:.1f} {base}V{tops[k]:.1f}H{edges[k + 1]:.1f}V{base}Z"
    return [h("path", {"class": f"qx-shade{shade}", "d": bars}) for shade, bars in d.items()]


def _line(percent: float, top: int, bottom: int, kind: str) -> Node:
    return h("path", {"class": kind, "d": f"M{10 * percent:.1f} {top}V{bottom}"})


def _pin(at: int, chunk_id: int, place: int, percent: float, colour: str) -> Node:
    words, across = f"Choice {place}: chunk {chunk_id:,}", {"--x": f"{percent:.2f}%"}
    about = {"data_same": str(chunk_id), "title": words, "aria_label": words, **across}
    return sends(f"qx-pin.{colour}", "show", f"{chunk_id} {at}", str(place), **about)


def _gold(chunk_id: int, n: int) -> Node:
    across = f"{100 * (chunk_id + 0.5) / n:.2f}%"
    return h("span.qx-gold-ring", {"--x": across, "title": f"chunk {chunk_id:,} is support"})


def spread_pins(centres: Mapping[int, float]) -> dict[int, float]:
    """Percent across for each pin: in the order of their chunks, as near to them as keeps the numbers
    readable (least squares).

    >>> spread_pins({5: 50.0, 6: 51.0})
    {5: 46.5, 6: 54.5}
    """
    order = sorted(centres, key=lambda chunk_id: centres[chunk_id])
    n_gaps = len(order) - 1
    lo, hi = _PIN_GAP / 2, 100 - _PIN_GAP / 2
    gap = min(_PIN_GAP, (hi - lo) / max(1, n_gaps))
    groups: list[tuple[float, int]] = []  # (mean place of the first pin, pins) of those that touch
    for at, chunk_id in enumerate(order):
        groups.append((centres[chunk_id] - gap * at, 1))
        while len(groups) > 1 and groups[-2][0] > groups[-1][0]:
            second, m = groups.pop()
            first, n = groups.pop()
            groups.append(((first * n + second * m) / (n + m), n + m))
    firsts = [min(max(mean, lo), hi - gap * n_gaps) for mean, size in groups for _ in range(size)]
    return {chunk_id: firsts[at] + gap * at for at, chunk_id in enumerate(order)}


def common(comparison: ShownComparison) -> list[Node]:
    """Which chunks were found by all, by some, by one; and how much any two methods share."""
    picks, paint = comparison.picks, comparison.paint
    if len(picks) < 2:
        return []
    kinds = sets(picks)
    lists = {"found by all": kinds.by_all, "by some": kinds.by_some}
    counts = [f"{len(ids):,} {words}" for words, ids in (lists | {"by one only": kinds.by_one}).items()]
    lists |= {
        f"by {name} only": tuple(chunk_id for chunk_id in ids if chunk_id in kinds.by_one)
        for name, ids in picks.items()
    }
    return [
        h("h3", "What they have in common"),
        h("p.qx-sm.qx-mut", " · ".join(counts)),
        h("dl.qx-fields.qx-sm", *(part for words, ids in lists.items() for part in _set(words, ids, paint))),
        h("h4", "Overlap"),
        h(
            "p.qx-sm.qx-mut",
            "Chunks that both found; in brackets, their share of all that either found (Jaccard)",
        ),
        _overlaps(picks),
    ]


def _set(words: str, ids: Sequence[int], paint: Colours) -> list[Node]:
    """The chunks that were found so; nothing for none."""
    chips = []
    for i in ids:
        about = {"data_same": str(i), "aria_label": f"chunk {i:,}"}
        chips.append(sends(f"qx-mark.qx-set-chip.{paint[i]}", "open", i, f"{i:,}", **about))
    return [h("dt.qx-mut", words), h("dd.qx-chips", *chips)] if chips else []


def _overlaps(picks: Mapping[str, Sequence[int]]) -> Node:
    rows = []
    for a, own in picks.items():
        cells = [h("td.qx-mut", "") if a == b else h("td", _shared(own, ids)) for b, ids in picks.items()]
        rows.append(h("tr", h("th", {"scope": "row"}, a), *cells))
    return table(["method", *picks], rows, "Overlap")


def _shared(first: Sequence[int], second: Sequence[int]) -> str:
    """Chunks that both found, and their share of those that either found."""
    share, both = jaccard(first, second), len({*first} & {*second})
    return f"{both}" if share is None else f"{both} ({share:.2f})"


def support(comparison: ShownComparison) -> list[Node]:
    """On a labelled question: where each support chunk stood at each method's first look, and if chosen."""
    if not comparison.support or not comparison.answered:
        return []
    rows, asked = [], content_words(next(iter(comparison.answered.values())).started.query)
    for chunk_id in comparison.support:
        link, text = chunk_link(chunk_id, data_same=str(chunk_id)), None
        if comparison.workspace is not None:
            said = quoted(passage_in(comparison.workspace, chunk_id), None, asked, most=90)
            text = h("div.qx-support-text", {"dir": "auto"}, *marked(said, "em.qx-telling"))
        standings = (h("td", *_standing(trace, chunk_id)) for trace in comparison.answered.values())
        rows.append(h("tr", h("td", link, text), *standings))
    trails = []
    for name, trace in comparison.answered.items():
        if facts_of(trace.started.method).looks_again:
            title = f"{name}: rank at every step"
            trails.append(h("div", h("h4", title), trail_table(trace, comparison.support, title)))
    return [
        h("h3", "Support of this question"),
        h("p.qx-sm.qx-mut", "Its rank for the question alone, before any choice. ✓ 3: chosen at step 3."),
        table(["support chunk", *comparison.answered], rows, "Support chunks"),
        h("div.qx-beside", *trails),
    ]


def _standing(trace: Trace, chunk_id: int) -> list[Node]:
    rank = first_look_rank(trace, chunk_id)
    unranked = "no shared word" if facts_of(trace.started.method).zero_is_none else "not ranked"
    place = h("span.qx-mut", unranked if rank is None else f"rank {rank:,}")
    if chunk_id not in trace.chosen:
        return [place]
    return [h("span.qx-mark.qx-hit", f"✓ {trace.chosen.index(chunk_id) + 1}"), " ", place]
