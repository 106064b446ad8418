"""SPARC runs as trees of plain data, for pages here and exported.

A function a panel. A round's branches stand side by side and rounds go down, with lines to the one that leads
and from it into the next; a branch keeps its colour through all rounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from core.base.types import Workspace
from core.corpus.words import content_words
from core.ingest.prose import plain
from core.ingest.sentences import split_sentences
from core.llm.protocol import Cost
from core.methods.sparc.events import BrokenOff, Hit, Merged, Note, Strategy
from core.methods.sparc.naming import STRATEGY_NAMES, branch_name, decided_by_rules
from core.methods.sparc.trace import SparcBranch, SparcRound, SparcTrace
from core.views.draw.answers import marked, thoughts, verdict_line
from core.views.draw.nodes import Node, chunk_link, h, link_to, sends, tip
from core.views.draw.tables import table
from core.views.draw.words import counted, shorten, step_class
from core.views.quotes import alone, one_line, quoted
from core.views.sparc_story import Fate, asked_anew, excerpt_of, fates
from core.views.story import sure as sure_words
from core.views.story import verdict_on

STRATEGY_SENTENCES: dict[Strategy, str] = {
    "bm25": "Chunks that share the rarest words with the query",
    "dense": "Chunks nearest to the query by the untrained encoder",
    "qrag": "Chunks that the agent of the open documents chooses one after another",
}
OVERLAP = (
    "Mean Jaccard index of the chunks of any two branches: 0 when each found its own, 1 when all found the"
    " same (SPARC-RAG appendix B.2)"
)
CONFIDENCE = (
    "How sure whoever answered is; the reader's is calibrated: of the answers given with 0.8, some 80 in a"
    " hundred are right"
)
EMPTY = (
    "Each round shows its branches side by side: what each one asked, found and answered, and what was kept."
)
SIGNS = "Signs before the chunks of a branch"
COSTS = "a row a branch: time at work, and what a language model took"
MOST_SENTENCES = 8
"""Sentences of a note's difference that a card lists."""
MOST_ROWS = 4
"""Chunks of a card that are seen before more are asked for."""
MOST_FATES = 3
_LONGEST = 400
"""Characters of a query, an answer or a reason that a card shows; the whole is in the export."""
_AROUND = 140
"""Characters around what is marked in a chunk."""
_LONGEST_TEXT = 4_000
"""Characters of a whole note."""
_ROW = 20
"""Height of the picture of where a branch looked, in pixels."""
_WIRE = 900
"""Width in which the lines between rounds are drawn; they stretch over the page."""

Finders = Mapping[int, Sequence[str]]
"""Branches that found a chunk, by its id."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ShownSparc:
    """A run as far as it went, with what it is drawn from."""

    trace: SparcTrace
    status: Literal["running", "complete", "cancelled", "failed"] = "running"
    message: str | None = None
    """Why it failed, in a sentence."""
    workspace: Workspace | None = None
    """What was searched; None where its texts were not kept."""
    gold: tuple[int, ...] = ()
    """Support chunks of a labelled question."""
    known_answer: str = ""

    @property
    def evidence(self) -> tuple[int, ...]:
        """Chunks of the final note, or of the last merged one."""
        return self.trace.stopped.evidence if self.trace.stopped is not None else self.trace.note.chunk_ids

    @cached_property
    def texts(self) -> Mapping[int, str]:
        """See the trace, which puts them together anew each time."""
        return self.trace.texts


def _totals(run: ShownSparc) -> Node:
    """Running totals against the budgets."""
    trace, cost, config = run.trace, run.trace.cost, run.trace.started.config
    tokens = cost.prompt_tokens + cost.completion_tokens
    totals = [(f"{len(trace.rounds)}", f" of {counted(config.depth, 'round')}")]
    if config.max_calls is not None:
        totals.append((f"{cost.calls:,}", f" of {counted(config.max_calls, 'call')}"))
    if tokens or config.max_tokens is not None:
        most = "" if config.max_tokens is None else f" of {config.max_tokens:,}"
        totals.append((f"{tokens:,}", f"{most} tokens"))
    totals += read_and_kept(run)
    return h(
        "span.qx-totals.qx-sm.qx-mut",
        *(h("span", h("strong", value), words) for value, words in totals),
        h("span.qx-legend", h("span.qx-legend-chosen"), "found"),
        h("span.qx-legend", h("span.qx-legend-gold"), "support") if run.gold else None,
        h("span", {"title": SIGNS}, "+ new in its note, = there before, · not taken"),
    )


def read_and_kept(run: ShownSparc) -> list[tuple[str, str]]:
    """How many different chunks were read, and how many of them the answer was read from: the last note's
    and those of the best branch.
    """
    n_read = len(run.trace.pool)
    read = f" {'chunk' if n_read == 1 else 'chunks'} read"
    return [(f"{n_read:,}", read), (f"{len(run.evidence):,}", " used")]


def rounds(run: ShownSparc | None, opened: int | None = None) -> list[Node]:
    """Rounds downwards, their branches side by side. `opened`: chunk that is open in the reading place."""
    if run is None:
        return [h("p.qx-empty", EMPTY)]
    if run.trace.rounds:
        return [_round(one, run, opened) for one in run.trace.rounds]
    is_coming = run.status == "running"
    words = "The first round is on its way." if is_coming else "It ended before its first round."
    return [h("p.qx-empty", words)]


def _round(one: SparcRound, run: ShownSparc, opened: int | None) -> Node:
    n, name, rounds = len(one.branches), f"qx-round-{one.number}", run.trace.rounds
    seen = finders_of(run.trace, before=one.number)
    lanes = [
        h(f"li.qx-lane.{step_class(branch.number)}", _card(one, branch, run, seen, opened))
        for branch in one.branches
    ]
    below: list[Node] = []
    if one.merged is not None:
        best = one.merged.best_branch
        below = [_wire(n, best, into=True), _merge(one.merged, one, run)]
        if one is not rounds[-1]:
            below.append(_wire(len(rounds[one.number].branches), best, into=False))
    elif one.broken is not None:
        below = [h("div.qx-merge.qx-merge-broken", h("div", *_broken(one.broken)))]
    title, totals = h("h3", {"id": name}, f"Round {one.number}"), _totals(run) if one.number == 1 else None
    label = {"aria-label": f"Branches of round {one.number}"}
    return h(
        "section.qx-round",
        {"aria-labelledby": name},
        h("header.qx-round-head", title, _round_facts(one, run.trace), totals),
        h(f"ol.qx-lanes.qx-w{min(max(n, 1), 8)}", label, *lanes),
        *below,
    )


def _round_facts(one: SparcRound, trace: SparcTrace) -> Node:
    before = trace.rounds[one.number - 2].merged if one.number > 1 else None
    plain_question = one.number == 1 and not one.started.cost.milliseconds and not one.started.cost.calls
    asked = "the question as it is" if plain_question else "the question rewritten"
    if before is not None:
        asked = f"asked on, from the note of {branch_name(before.round, before.best_branch)}"
    facts: list[Node] = [h("span", asked)]
    chunk_ids = {chunk.chunk_id for branch in one.branches for chunk in branch.chunks}
    if chunk_ids:
        facts.append(h("span", f"{counted(len(chunk_ids), 'chunk')} read"))
    if one.merged is not None and one.merged.overlap is not None:
        facts.append(tip("span.qx-kv", OVERLAP, f"overlap {one.merged.overlap:.2f}"))
    if (cost := one.started.cost).calls:
        facts.append(tip("span.qx-kv", "What the query rewriter took", f"rewriter {cost_words(cost)}"))
    return h("span.qx-facts.qx-sm.qx-mut", *facts)


def _wire(n: int, lead: int, *, into: bool) -> Node:
    """Lines from the branches of a round to the one that leads, or from there into the next."""
    middle = [_WIRE * (2 * i + 1) / (2 * n) for i in range(n)]
    hub = middle[min(lead, n) - 1]
    lines = []
    for i, x in enumerate(middle, start=1):
        start, end, kind = (x, hub, ".qx-wire-on") if into else (hub, x, ".qx-wire-out")
        if into and i == lead:
            kind = f".qx-wire-lead.{step_class(lead)}"
        course = f"M{start:.0f} 0C{start:.0f} 18 {end:.0f} 8 {end:.0f} 26"
        lines.append(h(f"path{kind}", {"d": course}))
    view = {"viewBox": f"0 0 {_WIRE} 26", "preserveAspectRatio": "none", "aria-hidden": "true"}
    return h("div.qx-wire", h("svg", view, *lines))


def _look(branch: SparcBranch, run: ShownSparc) -> Node | None:
    """Where a branch looked along the documents: the higher a chunk stood, the longer; support dotted."""
    chunks, n = branch.chunks, run.trace.started.n_chunks
    if branch.retrieved is None:
        return None
    borders = () if run.workspace is None else run.workspace.borders[1:-1]
    strokes = [_stroke(int(i), n, 1.0, "qx-border") for i in borders]
    strokes += [_stroke(i, n, 1.0, "qx-look-gold") for i in run.gold if i < n]
    for place, chunk in enumerate(chunks):
        if chunk.chunk_id < n:
            height, same = 1 - place / len(chunks) / 1.5, str(chunk.chunk_id)
            strokes.append(_stroke(chunk.chunk_id, n, height, "qx-stem", same))
    found = ", ".join(f"{chunk.chunk_id:,}" for chunk in chunks) or "none"
    label = f"Found along the document: chunks {found}"
    view = {"viewBox": f"0 0 1000 {_ROW}", "preserveAspectRatio": "none", "height": str(_ROW)}
    return h("div.qx-look", h("svg", {**view, "role": "img", "aria-label": label}, *strokes))


def _stroke(chunk_id: int, n: int, height: float, kind: str, same: str = "") -> Node:
    x = 1000 * (chunk_id + 0.5) / max(n, 1)
    lit = {"data-same": same} if same else {}
    return h("path", {"class": kind, "d": f"M{x:.1f} {_ROW}V{_ROW * (1 - height):.1f}", **lit})


def _card(one: SparcRound, branch: SparcBranch, run: ShownSparc, seen: Finders, opened: int | None) -> Node:
    """`seen`: who found chunks in earlier rounds."""
    best = one.best is branch
    name, sentence = STRATEGY_NAMES[branch.query.strategy], STRATEGY_SENTENCES[branch.query.strategy]
    marks: list[Node] = [tip("span.qx-strategy", sentence, name), h("span.qx-grow")]
    chosen = run.trace.chosen_branch is branch and bool(run.trace.answer.strip())
    if best or chosen:
        title = "The context manager chose this branch: the next round goes on from its note"
        if chosen:
            title = "The answer of the run is this branch's"
        marks.append(h("span.qx-mark.qx-best", {"title": title}, "wins" if chosen else "leads"))
    query_words = asked_anew(run.trace.started.question, shorten(branch.query.query, _LONGEST))
    words = [h("em", said) if fresh else said for said, fresh in query_words]
    reason = branch.query.reason
    label = f"Round {one.number}, branch {branch.number}, {name}" + ", leads" * best
    return h(
        "div.qx-branch" + ".qx-won" * (best or chosen),
        {"role": "group", "aria-label": label},
        h("div.qx-step-head", h("span.qx-pin", branch_name(one.number, branch.number)), *marks),
        h("p.qx-sparc-query", {"dir": "auto"}, *words),
        _reason(reason) if reason != "the plain question" else None,
        _look(branch, run),
        _retrieved_chunks(branch, run, seen, opened),
        _answer(branch, run),
        *_verdict(branch, run),
        _waiting(branch, run),
        _note(branch),
        _costs(branch),
    )


def _retrieved_chunks(branch: SparcBranch, run: ShownSparc, seen: Finders, opened: int | None) -> Node | None:
    if branch.retrieved is None:
        return None
    if not branch.chunks:
        return h("p.qx-mut.qx-sm", "found nothing")
    rows = [
        _chunk(chunk, branch, run, seen.get(chunk.chunk_id, ()), chunk.chunk_id == opened)
        for chunk in branch.chunks
    ]
    return _some(rows, "Chunks found, best first", "qx-chunks", MOST_ROWS)


def _some(rows: Sequence[Node], label: str, kind: str, most: int) -> Node:
    """A list of which the first are seen, the others on demand."""
    items = h("ol", {"class": kind, "aria-label": label}, *rows[:most])
    if len(rows) <= most:
        return items
    rest = h("ol", {"class": kind, "aria-label": f"{label}, the others"}, *rows[most:])
    summary = h("summary.qx-more", f"{len(rows) - most} more")
    return h("div", items, h("details.qx-sm", summary, rest))


def _chunk(chunk: Hit, branch: SparcBranch, run: ShownSparc, before: Sequence[str], opened: bool) -> Node:
    is_gold = chunk.chunk_id in run.gold
    sign, taken = _taken(chunk.chunk_id, branch)
    found_before = f"found before by {', '.join(before)}" * bool(before)
    title = ", ".join(filter(None, (f"chunk {chunk.chunk_id:,}", "support" * is_gold, taken, found_before)))
    kind = "qx-chunk-row" + ".qx-again" * bool(before) + ".qx-gold-row" * is_gold + ".qx-on" * opened
    quote = quoted(alone(chunk.text), None, content_words(branch.query.query), most=_AROUND)
    words = h("span.qx-chunk-text", {"dir": "auto"}, *marked(quote, "em.qx-telling"))
    tick = h("span.qx-found-at", "✓ ") if is_gold else None
    number = h("span.qx-chunk-id", tick, f"{chunk.chunk_id:,}")
    mark = h("span.qx-sign", {"aria-hidden": "true"}, sign)
    about = {"data-same": str(chunk.chunk_id), "aria-label": title, "aria-pressed": opened}
    about["title"] = f"{title}: {shorten(plain(chunk.text), 240)}"
    return h("li", sends(kind, "open", chunk.chunk_id, mark, words, number, **about))


def _taken(chunk_id: int, branch: SparcBranch) -> tuple[str, str]:
    """Whether a found chunk went into the branch's note: a sign, and the same in words."""
    if branch.noted is None:
        return " ", ""
    if chunk_id not in branch.noted.after.chunk_ids:
        return "·", "not taken into its note"
    if chunk_id in branch.noted.before.chunk_ids:
        return "=", "in its note before"
    return "+", "new in its note"


def _note(branch: SparcBranch) -> Node | None:
    """What a branch's note gained and lost, folded: free text where a language model writes it."""
    if branch.noted is None:
        return None
    added, removed = note_difference(branch.noted.before, branch.noted.after)
    if not added and not removed:
        return h("p.qx-sm.qx-mut", "note unchanged" if branch.noted.after.text.strip() else "note empty")
    lines = [*_sentences(added, "+", "added"), *_sentences(removed, "−", "removed")]
    gone = f", {len(removed)} removed" if removed else ""
    summary = f"note: {counted(len(added), 'sentence')} added{gone}"
    return h("details.qx-sm.qx-cost", h("summary", summary), h("ul.qx-difference", *lines))


def _sentences(sentences: Sequence[str], sign: str, word: str) -> Iterator[Node]:
    begin = h("span.qx-sign", {"aria-hidden": "true"}, sign), h("span.qx-unseen", f"{word}: ")
    for sentence in sentences[:MOST_SENTENCES]:
        yield h(f"li.qx-{word}", *begin, h("span", {"dir": "auto"}, shorten(sentence, 280)))
    if len(sentences) > MOST_SENTENCES:
        yield h(f"li.qx-{word}.qx-mut", f"{len(sentences) - MOST_SENTENCES} more {word}")


def note_difference(before: Note, after: Note) -> tuple[list[str], list[str]]:
    """Sentences that a note gained and lost, in their order.

    >>> note_difference(Note("It rained. She left."), Note("It rained. He stayed."))
    (['He stayed.'], ['She left.'])
    """
    old, new = _sentences_of(before.text), _sentences_of(after.text)
    gained = [sentence for sentence in new if sentence not in old]
    return gained, [sentence for sentence in old if sentence not in new]


def _sentences_of(text: str) -> list[str]:
    return list(dict.fromkeys(" ".join(text[start:end].split()) for start, end in split_sentences(text)))


def _answer(branch: SparcBranch, run: ShownSparc) -> Node | None:
    answered = branch.answered
    if answered is None:
        return None
    verdict = verdict_line(verdict_on(answered.answer, run.known_answer), run.known_answer, "span")
    words = sure = pill = None
    if answered.answer.strip():
        words = h("strong", {"dir": "auto"}, shorten(answered.answer, _LONGEST))
        if answered.confidence is not None:
            sure = tip("span.qx-kv.qx-sm.qx-mut.qx-sure", CONFIDENCE, sure_words(answered.confidence))
    elif verdict is None:  # which would say it again
        words = h("span.qx-mut", "no answer in the evidence")
    if branch.judged is not None:
        accepted = branch.judged.verdict == "stop"
        sentence = "The evaluator accepts the answer" if accepted else "The evaluator wants to know more"
        pill = tip("span.qx-mark" + ".qx-hit" * accepted, sentence, "accepted" if accepted else "go on")
    return h("div.qx-said", words, sure, verdict, h("span.qx-grow"), pill)


def _cited(citations: Sequence[int], run: ShownSparc) -> Node | None:
    links = [
        link_to("open", i, f"{i:,}", data_same=str(i), aria_label=f"cited: chunk {i:,}")
        for i in dict.fromkeys(citations)
        if 0 <= i < run.trace.started.n_chunks
    ]
    return h("span.qx-cited.qx-why-so", h("span.qx-mut", "cites chunk"), *links) if links else None


def _verdict(branch: SparcBranch, run: ShownSparc) -> list[Node | None]:
    """Why the evaluator decided so, what the answer rests on, and what was thought before it."""
    answered = branch.answered
    if answered is None:
        return []
    reason = None if branch.judged is None else _reason(branch.judged.reason)
    cited = _cited(answered.citations, run) if answered.answer.strip() else None
    return [reason, cited, *thoughts(answered.thoughts)]


def _reason(words: str) -> Node | None:
    """Why an agent decided so, where it says that."""
    words = words.removeprefix("rules: ")
    return h("p.qx-sm.qx-mut", {"dir": "auto"}, shorten(words, _LONGEST)) if words else None


def _broken(broken: BrokenOff) -> list[Node]:
    """Who could not go on, and why."""
    why = broken.message or f"the budget of {broken.reason} is used up"
    mark = tip("span.qx-mark.qx-warn", "Whose turn it was when the run ended", broken.agent)
    return [mark, " ", h("span.qx-sm", {"dir": "auto"}, shorten(why, _LONGEST))]


def _waiting(branch: SparcBranch, run: ShownSparc) -> Node | None:
    """What a branch is about to do, or never came to."""
    if branch.broken is not None:
        return h("p", *_broken(branch.broken))
    steps = (
        (branch.retrieved, "retrieving"),
        (branch.noted, "updating its note"),
        (branch.answered, "answering"),
        (branch.judged, "being judged"),
    )
    doing = next((words for event, words in steps if event is None), None)
    if doing is None:
        return None
    return h("p.qx-live", f"{doing}…") if run.status == "running" else h("p.qx-mut", "ended here")


def cost_words(cost: Cost) -> str:
    """What a turn took, in a few words."""
    words = f"{cost.milliseconds:,.0f} ms"
    if not cost.calls:
        return words
    tokens = counted(cost.prompt_tokens + cost.completion_tokens, "token")
    return f"{counted(cost.calls, 'call')} · {tokens} · {words}"


_STRUCTURES = {
    "json_schema": "by schema",
    "grammar": "token by token",
    "json_object": "as JSON",
    "text": "found in text",
}


def _costs(branch: SparcBranch) -> Node | None:
    """What each agent of a branch took, folded."""
    if branch.retrieved is None:
        return None
    costs = {"retriever": Cost(milliseconds=branch.retrieved.milliseconds)}
    turns = {"context manager": branch.noted, "answer generator": branch.answered}
    for agent, event in (turns | {"answer evaluator": branch.judged}).items():
        if event is not None:
            costs[agent] = event.cost
    broke = None
    if branch.broken is not None:
        broke = branch.broken.agent
        costs[broke] = branch.broken.cost
    rows = []
    for agent, cost in costs.items():
        tokens = f"{cost.prompt_tokens:,} + {cost.completion_tokens:,}"
        reply = "none" if agent == broke else _STRUCTURES.get(cost.structure or "", "")
        cells = (f"{cost.calls}", tokens, f"{cost.milliseconds:,.0f}", reply)
        rows.append(h("tr", h("th", {"scope": "row"}, agent), *(h("td", cell) for cell in cells)))
    how = ("reply", "How the structured reply was got")
    head = ("agent", "calls", ("tokens", "Read + written"), "ms", how)
    took = table(head, rows, f"What branch {branch.number} took")
    return h("details.qx-cost.qx-sm", h("summary", cost_words(branch.cost)), took)


def _merge(merged: Merged, one: SparcRound, run: ShownSparc) -> Node:
    """Who leads and why, what the merged note kept and dropped, and why."""
    last = run.trace.stopped is not None and one is run.trace.rounds[-1]
    wins = last and run.trace.chosen_branch is one.best and bool(run.trace.answer.strip())
    leads = f"Its note {'is the last' if last else 'goes on'}"
    if len(one.branches) > 1:
        leads = f"Branch {branch_name(one.number, merged.best_branch)} {'wins' if wins else 'leads'}"
    note = cost = None
    if sentences := _sentences_of(merged.note.text):
        text = h("p.qx-quote", {"dir": "auto"}, shorten(merged.note.text, _LONGEST_TEXT))
        summary = h("summary", f"the note: {counted(len(sentences), 'sentence')}")
        note = h("details.qx-sm.qx-cost", summary, text)
    if merged.cost.calls:
        cost = h("p.qx-sm.qx-mut", f"context manager {cost_words(merged.cost)}")
    fate_of = fates(run.trace, one.number)
    kept, dropped = [fate for fate in fate_of if fate.stays], [fate for fate in fate_of if not fate.stays]
    return h(
        f"div.qx-merge.{step_class(merged.best_branch)}",
        {"id": f"qx-merge-{one.number}"},
        h("div", h("strong", leads), _reason(merged.reason), note, cost),
        _fates(f"Kept in the note: {len(kept)}", kept, run, "qx-kept"),
        _fates(f"Left out of the note: {len(dropped)}", dropped, run, "qx-dropped"),
    )


def _fates(heading: str, fates: Sequence[Fate], run: ShownSparc, kind: str) -> Node:
    listed = _some([_fate(fate, run) for fate in fates], heading, "qx-fates", MOST_FATES) if fates else None
    return h("div", {"class": kind}, h("h4", heading), listed)


def _fate(fate: Fate, run: ShownSparc) -> Node:
    text = run.texts.get(fate.chunk_id, "")
    paint = step_class(fate.branches[0]) if fate.branches else "qx-solo"
    link = link_to("open", fate.chunk_id, f"{fate.chunk_id:,}", data_same=str(fate.chunk_id))
    support = None
    if fate.chunk_id in run.gold:
        support = h("span.qx-found-at", "✓ support") if fate.stays else h("span.qx-lost", "support")
    return h(
        "li",
        {"class": paint},
        h("span.qx-dot", {"aria-hidden": "true"}),
        h("span.qx-fate-text", {"dir": "auto", "title": shorten(text, 400)}, shorten(one_line(text), 160)),
        link,
        support,
        h("span.qx-fate-why", {"title": fate.why}, fate.why),
    )


# The end


def final(run: ShownSparc | None) -> list[Node]:
    """What the answer rests on: the final evidence in document order, the answer marked where it stands."""
    if run is None or run.status == "running" or run.trace.stopped is None or not run.evidence:
        return []
    winner = run.trace.chosen_branch
    cited = () if winner is None or winner.answered is None else winner.answered.citations
    answer, finders = run.trace.stopped.answer.strip(), finders_of(run.trace)
    items = []
    for chunk_id in sorted(run.evidence):
        words, is_cited = run.texts.get(chunk_id, ""), chunk_id in cited
        whole = {"dir": "auto", "title": shorten(plain(words), 600)}
        finds = [
            h("span.qx-mark", "cited") if is_cited else None,
            h("span.qx-mark.qx-hit", "support") if chunk_id in run.gold else None,
            h("span.qx-sm.qx-mut", f"found by {', '.join(finders.get(chunk_id, ())) or 'none'}"),
        ]
        parts = (
            chunk_link(chunk_id, data_same=str(chunk_id)),
            h("span.qx-rests", whole, *marked(excerpt_of(words, answer if is_cited else "", 160))),
            h("span.qx-finds", *finds),
        )
        items.append(h("li" + ".qx-cited-item" * is_cited, *parts))
    head = h("h3", "What the answer rests on" if answer else "What was found")
    read = counted(len(run.trace.pool), "chunk")
    caption = f"{len(items)} of {read} read: the note's and the best branch's"
    if run.gold:
        hits = len({*run.gold} & {*run.evidence})
        caption += f" · {hits} of {counted(len(run.gold), 'support chunk')} among them"
    return [h("div.qx-row", head, h("span.qx-sm.qx-mut", caption)), h("ol.qx-rests-on", *items)]


def costs(run: ShownSparc | None) -> list[Node]:
    """A bar a branch: how long it worked, and the tokens of its calls."""
    if run is None or run.status == "running":
        return []
    branches = [(one, branch) for one in run.trace.rounds for branch in one.branches if branch.retrieved]
    if not branches:
        return []
    longest = max(branch.cost.milliseconds for _, branch in branches)
    rows: list[Node] = []
    for one, branch in branches:
        cost, best = branch.cost, ".qx-best" * (one.best is branch)
        share = 100 * cost.milliseconds / longest if longest else 0.0
        label = f"{branch_name(one.number, branch.number)} {STRATEGY_NAMES[branch.query.strategy]}"
        rows += [
            h(f"span{best}", label),
            h(f"span.qx-bar-of.{step_class(branch.number)}{best}", {"--x": f"{share:.1f}%"}),
            h("span.qx-mut", cost_words(cost)),
        ]
    head = h("div.qx-row", h("h3", "What it cost"), h("span.qx-sm.qx-mut", COSTS))
    agents = run.trace.started.agents
    who = f"{agents} rewrites, answers and judges."
    if decided_by_rules(run.trace):
        who = f"No language model: {agents} rewrite, answer and judge."
    return [head, h("div.qx-bars", *rows), h("p.qx-sm.qx-mut.qx-agents", who)]


def finders_of(trace: SparcTrace, before: int | None = None) -> dict[int, list[str]]:
    """By chunk, the branches that found it, where asked for `before` a 1-based round."""
    finders: dict[int, list[str]] = {}
    for one in trace.rounds if before is None else trace.rounds[: before - 1]:
        for branch in one.branches:
            for chunk in branch.chunks:
                finders.setdefault(chunk.chunk_id, []).append(branch_name(one.number, branch.number))
    return finders
