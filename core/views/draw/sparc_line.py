"""A SPARC run's story line, whose words are in core.views.sparc_story."""

from __future__ import annotations

from core.methods.sparc.naming import branch_name
from core.methods.sparc.trace import SparcTrace
from core.views.draw.answers import marked
from core.views.draw.nodes import Node, h
from core.views.draw.sparc import ShownSparc
from core.views.draw.story import answer_part, last_part, part, question_part, story_line
from core.views.draw.words import counted, shorten, step_class
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
    for i, one in enumerate(narrative.rounds, start=1):
        parts.append(_round(one, narrative.n_gold))
        if i < len(narrative.rounds) <= _MOST_WITH_MERGES:
            parts.append(_merge(one))
    if run.status == "running":
        words = h("span.qx-part-words", {"role": "status"}, doing(run.trace))
        parts.append(last_part("Now", words, kind=".qx-live-mark"))
    elif narrative.answer is not None:
        foot = h("span.qx-part-foot", f"round {len(run.trace.rounds)} of {run.trace.started.config.depth}")
        parts += [answer_part(narrative.answer, "No answer in the evidence"), _stopped(narrative.end, foot)]
    elif run.status == "cancelled":
        parts.append(_stopped("Cancelled; the rounds so far are kept."))
    else:
        early = "It ended before it had an answer; what was done by then is kept."
        parts.append(_stopped(run.message or early))
    return [*story_line(shorten(narrative.sentence(), 4_000), parts), *_failure(run, narrative.end)]


def _round(one: RoundPart, n_gold: int) -> Node:
    outcome = f"found {one.n_support} of {n_gold} support; {one.answers}" if n_gold else one.answers
    words: list[Node] = [f"{lead(one)}: ", *marked(one.excerpt, "em")]
    if one.number > 1 and any(fresh for _, fresh in one.query):
        words = ["Asked on: ", *(h("em", said) if fresh else said for said, fresh in one.query)]
    return part(
        f"li.qx-told.{step_class(one.branch)}",
        f"round {one.number} · {counted(one.n_branches, 'branch')}",
        h("span.qx-badge", branch_name(one.number, one.branch)),
        h("span.qx-part-words.qx-part-chunk", {"dir": "auto"}, *words),
        h("span.qx-part-foot", shorten(outcome, 160)),
        does=("goto", f"qx-round-{one.number}"),
    )


def _merge(one: RoundPart) -> Node:
    return part(
        "li.qx-told.qx-merged",
        "merge",
        h("span.qx-badge.qx-merge-sign", {"aria-hidden": "true"}, "⋏"),
        h("span.qx-part-words", f"Kept {counted(one.n_kept, 'chunk')}, dropped {one.n_dropped}"),
        h("span.qx-part-foot", f"of {counted(one.n_read, 'chunk')} read so far"),
        does=("goto", f"qx-merge-{one.number}"),
    )


def _stopped(why: str, foot: Node | None = None) -> Node:
    return last_part("Stopped", h("span.qx-part-words", shorten(why, _LONGEST)), foot)


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


def _failure(run: ShownSparc, end: str) -> list[Node]:
    """Why an agent could not go on, whole: a part of the line has room for three lines."""
    if run.status != "failed" or run.trace.stopped is None:
        return []
    return [h("div.qx-notice.qx-error", {"role": "alert"}, h("span", shorten(end, 1_000)))]
