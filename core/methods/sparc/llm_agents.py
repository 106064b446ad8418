"""Agents that ask a language model.

SPARC-RAG section 3.2, with the inputs and outputs of appendix D. The prompts are the project's own, one file
each in `prompts/`. All that documents or earlier replies brought is quoted between marks. In a reply that
keeps the schema and still doesn't fit, missing and repeated queries are filled up with the question itself, a
branch that doesn't exist is taken for the first, numbers of passages that don't exist are dropped. Nothing
that a reply says can do more: strategies, verdicts and branches are picked from lists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, Field, WithJsonSchema, create_model

from core.base.config import MAX_QUERY_CHARACTERS
from core.llm.prompts import Marks, template
from core.llm.protocol import Cost, Llm, LlmError, Message, NotAnswered, Reply, Sampling
from core.methods.sparc.agents import BranchResult, Rewrite, RewriteTask, SupportedAnswer, Turn, filled
from core.methods.sparc.budget import OutOfBudget
from core.methods.sparc.events import Hit, Note, Strategy, Verdict, Weighed

_MARKS = Marks("question", "query", "note", "passage", "answer")
_PACKAGE = "core.methods.sparc"
quoted, numbered = _MARKS.quoted, _MARKS.numbered

MAX_REPLY_TOKENS = 600
"""Of every call (appendix A.4), unless the model is given more."""
MAX_NOTE_CHARACTERS = 8_000
MAX_ANSWER_CHARACTERS = 500
MAX_REASON_CHARACTERS = 500
MAX_THOUGHTS = 8_000
"""Characters, the last ones."""

_HOW = {
    "bm25": "bm25: counts words; for exact names, titles, numbers and quotations. Leave question words out.",
    "dense": "dense: compares meanings; for descriptions, definitions and facts whose wording is unknown.",
    "qrag": (
        "qrag: follows a chain from passage to passage; for a question that needs several facts one after the"
        " other."
    ),
}
_Schema = TypeVar("_Schema", bound=BaseModel)


class WantedQuery(BaseModel):
    """One search."""

    query: str
    strategy: str
    reason: str = ""


class WantedQueries(BaseModel):
    """The rewriter's reply."""

    analysis: str = ""
    queries: list[WantedQuery]


class WrittenNote(BaseModel):
    """The context manager's reply within a branch."""

    note: str
    sources: list[int] = []


class GivenAnswer(BaseModel):
    """The generator's reply."""

    answer: str


class Judgement(BaseModel):
    """The evaluator's reply."""

    reason: str = ""
    verdict: Annotated[
        Verdict, BeforeValidator(lambda said: said.strip().lower() if isinstance(said, str) else said)
    ]


class ChosenBranch(BaseModel):
    """The context manager's reply over branches."""

    reason: str = ""
    best: int


class MergedNote(BaseModel):
    """The context manager's reply over notes."""

    note: str


def queries_schema(task: RewriteTask) -> type[WantedQueries]:
    """The rewriter's reply to a task."""
    strategy = Annotated[str, WithJsonSchema({"type": "string", "enum": list(task.strategies)})]
    one = create_model("WantedQuery", __base__=WantedQuery, strategy=strategy)
    most = Field(json_schema_extra={"maxItems": task.width})
    queries = Annotated[list[one], most]  # type: ignore[valid-type]
    return create_model("WantedQueries", __base__=WantedQueries, queries=queries)


def numbers_of(n_passages: int) -> Any:
    """The type of a list of passages' numbers, from 1."""
    numbers = {"type": "array", "items": _one_to(n_passages), "maxItems": n_passages}
    return Annotated[list[int], WithJsonSchema(numbers)]


def _note_schema(n_passages: int) -> type[WrittenNote]:
    if not n_passages:
        return WrittenNote
    return create_model("WrittenNote", __base__=WrittenNote, sources=(numbers_of(n_passages), []))


def _branch_schema(n_branches: int) -> type[ChosenBranch]:
    best = Annotated[int, WithJsonSchema(_one_to(n_branches))]
    return create_model("ChosenBranch", __base__=ChosenBranch, best=best)


def _one_to(most: int) -> dict[str, Any]:
    return {"type": "integer", "enum": list(range(1, most + 1))}


def prompt(name: str, values: Mapping[str, str]) -> list[Message]:
    """The conversation of one call."""
    return [
        Message("system", template(_PACKAGE, "system").template),
        Message("user", template(_PACKAGE, name).substitute(values)),
    ]


def ask(
    llm: Llm, messages: Sequence[Message], schema: type[_Schema], turn: Turn, temperature: float
) -> tuple[_Schema, Reply]:
    """One call within the budget. Raises LlmError, LlmCancelled, OutOfBudget, also for a reply cut off."""
    wanted = llm.reply_tokens or MAX_REPLY_TOKENS
    most = turn.budget.begin(wanted)
    sampling = Sampling(temperature=temperature, max_tokens=most, seed=turn.seed)
    try:
        reply = llm.chat(messages, sampling, schema=schema, cancelled=turn.cancelled)
    except LlmError as error:
        turn.budget.book(error.spent)
        if isinstance(error, NotAnswered) and most < wanted and turn.budget.tokens_are_spent:
            raise OutOfBudget("tokens", error.spent) from None
        raise
    turn.budget.book(reply.cost)
    if not isinstance(reply.value, schema):
        raise LlmError(
            f"{llm.name} gave no {schema.__name__} in its reply; choose a model that follows a JSON schema"
        )
    return reply.value, reply


def rewriter_prompt(task: RewriteTask) -> list[Message]:
    """What the rewriter is asked; also the prompt of preference pairs."""
    several = (
        "Each has to go after something else: another fact, another name, another angle; none may be a"
        " paraphrase of another."
    )
    values = {
        "question": quoted("question", task.question),
        "note": quoted("note", task.note.text),
        "asked": numbered("query", dict.fromkeys(task.queries)),
        "width": str(task.width),
        "queries": "query" if task.width == 1 else "queries",
        "complement": several if task.width > 1 else "Go after the fact that is needed next.",
        "strategies": "\n".join(f"- {_HOW[name]}" for name in task.strategies),
    }
    return prompt("rewriter", values)


def _rewrite(wanted: WantedQuery, task: RewriteTask) -> Rewrite:
    named = wanted.strategy.strip().lower()
    strategy: Strategy = next((name for name in task.strategies if name == named), task.strategies[0])
    other = "" if strategy == named else f" (asked for {named[:20]!r}, which is not offered)"
    reason = (wanted.reason + other).strip()[:MAX_REASON_CHARACTERS]
    return Rewrite(wanted.query.strip()[:MAX_QUERY_CHARACTERS], strategy, reason)


def answer_prompt(question: str, note: str) -> list[Message]:
    """What the generator is asked."""
    return prompt("answer", {"question": quoted("question", question), "note": quoted("note", note)})


def evaluator_prompt(question: str, query: str, answer: str, note: Note) -> list[Message]:
    """What the evaluator is asked; also the prompt of preference pairs."""
    values = {
        "question": quoted("question", question),
        "query": quoted("query", query),
        "note": quoted("note", note.text),
        "answer": quoted("answer", answer),
    }
    return prompt("evaluator", values)


class LlmAgents:
    """A full set on one model."""

    def __init__(self, llm: Llm) -> None:
        self.llm, self.name = llm, llm.name

    def rewrite(self, task: RewriteTask, turn: Turn) -> tuple[tuple[Rewrite, ...], Cost]:
        """W queries in one call."""
        wanted, reply = ask(self.llm, rewriter_prompt(task), queries_schema(task), turn, turn.temperature)
        offered = [_rewrite(one, task) for one in wanted.queries if one.query.strip()]
        why = "the question itself, since the reply held too few different queries"
        offered += [Rewrite(task.question, name, why) for name in task.strategies]
        return filled(offered, task.width), reply.cost

    def update(
        self, question: str, query: str, note: Note, hits: Sequence[Hit], turn: Turn
    ) -> tuple[Note, Cost]:
        """The note rewritten; its chunks are the old ones and those that the model says it used."""
        values = {
            "question": quoted("question", question),
            "query": quoted("query", query),
            "note": quoted("note", note.text),
            "passages": numbered("passage", (one.text for one in hits)),
        }
        schema = _note_schema(len(hits))
        written, reply = ask(self.llm, prompt("note", values), schema, turn, turn.temperature)
        taken = [hits[number - 1].chunk_id for number in written.sources if 1 <= number <= len(hits)]
        chunk_ids = tuple(dict.fromkeys([*note.chunk_ids, *taken]))
        return Note(written.note.strip()[:MAX_NOTE_CHARACTERS], chunk_ids), reply.cost

    def select(self, question: str, candidates: Sequence[BranchResult], turn: Turn) -> tuple[int, str, Cost]:
        """The branch that the model names."""
        branches = [
            f"Branch {number}:\n{quoted('answer', one.answer)}\n{quoted('note', one.note.text)}"
            for number, one in enumerate(candidates, start=1)
        ]
        values = {"question": quoted("question", question), "branches": "\n\n".join(branches)}
        schema = _branch_schema(len(candidates))
        named, reply = ask(self.llm, prompt("select", values), schema, turn, turn.temperature)
        if not 1 <= named.best <= len(candidates):
            why = f"the first, since the reply named branch {named.best}, which does not exist"
            return 1, why[:MAX_REASON_CHARACTERS], reply.cost
        return named.best, named.reason.strip()[:MAX_REASON_CHARACTERS], reply.cost

    def merge(
        self, question: str, best: BranchResult, others: Sequence[BranchResult], turn: Turn
    ) -> tuple[Note, tuple[Weighed, ...], Cost]:
        """One note of all with the chunks of all notes, the best branch's first; none are weighed."""
        values = {
            "question": quoted("question", question),
            "best": quoted("note", best.note.text),
            "others": numbered("note", (one.note.text for one in others)),
        }
        merged, reply = ask(self.llm, prompt("merge", values), MergedNote, turn, turn.temperature)
        chunk_ids = dict.fromkeys(chunk_id for one in (best, *others) for chunk_id in one.note.chunk_ids)
        return Note(merged.note.strip()[:MAX_NOTE_CHARACTERS], tuple(chunk_ids)), (), reply.cost

    def answer(self, question: str, note: Note, turn: Turn) -> tuple[SupportedAnswer, Cost]:
        """A short answer; nobody measures its confidence."""
        messages = answer_prompt(question, note.text)
        given, reply = ask(self.llm, messages, GivenAnswer, turn, turn.temperature)
        answer, thoughts = given.answer.strip()[:MAX_ANSWER_CHARACTERS], reply.thoughts[-MAX_THOUGHTS:]
        return SupportedAnswer(answer, None, note.chunk_ids if answer else (), thoughts), reply.cost

    def judge(
        self, question: str, query: str, reading: SupportedAnswer, note: Note, turn: Turn
    ) -> tuple[Verdict, str, Cost]:
        """The verdict, at temperature 0 (appendix A.4)."""
        messages = evaluator_prompt(question, query, reading.answer, note)
        judgement, reply = ask(self.llm, messages, Judgement, turn, 0.0)
        return judgement.verdict, judgement.reason.strip()[:MAX_REASON_CHARACTERS], reply.cost
