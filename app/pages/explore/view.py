"""Sessions and runs as trees of plain data, a function a panel."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from app.pages.explore.mark_view import mark_buttons
from app.pages.widgets.asking import settings_toggle
from app.pages.widgets.notices import notice
from app.services.in_view import OpenDocuments, RunInView
from app.services.session import Session
from core.answer.evidence import EvidenceAnswer
from core.base.config import ChunkConfig, EpisodeConfig
from core.base.events import StepTaken, Trace, share_searched
from core.base.types import Notice, Workspace
from core.corpus.words import content_words
from core.encode.checkpoint import CheckpointSpec
from core.lab.evaluate.completeness import LOW
from core.methods.qrag.retriever import QRAG
from core.views.draw import answers as answer_view
from core.views.draw.evidence import evidence_rows
from core.views.draw.nodes import Node, act, h, link_to, tip
from core.views.draw.steps import decision, step_card, stop_card
from core.views.draw.text import Page, crumb, document_page, page_around, turn_pages
from core.views.draw.words import counted, percent, step_class, tenths
from core.views.question import cut_sentence
from core.views.quotes import CARD, passage_in, quoted
from core.views.story import missed_support

NO_STEPS = "Each passage that the agent picks gets a card here."
UNTRAINED = (
    "No agent was trained on documents like this one, so these steps are the untrained base's. The agent"
    " general finds more."
)
ONE_SEARCH = (
    "No agent was trained on documents like this one yet. Here Q is one search by meaning and words, and"
    " stays the same at every step."
)
"""Told of documents that are open under it."""


def document_header(documents: OpenDocuments | None, none: str = "No document open") -> list[Node]:
    """Title, size, chunking and state of what is open. `none`: what is said where nothing is."""
    if documents is None:
        return [h("div.qx-row", h("strong", none))]
    workspace = documents.workspace
    titles = [document.title for document in workspace.documents]
    title = titles[0] if len(titles) == 1 else f"{titles[0]} and {len(titles) - 1} more"
    cuts = {_cut(config) for config in workspace.configs if config is not None} or {"chunks as given"}
    size = f"{workspace.n_tokens:,} tokens · {counted(len(workspace), 'chunk')} · {' + '.join(sorted(cuts))}"
    seconds = sum(documents.milliseconds.values()) / 1000
    came = "from cache" if documents.n_embedded == 0 else f"{counted(documents.n_embedded, 'chunk')} embedded"
    facts = [
        [f"{document.title}: {notice} ", *_place(workspace, i, notice)]
        for i, document in enumerate(workspace.documents)
        for notice in document.notices
    ]
    facts += [[f"{sentence}."] for sentence in documents.notices[1:]]
    if not documents.agent.spec.trained:
        facts.append([UNTRAINED if documents.agent.spec.reads_choices else ONE_SEARCH])
    n_json_ld = sum(len(document.json_ld) for document in workspace.documents)
    shares = ", ".join(f"{stage} {value:,.0f} ms" for stage, value in documents.milliseconds.items())
    chip = f"{counted(len(workspace), 'chunk')}" + (f" · {counted(len(facts), 'note')}" if facts else "")
    about = [
        h("p", size),
        (
            h("p", f"{percent(documents.share)} of the chunks were embedded when this was shown.")
            if documents.searched
            else h("p", {"title": shares}, f"Ready after {seconds:.1f} s, {came}.")
        ),
        *(h("p", *fact) for fact in facts),
    ]
    if n_json_ld:
        about.append(_json_ld(workspace, n_json_ld))
    name = h("strong.qx-doc-title", {"title": title}, title)
    if len(about) == 2:  # nothing that calls for a menu
        return [name, h("span.qx-chip", {"title": size}, chip), h("div.qx-unseen", *about)]
    return [name, h("details.qx-menu", h("summary.qx-chip", chip), h("div.qx-menu-panel.qx-sm", *about))]


def warning(documents: OpenDocuments | None) -> list[Node]:
    """What may mislead about what is open: the first of several sentences, the others are in the header."""
    if documents is None or not documents.notices:
        return []
    first, *others = documents.notices
    more = f" {counted(len(others), 'more note')} beside the title." if others else ""
    return notice(f"{first}.{more}", "outdated")


def _place(workspace: Workspace, document: int, notice: Notice) -> list[Node]:
    """A link to the chunk at or before a notice's place; none where it has no place."""
    rows = workspace.tables[document].start
    if notice.at is None or not len(rows):
        return []
    row = max(0, int(np.searchsorted(rows, notice.at, side="right")) - 1)
    return [link_to("open", int(workspace.borders[document]) + row, "Show")]


def _cut(config: ChunkConfig) -> str:
    """How a document was cut, in a few words."""
    return "one sentence a chunk" if config.one_sentence else f"{config.chunker}, {config.max_tokens} tokens"


def _json_ld(workspace: Workspace, count: int) -> Node:
    items = [
        json.dumps(item, ensure_ascii=False, indent=1)[:2_000]
        for document in workspace.documents
        for item in document.json_ld[:20]
    ]
    label = f"{counted(count, 'JSON-LD block')} of the page"
    return h("details.qx-sm", h("summary", label), *(h("pre.qx-pre", item) for item in items[:20]))


_TRAINED_FOR = {
    "narrative": "stories",
    "multi-hop": "questions of several hops",
    "general": "questions over real documents",
}


def agent_words(spec: CheckpointSpec) -> str:
    """What an agent has learned, in words of somebody who has read nothing of it."""
    if not spec.trained:
        return f"not trained: {'meaning and words in one search' if spec.word_weight else 'plain embeddings'}"
    data = (spec.training or {}).get("data")
    purpose = _TRAINED_FOR.get(data) if isinstance(data, str) else None
    return f"trained for {purpose}" if purpose else "trained"


def agent_note(spec: CheckpointSpec) -> str:
    """What stands under an agent's name."""
    trained = agent_words(spec)
    positions = "no positions" if spec.position_kind == "none" else f"{spec.position_kind} positions"
    each = " at every step" if spec.reads_choices else ""
    if spec.rerank_again:
        each = ", at later steps together with its choices"
    most = f"{'its' if spec.rerank_first is None else 'up to'} {spec.rerank_pool} best chunks"
    again = f" · reads {most} again{each}" if spec.rerank_weight else ""
    return f"{trained} · {positions}{again}"


def settings_line(spec: CheckpointSpec, config: EpisodeConfig, trained: str = "") -> list[Node]:
    """What is set, as a sentence that opens the settings. `trained`: an agent to have instead."""
    words = [f"up to {counted(config.step_budget, 'step')}", f"temperature {config.temperature:g}"]
    if config.temperature:
        words.append(f"seed {config.seed}")
    if config.top_k_actions is not None:
        words.append(f"among the {config.top_k_actions} best")
    stop = config.stop_threshold
    words.append("never stops early" if stop is None else f"stops below Q {stop:.2f}")
    if config.review_threshold is not None:
        words.append("review on")
    if config.beam_width > 1:
        words.append(f"beam {config.beam_width}")
    if spec.position_kind != "none" and not config.use_positions:
        words.append("positions off")
    kind = "span.qx-set-learned" if spec.trained else "span.qx-untrained"
    agent = h("span", h("strong", spec.name), " ", h(kind, agent_words(spec)))
    toggle = settings_toggle("qx-settings", agent, words)
    title = "The same chunks, chosen by an agent that has learned to"
    return [toggle, *[act("agent", trained, f"Use {trained} (trained)", title=title)] * bool(trained)]


DEMO_TOKENS = 1_000_000


def demo() -> list[Node]:
    """The way to a long document, with what it takes."""
    title = (
        "A generated story. It is embedded in 1 to 4 minutes the first time, on two cores, and in seconds"
        " after that. You can ask it meanwhile."
    )
    button = act("demo", "", "Try a million-token text", title=title)
    return [button, h("span.qx-mut.qx-sm", " 1 to 4 min the first time")]


def question_cut(documents: OpenDocuments | None, query: str) -> list[Node]:
    """That the agent reads only the beginning of a question."""
    return [] if documents is None else notice(cut_sentence(documents.agent.encoder, query), "outdated")


def status(run: RunInView | None, session: Session) -> str:
    """The line beside the buttons."""
    if run is None:
        return ""
    budget = run.config.step_budget
    waited = run.waited or run.trace.milliseconds / 1000
    took = f" · {waited:.1f} s" if waited else ""
    child = f" · child run from step {run.fork_step}" if run.parent_run_id else ""
    method = f"{run.trace.started.method} · " if run.trace.started.method != QRAG.name else ""
    searched = f" · preview: searched {percent(share_searched(run.trace))}" if run.config.searched else ""
    return f"{method}step {session.cursor} of {budget}{took}{searched}{child}"


def standing_at(run: RunInView | None, session: Session) -> list[Node]:
    """The line beside the buttons, and the way to hand the run on."""
    if run is None:
        return [h("span", "no run in view")] if session.ran else []
    share = act("share", "", "Share", title="The address of this run, for others or for later")
    waited = "Time you waited for it, the answer included"
    return [h("span", {"title": waited}, status(run, session)), " ", share]


def first_steps(trace: Trace, cursor: int) -> Trace:
    """The first `cursor` steps of a run, and how it ended where those are all."""
    return trace if cursor == len(trace.steps) else replace(trace, steps=trace.steps[:cursor], stopped=None)


def steps(run: RunInView | None, session: Session, without: Sequence[float] = ()) -> list[Node]:
    """A card a step, and the decision. `without`: Q of the choice looked at without each before it."""
    if run is None:
        return [h("p.qx-empty", NO_STEPS)]
    cards: list[Node] = [h("h3", counted(session.cursor, "choice"))] if session.cursor else []
    cards += [_step_card(run, step, session, without) for step in run.trace.steps[: session.cursor]]
    words = decision(run.trace, session.cursor)
    if words:
        so_far = first_steps(run.trace, session.cursor)
        tokens = sum(run.documents.workspace[chunk_id].n_tokens for chunk_id in so_far.evidence)
        cards.append(stop_card(words, so_far, tokens))
    return cards


def _step_card(run: RunInView, step: StepTaken, session: Session, without: Sequence[float]) -> Node:
    explained = bool(without) and session.look == step.step
    acts: list[Node] = []
    if run.method.looks_again:
        if step.step > 1:
            name = "fold" if explained else "why"
            acts.append(act(name, step.step, "Why", aria_pressed=explained, title=OWES))
        acts.append(_forbidding(step.chunk_id, session, short=True))
    return step_card(
        first_steps(run.trace, session.cursor),
        step,
        gold=run.gold,
        scale=run.scale,
        on=session.look == step.step,
        score_name=run.method.score_name,
        acts=[*mark_buttons(step.chunk_id, session, short=True), *acts],
        below=_why(run, step, without) if explained else None,
        quote=quoted(
            passage_in(run.documents.workspace, step.chunk_id),
            None,
            content_words(run.trace.started.query),
            most=CARD,
        ),
    )


def _why(run: RunInView, step: StepTaken, without: Sequence[float]) -> Node:
    """What Q of a choice would be without each choice before it."""
    lines = []
    for earlier, (chunk_id, q_value) in enumerate(zip(run.trace.chosen, without, strict=False), start=1):
        pin = h("span", {"class": f"qx-pin {step_class(earlier)}"}, str(earlier))
        words = f"chunk {chunk_id:,}: Q {q_value:.3f} instead of {step.q_value:.3f}"
        lines.append(h("li", "without ", pin, words, h("strong", f" ({step.q_value - q_value:+.3f})")))
    return h("ul.qx-why.qx-sm", *lines)


def reading_views(session: Session) -> list[Node]:
    """What the reading pane can show, and which of it."""
    if not session.run:
        return []
    names = {"evidence": "Evidence in place", "text": "Whole text"}
    buttons = [act("reads", key, words, aria_pressed=session.reads == key) for key, words in names.items()]
    return [h("div.qx-seg", {"role": "group", "aria-label": "What is read"}, *buttons)]


def reading(documents: OpenDocuments | None, run: RunInView | None, session: Session) -> list[Node]:
    """The text around the marked chunk; chosen chunks carry their step's colour, support a ring."""
    if documents is None or (session.chunk_id is None and session.anchor is None):
        return [h("p.qx-empty", "Click a bar or a step to read its chunk in the text.")]
    workspace = documents.workspace
    centre = session.anchor if session.anchor is not None else session.chunk_id
    assert centre is not None
    page = page_around(workspace, centre)
    picks, gold = (run.trace.chosen[: session.cursor], run.gold) if run else ((), ())
    chosen = {chunk_id: step for step, chunk_id in enumerate(picks, start=1)}

    def mark(chunk_id: int) -> tuple[list[str], Node | None]:
        classes = ["qx-gold"] * (chunk_id in gold) + ["qx-forbidden"] * (chunk_id in session.forbidden)
        if chunk_id not in chosen:
            return classes, None
        return ["qx-chosen", step_class(chosen[chunk_id]), *classes], h("span.qx-pin", str(chosen[chunk_id]))

    text = document_page(workspace, page, session.chunk_id, mark)
    return [_reading_head(workspace, session, centre, page), text]


def _reading_head(workspace: Workspace, session: Session, centre: int, page: Page) -> Node:
    chunk_id = session.chunk_id if session.chunk_id is not None else centre
    title = "Choose this chunk as the next step, in a child run"
    acts = [
        *turn_pages(workspace, page),
        *mark_buttons(chunk_id, session),
        act("force", chunk_id, "Use this chunk", title=title),
        _forbidding(chunk_id, session),
    ]
    return h("div.qx-read-head", crumb(workspace, centre, chunk_id), h("div.qx-read-actions", *acts))


def _forbidding(chunk_id: int, session: Session, *, short: bool = False) -> Node:
    """The button that forbids a chunk, or takes that back; `short` where the chunk is named beside it."""
    if chunk_id in session.forbidden:
        words = "Allow this chunk again"
        return act("allow", chunk_id, "Allow" if short else words, aria_label=words)
    words = "Never this chunk"
    why = "The agent may not choose this chunk: a child run begins where it did"
    return act("forbid", chunk_id, "Never" if short else words, title=why, aria_label=words)


def evidence(run: RunInView | None, session: Session) -> list[Node]:
    """What was chosen, in document order, with what can be done with it."""
    if run is None or not session.cursor:
        return [h("p.qx-empty", "The passages will stand here, in document order.")]
    workspace = run.documents.workspace
    so_far = first_steps(run.trace, session.cursor)
    steps_of = enumerate(so_far.chosen, start=1)
    chosen = {chunk_id: step for step, chunk_id in steps_of if chunk_id not in so_far.taken_back}
    chunks = [workspace[chunk_id] for chunk_id in sorted(chosen)]
    hits, of = len({*run.gold} & {*chosen}), counted(len(run.gold), "support chunk")
    counts = f" · {hits} of {of} found" if run.gold else ""
    counts += f" · {counted(len(so_far.taken_back), 'chunk')} taken back" if so_far.taken_back else ""
    tokens = sum(chunk.n_tokens for chunk in chunks)
    body = "\n\n".join(chunk.text for chunk in chunks)
    words = h("span.qx-mut", f"{counted(len(chunks), 'chunk')} · {tokens:,} tokens{counts}")
    head = h("div.qx-row.qx-sm.qx-evidence-head", words, _likely(run, so_far))
    missed = missed_support(so_far, run.gold)
    rows = evidence_rows(workspace, chosen, missed, session.look, answer_in_view(run, session), run.token)
    keep = {"data-keep-scroll": f"{run.token} {session.cursor} {session.look}", "tabindex": "0"}
    listed = h("ol.qx-evidence", {**keep, "aria-label": "Evidence in document order"}, *rows)
    return [head, listed, h("div.qx-evidence-head.qx-evidence-acts", *_acts(run, body))]


def _acts(run: RunInView, body: str) -> list[Node]:
    """What can be done with evidence, whose texts are `body`."""
    record = json.dumps(run.to_json(), ensure_ascii=False, indent=1)
    beside, name = "The same question and settings beside other methods", f"run-{run.run_id[:8]}.json"
    address = {"title": "The address of this run", "aria-label": "Copy link"}
    file = {"title": "The run as JSON", "aria-label": "Download run", "data-name": name}
    return [
        act("copy", body, "Copy"),
        act("compare", "", "Compare", title=beside, aria_label="Open in Compare"),
        act("copy-link", f"?run={run.run_id}", "Link", **address),
        act("download", record, "Download", **file),
    ]


OWES = "How much each earlier choice raised the Q of this one"
COMPLETE = "Measured on validation questions whose best chunk stood out as much as here, with as many chunks"


def _likely(run: RunInView, so_far: Trace) -> Node | None:
    """How likely evidence is complete, where nobody knows its support and nothing warns of it."""
    share = run.completeness
    if so_far.stopped is None or run.gold or share is None or share < LOW:
        return None
    words = f"evidence like this was complete in {tenths(share)} cases"
    return tip("span.qx-mut", COMPLETE, words)


def answer_in_view(run: RunInView | None, session: Session) -> EvidenceAnswer | None:
    """The answer of a run whose end is in view: after Back it is another evidence that is shown."""
    return run.answer if run is not None and session.cursor == len(run.trace.steps) else None


def answered(run: RunInView | None, session: Session) -> list[Node]:
    """The answer in view, with the places that it rests on."""
    if run is None:
        return []
    passage = partial(passage_in, run.documents.workspace)
    return answer_view.answer(answer_in_view(run, session), passage, run.known_answer)


def standing(run: RunInView | None, session: Session, config: EpisodeConfig | None, query: str) -> list[Node]:
    """Whether the run in view still fits the controls, and which chunks are forbidden."""
    nodes: list[Node] = []
    if run is not None and config is not None:
        changed = ", ".join(changes(run, config.with_(forbidden=session.forbidden), query))
        words = f"Changed since this run: {changed}" if changed else ""
        nodes += notice(words, "outdated", act("again", "", "Run again"))
    if session.forbidden:
        title, n_more = "Allow this chunk again", len(session.forbidden) - MOST_NAMED
        last = session.forbidden[-MOST_NAMED:]
        chips = [act("allow", chunk_id, f"chunk {chunk_id:,} ×", title=title) for chunk_id in last]
        more = f" and {n_more} more" if n_more > 0 else None
        nodes.append(h("div.qx-never", h("span.qx-mut", "Never chosen:"), *chips, more))
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
    words = [] if run.asks(query) else ["question"]
    return words + [
        word for name, word in _SETTINGS.items() if getattr(run.config, name) != getattr(config, name)
    ]
