"""Which agent or method a document gets where nobody chose one.

A story is a text in which fact-like sentences ("Felix went to the barn.") recur in the same words. Measured
(docs/q-rag.md): such sentences are 45 % to 97 % of the fact-like ones of generated stories of any length, and
none, in one case 2 of 27, of those of 113 novels, histories, manuals and meetings. A few facts hidden in a
novel are not seen.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from core.base.types import Document
from core.encode.checkpoint import CheckpointSpec, find_checkpoint, read_spec, shipped_checkpoints
from core.encode.encoder import DualEncoder, load_encoder
from core.methods.hybrid import HYBRID
from core.methods.qrag.retriever import QRAG
from core.methods.registry import vectors_of

MIN_RECURRING = 8
"""Fact-like sentences that recur, in a story."""
RECURRING_SHARE = 0.25
"""Of all fact-like sentences, in a story."""
MAX_CHARACTERS = 8_000_000
"""Of a text that are looked at: a second or two; facts lie all over a story."""

_OBJECT = re.compile(r" the ((?:[a-z]+ )?[a-z]+)(?: there)? ?\.(?=\s|\Z)")
_SUBJECT = re.compile(r"(?:(?<=[.!?]\s)|(?<=\n)|\A)([A-Z][a-z]+)((?: [a-z]+){1,4})\Z")
_LOOK_BACK = 80
"""Characters before the object that subject and verb fit into."""
_NO_NAMES = (
    " he she it they we you i the a an this that these those there here then but and so or in on at by for"
    " from with as if when while what who how why no not yes oh well my his her their our your all some each"
    " both one two "
)


@dataclass(frozen=True)
class Choice:
    """What answers questions about a document."""

    checkpoint: str
    """Name of the checkpoint that the document is opened under."""
    method: str
    """That of its agent, else one that searches its vectors."""


def choose(document: Document, specs: Mapping[str, CheckpointSpec]) -> Choice:
    """The first checkpoint that suits stories where it is one, else its kind, else the first of all."""
    kinds = ("story", document.kind) if is_story(document) else (document.kind,)
    suited = (name for kind in kinds for name, spec in specs.items() if kind in spec.suits)
    name = next(suited, next(iter(specs)))
    return Choice(name, method_of(specs[name]))


def method_of(spec: CheckpointSpec) -> str:
    """The method that searches best: an agent that learned or counts words, else cosine and words."""
    return (QRAG if spec.trained or spec.word_weight else HYBRID).name


def is_story(document: Document) -> bool:
    """Whether a plain text tells of who went where and took what, in sentences that recur."""
    if document.kind != "text":
        return False
    facts = list(_facts(document.text[:MAX_CHARACTERS]))
    counts = [Counter(fact[part] for fact in facts) for part in range(3)]
    n_recurring = sum(all(counts[part][fact[part]] > 1 for part in range(3)) for fact in facts)
    return n_recurring >= MIN_RECURRING and n_recurring >= RECURRING_SHARE * len(facts)


def _facts(text: str) -> Iterator[tuple[str, str, str]]:
    """(name, verb with preposition, object) of each such sentence: "Felix", "went to", "barn"."""
    for match in _OBJECT.finditer(text):
        first = max(0, match.start() - _LOOK_BACK)
        before = _SUBJECT.search(text, first, match.start())
        if before is not None and f" {before[1].lower()} " not in _NO_NAMES:
            yield before[1], before[2], match[1]


class Encoders:
    """The checkpoints that documents may be opened under, loaded when one is."""

    def __init__(self, checkpoint: str | Path | None, device: str | None) -> None:
        """`checkpoint`: of every document, a name or folder; None: each has its own. Raises BadCheckpoint."""
        self._device = device
        self._named = None if checkpoint is None else find_checkpoint(checkpoint)
        self._folders = {name: find_checkpoint(name) for name in shipped_checkpoints()}
        self._loaded: dict[Path, DualEncoder] = {}

    def choice(self, document: Document) -> tuple[Choice, DualEncoder]:
        """What answers questions about a document, and the checkpoint of that."""
        if self._named is not None:
            spec = read_spec(self._named)
            return Choice(spec.name, method_of(spec)), self._load(self._named)
        chosen = choose(document, {name: read_spec(folder) for name, folder in self._folders.items()})
        return chosen, self._load(self._folders[chosen.checkpoint])

    def usual(self, spec: CheckpointSpec) -> CheckpointSpec:
        """The checkpoint's own defaults of a run, which who runs it may have set anew."""
        return spec

    def beside(self, method: str, agent: DualEncoder) -> DualEncoder:
        """The one whose vectors a method searches: the agent where it has one, else see `vectors_of`."""
        name = vectors_of(method, agent.spec.name)
        return agent if method == QRAG.name or name == agent.spec.name else self._load(self._folders[name])

    def _load(self, folder: Path) -> DualEncoder:
        if folder not in self._loaded:
            self._loaded[folder] = load_encoder(str(folder), self._device)
        return self._loaded[folder]
