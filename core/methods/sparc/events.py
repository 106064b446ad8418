"""What a SPARC run says while it goes; numbers are 1-based."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from core.llm.protocol import Cost

Strategy = Literal["bm25", "dense", "qrag"]
Verdict = Literal["stop", "continue"]
AgentName = Literal["query rewriter", "context manager", "answer generator", "answer evaluator"]
EndReason = Literal["accepted", "depth", "tokens", "calls", "failed"]
"""accepted: the best branch's answer was; depth, tokens, calls: that budget is used up; failed: an agent
could not go on, see the message.
"""


@dataclass(frozen=True, slots=True)
class Note:
    """The memory m: text, and the chunks it was taken from."""

    text: str = ""
    chunk_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Weighed:
    """A chunk that a merge had to choose among. `worth`: log-odds that it decides the answer, but for a
    constant; `needed`: the agent keeps it whatever it is worth.
    """

    chunk_id: int
    worth: float
    needed: bool


@dataclass(frozen=True, slots=True)
class BranchQuery:
    """What one branch looks for, and how."""

    branch: int
    query: str
    strategy: Strategy
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Hit:
    """One retrieved chunk, best first within its branch."""

    chunk_id: int
    score: float
    text: str


@dataclass(frozen=True, slots=True)
class SparcStarted:
    """First event. `agents`: "rules and READER", or the name of the language model."""

    question: str
    agents: str
    config: SparcConfig
    n_chunks: int
    event: Literal["sparc_started"] = "sparc_started"


@dataclass(frozen=True, slots=True)
class RoundStarted:
    """The rewriter's queries. In round 1 with `first_round="question"` all are the question, at no cost."""

    round: int
    queries: tuple[BranchQuery, ...]
    cost: Cost
    event: Literal["round_started"] = "round_started"


@dataclass(frozen=True, slots=True)
class Retrieved:
    """A branch's evidence r_k."""

    round: int
    branch: int
    found: tuple[Hit, ...]
    milliseconds: float
    event: Literal["retrieved"] = "retrieved"


@dataclass(frozen=True, slots=True)
class NoteUpdated:
    """A branch's memory m'_k; `before` is the memory it started from."""

    round: int
    branch: int
    before: Note
    after: Note
    cost: Cost
    event: Literal["note_updated"] = "note_updated"


@dataclass(frozen=True, slots=True)
class Answered:
    """A branch's candidate a_k, as `SupportedAnswer`."""

    round: int
    branch: int
    answer: str
    confidence: float | None
    citations: tuple[int, ...]
    cost: Cost
    thoughts: str = ""
    event: Literal["answered"] = "answered"


@dataclass(frozen=True, slots=True)
class Judged:
    """The evaluator's decision e_k."""

    round: int
    branch: int
    verdict: Verdict
    reason: str
    cost: Cost
    event: Literal["judged"] = "judged"


@dataclass(frozen=True, slots=True)
class Merged:
    """The context manager chose a branch k* and merged the memories into m^(t).

    `overlap`: mean pairwise Jaccard index of the branches' chunks (appendix B.2), None for one branch.
    `weighed`: the chunks of all notes by falling worth; empty where no rules chose among them.
    """

    round: int
    best_branch: int
    note: Note
    overlap: float | None
    cost: Cost
    reason: str = ""
    weighed: tuple[Weighed, ...] = ()
    event: Literal["merged"] = "merged"


@dataclass(frozen=True, slots=True)
class BrokenOff:
    """An agent's turn without an end, after which the run ends. `branch` 0: before or after the branches.

    `cost`: what it had taken by then, replies that didn't fit included. `message`: why it failed; empty where
    a budget is used up.
    """

    round: int
    branch: int
    agent: AgentName
    reason: Literal["tokens", "calls", "failed"]
    message: str
    cost: Cost
    event: Literal["broken_off"] = "broken_off"


@dataclass(frozen=True, slots=True)
class SparcStopped:
    """Last event of a run not cancelled. `evidence`: the final note's chunks, then the best branch's."""

    reason: EndReason
    answer: str
    round: int
    branch: int
    evidence: tuple[int, ...]
    cost: Cost
    message: str = ""
    event: Literal["sparc_stopped"] = "sparc_stopped"


@dataclass(frozen=True, kw_only=True, slots=True)
class SparcConfig:
    """How a SPARC run goes. Checked by core.methods.sparc.config."""

    width: int = 2
    """Branches of a round. Between 1 and 4; W in the paper."""
    depth: int = 4
    """Rounds at most. Between 1 and 8; D in the paper."""
    k: int = 6
    """Chunks that a branch retrieves each round. Between 1 and 20."""
    strategies: tuple[Strategy, ...] = ("bm25", "dense", "qrag")
    """Each query is given one of these ways to search. Any of bm25, dense and qrag, the agent."""
    first_round: Literal["question", "rewrite"] = "question"
    """question: as it is, as in the paper's case study; rewrite: rewritten, as in its algorithm."""
    max_tokens: int | None = None
    """Most tokens of all calls together, in and out; None: no bound."""
    max_calls: int | None = None
    """Most calls of a language model; None: no bound."""
    temperature: float = 0.5
    """Of generation; verdicts take 0."""
    seed: int = 42
    """Of the sampling."""


BranchEvent = Retrieved | NoteUpdated | Answered | Judged | BrokenOff
SparcEvent = SparcStarted | RoundStarted | BranchEvent | Merged | SparcStopped
