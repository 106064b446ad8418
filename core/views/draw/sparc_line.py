"""A SPARC run's story line as a tree of plain data.

Pure functions; all text stays text. What it says is in core.views.sparc_story.
"""

from __future__ import annotations

from core.methods.sparc.naming import branch_name
from core.methods.sparc.trace import SparcTrace
from core.views.draw.nodes import Node, h, sends
from core.views.draw.sparc import ShownSparc
from core.views.draw.story import answer_part, part_head, question_part, story_line
from core.views.draw.words import counted, shorten, step_class
from core.views.ending import sparc_end_sentence
from core.views.sparc_story import RoundPart, lead, sparc_story

INVITATION = (
    "Ask a question. Several branches search at once; you will see what each found, and which one led to the"
    " answer."
)
_MOST_WITH_MERGES = 3
"""Rounds whose merges are parts of their own: more would not stand side by side."""
_LONGEST = 400


def story(run: ShownSparc | None) -> list[Node]:
    """The rounds that were merged, what goes on now, and the end."""
    if run is None:
        return [h("p.qx-empty", INVITATION)]
    narrative = sparc_story(run.trace, run.gold, run.known_answer)
    parts: list[Node] = [question_part(shorten(narrative.question, _LONGEST))]
    for i, part in enumerate(narrative.rounds):
        parts.append(_round(part, narrative.n_gold))
        if i + 1 < len(narrative.rounds) <= _MOST_WITH_MERGES:
            parts.append(_merge(part))
    if run.status == "running":
        parts.append(_live(run.trace))
    elif narrative.answer is not None:
        parts += [answer_part(narrative.answer, "No answer in the evidence"), _stopped(run.trace)]
    else:
        parts.append(_ended_early(run))
    return [*story_line(shorten(narrative.sentence(), 4_000), parts), *_failure(run)]


def _round(part: RoundPart, n_gold: int) -> Node:
    outcome = f"found {part.n_support} of {n_gold} support; {part.answers}" if n_gold else part.answers
    badge = h("span.qx-badge", branch_name(part.number, part.branch))
    n = part.n_branches
    excerpt = h("em", part.excerpt.mark) if part.excerpt.mark else None
    words: list[Node | None] = (
        [f"{lead(part)}: ", part.excerpt.before, excerpt, part.excerpt.after]
        if part.number == 1 or not any(fresh for _, fresh in part.query)
        else ["Asked on: ", *(h("em", words) if fresh else words for words, fresh in part.query)]
    )
    inner = [
        part_head(f"round {part.number} · {counted(n, 'branch')}", badge),
        h("span.qx-part-words.qx-part-chunk", {"dir": "auto"}, *words),
        h("span.qx-part-foot", shorten(outcome, 160)),
    ]
    button = sends("qx-part", "goto", f"qx-round-{part.number}", *inner)
    return h(f"li.qx-told.{step_class(part.branch)}", button)


def _merge(part: RoundPart) -> Node:
    badge = h("span.qx-badge.qx-merge-sign", {"aria-hidden": "true"}, "⋏")
    chunks = "chunk" if part.n_kept == 1 else "chunks"
    inner = [
        part_head("merge", badge),
        h("span.qx-part-words", f"Kept {part.n_kept} {chunks}, dropped {part.n_dropped}"),
        h("span.qx-part-foot", f"of {counted(part.n_kept + part.n_dropped, 'chunk')} read so far"),
    ]
    return h("li.qx-told.qx-merged", sends("qx-part", "goto", f"qx-merge-{part.number}", *inner))


def _stopped(trace: SparcTrace) -> Node:
    inner = [
        part_head("Stopped", h("span.qx-stop-mark", {"aria-hidden": "true"})),
        h("span.qx-part-words", shorten(sparc_end_sentence(trace), _LONGEST)),
        h("span.qx-part-foot", f"round {len(trace.rounds)} of {trace.started.config.depth}"),
    ]
    return h("li.qx-ends", h("div.qx-part", *inner))


def _live(trace: SparcTrace) -> Node:
    inner = [
        part_head("Now", h("span.qx-stop-mark.qx-live-mark", {"aria-hidden": "true"})),
        h("span.qx-part-words", {"role": "status"}, doing(trace)),
    ]
    return h("li.qx-ends", h("div.qx-part", *inner))


def doing(trace: SparcTrace) -> str:
    """What is going on in a run that has not ended."""
    if not trace.rounds:
        return "Looking for what to ask first."
    now = trace.rounds[-1]
    judged, n = sum(branch.judged is not None for branch in now.branches), len(now.branches)
    if judged < n or not n:
        return f"Round {now.number}: {judged} of {counted(n, 'branch')} judged."
    if now.merged is None:
        return f"Round {now.number}: choosing the best branch and merging the notes."
    return f"Round {now.number} is merged."


def _ended_early(run: ShownSparc) -> Node:
    words = "Cancelled; the rounds so far are kept."
    if run.status != "cancelled":
        words = run.message or "It ended before it had an answer; what was done by then is kept."
    inner = [
        part_head("Stopped", h("span.qx-stop-mark", {"aria-hidden": "true"})),
        h("span.qx-part-words", shorten(words, _LONGEST)),
    ]
    return h("li.qx-ends", h("div.qx-part", *inner))


def _failure(run: ShownSparc) -> list[Node]:
    """Why an agent could not go on, whole: a part of the line has room for three lines."""
    if run.status != "failed" or run.trace.stopped is None:
        return []
    words = h("span", shorten(sparc_end_sentence(run.trace), 1_000))
    return [h("div.qx-notice.qx-error", {"role": "alert"}, words)]
