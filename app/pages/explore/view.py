"""Sessions and runs as trees of plain data for the page: pure functions, one per panel. All text stays text
(see components.tree).

Decides wording and what a number's tooltip says. Knows nothing of Gradio events.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from app.components.tree import Node, act, h
from app.in_view import OpenDocuments, RunInView
from app.pages.explore.mark_view import mark_buttons
from app.pages.explore.part import percent
from app.pages.widgets.answers import answer_place
from app.pages.widgets.asking import settings_toggle
from app.pages.widgets.notices import notice
from app.pages.widgets.text import MAX_SHOWN, Page, crumb, document_page, drawn, page_around, turn_pages
from app.pages.widgets.words import EXPLAIN, counted, number, shorten, step_class, tenths
from app.session import Session
from core.answer.cited import CitedAnswer
from core.answer.evidence import EvidenceAnswer
from core.completeness import LOW
from core.config import ChunkConfig, EpisodeConfig
from core.encode.checkpoint import CheckpointSpec
from core.events import StepTaken, Trace, share_searched
from core.log.page import review_words
from core.prose import Prose, plain
from core.sparc.retriever import SPARC
from core.types import Workspace

UNTRAINED = (
    "No agent has learned documents like this one: these steps are of the untrained base. Choose general,"
    " which finds more."
)
ONE_SEARCH = (
    "No agent has learned documents like this one yet: Q is meaning and words in one search, and does not"
    " change with what was found."
)
"""Told of documents that are open under it."""


def document_header(documents: OpenDocuments | None) -> list[Node]:
    """Title, size, chunking and state of what is open."""
    if documents is None:
        return [h("div", {"class": "qx-row"}, h("strong", None, "No document open"))]
    workspace = documents.workspace
    titles = [document.title for document in workspace.documents]
    title = titles[0] if len(titles) == 1 else f"{titles[0]} and {len(titles) - 1} more"
    cuts = {_cut(config) for config in workspace.configs if config is not None} or {"chunks as given"}
    n_duplicates = sum(table.n_duplicates for table in workspace.tables)
    size = f"{workspace.n_tokens:,} tokens · {counted(len(workspace), 'chunk')} · {' + '.join(sorted(cuts))}"
    seconds = sum(documents.milliseconds.values()) / 1000
    came = "from cache" if documents.n_embedded == 0 else f"{counted(documents.n_embedded, 'chunk')} embedded"
    facts = [f"{document.title}: {text}" for document in workspace.documents for text in document.notices]
    if n_duplicates:
        facts.append(f"{n_duplicates:,} repeated chunk{'s were' if n_duplicates > 1 else ' was'} left out.")
    facts += [f"{notice}." for notice in documents.notices]
    if not documents.agent.spec.trained:
        facts.append(UNTRAINED if documents.agent.spec.reads_choices else ONE_SEARCH)
    n_json_ld = sum(len(document.json_ld) for document in workspace.documents)
    shares = ", ".join(f"{stage} {value:,.0f} ms" for stage, value in documents.milliseconds.items())
    chip = f"{counted(len(workspace), 'chunk')}" + (f" · {counted(len(facts), 'note')}" if facts else "")
    about = [
        h("p", None, size),
        (
            h("p", None, f"{percent(documents.share)} of the chunks were embedded when this was shown.")
            if documents.searched
            else h("p", {"title": shares}, f"Ready after {seconds:.1f} s, {came}.")
        ),
        *(h("p", None, fact) for fact in facts),
    ]
    if n_json_ld:
        about.append(_json_ld(workspace, n_json_ld))
    menu = h(
        "details",
        {"class": "qx-menu"},
        h("summary", {"class": "qx-chip"}, chip),
        h("div", {"class": "qx-menu-panel qx-sm"}, *about),
    )
    return [h("strong", {"class": "qx-doc-title", "title": title}, title), menu]


def _cut(config: ChunkConfig) -> str:
    """How a document was cut, in a few words."""
    return "one sentence a chunk" if config.one_sentence else f"{config.chunker}, {config.max_tokens} tokens"


def _json_ld(workspace: Workspace, count: int) -> Node:
    items = [
        json.dumps(item, ensure_ascii=False, indent=1)[:2_000]
        for document in workspace.documents
        for item in document.json_ld[:20]
    ]
    label = f"{count} JSON-LD block{'s' if count > 1 else ''} of the page"
    return h(
        "details",
        {"class": "qx-sm"},
        h("summary", None, label),
        *(h("pre", {"class": "qx-pre"}, item) for item in items[:20]),
    )


_TRAINED_FOR = {
    "narrative": "stories",
    "multi-hop": "questions of several hops",
    "general": "questions over real documents",
}


def agent_words(spec: CheckpointSpec) -> str:
    """What an agent has learned, in words of somebody who has read nothing of it."""
    if not spec.trained:
        return (
            "not trained: meaning and words in one search"
            if spec.word_weight
            else "not trained: plain embeddings"
        )
    data = (spec.training or {}).get("data")
    purpose = _TRAINED_FOR.get(data) if isinstance(data, str) else None
    return f"trained for {purpose}" if purpose else "trained"


def agent_note(spec: CheckpointSpec) -> str:
    """What stands under an agent's name."""
    trained = agent_words(spec)
    positions = "no positions" if spec.position_kind == "none" else f"{spec.position_kind} positions"
    return f"{trained} · {positions}"


def settings_line(spec: CheckpointSpec, config: EpisodeConfig, trained: str = "") -> list[Node]:
    """What is set, as one sentence that opens the settings. `trained`: name of an agent that has learned
    something, to be had instead.
    """
    words = [f"up to {counted(config.step_budget, 'step')}", f"temperature {config.temperature:g}"]
    if config.temperature:
        words.append(f"seed {config.seed}")
    if config.top_k_actions is not None:
        words.append(f"among the {config.top_k_actions} best")
    words.append(
        "never stops early" if config.stop_threshold is None else f"stops below Q {config.stop_threshold:.2f}"
    )
    if config.review_threshold is not None:
        words.append("review on")
    if config.beam_width > 1:
        words.append(f"beam {config.beam_width}")
    if spec.position_kind != "none" and not config.use_positions:
        words.append("positions off")
    agent = h(
        "span",
        None,
        h("strong", None, spec.name),
        " ",
        h("span", {"class": None if spec.trained else "qx-untrained"}, agent_words(spec)),
    )
    toggle = settings_toggle("qx-settings", agent, words)
    return [toggle] + (
        [
            act(
                "agent",
                trained,
                f"Use {trained} (trained)",
                title="The same chunks, chosen by an agent that has learned to",
            )
        ]
        if trained
        else []
    )


def status(run: RunInView | None, session: Session) -> str:
    """The line beside the buttons."""
    if run is None:
        return "no run yet"
    budget = run.config.step_budget
    last = run.trace.steps[session.cursor - 1] if session.cursor else None
    took = f" · {last.milliseconds:,.0f} ms" if last else ""
    child = f" · child run from step {run.fork_step}" if run.parent_run_id else ""
    method = f"{run.trace.started.method} · " if run.trace.started.method != "qrag" else ""
    searched = f" · searched {percent(share_searched(run.trace))}" if run.config.searched else ""
    return f"{method}step {session.cursor} of {budget}{took}{searched}{child}"


def standing_at(run: RunInView | None, session: Session) -> list[Node]:
    """The line beside the buttons, and the way to hand the run on."""
    share = (
        []
        if run is None
        else [" ", act("share", "", "Share", title="The address of this run, for others or for later")]
    )
    return [h("span", None, status(run, session)), *share]


def kept(trace: Trace, cursor: int) -> Trace:
    """The first `cursor` steps of a run, and how it ended where those are all."""
    return trace if cursor == len(trace.steps) else replace(trace, steps=trace.steps[:cursor], stopped=None)


def decision(trace: Trace, cursor: int) -> str:
    """The stop decision at the cursor, in words."""
    threshold = trace.started.config.stop_threshold
    stopped = trace.stopped
    if stopped is not None and cursor == len(trace.steps):
        if trace.started.method == SPARC:
            return (
                f"SPARC ended with {counted(len(trace.steps), 'chunk')} of evidence; its tab shows the"
                " branches"
            )
        match stopped.reason:
            case "threshold":
                return f"Stopped: best Q {stopped.q_value:.2f} is below {threshold:.2f}"
            case "budget":
                n = len(trace.steps)
                return f"Stopped: the budget of {n} step{'s' if n > 1 else ''} is used up"
            case "exhausted":
                return "Stopped: no chunk is left that may be chosen"
    if cursor == 0 or threshold is None:
        return "Goes on: no stop threshold is set" if cursor else ""
    return f"Goes on: best Q {trace.steps[cursor - 1].state_value:.2f} is not below {threshold:.2f}"


def steps(run: RunInView | None, session: Session, without: Sequence[float] = ()) -> list[Node]:
    """One card a step, and the decision. `without`: Q of the choice that is looked at without each choice
    before it, where that was asked for.
    """
    if run is None:
        return [
            h(
                "p",
                {"class": "qx-empty"},
                "Press Run: the agent chooses one chunk after another, and each choice gets a card here.",
            )
        ]
    cards: list[Node] = [h("h3", None, counted(session.cursor, "choice"))] if session.cursor else []
    cards += [_step_card(run, step, session, without) for step in run.trace.steps[: session.cursor]]
    words = decision(run.trace, session.cursor)
    evidence = kept(run.trace, session.cursor).kept
    tokens = sum(run.documents.workspace[chunk_id].n_tokens for chunk_id in evidence)
    total = f" {counted(len(evidence), 'chunk')}, {tokens:,} tokens." if session.cursor else ""
    if words:
        said = review_words(kept(run.trace, session.cursor))
        cards.append(
            h(
                "div",
                {"class": "qx-stop"},
                h("strong", None, words + "."),
                total,
                h("p", {"class": "qx-sm"}, said) if said else None,
            )
        )
    return cards


def _step_card(run: RunInView, step: StepTaken, session: Session, without: Sequence[float]) -> Node:
    marks = []
    if step.chosen_by == "person":
        marks.append(
            h("span", {"class": "qx-mark", "title": "A person chose this chunk, not the agent"}, "forced")
        )
    if run.gold:
        hit = step.chunk_id in run.gold
        marks.append(
            h("span", {"class": "qx-mark qx-hit" if hit else "qx-mark"}, "support" if hit else "not support")
        )
    ended = kept(run.trace, session.cursor)
    if step.chunk_id in ended.taken_back:
        marks.append(h("span", {"class": "qx-mark qx-warn", "title": EXPLAIN["review"]}, "taken back"))
    if step.n_state_tokens_dropped:
        cut = (
            f"{step.n_state_tokens_dropped} tokens of question and chosen chunks did not fit the encoder's"
            " window and were cut"
        )
        marks.append(h("span", {"class": "qx-mark qx-warn", "title": cut}, "state cut"))
    explained = bool(without) and session.look == step.step
    acts = []
    if run.method.looks_again:
        pressed: dict[str, Any] = {
            "aria-pressed": str(explained).lower(),
            "title": "What this choice owes to those before it: its Q without each of them",
        }
        acts = [act("fold" if explained else "why", step.step, "Why", **pressed)] if step.step > 1 else []
        acts.append(_forbidding(step.chunk_id, session, short=True))
    acts = [*mark_buttons(step.chunk_id, session, short=True), *acts]
    lo, hi = run.scale()
    share = min(1.0, max(0.0, (step.q_value - min(lo, 0.0)) / (hi - min(lo, 0.0))))
    return h(
        "div",
        {"class": f"qx-step {step_class(step.step)}" + (" qx-on" if session.look == step.step else "")},
        h(
            "div",
            {"class": "qx-step-top"},
            h(
                "button",
                {
                    "class": "qx-badge",
                    "data-act": "look",
                    "data-arg": str(step.step),
                    "aria-label": f"Show step {step.step}",
                },
                str(step.step),
            ),
            h("p", {"class": "qx-quote"}, shorten(plain(step.text), 260)),
            h(
                "span",
                {"class": "qx-worth"},
                number("Q", f"{step.q_value:.2f}", "q"),
                h("span", {"class": "qx-bar", "--x": f"{100 * share:.1f}%"}),
            ),
        ),
        h(
            "div",
            {"class": "qx-step-head qx-sm"},
            h(
                "button",
                {"class": "qx-link", "data-act": "open", "data-arg": str(step.chunk_id)},
                f"chunk {step.chunk_id:,}",
            ),
            *marks,
            number("p", f"{step.probability:.2f}", "p") if run.config.temperature else None,
            number("place ρ", f"{step.position:.2f}", "rho") if step.position is not None else None,
            _reviewed(ended, step),
            number("tied", str(step.n_tied), "tied") if step.n_tied > 1 else None,
            h("span", {"class": "qx-grow"}),
            *acts,
        ),
        _why(run, step, without) if explained else None,
    )


def _reviewed(trace: Trace, step: StepTaken) -> Node | None:
    """What a choice was worth beside the others, where that took it back."""
    stopped = trace.stopped
    if stopped is None or step.chunk_id not in stopped.taken_back:
        return None
    return number("beside the others Q", f"{stopped.review[step.step - 1]:.2f}", "review")


def _why(run: RunInView, step: StepTaken, without: Sequence[float]) -> Node:
    """What Q of a choice would be without each choice before it."""
    lines = []
    for earlier, (chunk_id, q_value) in enumerate(zip(run.trace.chosen, without, strict=False), start=1):
        pin = h("span", {"class": f"qx-pin {step_class(earlier)}"}, str(earlier))
        words = f"chunk {chunk_id:,}: Q {q_value:.3f} instead of {step.q_value:.3f}"
        lines.append(
            h("li", None, "without ", pin, words, h("strong", None, f" ({step.q_value - q_value:+.3f})"))
        )
    return h("ul", {"class": "qx-why qx-sm"}, *lines)


def reading_views(session: Session) -> list[Node]:
    """What the reading pane can show, and which of it."""
    names = {"evidence": "Evidence in place", "text": "Whole text"}
    buttons = [
        act("reads", key, words, **{"aria-pressed": str(session.reads == key).lower()})
        for key, words in names.items()
    ]
    return [h("div", {"class": "qx-seg", "role": "group", "aria-label": "What is read"}, *buttons)]


def reading(documents: OpenDocuments | None, run: RunInView | None, session: Session) -> list[Node]:
    """The text around the marked chunk: every chunk can be clicked, chosen ones carry their step's colour,
    support a ring.
    """
    if documents is None or (session.chunk_id is None and session.anchor is None):
        return [
            h(
                "p",
                {"class": "qx-empty"},
                "Click a bar of the strip or a step to read the chunk in its place.",
            )
        ]
    workspace = documents.workspace
    centre = session.anchor if session.anchor is not None else session.chunk_id
    assert centre is not None
    page = page_around(workspace, centre)
    chosen = (
        {chunk_id: step for step, chunk_id in enumerate(run.trace.chosen[: session.cursor], start=1)}
        if run
        else {}
    )
    gold = set(run.gold) if run else set()

    def mark(chunk_id: int) -> tuple[list[str], Node | None]:
        classes = ["qx-gold"] * (chunk_id in gold) + ["qx-forbidden"] * (chunk_id in session.forbidden)
        if chunk_id not in chosen:
            return classes, None
        return ["qx-chosen", step_class(chosen[chunk_id]), *classes], h(
            "span", {"class": "qx-pin"}, str(chosen[chunk_id])
        )

    return [
        _reading_head(workspace, session, centre, page),
        document_page(workspace, page, session.chunk_id, mark),
    ]


def _reading_head(workspace: Workspace, session: Session, centre: int, page: Page) -> Node:
    chunk_id = session.chunk_id if session.chunk_id is not None else centre
    return h(
        "div",
        {"class": "qx-read-head"},
        crumb(workspace, centre, chunk_id),
        h(
            "div",
            {"class": "qx-read-actions"},
            *turn_pages(workspace, page),
            *mark_buttons(chunk_id, session),
            act(
                "force",
                chunk_id,
                "Use this chunk",
                title="Choose this chunk as the next step, in a child run",
            ),
            _forbidding(chunk_id, session),
        ),
    )


def _forbidding(chunk_id: int, session: Session, *, short: bool = False) -> Node:
    """The button that forbids a chunk, or takes that back; `short` where the chunk is named beside it."""
    if chunk_id in session.forbidden:
        words = "Allow this chunk again"
        return act("allow", chunk_id, "Allow" if short else words, **{"aria-label": words})
    words = "Never this chunk"
    why = "The agent may not choose this chunk; the run forks where it did"
    return act("forbid", chunk_id, "Never" if short else words, title=why, **{"aria-label": words})


def evidence(run: RunInView | None, session: Session) -> list[Node]:
    """What was chosen, in document order, with what can be done with it."""
    if run is None or not session.cursor:
        return [h("p", {"class": "qx-empty"}, "The chosen chunks will stand here in document order.")]
    workspace = run.documents.workspace
    shown = kept(run.trace, session.cursor)
    chosen = {
        chunk_id: step
        for step, chunk_id in enumerate(shown.chosen, start=1)
        if chunk_id not in shown.taken_back
    }
    chunks = [workspace[chunk_id] for chunk_id in sorted(chosen)]
    found = (
        f" · {len(set(run.gold) & set(chosen))} of {len(run.gold)} support chunks found" if run.gold else ""
    )
    found += f" · {counted(len(shown.taken_back), 'chunk')} taken back" if shown.taken_back else ""
    tokens = sum(chunk.n_tokens for chunk in chunks)
    body = "\n\n".join(chunk.text for chunk in chunks)
    head = h(
        "div",
        {"class": "qx-row qx-sm qx-evidence-head"},
        h(
            "span",
            {"class": "qx-mut"},
            f"{len(chunks)} chunk{'s' if len(chunks) > 1 else ''} · {tokens:,} tokens{found}",
        ),
        _likely(run, shown),
        h("span", {"class": "qx-grow"}),
        h("div", {"class": "qx-evidence-acts"}, *_acts(run, body)),
    )
    missed = (
        [chunk_id for chunk_id in run.gold if chunk_id not in shown.chosen]
        if shown.stopped is not None
        else []
    )
    places = _passages(workspace, sorted([*chosen, *missed]))
    rows: list[Node] = []
    for i, passage in enumerate(places):
        if i:
            rows.append(h("li", {"class": "qx-gap"}, _distance(workspace, places[i - 1], passage)))
        rows.append(_passage(run, session, passage, chosen))
    key = f"{run.token} {session.cursor} {session.look}"
    keep = {
        "class": "qx-evidence",
        "data-keep-scroll": key,
        "tabindex": "0",
        "aria-label": "Evidence in document order",
    }
    return [head, h("ol", keep, *rows)]


def _acts(run: RunInView, body: str) -> list[Node]:
    """What can be done with evidence, whose texts are `body`."""
    record = json.dumps(run.to_json(), ensure_ascii=False, indent=1)
    return [
        act("copy", body, "Copy"),
        act(
            "compare",
            "",
            "Compare",
            title="The same question and settings beside other methods",
            **{"aria-label": "Open in Compare"},
        ),
        act(
            "copy-link",
            f"?run={run.run_id}",
            "Link",
            title="The address of this run",
            **{"aria-label": "Copy link"},
        ),
        act(
            "download",
            record,
            "Download",
            title="The run as JSON",
            **{"aria-label": "Download run", "data-name": f"run-{run.run_id[:8]}.json"},
        ),
    ]


COMPLETE = (
    "Of validation questions whose best chunk stood out as much as here, so many had all that they need among"
    " as many chunks"
)


def _likely(run: RunInView, shown: Trace) -> Node | None:
    """How likely evidence is complete, where nobody knows its support and nothing warns of it."""
    share = run.completeness
    if shown.stopped is None or run.gold or share is None or share < LOW:
        return None
    return h(
        "span",
        {"class": "qx-mut", "title": COMPLETE, "tabindex": "0"},
        f"complete in {tenths(share)} such cases",
    )


CONTEXT = 240
"""Characters of a paragraph that are shown on either side of a chosen chunk."""
Passage = tuple[int, int, int, list[int]]
"""(document, first character, behind the last, its chunks in order)."""


def _passages(workspace: Workspace, chunk_ids: Sequence[int]) -> list[Passage]:
    """Each chunk in its paragraph; those whose paragraphs meet together."""
    found: list[Passage] = []
    for chunk_id in chunk_ids:
        chunk = workspace[chunk_id]
        text = workspace.documents[chunk.document].text
        before, behind = (
            text[max(0, chunk.start - CONTEXT) : chunk.start],
            text[chunk.end : chunk.end + CONTEXT],
        )
        start = chunk.start - len(_last_words(before.rpartition("\n\n")[2], whole=len(before) < CONTEXT))
        end = chunk.end + len(_first_words(behind.partition("\n\n")[0], whole=len(behind) < CONTEXT))
        if found and found[-1][0] == chunk.document and start <= found[-1][2]:
            document, first, last, ids = found.pop()
            found.append((document, first, max(last, end), [*ids, chunk_id]))
        else:
            found.append((chunk.document, start, end, [chunk_id]))
    return found


def _last_words(text: str, *, whole: bool) -> str:
    """The end of a piece of text, from its first sentence on, or its first word where no sentence begins; all
    of it where nothing was cut off.
    """
    if whole or len(text) < CONTEXT:
        return text
    sentence = re.search(r"[.!?]\s+(?=\S)", text[: CONTEXT // 2])
    word = re.search(r"\s+", text)
    return text[sentence.end() :] if sentence else text[word.end() :] if word else text


def _first_words(text: str, *, whole: bool) -> str:
    """The beginning of a piece of text, up to its last whole word."""
    return text if whole or len(text) < CONTEXT else text.rpartition(" ")[0]


def _distance(workspace: Workspace, before: Passage, after: Passage) -> str:
    if before[0] != after[0]:
        return f"in {workspace.documents[after[0]].title}"
    return f"{counted(after[3][0] - before[3][-1], 'chunk')} further on"


def _passage(run: RunInView, session: Session, passage: Passage, chosen: Mapping[int, int]) -> Node:
    """A paragraph with its chunks marked, and in its margin which they are and where."""
    workspace = run.documents.workspace
    document, at, end, chunk_ids = passage
    text = workspace.documents[document].text
    prose = Prose(text, at, end, workspace.documents[document].kind)
    parts: list[Node] = ["… "] if at > 0 and text[at - 1 : at] not in ("\n", "") else []
    margin: list[Node] = []
    for chunk_id in chunk_ids:
        chunk, step = workspace[chunk_id], chosen.get(chunk_id)
        if chunk.start > at:
            parts += drawn(prose, at, chunk.start)
        if step is None:
            mark: dict[str, Any] = {"class": "qx-chunk qx-missed"}
            words = drawn(prose, chunk.start, min(chunk.end, chunk.start + MAX_SHOWN))
        else:
            on = session.look == step
            mark = {
                "class": f"qx-chunk qx-chosen {step_class(step)}" + (" qx-marked" if on else ""),
                "data-show": on,
            }
            words = [
                h("span", {"class": "qx-pin"}, str(step)),
                *drawn(
                    prose,
                    chunk.start,
                    min(chunk.end, chunk.start + MAX_SHOWN),
                    answer_place(chunk, told(run, session)),
                ),
            ]
        parts.append(h("span", {**mark, "data-act": "open", "data-arg": str(chunk_id)}, *words))
        at = max(at, chunk.end)
        link = h(
            "button",
            {"class": "qx-link", "data-act": "open", "data-arg": str(chunk_id)},
            f"chunk {chunk_id:,}",
        )
        where = (
            h("span", {"class": "qx-mut", "title": " › ".join(chunk.heading_path)}, chunk.heading_path[-1])
            if chunk.heading_path
            else None
        )
        missed = h("strong", {"class": "qx-missed-name"}, "missed support ") if step is None else None
        margin.append(h("div", None, missed, link, where))
    if end > at:
        parts += drawn(prose, at, end)
    if text[end : end + 1] not in ("\n", ""):
        parts.append(" …")
    return h(
        "li",
        {"class": "qx-passage"},
        h("p", {"class": "qx-quote", "dir": "auto"}, *parts),
        h("div", {"class": "qx-margin qx-sm"}, *margin),
    )


def told(run: RunInView | None, session: Session) -> EvidenceAnswer | None:
    """The answer of a run whose end is in view: after Back it is another evidence that is shown."""
    return run.answer if run is not None and session.cursor == len(run.trace.steps) else None


def cited(run: RunInView | None, session: Session) -> CitedAnswer | None:
    """The same of a language model's."""
    return run.cited if run is not None and session.cursor == len(run.trace.steps) else None


def standing(run: RunInView | None, session: Session, config: EpisodeConfig | None, query: str) -> list[Node]:
    """Whether the run in view still fits the controls, and which chunks are forbidden."""
    nodes: list[Node] = []
    if run is not None and config is not None:
        changed = changes(run, config.with_(forbidden=session.forbidden), query)
        if changed:
            nodes += notice(
                f"Changed since this run: {', '.join(changed)}", "outdated", act("again", "", "Run again")
            )
    if session.forbidden:
        last = session.forbidden[-MOST_NAMED:]
        more = (
            f" and {len(session.forbidden) - len(last)} more" if len(session.forbidden) > len(last) else None
        )
        chips = [
            act("allow", chunk_id, f"chunk {chunk_id:,} ×", title="Allow this chunk again")
            for chunk_id in last
        ]
        nodes.append(
            h("div", {"class": "qx-never"}, h("span", {"class": "qx-mut"}, "Never chosen:"), *chips, more)
        )
    return nodes


MOST_NAMED = 3
"""Forbidden chunks that are named where there is one line for them; the text marks all."""
_SETTINGS = {
    "step_budget": "budget",
    "temperature": "temperature",
    "stop_threshold": "threshold",
    "review_threshold": "review",
    "seed": "seed",
    "beam_width": "beam",
    "top_k_actions": "sampling",
    "use_positions": "positions",
    "forbidden": "forbidden chunks",
}


def changes(run: RunInView, config: EpisodeConfig, query: str) -> list[str]:
    """What differs between the run in view and the controls, in words."""
    words = ["question"] if query.strip() != run.trace.started.query else []
    return words + [
        word for name, word in _SETTINGS.items() if getattr(run.config, name) != getattr(config, name)
    ]
