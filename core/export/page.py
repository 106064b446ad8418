"""One run as a page that stands alone.

An HTML file for any browser, also one without a network, drawn from the log. Its story, steps, evidence and
SPARC's rounds are those of the app's pages (core.draw), and so are the strip and what draws it
(core.log.live). Decides that it loads nothing and runs one script, its own; that whatever came from documents,
questions and labels stays text; and that text of documents is in it only when asked for: without, chunks are
numbers. Without scripts it reads as well, with the run map as a picture.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from typing import Any

import numpy as np

from core.answer.evidence import EvidenceAnswer
from core.draw import sparc, sparc_line
from core.draw.evidence import evidence_rows
from core.draw.nodes import Html, Node, h, html_of
from core.draw.scripts import script
from core.draw.sparc import ShownSparc
from core.draw.steps import decision, step_card, stop_card
from core.draw.story import story_nodes
from core.draw.strip import Part, colour_scale, slopes, strip_value
from core.draw.tables import fields
from core.draw.trail import gold_trail
from core.draw.words import counted, review_words
from core.encode.checkpoint import CheckpointSpec, as_served, find_checkpoint, read_spec, shipped_checkpoints
from core.errors import LogError
from core.events import Trace, share_searched
from core.log.branches import sparc_trace_of
from core.log.live import SCRIPT, STYLE, data_block, packed_looks, packed_texts, policy
from core.log.places import borders_of, place_of
from core.log.records import LoggedDocument, LoggedRun, known_answer_of, support_of
from core.qrag.positions import chunk_positions, intervals
from core.resrag.action import RESRAG, RESRAG_LLM, SETS
from core.retrievers import facts_of
from core.sparc.naming import end_sentence, sparc_settings
from core.sparc.retriever import SPARC
from core.sparc.trace import SparcTrace
from core.story import missed_support, story_of
from core.studies.report import Chart, Line
from core.svg import svg
from core.tiles import MODES, run_map
from core.types import Workspace

MAX_PICTURES = 60
"""Looks that are drawn; a run has as many steps as its budget allows."""
MAX_WHOLE = 150_000
"""Characters up to which a document stands in the page whole; of a longer one, what is around the chosen
chunks.
"""
AROUND = 4_000
"""Characters before and behind a chosen chunk that a long document keeps."""
_LONGEST_ACTION = 2_000
"""Characters."""
_WIDTH = 240
"""Columns of a picture at most."""
_ROW = 14
"""Height of a row in pixels."""
_LEVELS = 9


@dataclass(frozen=True)
class LoggedView:
    """A run with what a page draws it from."""

    run: LoggedRun
    documents: Sequence[LoggedDocument]
    with_text: bool
    support: tuple[int, ...]
    borders: list[int]
    looks: list[np.ndarray]
    """(N,) Q of each look, empty where they were not kept."""
    spec: CheckpointSpec | None
    """Of the agent, where it ships with the app and is the one that ran."""
    workspace: Workspace | None
    """The documents as they were cut, where they may be shown and were kept."""
    answer: EvidenceAnswer | None

    @property
    def trace(self) -> Trace:
        return self.run.trace

    @property
    def n_looks(self) -> int:
        return len(self.looks) or len(self.trace.steps)

    @cached_property
    def scale(self) -> tuple[float, float]:
        if not self.looks:
            values = [step.q_value for step in self.trace.steps if math.isfinite(step.q_value)]
            return 0.0, max([*values, 1e-6])
        return colour_scale(_finite(self.looks[0]), self.spec)

    @property
    def look(self) -> int:
        """The look that is shown first: the last choice."""
        return max(1, min(len(self.trace.steps), self.n_looks))

    def text(self, chunk_id: int) -> str:
        """Of a chunk; empty where it stays out."""
        return self.workspace[chunk_id].text if self.workspace is not None else self._chosen.get(chunk_id, "")

    @cached_property
    def places(self) -> dict[int, tuple[str, str]]:
        """(headings, text) of every chunk; none where texts stay out or were not kept."""
        chunks = self.workspace or ()
        return {i: (" › ".join(chunk.heading_path), chunk.text) for i, chunk in enumerate(chunks)}

    @property
    def first_chunks(self) -> list[Part]:
        """Title of every document, and where it begins."""
        return [
            {"title": document.title, "first_chunk": first}
            for document, first in zip(self.documents, self.borders or [0], strict=False)
        ]

    @cached_property
    def _chosen(self) -> dict[int, str]:
        return {step.chunk_id: step.text for step in self.trace.steps} if self.with_text else {}


def run_page(run: LoggedRun, documents: Sequence[LoggedDocument], *, with_text: bool = False) -> str:
    """The page. `documents`: those of the run, in order. `with_text`: the chosen chunks' texts,
    those that have room besides, and the documents with the chunks marked in them.
    """
    view = view_of(run, documents, with_text)
    branches = _branches(run) if with_text else None  # nearly all that they say is text of documents
    if branches is not None:
        data = _branch_data(view, branches)
        body = list(_branch_sections(view, branches))
    else:
        is_sparc = run.record.method == SPARC  # its branches value only what they retrieve
        data = {} if is_sparc or not view.looks else _data(view)
        body = [
            *([] if is_sparc else [_story(view), *_instrument(view, data)]),
            _sides(view),
            h("div.qx-below", *_trail(view), _chart(run.trace)),
        ]
    sections = [
        _head(run, documents, view.support),
        *body,
        *(_documents(run.trace, documents, view.borders) if with_text else []),
        _colophon(run, documents, with_text),
    ]
    return framed(f"{run.trace.started.query[:80]} · Q-RAG run", sections, data)


def framed(title: str, sections: Sequence[Node], data: dict[str, Any]) -> str:
    """A page of its own, with what its script draws from."""
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta'
        f' http-equiv="Content-Security-Policy" content="{policy(STYLE)}"><title>{escape(title)}</title>'
    )
    page = (
        f'<!doctype html>\n<html lang="en">\n<head>{head}<style>{STYLE}</style></head>\n'
        '<body>\n<main class="qx-offline">\n'
        + "\n".join(map(html_of, sections))
        + f"\n</main>\n{data_block(data) if data else ''}\n<script>{SCRIPT}</script>\n</body>\n</html>\n"
    )
    return page.encode("utf-8", "replace").decode()  # half a surrogate pair can't be written


def view_of(run: LoggedRun, documents: Sequence[LoggedDocument], with_text: bool) -> LoggedView:
    """The run as a page draws it; texts, and what quotes them, only `with_text`."""
    borders = borders_of(documents, run.record.n_chunks)
    workspace, answer = None, None
    tables = [document.table for document in documents if document.table is not None]
    if with_text and borders and all(document.text is not None for document in documents):
        workspace = Workspace(tuple(document.document() for document in documents), tuple(tables))
    if with_text:
        texts = {step.chunk_id: step.text for step in run.trace.steps}
        answer = EvidenceAnswer.from_json(run.details.get("answer", {}), texts)
    return LoggedView(
        run,
        documents,
        with_text,
        support_of(run),
        borders,
        _scores(run.trace),
        _spec_of(run, borders),
        workspace,
        answer,
    )


def _spec_of(run: LoggedRun, borders: Sequence[int]) -> CheckpointSpec | None:
    """The shipped agent that ran, if its positions are those that the log has; None for any other."""
    if not facts_of(run.record.method).looks_again or run.record.checkpoint not in shipped_checkpoints():
        return None
    spec, chosen = as_served(read_spec(find_checkpoint(run.record.checkpoint))), run.trace.chosen
    for i, step in enumerate(run.trace.steps):
        if step.position is None:
            continue
        if not borders:
            return None
        there = chunk_positions(spec, np.asarray(borders), chosen[:i])[step.chunk_id]
        if abs(float(there) - step.position) > 1e-3:
            return None
    return spec


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
        settings = {"Budget": f"{config.step_budget}", "Taken above": least, "Action": _action(run)}
        return {name: words for name, words in settings.items() if words}
    settings = {
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
        "Searched": (
            f"{100 * share_searched(run.trace):.0f} % of the chunks, those that were embedded when it was asked"
            if config.searched
            else ""
        ),
        "Child of": (
            f"{run.record.parent_run_id}, {run.record.fork_step} steps kept"
            if run.record.parent_run_id
            else ""
        ),
    }
    return {name: words for name, words in settings.items() if words}


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


def _head(run: LoggedRun, documents: Sequence[LoggedDocument], support: Sequence[int]) -> Node:
    record = run.record
    facts = (
        f"{record.method} · {record.checkpoint} · {record.n_chunks:,} chunks ·"
        f" {run.created_at:%Y-%m-%d %H:%M} UTC · {run.status}"
    )
    n_found = len({*support} & {*run.trace.evidence})
    hits = (
        [
            h(
                "p",
                {"class": "qx-found" if n_found == len(support) else "qx-mut"},
                f"{n_found} of {len(support)} support chunks found",
            )
        ]
        if support
        else []
    )
    titles = h("p", {"dir": "auto"}, ", ".join(document.title for document in documents))
    return h(
        "header",
        h("h1", {"dir": "auto"}, record.query),
        titles,
        h("p.qx-mut", facts),
        *hits,
        h("dl", *fields(settings_of(run))),
    )


# Pictures


def _scores(trace: Trace) -> list[np.ndarray]:
    """(N,) of each look up to MAX_PICTURES; empty where a look was logged without."""
    looks = [trace.scores_at(look) for look in range(1, min(trace.n_looks, MAX_PICTURES) + 1)]
    values = [look.q_values for look in looks if look is not None]
    if len(values) == len(looks) and all(np.isfinite(q_values).any() for q_values in values):
        return values
    return []


def _finite(q_values: np.ndarray) -> np.ndarray:
    """The finite ones, at least one."""
    finite: np.ndarray = q_values[np.isfinite(q_values)]
    return finite


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


def _story(view: LoggedView) -> Node:
    """The line that says it all."""
    shown = story_of(view.trace, view.text, view.support, view.answer, known_answer_of(view.run))
    tokens = sum(view.workspace[i].n_tokens for i in view.trace.picks) if view.workspace else None
    nodes = story_nodes(shown, look=view.look, n_looks=view.n_looks, tokens=tokens)
    return h("section.qx-card.qx-story-card", {"id": "qx-story"}, *nodes)


def _instrument(view: LoggedView, data: dict[str, Any]) -> Iterator[Node]:
    """The strip, which the script fills, and for a browser without scripts the run map."""
    if not view.looks:
        yield h("p.qx-mut", "Q of all chunks was not kept with this run, so there is no picture of it.")
        return
    yield walk_bar(bool(data["texts"]))
    yield strip_card()
    yield from (h("p.qx-mut", words) for words in _left_out(view, data))
    yield Html(f"<noscript>{html_of(_map(view))}</noscript>")


def walk_bar(reads: bool) -> Node:
    """Buttons to walk the steps. reads: bars can be clicked to read their chunk."""
    before, after = (
        h("button.qx-btn", {"id": name}, words)
        for name, words in (("qx-before", "‹ Step before"), ("qx-next", "Next step ›"))
    )
    keys = h("span", f"Keys [ and ] walk the steps{'; click a bar to read its chunk' if reads else ''}.")
    at = h("span", {"id": "qx-at", "role": "status"}, "")
    return h("div.qx-walk", {"id": "qx-walk", "hidden": True}, before, after, at, keys)


def strip_card(*above: Node) -> Node:
    """Where the script draws the strip. above: what stands over it."""
    strip = h("div", {"id": "qx-strip"}, Html(script("strip.html")))
    return h("section.qx-card", {"id": "qx-live", "hidden": True}, *above, strip)


def _left_out(view: LoggedView, data: dict[str, Any]) -> Iterator[str]:
    """What the page had no room for."""
    if data["rounded_bits"]:
        yield rounded_sentence(score_name(view.run), data["rounded_bits"])
    if view.trace.n_looks > MAX_PICTURES:
        yield f"The strip has the first {MAX_PICTURES} steps of {view.trace.n_looks}."
    if 0 < data["n_texts"] < view.run.record.n_chunks:
        yield texts_sentence(data["n_texts"])


def rounded_sentence(what: str, bits: int) -> str:
    """That numbers lost `bits` of their 24."""
    return f"To keep the page small, {what} is rounded to {math.floor((24 - bits) * math.log10(2))} digits."


def texts_sentence(n_texts: int) -> str:
    """That some texts are in the page."""
    return (
        f"Texts of {n_texts:,} chunks are in this page, those around the choices and the best of every step"
        " first."
    )


def _map(view: LoggedView) -> Node:
    """The whole run in one picture."""
    values, (lo, hi) = view.looks[:MAX_PICTURES], view.scale
    n, height = len(values[0]), _ROW * len(values)
    shapes = ""
    for row, best in enumerate(run_map(values, _WIDTH)):
        shapes += _shapes(_levels(best, lo, hi), np.full(len(best), _ROW * row), _ROW * (row + 1) - 1)
    lines = "".join(
        f'<path d="M{1000 * first / n:.1f} 0V{height}" stroke="currentColor" stroke-dasharray="2 2"/>'
        for first in view.borders[1:-1]
    )
    n_looks = view.trace.n_looks
    more = f", the first {MAX_PICTURES} steps of {n_looks}" if n_looks > MAX_PICTURES else ""
    name = score_name(view.run)
    words = (
        f"{name} of {n:,} chunks along the documents, a row a step{more}, the stronger the more, from"
        f" {lo:.2f} to {hi:.2f}."
    )
    return h("div.qx-picture", _drawing(shapes + lines, height, words), h("p.qx-mut", words))


def _data(view: LoggedView) -> dict[str, Any]:
    """What the script draws from: the strip as the app sends it, Q of every look, texts that have room."""
    numbers, rounded = packed_looks(view.looks)
    places, first = view.places, [*view.trace.chosen, *view.support]
    texts, n_texts = packed_texts(places, first, view.looks) if places else ("", 0)
    return {
        "runs": [strip_data(view, range(len(view.looks)))],
        "numbers": numbers,
        "n_rows": len(view.looks),
        "rounded_bits": rounded,
        "texts": texts,
        "n_texts": n_texts,
    }


def strip_data(view: LoggedView, rows: Sequence[int]) -> dict[str, Any]:
    """A run as the script draws it in the strip. rows: of the packed numbers, one a look."""
    trace, config, spec = view.trace, view.trace.started.config, view.spec
    rulers: list[Any] = [[] for _ in rows]
    if spec is not None and view.borders:
        rulers = [
            slopes(
                intervals(
                    spec, np.asarray(view.borders), trace.chosen[:i], use_positions=config.use_positions
                )
            )
            for i in range(len(rows))
        ]
    value = strip_value(
        token=view.run.record.run_id,
        n_chunks=view.run.record.n_chunks,
        n_looks=len(rows),
        look=min(view.look, len(rows)),
        scale=view.scale,
        threshold=config.stop_threshold if facts_of(view.run.record.method).looks_again else None,
        chosen=[{"step": one.step, "chunk_id": one.chunk_id, "by": one.chosen_by} for one in trace.steps],
        gold=view.support,
        missed=missed_support(trace, view.support),
        forbidden=config.forbidden,
        searched=config.searched,
        documents=view.first_chunks,
        stopped=len(rows) > len(trace.steps),
        modes=MODES if config.temperature else tuple(mode for mode in MODES if mode != "p"),
        score_name=score_name(view.run),
        probability_name=f"p at T = {config.temperature:g}",
    )
    return {
        "value": value,
        "rows": list(rows),
        "rulers": rulers,
        "absolute": spec is not None and spec.position_kind == "absolute" and config.use_positions,
        "temperature": config.temperature,
        "top_k": config.top_k_actions,
    }


def _chart(trace: Trace) -> Node | None:
    """Q of each choice, and of the one that was refused, against the threshold; scores of SPARC's
    branches are on scales of their own.
    """
    if trace.started.method == SPARC:
        return None
    points = [(step.step, step.q_value) for step in trace.steps]
    if trace.stopped is not None and trace.stopped.q_value is not None:
        points.append((len(trace.steps) + 1, trace.stopped.q_value))
    if not points:
        return None
    lines = [Line("best Q", tuple(float(x) for x, _ in points), tuple(y for _, y in points))]
    threshold = trace.started.config.stop_threshold
    if threshold is not None:
        lines.append(
            Line("stop below", (1.0, float(max(2, len(points)))), (threshold, threshold), dashed=True)
        )
    return h("div.qx-card.qx-chart", Html(svg([Chart("Q of the best chunk", "step", "Q", tuple(lines))])))


# Texts


def _sides(view: LoggedView) -> Node:
    """Choices beside evidence."""
    return h("div.qx-sides", _steps(view), h("div", _evidence(view), reading_card()))


def reading_card(*head: Node, kind: str = "qx-card") -> Node:
    """Where a chunk that was opened is read, in its place."""
    pane = h("div", {"id": "qx-reading"}, h("div.qx-tree"))
    return h(
        "section",
        {"class": kind, "id": "qx-reading-card", "hidden": True},
        *(head or [h("h3", "In its place")]),
        pane,
    )


def _steps(view: LoggedView) -> Node:
    trace, run = view.trace, view.run
    cards = [
        step_card(
            trace,
            step if view.with_text else replace(step, text=f"chunk {step.chunk_id:,}"),
            gold=view.support,
            scale=view.scale,
            on=step.step == view.look,
            score_name=score_name(run),
        )
        for step in trace.steps
    ]
    tokens = sum(view.workspace[i].n_tokens for i in trace.evidence) if view.workspace else None
    words = decision(trace, len(trace.steps)) if facts_of(run.record.method).looks_again else ""
    sentence = words if trace.stopped is not None and words else _end_sentence(run).rstrip(".")
    end = stop_card(sentence, n_kept=len(trace.evidence), tokens=tokens, reviewed=review_words(trace))
    return h("section.qx-card", {"id": "qx-steps"}, h("h3", counted(len(cards), "choice")), *cards, end)


def _trail(view: LoggedView) -> Iterator[Node]:
    """Where each support chunk stood at every step."""
    if view.looks and (nodes := gold_trail(view.trace, view.support)):
        yield h("section.qx-card", {"id": "qx-trail"}, *nodes)


def _branch_sections(view: LoggedView, trace: SparcTrace) -> Iterator[Node]:
    """A SPARC run as its page in the app shows it."""
    run = view.run
    shown = ShownSparc(
        trace=trace,
        status=run.status,
        message=run.message,
        workspace=view.workspace,
        gold=view.support,
        known_answer=known_answer_of(run),
    )
    yield h("section.qx-card.qx-story-card", {"id": "qx-story"}, tree(sparc_line.story(shown)))
    yield h("section.qx-card", {"id": "qx-sparc-run"}, tree(sparc.rounds(shown)))
    ends = [
        h("section.qx-card", {"id": name}, tree(nodes))
        for name, nodes in (("qx-sparc-final", sparc.final(shown)), ("qx-sparc-costs", sparc.costs(shown)))
        if nodes
    ]
    yield reading_card()
    yield h("div.qx-below", *ends)


def tree(nodes: Sequence[Node]) -> Node:
    """Nodes in the frame that styles of the app's panels look for."""
    return h("div.qx-tree", *nodes)


def _branch_data(view: LoggedView, trace: SparcTrace) -> dict[str, Any]:
    """What the script reads chunks from: those of the documents that have room, what branches found first."""
    finders = sparc.finders_of(trace)
    places = view.places or {
        chunk.chunk_id: ("", chunk.text)
        for one in trace.rounds
        for branch in one.branches
        for chunk in branch.chunks
    }
    texts, n_texts = packed_texts(places, [*finders, *view.support], [])
    pins = [
        {"chunk_id": chunk_id, "name": names[0], "step": int(names[0].partition(".")[2])}
        for chunk_id, names in finders.items()
    ]
    value = {
        "n_chunks": trace.started.n_chunks,
        "chosen": pins,
        "gold": list(view.support),
        "documents": view.first_chunks,
    }
    return {"runs": [], "reading": value, "texts": texts, "n_texts": n_texts}


def _evidence(view: LoggedView) -> Node:
    """Chosen chunks in their paragraphs; where texts stay out or were not kept, in a list."""
    trace = view.trace
    if view.workspace is not None:
        steps = {step.chunk_id: step.step for step in trace.steps if step.chunk_id in trace.picks}
        missed = [i for i in view.support if i not in trace.chosen] if trace.stopped is not None else []
        rows = evidence_rows(view.workspace, steps, missed, view.look, view.answer)
        return _evidence_card(h("ol.qx-evidence", *rows))
    texts = {step.chunk_id: step.text for step in trace.steps}
    items = []
    for chunk_id in sorted({*trace.evidence}):  # an imported run may name one twice
        place = place_of(chunk_id, view.documents, view.borders)
        path = ""
        if place is not None:
            path = _path(view.documents[place.document].title, place.heading_path if view.with_text else ())
        name = h("strong", f"chunk {chunk_id:,} ")
        children = [h("p", name, h("span.qx-mut", {"dir": "auto"}, path))]
        if view.with_text:
            children.append(h("blockquote", {"dir": "auto"}, texts[chunk_id]))
        items.append(h("li", *children))
    return _evidence_card(h("ol.qx-plain", *items))


def _evidence_card(rows: Node) -> Node:
    return h("section.qx-card", {"id": "qx-evidence"}, h("h3", "Evidence in document order"), rows)


def _path(title: str, headings: tuple[str, ...]) -> str:
    """Where a chunk stands; a document that begins with its title as a heading says it once."""
    return " › ".join(headings if headings[:1] == (title,) else (title, *headings))


def _documents(trace: Trace, documents: Sequence[LoggedDocument], borders: Sequence[int]) -> Iterator[Node]:
    """Each document with the chosen chunks marked, folded."""
    places = [
        place
        for chunk_id in sorted({*trace.evidence})
        if (place := place_of(chunk_id, documents, borders)) is not None
    ]
    yield h("h2", "Documents")
    for i, document in enumerate(documents):
        chosen = [(place.start, place.end) for place in places if place.document == i]
        if document.text is None:
            yield h("p.qx-mut", f"The text of {document.title} was not kept.")
        else:
            yield h(
                "details",
                h("summary", {"dir": "auto"}, document.title),
                h("pre", {"dir": "auto"}, *_marked(document.text, chosen)),
            )


def _marked(text: str, chosen: Sequence[tuple[int, int]]) -> Iterator[Node]:
    """The text with the chosen ranges, in order, as marks; of a long text only what is around them."""
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
        yield h("mark", text[start:end])
        at = max(at, end)
    yield text[at:] if whole else text[at : at + AROUND] + "\n[…]"


def _colophon(run: LoggedRun, documents: Sequence[LoggedDocument], with_text: bool) -> Node:
    record = run.record
    names = {
        "Run": record.run_id,
        "Weights": record.checkpoint_fingerprint,
        "Vectors": record.vectors,
        **{f"SHA-256 of document {i}": document.sha256 for i, document in enumerate(documents, start=1)},
    }
    return about(fields(names), with_text)


def about(rows: Sequence[Node], with_text: bool) -> Node:
    """The end of a page: names and facts, and whether it has the documents' texts."""
    words = "" if with_text else " Texts of documents were left out."
    return h(
        "footer",
        h("h2", "About"),
        h("p.qx-mut", f"Made with Q-RAG Explorer from its log.{words}"),
        h("dl", *rows),
    )
