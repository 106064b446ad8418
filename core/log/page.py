"""One run as a page that stands alone: an HTML file for any browser, also one without a network, drawn from
the log.

Decides that nothing of it loads or runs (its own policy forbids both), that whatever came from documents,
questions and labels stays text, and that text of documents is in it only when asked for: without, chunks are
numbers. Pictures are small SVG: the run map, a row a look, and a strip a step, each column the best of its
chunks. Knows nothing of who may see the run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from html import escape

import numpy as np

from core.errors import LogError
from core.events import StepTaken, Trace
from core.log.branches import STRATEGY_NAMES, branch_name, end_sentence, sparc_settings, sparc_trace_of
from core.log.places import borders_of, place_of
from core.log.records import LoggedDocument, LoggedRun, support_of
from core.resrag.action import RESRAG, RESRAG_LLM, SETS
from core.retrievers import facts_of
from core.sparc.trace import SparcBranch, SparcTrace
from core.studies.report import Chart, Line
from core.svg import svg
from core.tiles import run_map

MAX_PICTURES = 60
"""Looks that are drawn; a run has as many steps as its budget allows."""
MAX_WHOLE = 1_000_000
"""Characters up to which a document stands in the page whole; of a longer one, what is around the chosen
chunks.
"""
AROUND = 4_000
"""Characters before and behind a chosen chunk that a long document keeps."""
_BEGINNING = 240
"""Characters of a chunk at its step; the evidence has all of it."""
_LONGEST_ACTION = 2_000
"""Characters."""
_WIDTH = 240
"""Columns of a picture at most."""
_ROW, _STRIP = 14, 48
"""Heights in pixels."""
_LEVELS = 9

_STYLE = """
:root { color-scheme: light dark; --ink: #1c1d1f; --mut: #63666e; --line: #e4e4e0; --bg: #fbfbfa; --good: #1a7f53; --mark: #ffe9a8;
  --q0: #d3dce3; --q1: #b5d0d6; --q2: #90c2ca; --q3: #66aebb; --q4: #4399b0; --q5: #2e7ba1; --q6: #2b5b8f; --q7: #2a3c78; --q8: #231a4e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e9eaec; --mut: #9a9ea8; --line: #2c2f36; --bg: #121316; --good: #59c393; --mark: #5a4a12;
  --q0: #2b2e3b; --q1: #34375f; --q2: #3a4a86; --q3: #3a6897; --q4: #3f889d; --q5: #50a89b; --q6: #7dc68d; --q7: #b9de7c; --q8: #f5f07e; } }
body { margin: 0 auto; max-width: 960px; padding: 24px 16px; background: var(--bg); color: var(--ink); font: 15px/1.55 system-ui, sans-serif;
  font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
h1 { font-size: 20px; } h2 { font-size: 15px; margin: 32px 0 8px; } p { margin: 4px 0; }
.mut { color: var(--mut); font-size: 13px; } .hit { color: var(--good); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 2px 16px; font-size: 13px; margin: 8px 0; } dt { color: var(--mut); } dd { margin: 0; }
ol { list-style: none; padding: 0; } li { border-left: 3px solid var(--line); padding: 2px 12px; margin: 0 0 16px; }
blockquote { margin: 4px 0; white-space: pre-line; } pre { white-space: pre-wrap; font: inherit; }
.picture { position: relative; padding-bottom: 18px; } .picture svg { display: block; width: 100%; }
.pin { position: absolute; bottom: 0; translate: -50% 0; font-size: 12px; } .pin.hit { text-decoration: underline; }
mark { background: var(--mark); color: inherit; } summary { cursor: pointer; }
.chart svg { max-width: 100%; height: auto; }
""" + "".join(f".q{level} {{ fill: var(--q{level}); }}" for level in range(_LEVELS))


class Html(str):
    """Markup that was made here. Any other string is text, and is escaped where it goes in."""

    __slots__ = ()


def el(tag: str, *children: str, **attributes: object) -> Html:
    """An element; a trailing underscore of an attribute's name is left out.

    >>> el("p", "1 < 2", class_="mut")
    '<p class="mut">1 &lt; 2</p>'
    """
    told = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(str(value))}"' for name, value in attributes.items()
    )
    return Html(
        f"<{tag}{told}>{''.join(child if isinstance(child, Html) else escape(child) for child in children)}</{tag}>"
    )


def run_page(run: LoggedRun, documents: Sequence[LoggedDocument], *, with_text: bool = False) -> str:
    """The page. `documents`: those of the run, in order. `with_text`: the chosen chunks' texts, and the
    documents with the chunks marked in them.
    """
    trace, support = run.trace, support_of(run)
    borders = borders_of(documents, run.record.n_chunks)
    sections = [
        _head(run, documents, support),
        *_map(trace, support, borders),
        *(_rounds(run) if with_text else []),
        _steps(run, support, with_text),
        _chart(trace),
        _evidence(trace, documents, borders, with_text),
        *(_documents(trace, documents, borders) if with_text else []),
        _colophon(run, documents, with_text),
    ]
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    title = el("title", f"{trace.started.query[:80]} · Q-RAG run")
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta'
        f' http-equiv="Content-Security-Policy" content="{policy}">'
    )
    page = (
        f'<!doctype html>\n<html lang="en">\n<head>{head}{title}<style>{_STYLE}</style></head>\n<body>\n'
        + "\n".join(sections)
        + "\n</body>\n</html>\n"
    )
    return page.encode("utf-8", "replace").decode()  # half a surrogate pair can't be written


def review_words(trace: Trace) -> str:
    """What the review of a stopped run brought, in a sentence; empty where there was none."""
    stopped, threshold = trace.stopped, trace.started.config.review_threshold
    if stopped is None or not stopped.review or threshold is None:
        return ""
    if not stopped.taken_back:
        return f"Review: beside the others every chunk is still worth {threshold:.2f} or more, so all stay."
    taken = ", ".join(f"chunk {chunk_id:,}" for chunk_id in stopped.taken_back)
    return f"Review: {taken} taken back, worth less than {threshold:.2f} beside the others."


def stop_sentence(run: LoggedRun) -> str:
    """Why the run ended, and what its review took back."""
    return f"{_end_sentence(run)} {review_words(run.trace)}".rstrip()


def _end_sentence(run: LoggedRun) -> str:
    branches = _branches(run)
    if branches is not None and branches.stopped is not None:
        return end_sentence(branches)
    stopped, threshold = run.trace.stopped, run.trace.started.config.stop_threshold
    if stopped is None:
        return f"Ended as {run.status}" + (f": {run.message}." if run.message else ".")
    match stopped.reason:
        case "threshold" if run.record.method == RESRAG_LLM:
            return "The language model took no other chunk."
        case "threshold" if run.record.method == RESRAG and stopped.q_value is not None:
            return f"No other chunk is likelier: the best of the rest has a chance of {stopped.q_value:.3f}."
        case "threshold" if stopped.q_value is not None and threshold is not None:
            return (
                f"Stopped: the best Q, {stopped.q_value:.3f} of chunk {stopped.chunk_id:,}, is below"
                f" {threshold:.3f}."
            )
        case "budget":
            return f"Stopped: the budget of {run.trace.started.config.step_budget} is used up."
        case "exhausted":
            return "Stopped: no chunk is left that may be chosen."
    return f"Stopped by its {stopped.reason}."


def settings_of(run: LoggedRun) -> dict[str, str]:
    """The settings that decided how the run went, in words."""
    branches = _branches(run)
    if branches is not None:
        return sparc_settings(branches.started.config)
    config = run.trace.started.config
    if run.record.method in SETS:
        is_chance = run.record.method == RESRAG and config.stop_threshold is not None
        least = f"a chance of {config.stop_threshold:g}" if is_chance else ""
        told = {"Budget": f"{config.step_budget}", "Taken above": least, "Action": _action(run)}
        return {name: words for name, words in told.items() if words}
    told = {
        "Budget": f"{config.step_budget}",
        "Temperature": f"{config.temperature:g}",
        "Stop below": "never" if config.stop_threshold is None else f"{config.stop_threshold:g}",
        "Taken back below": "" if config.review_threshold is None else f"{config.review_threshold:g}",
        "Seed": f"{config.seed}",
        "Beam": f"{config.beam_width}" if config.beam_width > 1 else "",
        "Sampled among": "" if config.top_k_actions is None else f"the {config.top_k_actions} best",
        "Positions": "" if config.use_positions else "off",
        "Chosen by a person": ", ".join(
            f"chunk {chunk_id:,} at step {step}" for step, chunk_id in config.forced
        ),
        "Forbidden": ", ".join(f"chunk {chunk_id:,}" for chunk_id in config.forbidden),
        "Child of": (
            f"{run.record.parent_run_id}, {run.record.fork_step} steps kept"
            if run.record.parent_run_id
            else ""
        ),
    }
    return {name: words for name, words in told.items() if words}


def _branches(run: LoggedRun) -> SparcTrace | None:
    """Of a SPARC run, where they can be read: a page is drawn without them, too."""
    try:
        return sparc_trace_of(run)
    except LogError:
        return None


def _action(run: LoggedRun) -> str:
    """The action of an evidence set as JSON; empty where it did not come with the run."""
    action = run.details.get("set", {}).get("action")
    words = json.dumps(action, ensure_ascii=False) if isinstance(action, dict) else ""
    return words if len(words) <= _LONGEST_ACTION else words[:_LONGEST_ACTION] + "…"


def score_name(run: LoggedRun) -> str:
    """What the numbers of the run's steps are."""
    return facts_of(run.record.method).score_name


def _head(run: LoggedRun, documents: Sequence[LoggedDocument], support: Sequence[int]) -> Html:
    record = run.record
    facts = (
        f"{record.method} · {record.checkpoint} · {record.n_chunks:,} chunks ·"
        f" {run.created_at:%Y-%m-%d %H:%M} UTC · {run.status}"
    )
    found = len({*support} & {*run.trace.evidence})
    hits = (
        [
            el(
                "p",
                f"{found} of {len(support)} support chunks found",
                class_="hit" if found == len(support) else "mut",
            )
        ]
        if support
        else []
    )
    settings = [
        el(tag, words)
        for pair in settings_of(run).items()
        for tag, words in zip(("dt", "dd"), pair, strict=True)
    ]
    titles = el("p", ", ".join(document.title for document in documents), dir="auto")
    return el(
        "header",
        el("h1", record.query, dir="auto"),
        titles,
        el("p", facts, class_="mut"),
        *hits,
        el("dl", *settings),
    )


# Pictures


def _scores(trace: Trace) -> list[np.ndarray]:
    """(N,) of each look up to MAX_PICTURES; empty where a look was logged without."""
    looks = [trace.scores_at(look) for look in range(1, min(trace.n_looks, MAX_PICTURES) + 1)]
    values = [look.q_values for look in looks if look is not None]
    return (
        values
        if len(values) == len(looks) and all(np.isfinite(q_values).any() for q_values in values)
        else []
    )


def _scale(values: Sequence[np.ndarray]) -> tuple[float, float]:
    finite = [q_values[np.isfinite(q_values)] for q_values in values]
    lo = min(float(q_values.min()) for q_values in finite)
    return lo, max(max(float(q_values.max()) for q_values in finite), lo + 1e-6)


def _levels(values: np.ndarray, lo: float, hi: float) -> np.ndarray:
    """(W,) int colours, the lowest where there is no number."""
    share = np.clip((np.nan_to_num(values, nan=lo, posinf=hi, neginf=lo) - lo) / (hi - lo), 0.0, 1.0)
    levels: np.ndarray = np.minimum((share * _LEVELS).astype(int), _LEVELS - 1)
    return levels


def _shapes(levels: np.ndarray, top: np.ndarray, bottom: int) -> str:
    """Bars from `top` (W,) down to `bottom`, a path a colour, 1,000 units across."""
    edges = np.linspace(0, 1000, len(levels) + 1)
    paths = []
    for level in np.unique(levels).tolist():
        d = "".join(
            f"M{edges[k]:.1f} {bottom}V{top[k]:.1f}H{edges[k + 1]:.1f}V{bottom}Z"
            for k in np.flatnonzero(levels == level)
        )
        paths.append(f'<path class="q{level}" d="{d}"/>')
    return "".join(paths)


def _drawing(shapes: str, height: int, words: str) -> Html:
    attributes = f'viewBox="0 0 1000 {height}" height="{height}" preserveAspectRatio="none" role="img"'
    return Html(f'<svg {attributes} aria-label="{escape(words)}">{shapes}</svg>')


def _pin(chunk_id: int, n: int, label: str, support: Sequence[int]) -> Html:
    hit = " hit" if chunk_id in support else ""
    return el(
        "span",
        label,
        class_=f"pin{hit}",
        style=f"left:{100 * (chunk_id + 0.5) / n:.2f}%",
        title=f"chunk {chunk_id:,}",
    )


def _map(trace: Trace, support: Sequence[int], borders: Sequence[int]) -> list[Html]:
    """The whole run in one picture."""
    values = _scores(trace)
    if not values and trace.started.method == "sparc":
        return []  # its branches value only what they retrieve
    if not values:
        return [
            el("p", "Q of all chunks was not kept with this run, so there is no picture of it.", class_="mut")
        ]
    lo, hi = _scale(values)
    n, height = len(values[0]), _ROW * len(values)
    shapes = ""
    for row, best in enumerate(run_map(values, _WIDTH)):
        shapes += _shapes(_levels(best, lo, hi), np.full(len(best), _ROW * row), _ROW * (row + 1) - 1)
    lines = "".join(
        f'<path d="M{1000 * first / n:.1f} 0V{height}" stroke="currentColor" stroke-dasharray="2 2"/>'
        for first in borders[1:-1]
    )
    pins = [_pin(step.chunk_id, n, str(step.step), support) for step in trace.steps[:MAX_PICTURES]]
    more = f"; the first {MAX_PICTURES} steps of {trace.n_looks}" if trace.n_looks > MAX_PICTURES else ""
    words = (
        f"Q of {n:,} chunks along the documents, a row a step, the stronger the more, from {lo:.2f} to"
        f" {hi:.2f}; pins are the choices{more}."
    )
    return [
        el("h2", "The run"),
        el("div", _drawing(shapes + lines, height, words), *pins, class_="picture"),
        el("p", words, class_="mut"),
    ]


def _strip(trace: Trace, step: StepTaken, values: Sequence[np.ndarray], support: Sequence[int]) -> Html:
    lo, hi = _scale(values)
    q_values = values[step.step - 1]
    best = run_map([q_values], _WIDTH)[0]
    share = np.clip((np.nan_to_num(best, nan=lo, posinf=hi, neginf=lo) - lo) / (hi - lo), 0.02, 1.0)
    shapes = _shapes(_levels(best, lo, hi), _STRIP * (1 - share), _STRIP)
    pins = [
        _pin(chunk_id, len(q_values), str(i), support)
        for i, chunk_id in enumerate(trace.chosen[: step.step], start=1)
    ]
    return el(
        "div", _drawing(shapes, _STRIP, f"Q of all chunks at step {step.step}"), *pins, class_="picture"
    )


def _chart(trace: Trace) -> Html:
    """Q of each choice, and of the one that was refused, against the threshold; scores of SPARC's branches
    are on scales of their own.
    """
    if trace.started.method == "sparc":
        return Html("")
    points = [(step.step, step.q_value) for step in trace.steps]
    if trace.stopped is not None and trace.stopped.q_value is not None:
        points.append((len(trace.steps) + 1, trace.stopped.q_value))
    if not points:
        return Html("")
    lines = [Line("best Q", tuple(float(x) for x, _ in points), tuple(y for _, y in points))]
    threshold = trace.started.config.stop_threshold
    if threshold is not None:
        lines.append(
            Line("stop below", (1.0, float(max(2, len(points)))), (threshold, threshold), dashed=True)
        )
    return el("div", Html(svg([Chart("Q of the best chunk", "step", "Q", tuple(lines))])), class_="chart")


# Texts


def _steps(run: LoggedRun, support: Sequence[int], with_text: bool) -> Html:
    trace, values = run.trace, _scores(run.trace)
    items = []
    for step in trace.steps:
        facts = f"{score_name(run)} {step.q_value:.3f}"
        if run.record.method != "sparc":
            facts += f" · p {step.probability:.2f}" + (
                "" if step.position is None else f" · ρ {step.position:.2f}"
            )
        marks = [el("span", " · support", class_="hit")] if step.chunk_id in support else []
        forced = " · chosen by a person" if step.chosen_by == "person" else ""
        children = [
            el(
                "p",
                el("strong", f"{step.step}. chunk {step.chunk_id:,}"),
                Html(" "),
                el("span", facts + forced, class_="mut"),
                *marks,
            )
        ]
        if step.step <= len(values):
            children.append(_strip(trace, step, values, support))
        if with_text:
            begins = step.text if len(step.text) <= _BEGINNING else f"{step.text[:_BEGINNING].rstrip()}…"
            children.append(el("blockquote", begins, dir="auto"))
        items.append(el("li", *children))
    return el("section", el("h2", "Steps"), el("ol", *items), el("p", stop_sentence(run)))


def _rounds(run: LoggedRun) -> Iterator[Html]:
    """What a SPARC run's branches asked, found, answered and were told; nothing for another run."""
    trace = _branches(run)
    if trace is None:
        return
    yield el("h2", "Answer")
    yield el("p", trace.answer or "There is no answer in the evidence.", dir="auto")
    yield el("p", f"By {trace.started.agents}.", class_="mut")
    for one in trace.rounds:
        yield el("h2", f"Round {one.number}")
        yield el("ol", *(_branch(one.number, branch) for branch in one.branches))
        if one.merged is not None:
            yield el(
                "p", f"Branch {one.merged.best_branch} went on. {one.merged.reason}", dir="auto", class_="mut"
            )


def _branch(number: int, branch: SparcBranch) -> Html:
    name = el("strong", f"{branch_name(number, branch.number)} ")
    children = [
        el("p", name, el("span", STRATEGY_NAMES[branch.query.strategy], class_="mut")),
        el("blockquote", branch.query.query, dir="auto"),
    ]
    if branch.retrieved is not None:
        children.append(
            el(
                "p",
                f"found chunk {', '.join(f'{one.chunk_id:,}' for one in branch.retrieved.found) or 'none'}",
                class_="mut",
            )
        )
    if branch.answered is not None:
        children.append(el("p", f"answered: {branch.answered.answer or 'nothing'}", dir="auto"))
    if branch.judged is not None:
        children.append(
            el(
                "p",
                (
                    f"{branch.judged.verdict}: {branch.judged.reason}"
                    if branch.judged.reason
                    else branch.judged.verdict
                ),
                dir="auto",
            )
        )
    return el("li", *children)


def _evidence(
    trace: Trace, documents: Sequence[LoggedDocument], borders: Sequence[int], with_text: bool
) -> Html:
    texts = {step.chunk_id: step.text for step in trace.steps}
    items = []
    for chunk_id in sorted({*trace.evidence}):  # an imported run may name one twice
        place = place_of(chunk_id, documents, borders)
        path = (
            ""
            if place is None
            else _path(documents[place.document].title, place.heading_path if with_text else ())
        )
        children = [el("p", el("strong", f"chunk {chunk_id:,} "), el("span", path, class_="mut", dir="auto"))]
        if with_text:
            children.append(el("blockquote", texts[chunk_id], dir="auto"))
        items.append(el("li", *children))
    return el("section", el("h2", "Evidence in document order"), el("ol", *items))


def _path(title: str, headings: tuple[str, ...]) -> str:
    """Where a chunk stands; a document that begins with its title as a heading says it once."""
    return " › ".join(headings if headings[:1] == (title,) else (title, *headings))


def _documents(trace: Trace, documents: Sequence[LoggedDocument], borders: Sequence[int]) -> Iterator[Html]:
    """Each document with the chosen chunks marked, folded."""
    places = [
        place
        for chunk_id in sorted({*trace.evidence})
        if (place := place_of(chunk_id, documents, borders)) is not None
    ]
    yield el("h2", "Documents")
    for i, document in enumerate(documents):
        chosen = [(place.start, place.end) for place in places if place.document == i]
        if document.text is None:
            yield el("p", f"The text of {document.title} was not kept.", class_="mut")
        else:
            yield el(
                "details",
                el("summary", document.title, dir="auto"),
                el("pre", *_marked(document.text, chosen), dir="auto"),
            )


def _marked(text: str, chosen: Sequence[tuple[int, int]]) -> Iterator[str]:
    """The text with the chosen ranges, which are in order, as marks; of a long text only what
    is around them.
    """
    whole = len(text) <= MAX_WHOLE
    at = 0
    for start, end in chosen:
        start = max(start, at)
        if not whole and start - at > AROUND + (AROUND if at else 0):
            if at:
                yield text[at : at + AROUND]
            yield "\n[…]\n"
            at = start - AROUND
        yield text[at:start]
        yield el("mark", text[start:end])
        at = max(at, end)
    yield text[at:] if whole else text[at : at + AROUND] + "\n[…]"


def _colophon(run: LoggedRun, documents: Sequence[LoggedDocument], with_text: bool) -> Html:
    record = run.record
    told = {
        "Run": record.run_id,
        "Weights": record.checkpoint_fingerprint,
        "Vectors": record.vectors,
        **{f"SHA-256 of document {i}": document.sha256 for i, document in enumerate(documents, start=1)},
    }
    rows = [el(tag, words) for pair in told.items() for tag, words in zip(("dt", "dd"), pair, strict=True)]
    words = "" if with_text else " Texts of documents were left out."
    return el(
        "footer",
        el("h2", "About"),
        el("p", f"Made with Q-RAG Explorer from its log.{words}", class_="mut"),
        el("dl", *rows),
    )
