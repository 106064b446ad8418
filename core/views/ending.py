"""Why a run ended, in a sentence, for pages, files and commands."""

from __future__ import annotations

from core.base.config import RESRAG_LLM
from core.base.events import Trace
from core.corpus.words import words_of
from core.methods.registry import facts_of, notice_of
from core.methods.sparc.events import EndReason
from core.methods.sparc.naming import branch_name
from core.methods.sparc.retriever import SPARC
from core.methods.sparc.trace import SparcTrace


def end_sentence(trace: Trace) -> str:
    """Why a run stopped; empty for one that has not."""
    stopped, threshold = trace.stopped, trace.started.config.stop_threshold
    if stopped is None:
        return ""
    method = facts_of(trace.started.method)
    if method.name == SPARC:
        accepted = stopped.reason == "threshold"
        return "Its evaluator accepted the answer." if accepted else "Its depth or budget is used up."
    if notice := notice_of(trace):
        return f"{notice[0].upper()}{notice[1:]}."
    if method.foreign and not trace.steps:
        return f"{method.label} returned none of it."
    if method.foreign:
        return f"That is what {method.label} returned."
    match stopped.reason:
        case "budget" if len(trace.chosen) == trace.started.n_chunks:
            return "Every chunk is chosen; smaller ones would tell more apart."
        case "budget":
            return f"The budget of {_counted(len(trace.steps), 'step')} is used up."
        case "exhausted" if method.zero_is_none and not words_of(trace.started.query):
            return (
                "The question holds no word to search for, only common ones or signs; name what you look for."
            )
        case "exhausted" if method.zero_is_none:
            other = " other" if trace.steps else ""
            return f"No{other} chunk shares a word with the question."
        case "exhausted":
            return "No chunk is left that may be chosen."
        case "threshold" if method.name == RESRAG_LLM:
            return "The language model took no other chunk."
    if stopped.q_value is None or threshold is None:
        return f"Stopped by its {stopped.reason}."
    best, least = told_apart(stopped.q_value, threshold)
    return f"Nothing left is worth {least}: best {method.score_name} is {best}."


def told_apart(first: float, second: float) -> tuple[str, str]:
    """Two numbers with two decimals, or as many as tell them apart.

    >>> told_apart(0.3571, 0.3587), told_apart(0.2, 0.3587)
    (('0.357', '0.359'), ('0.20', '0.36'))
    """
    written = [(f"{first:.{n}f}", f"{second:.{n}f}") for n in range(2, 7)]
    return next((pair for pair in written if pair[0] != pair[1]), written[0])


def review_sentence(trace: Trace) -> str:
    """What the review of a stopped run brought; empty where there was none."""
    stopped, threshold = trace.stopped, trace.started.config.review_threshold
    if stopped is None or not stopped.review or threshold is None:
        return ""
    if not stopped.taken_back:
        return f"Review: beside the others each chunk still adds {threshold:.2f} or more, so all are kept."
    chunks = ", ".join(f"chunk {chunk_id:,}" for chunk_id in stopped.taken_back)
    return f"Review: {chunks} taken back, worth less than {threshold:.2f} beside the others."


def sparc_end_sentence(trace: SparcTrace) -> str:
    """Why a run of SPARC ended, from its own trace."""
    stopped, config = trace.stopped, trace.started.config
    if stopped is None:
        return "It did not come to an end."
    by_then = "this is the best answer by then." if stopped.branch else "no branch had an answer by then."
    at_depth = "no branch had an answer."
    if stopped.answer.strip():
        at_depth = "this is the best branch's answer, which no evaluator accepted."
    name = branch_name(stopped.round, stopped.branch)
    words: dict[EndReason, str] = {
        "accepted": f"The evaluator accepted the answer of branch {name}.",
        "depth": f"The depth of {config.depth} is used up; {at_depth}",
        "tokens": f"The budget of {_counted(config.max_tokens or 0, 'token')} is used up; {by_then}",
        "calls": f"The budget of {_counted(config.max_calls or 0, 'call')} is used up; {by_then}",
        "failed": f"An agent could not go on; {by_then}",
    }
    return f"{words[stopped.reason]} {stopped.message}".strip()


def _counted(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'s' if n != 1 else ''}"
