"""The configuration objects that feed sliders, flags and log rows alike.

Frozen, JSON-serialisable, checked at the door. Defaults are for what a checkpoint says nothing of.
"""

from __future__ import annotations

import ast
import inspect
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from functools import cache
from itertools import pairwise
from textwrap import dedent
from typing import Any, Literal

import numpy as np
from pydantic import ConfigDict, TypeAdapter, ValidationError

from core.base.errors import BadRequest, first_problem

Chunker = Literal["structure", "sentences"]
CHUNKERS: tuple[Chunker, ...] = ("structure", "sentences")

RESRAG, RESRAG_LLM = "resrag", "resrag-llm"
"""Names of the method with the light policy, and with a language model."""
SETS = (RESRAG, RESRAG_LLM)
"""Methods that choose a whole set at once."""

MAX_QUERY_CHARACTERS = 10_000
"""Longest question accepted. Encoders read some 500 tokens; anything near this bound is a pasted document."""

MAX_SEED = 2**63 - 1
"""Largest seed that the log can hold."""

SEEDS_OF_MODELS = 2**31
"""Language models take seeds from 0 to below this."""

MAX_NAMED = 10_000
"""Most chunks that are forced or forbidden in one run."""

MAX_BEAM_WIDTH = 16
"""Most paths a beam may keep; each costs one state embedding and one pass over the index per step."""

MAX_TEMPERATURE = 1_000_000.0
"""Far above any Q: the policy is uniform long before."""


@cache
def setting_help(config: type) -> dict[str, str]:
    """What a config's class says under each setting, by the setting's name: help of flags and forms."""
    (defined,) = ast.parse(dedent(inspect.getsource(config))).body
    assert isinstance(defined, ast.ClassDef)
    helps = dict(setting_help(config.__base__)) if is_dataclass(config.__base__) else {}
    for pair in pairwise(defined.body):
        match pair:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                helps[name] = " ".join(text.split())
    return helps


def help_of(config: type, name: str, none: str = "empty") -> str:
    """What a form says under a control: its setting's first sentence. `none`: what the control calls None."""
    sentence, *_ = re.split(r"\.(?= [A-Z(]|$)", setting_help(config)[name])
    return worded(sentence, {"None": none, "True": "On", "False": "Off"})


def worded(text: str, called: Mapping[str, str]) -> str:
    """A text with Python's constants by the names that they have where it is read."""
    return re.sub(r"\b(None|True|False)\b", lambda found: called.get(found[0], found[0]), text)


def words(name: str) -> str:
    """A setting's name as it is read: step_budget, step budget."""
    return name.replace("_", " ")


def check_numbers(settings: object, least: Mapping[str, int], above_0: Sequence[str] = ()) -> None:
    """Raises BadRequest for numbers below their `least`, infinite, negative or, in `above_0`, 0, and for a
    seed above MAX_SEED.
    """
    for name, value in vars(settings).items():
        if name == "seed" and value > MAX_SEED:
            raise BadRequest(f"seed {value} is above {MAX_SEED}; choose a smaller one")
        if name in least and value < least[name]:
            raise BadRequest(f"{words(name)} {value} is below {least[name]}; choose {least[name]} or more")
        if isinstance(value, int | float):
            if name in above_0 and not 0 < value < math.inf:
                raise BadRequest(f"{words(name)} {value} must be a finite number above 0")
            if not 0 <= value < math.inf:
                raise BadRequest(f"{words(name)} {value} must be a finite number, 0 or more")


@dataclass(frozen=True, kw_only=True)
class ChunkConfig:
    """How a document is cut."""

    chunker: Chunker = "sentences"
    """structure: a chunk begins at each heading, tables and lists stand alone; sentences: whole sentences,
    packed. RES-RAG algorithm 1; Q-RAG appendix H."""
    max_tokens: int = 64
    """Most tokens of a chunk, counted by the encoder's tokenizer without special tokens."""
    one_sentence: bool = False
    """`sentences` only: every sentence is a chunk, nothing is packed; the maximum still cuts long ones."""

    def __post_init__(self) -> None:
        if self.chunker not in CHUNKERS:
            raise BadRequest(f"chunker={self.chunker!r} is unknown; choose one of {', '.join(CHUNKERS)}")
        if self.one_sentence and self.chunker != "sentences":
            raise BadRequest(
                f"chunker={self.chunker!r} can't give each sentence a chunk of its own; choose sentences"
            )
        if self.max_tokens < 8:
            raise BadRequest(
                f"max tokens {self.max_tokens} is below 8, too short for a sentence; choose 8 or more"
            )


@dataclass(frozen=True, kw_only=True)
class EpisodeConfig:
    """What decides a run, given checkpoint and documents. Temperature and threshold are in units of Q."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    step_budget: int = 4
    """Most chunks to choose."""
    temperature: float = 0.0
    """Boltzmann temperature in units of Q; 0 chooses the best. Q-RAG eq. 3."""
    stop_threshold: float | None = None
    """Stop once the best Q is below a value. None never stops early. Q-RAG appendix B."""
    review_threshold: float | None = None
    """At the end, take back chunks worth less than this beside the others. None keeps all."""
    seed: int = 0
    """Of the sampling; no effect at temperature 0."""
    beam_width: int = 1
    """Beam width (1 = greedy). Q-RAG appendix D."""
    top_k_actions: int | None = None
    """Sample among this many best chunks; None: among all."""
    use_positions: bool = True
    """False: ignore where a chunk stands."""
    forced: tuple[tuple[int, int], ...] = ()
    """Choices made for the agent, as pairs of step, from 1 on, and chunk id."""
    forbidden: tuple[int, ...] = ()
    """Ids of chunks that must not be chosen."""
    searched: tuple[tuple[int, int], ...] = ()
    """Ranges [first, last) of the chunks embedded by then: others have no Q, can't be chosen. Empty: all."""

    def __post_init__(self) -> None:
        if self.step_budget < 1:
            raise BadRequest(f"step budget {self.step_budget} must be at least 1")
        if not 0 <= self.temperature <= MAX_TEMPERATURE:
            raise BadRequest(f"temperature {self.temperature} must be between 0 and {MAX_TEMPERATURE:,.0f}")
        for name, none in (("stop", "never stop early"), ("review", "keep all that was chosen")):
            value = getattr(self, f"{name}_threshold")
            if value is not None and not math.isfinite(value):
                raise BadRequest(f"{name} threshold {value} must be a finite number, or none to {none}")
        if not 1 <= self.beam_width <= MAX_BEAM_WIDTH:
            raise BadRequest(f"beam width {self.beam_width} must be between 1 and {MAX_BEAM_WIDTH}")
        if self.top_k_actions is not None and self.top_k_actions < 1:
            raise BadRequest(f"top-k actions {self.top_k_actions} must be at least 1, or none for all chunks")
        if not 0 <= self.seed <= MAX_SEED:
            raise BadRequest(f"seed {self.seed} must be between 0 and {MAX_SEED}")
        if self.beam_width > 1 and (self.temperature > 0 or self.forced):
            raise BadRequest(
                "a beam above 1 plans greedily: set temperature to 0 and force no chunks, or set the beam"
                " to 1"
            )

    def check_against(self, n_chunks: int) -> None:
        """Raises BadRequest when the run can't be made over `n_chunks` chunks."""
        if n_chunks == 0:
            raise BadRequest("there are no chunks to search; open a document that has text")
        self.check_searched(n_chunks)
        n_searched = self.n_searched(n_chunks)
        if self.step_budget > n_searched:
            raise BadRequest(
                f"step budget {self.step_budget} is above {n_searched}, the number of chunks; lower the"
                " budget or open a longer document"
            )
        named = [*self.forbidden, *(chunk_id for _, chunk_id in self.forced)]
        if len(named) > MAX_NAMED:
            raise BadRequest(
                f"{len(named):,} chunks are forced or forbidden, more than {MAX_NAMED:,}; name fewer, or open"
                " a document without them"
            )
        if outside := [chunk_id for chunk_id in named if not 0 <= chunk_id < n_chunks]:
            raise BadRequest(
                f"chunk {outside[0]} does not exist; forced and forbidden chunks must be between 0 and"
                f" {n_chunks - 1}"
            )
        if both := set(self.forbidden) & {chunk_id for _, chunk_id in self.forced}:
            raise BadRequest(f"chunk {min(both)} is both forced and forbidden; take one of the two back")
        there = self.searched_chunks(n_chunks)
        if missing := [chunk_id for _, chunk_id in self.forced if not there[chunk_id]]:
            raise BadRequest(
                f"chunk {missing[0]} is not embedded yet; choose another one, or wait until all are"
            )

    def check_forced(self) -> None:
        """Raises BadRequest where an agent could not make each forced choice at its step."""
        steps, chunk_ids = [step for step, _ in self.forced], [chunk_id for _, chunk_id in self.forced]
        if outside := [step for step in steps if not 1 <= step <= self.step_budget]:
            raise BadRequest(
                f"a chunk is forced at step {outside[0]}; forced steps must be between 1 and the budget of"
                f" {self.step_budget}"
            )
        if len(set(steps)) < len(steps):
            twice = next(step for step in steps if steps.count(step) > 1)
            raise BadRequest(f"several chunks are forced at step {twice}; force one chunk a step")
        if len(set(chunk_ids)) < len(chunk_ids):
            twice = next(chunk_id for chunk_id in chunk_ids if chunk_ids.count(chunk_id) > 1)
            raise BadRequest(f"chunk {twice} is forced at several steps; force it at one")

    def check_searched(self, n_chunks: int) -> None:
        """Raises BadRequest for ranges that aren't those of `n_chunks` chunks."""
        edges = [0, *(edge for part in self.searched for edge in part), n_chunks]
        if edges != sorted(edges) or any(first == last for first, last in self.searched):
            raise BadRequest(
                f"the ranges of searched chunks must ascend between 0 and {n_chunks} and hold a chunk each;"
                " leave them out to search all"
            )

    def n_searched(self, n_chunks: int) -> int:
        """How many of `n_chunks` chunks the run looks at."""
        return sum(last - first for first, last in self.searched) if self.searched else n_chunks

    def searched_chunks(self, n_chunks: int) -> np.ndarray:
        """(N,) bool: which of `n_chunks` chunks the run looks at."""
        there = np.full(n_chunks, not self.searched)
        for first, last in self.searched:
            there[first:last] = True
        return there

    def to_json(self) -> dict[str, Any]:
        """A dictionary of plain JSON values."""
        values: dict[str, Any] = _EPISODE_CONFIG.dump_python(self, mode="json")
        return values

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> EpisodeConfig:
        """Inverse of `to_json`; settings that aren't there have their defaults. Raises BadRequest."""
        try:
            return _EPISODE_CONFIG.validate_python(values)
        except ValidationError as error:
            raise BadRequest(first_problem(error)) from error

    def with_(self, **changes: Any) -> EpisodeConfig:
        """A checked copy with some fields changed."""
        return replace(self, **changes)


_EPISODE_CONFIG = TypeAdapter(EpisodeConfig)


def check_query(query: str) -> str:
    """The query without surrounding blanks. Raises BadRequest when empty, too long or no text."""
    if not isinstance(query, str):
        raise BadRequest(f"the question is {type(query).__name__}, not text; give one as text")
    query = query.strip()
    if not query:
        raise BadRequest("the question is empty; type one")
    if len(query) > MAX_QUERY_CHARACTERS:
        raise BadRequest(
            f"the question has {len(query):,} characters, more than {MAX_QUERY_CHARACTERS:,}; ask in fewer"
            " words and open the rest as a document"
        )
    try:
        query.encode()
    except UnicodeEncodeError as error:
        raise BadRequest(
            f"the question holds half a character at position {error.start + 1}; type it again as plain text"
        ) from error
    return query
