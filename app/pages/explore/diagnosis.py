"""Why a run failed, with buttons that do something about it.

A sentence as a tree of plain data: pure functions. What would have helped was tried in
core.runs.whatif.diagnosis; where nothing is known of the question, core.lab.evaluate.completeness says how
likely it was enough.
"""

from __future__ import annotations

from app.pages.explore.view import answer_in_view
from app.services.in_view import RunInView
from app.services.session import Session
from core.answer.protocol import State
from core.lab.evaluate.completeness import LOW, completeness_by_size
from core.runs.whatif.diagnosis import MOST_STEPS, Diagnosis, Remedy, are_words_tried, steps_tried
from core.views.draw.nodes import Node, h, sends
from core.views.draw.words import counted, tenths
from core.views.story import Verdict, verdict_on

MOST_BUTTONS = 3
GENERAL = "general"
"""The agent for documents that no other one has learned to read."""


def diagnosis(run: RunInView | None, session: Session) -> list[Node]:
    """The sentence below the story of a run that failed; nothing for any other, and before its end."""
    if run is None or run.trace.stopped is None or session.cursor != len(run.trace.steps):
        return []
    imported = _said("Imported: ", run.imported, []) if run.imported else []
    return [*imported, *_why(run, session)]


def _why(run: RunInView, session: Session) -> list[Node]:
    """Why a run that has ended failed, as far as anybody knows."""
    assert run.trace.stopped is not None
    result = run.diagnosis
    if result is not None:
        return _said(
            "What it missed: " if _verdict(run, session) == "right" else "Why it failed: ",
            _cause(result, run) + ("" if result.remedies else _in_vain(run)),
            [_button(remedy, result, run) for remedy in result.remedies[:MOST_BUTTONS]],
        )
    if run.gold and {*run.gold} <= {*run.trace.picks}:
        return _reading_failed(run, session)
    if not run.gold and run.completeness is not None and run.completeness < LOW:
        return _incomplete(run, run.completeness, _most_steps(run, session))
    if not run.gold and run.documents.foreign and run.trace.stopped.reason == "threshold":
        words = f"this document reads unlike what {run.spec.name} was trained on, so its Q says little here."
        other = _do("agent", GENERAL, f"Use {GENERAL}", "trained over real documents")
        return _said("It found nothing more: ", words, [other] * (run.spec.name != GENERAL))
    if not run.gold:
        return _no_answer(run, session)
    return []


def _most_steps(run: RunInView, session: Session) -> int:
    """So many steps may be allowed: a chunk each of those that may be chosen."""
    return min(MOST_STEPS, run.n_chunks - len(session.forbidden))


def _incomplete(run: RunInView, share: float, most: int) -> list[Node]:
    n_chunks, by_size = len(run.trace.picks), completeness_by_size(run.spec, run.trace)
    measured = max(size for size in by_size if size <= n_chunks)
    among = f"{n_chunks} chunks" if measured == n_chunks else f"the first {measured} chunks"
    more = [
        _do("longer", size, f"Take {size} chunks", f"complete in {tenths(larger)}")
        for size, larger in by_size.items()
        if n_chunks < size <= most and larger > share
    ]
    twice = min(2 * n_chunks, most)
    if not more and twice > n_chunks:
        more = [_do("longer", twice, f"Take {twice} chunks", "those that come next")]
    words = f"{tenths(share).replace(' of ', ' in ')} such runs found everything within {among}."
    beside = _do("compare", "", "Compare", "with BM25, hybrid and others")
    return _said("Low scores: ", words, [*more[: MOST_BUTTONS - 1], beside])


_SEES: dict[State, tuple[str, str]] = {
    "guess": ("Only a guess: ", "is not sure"),
    "unsure": ("Not sure: ", "can't tell which words answer it"),
}
"""Of an answer that nobody can rely on: its name, and what the reader makes of the evidence."""


def _no_answer(run: RunInView, session: Session) -> list[Node]:
    """Of a question whose support nobody knows."""
    answer = answer_in_view(run, session)
    if answer is None or answer.state in ("answer", "passages"):
        return []
    best = max((step.q_value for step in run.trace.steps), default=None)
    name = run.method.score_name
    worth = "" if best is None else f" The best choice was worth {name} {best:.2f}."
    buttons = [_do("compare", "", "Compare", "with BM25 and the other methods")]
    most, n_read = _most_steps(run, session), len(run.trace.picks)
    stops = run.trace.stopped is not None and run.trace.stopped.reason == "threshold"
    if stops and most > len(run.trace.steps):
        buttons.insert(0, _do("longer", most, f"Allow {counted(most, 'step')}", "without an early stop"))
    if not n_read:
        return _said("Not found: ", f"no chunk was taken, so there was nothing to read.{worth}", buttons)
    title, sees = _SEES.get(answer.state, ("Not found: ", "sees no answer"))
    joins = (
        " It points at words of one passage: an answer that joins several is for you, or a language model."
    )
    read = f"the reader {sees} in {counted(n_read, 'chunk')}.{joins}{worth}"
    return _said(title, read, buttons)


def _verdict(run: RunInView, session: Session) -> Verdict | None:
    answer = answer_in_view(run, session)
    return None if answer is None else verdict_on(answer.told_text, run.known_answer)


def _reading_failed(run: RunInView, session: Session) -> list[Node]:
    answer, verdict = answer_in_view(run, session), _verdict(run, session)
    if answer is None or verdict in (None, "right"):
        return []
    what = "answers something else"
    if verdict != "wrong":
        what = _SEES.get(answer.state, ("", "sees no answer in it"))[1]
    words = f"all support was found, but the reader {what}. The known answer is {run.known_answer!r}."
    return _said("What failed: ", words, [])


def _cause(finding: Diagnosis, run: RunInView) -> str:
    name = f"chunk {finding.chunk_id:,}"
    if finding.taken_back_at is not None:
        found = f"It was found at step {finding.taken_back_at}, and the review took it back."
        words = f"{name} belongs to the answer. {found}"
    elif finding.split:
        cut = f"Its passage is cut over chunks {min(finding.split):,} to {max(finding.split):,}."
        words = f"{name} belongs to the answer and was not taken. {cut}"
    elif finding.beside is not None:
        side = "past" if finding.chunk_id > finding.beside else "before"
        lies = f"It lies one chunk {side} chunk {finding.beside:,}, which was chosen; it never was."
        words = f"{name} belongs to the answer. {lies}"
    elif not finding.ranks:
        words = f"{name} belongs to the answer and was never chosen."
        if run.method.foreign:
            words = f"{name} belongs to the answer and is not among what {run.method.label} returned."
    else:
        first, best = finding.ranks[0], min(finding.ranks)
        way = f", came up to {best:,} at step {finding.ranks.index(best) + 1}" if best < first else ""
        words = f"{name} belongs to the answer. It stood at rank {first:,}{way} and was never chosen."
    return words if run.spec.trained or run.method.foreign else f"{words} This agent is not trained."


def _in_vain(run: RunInView) -> str:
    """What was tried, where none of it found more."""
    tried = [f"{most} steps"] if (most := steps_tried(run.trace, run.n_chunks)) else []
    if are_words_tried(run.n_chunks):
        tried.append(f"the first {counted(run.config.step_budget, 'chunk')} of BM25")
    if run.method.foreign:
        tried.append(run.spec.name)
    return f" Tried without finding it: {' and '.join(tried)}." if tried else ""


def _button(remedy: Remedy, finding: Diagnosis, run: RunInView) -> Node:
    brings = f"found {finding.n_found} → {remedy.n_found} of {finding.n_support}"
    match remedy.way:
        case "keep":
            return _do("keep", "0", "Run without the review", brings)
        case "take":
            return _do("take", remedy.value, f"Take chunk {remedy.value:,}", brings)
        case "longer":
            stops = "" if run.config.stop_threshold is None else ", no early stop"
            return _do("longer", remedy.value, f"Allow {remedy.value} steps{stops}", brings)
        case "bm25":
            there = f"chunk {finding.chunk_id:,} is at rank {remedy.value} there"
            return _do("compare", "", "Compare with BM25", there)
        case "agent":
            trained = "" if run.method.foreign else " (trained)"
            return _do("agent", remedy.value, f"Use {remedy.value}{trained}", brings)
        case "cut":
            return _do("cut", remedy.value, f"Cut at {remedy.value} tokens", brings)


def _said(title: str, words: str, buttons: list[Node]) -> list[Node]:
    sentence = h("p", h("strong", title), words)
    return [h("div.qx-diagnosis", {"role": "status"}, sentence, h("div.qx-remedies", *buttons))]


def _do(name: str, argument: object, words: str, brings: str) -> Node:
    return sends("qx-btn.qx-remedy", name, argument, h("span", words), " ", h("small", brings))
