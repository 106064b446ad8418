"""Needles in haystacks.

RULER's eight tasks by an own generator. A needle is a sentence that files a value under a label, and a chunk
of its own; the question asks for the values of some labels, and its support is their needles. The tasks
differ in what is asked and in the hay:
    single-1, -2, -3   one needle: a number in repeated sentences, a number in essays, a UUID in essays
    multikey-1         four labels in essays, one asked
    multikey-2, -3     the hay is needles of other labels: words and numbers, UUIDs under UUIDs;
                       kind "random ids", to be reported apart
    multivalue         four numbers under one label, all asked
    multiquery         four labels asked at once
Wording, words and values are our own. Labels and values of training and of evaluation never meet: a label's
words and a number's last digit say which of the two it belongs to.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from random import Random
from typing import Literal
from uuid import UUID

from core.base.errors import BadRequest
from core.ingest.tokenizer import Tokenizer
from core.lab.tasks.babilong import FactQuestion
from core.lab.tasks.example import Example, Noise, weave, weave_to_length
from core.lab.tasks.noise import LONGEST_SENTENCE, cut_prose

Use = Literal["train", "test"]
ValueKind = Literal["number", "word", "code"]
VALUE_KINDS: tuple[ValueKind, ...] = ("number", "word", "code")
LabelKind = Literal["words", "code"]
Hay = Literal["repeated", "essays", "needles"]

RANDOM_IDS = "random ids"
MAX_NEEDLE_TOKENS = 96
"""Most tokens of a needle: one of two UUIDs needs more than a sentence's 64."""
SHORTEST_NEEDLE: dict[LabelKind, int] = {"words": 12, "code": 40}
"""Tokens that no needle stays below, by its label."""
N_LABELS = 4
"""Labels, or values of one, where there are several."""
LEAST_LENGTH = N_LABELS * MAX_NEEDLE_TOKENS
"""Tokens in which any question's needles fit."""
MOST_HAY_NEEDLES = 60_000
"""Distinct needles that a haystack of needles has before it repeats: enough for a million tokens."""


@dataclass(frozen=True, slots=True)
class NeedleTask:
    """One needle task."""

    hay: Hay
    value: ValueKind = "number"
    n_labels: int = 1
    n_asked: int = 1
    n_values: int = 1
    label: LabelKind = "words"

    @property
    def kind(self) -> str:
        """What `Example.kind` says."""
        return RANDOM_IDS if self.hay == "needles" else self.hay


VARIANTS: dict[str, NeedleTask] = {
    "single-1": NeedleTask("repeated"),
    "single-2": NeedleTask("essays"),
    "single-3": NeedleTask("essays", "code"),
    "multikey-1": NeedleTask("essays", n_labels=N_LABELS),
    "multikey-2": NeedleTask("needles"),
    "multikey-3": NeedleTask("needles", "code", label="code"),
    "multivalue": NeedleTask("essays", n_values=N_LABELS),
    "multiquery": NeedleTask("essays", n_labels=N_LABELS, n_asked=N_LABELS),
}

_STATEMENTS = (
    "The secret {kind} filed under {label} is {value}.",
    "Filed under {label} is the secret {kind} {value}.",
    "Under {label}, remember the secret {kind} {value}.",
)
_QUESTIONS = ("Which secret {kind} is filed under {labels}?", "What is the secret {kind} under {labels}?")
_PLURAL_QUESTIONS = (
    "Which secret {kind}s are filed under {labels}?",
    "What are all the secret {kind}s under {labels}?",
)
_REPEATED = (
    "The bread is warm. The road is dry. The bells are quiet. Snow falls far away. One boat leaves, and"
    " another comes home. Tea stands on the table, and nobody is late."
)


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_FIRST = _words(
    "amber brave brisk broad calm careful clever cosy crisp curious dapper dusty eager early fancy fierce"
    " frosty gentle giant glad golden graceful handy hollow honest humble jolly keen kind late lively lone"
    " loyal lucky mellow merry mild modest narrow noble odd patient plain polite proud quick quiet rapid rare"
    " rough round rustic shiny silent simple sleepy sly smooth sober solid spry steady stern sturdy subtle"
    " sunny swift tall tender thrifty tidy timid vivid warm wary wild wise witty young zesty"
)
_SECOND = _words(
    "alder ash bamboo beech birch brass bronze cedar chalk cherry clay coal copper coral cork cotton elm"
    " ember flint glass granite hazel hemp ivory jade larch leather lemon lilac lime linen maple marble moss"
    " oak olive onyx opal paper pearl pewter pine plum quartz reed rose ruby saffron salt satin silk silver"
    " slate steel stone straw teak tin velvet walnut wax wheat willow wool"
)
_THIRD = _words(
    "acorn anchor anvil badger barrel beacon beaver bellows bottle bridge bucket buckle button candle canoe"
    " castle chimney cricket crown dagger dolphin drum eagle engine falcon feather fiddle finch flute"
    " fountain fox garden gate goose hammer harbor harp hawk hedgehog helmet heron kettle ladder lantern"
    " lizard magpie mill mirror needle otter owl paddle pepper piano pigeon pillow plough puzzle rabbit raven"
    " ribbon river rocket saddle salmon scarf shield shovel spider squirrel stable table teapot thimble tower"
    " trumpet tunnel turtle umbrella violin wagon whistle window yoke"
)


_N_SHARES = 4
"""Training, its hay, evaluation, its hay: each of the lists has a multiple of so many words."""


class _Drawer:
    """Draws labels and values of one use, a label never twice; the hay's differ from those asked for."""

    def __init__(self, rng: Random, use: Use, *, hay: bool = False) -> None:
        self.rng = rng
        self.odd = use == "test"
        self.share = 2 * self.odd + hay
        self.drawn: set[str] = set()

    def label(self, kind: LabelKind) -> str:
        """A label not drawn before."""
        while True:
            label = self.value("code") if kind == "code" else self._words()
            if label not in self.drawn:
                self.drawn.add(label)
                return label

    def value(self, kind: ValueKind) -> str:
        """Seven digits, an adjective with a noun, or a UUID."""
        if kind == "number":
            return str(2 * self.rng.randrange(500_000, 5_000_000) + self.odd)
        if kind == "code":
            return str(UUID(int=2 * self.rng.getrandbits(127) + self.odd, version=4))
        return f"{self.rng.choice(_FIRST)} {_THIRD[2 * self.rng.randrange(len(_THIRD) // 2) + self.odd]}"

    def _words(self) -> str:
        first, second, third = (self.rng.randrange(len(words)) for words in (_FIRST, _SECOND, _THIRD))
        third += (self.share - first - second - third) % _N_SHARES
        return f"{_FIRST[first]}-{_SECOND[second]}-{_THIRD[third % len(_THIRD)]}"


def needle_hay(rng: Random, variant: str, n: int, tokenizer: Tokenizer, use: Use) -> Noise:
    """A haystack of n needles whose labels no question of `use` asks for."""
    drawer, kinds = _Drawer(rng, use, hay=True), VARIANTS[variant]
    texts = tuple(
        _state(rng.choice(_STATEMENTS), drawer.label(kinds.label), drawer.value(kinds.value), kinds.value)
        for _ in range(n)
    )
    return Noise("needles", texts, tokenizer.count(texts))


def hay_of(
    variant: str, essays: Callable[[], Noise], token_budget: int, seed: int, tokenizer: Tokenizer
) -> Noise:
    """The haystack that evaluation questions of one seed share; `essays` is called where it is needed."""
    match VARIANTS[variant].hay:
        case "repeated":
            texts, n_tokens = cut_prose(_REPEATED, tokenizer, LONGEST_SENTENCE)
            return Noise("repeated", tuple(texts), n_tokens)
        case "essays":
            return essays()
    n = min(MOST_HAY_NEEDLES, token_budget // SHORTEST_NEEDLE[VARIANTS[variant].label] + 1)
    return needle_hay(Random(f"{variant} hay {seed}"), variant, n, tokenizer, "test")


def _ask(rng: Random, variant: NeedleTask, use: Use, value: ValueKind) -> FactQuestion:
    """A question; its facts are needles in random order, distractors among them."""
    drawer = _Drawer(rng, use)
    labels = [drawer.label(variant.label) for _ in range(variant.n_labels)]
    filed = [(label, drawer.value(value)) for label in labels for _ in range(variant.n_values)]
    rng.shuffle(filed)
    some_labels = labels[: variant.n_asked]
    support = tuple(row for row, (label, _) in enumerate(filed) if label in some_labels)
    statement = rng.choice(_STATEMENTS)
    pattern = rng.choice(_QUESTIONS if len(support) == 1 else _PLURAL_QUESTIONS)
    *most, last = some_labels
    listed = f"{', '.join(most)} and {last}" if most else last
    needles = tuple(_state(statement, label, filed_value, value) for label, filed_value in filed)
    answer = ", ".join(filed[row][1] for row in support)
    return FactQuestion(pattern.format(kind=value, labels=listed), needles, support, answer)


def _state(statement: str, label: str, value: str, kind: ValueKind) -> str:
    return statement.format(kind=kind, label=label, value=value)


def needle_example(rng: Random, variant: str, hay: Noise, n_chunks: int, example_id: str = "") -> Example:
    """A training example of at least `n_chunks` chunks; where the hay doesn't matter, any kind of value. For
    the variants whose hay is needles, `hay` comes from `needle_hay`.
    """
    kinds = VARIANTS[variant]
    value = kinds.value if kinds.hay == "needles" else rng.choice(VALUE_KINDS)
    asked = _ask(rng, kinds, "train", value)
    chunks = weave(asked.facts, hay, max(0, n_chunks - len(asked.facts)), rng)
    return asked.over(chunks, example_id, f"niah-{variant}", kinds.kind)


def needle_examples(
    variant: str, token_budget: int, n: int, seed: int, hay: Noise, tokenizer: Tokenizer
) -> tuple[Example, ...]:
    """n evaluation questions, each with its needles elsewhere in the same hay. Raises BadRequest for an
    unknown variant, or a budget that the needles alone exceed.
    """
    if variant not in VARIANTS:
        raise BadRequest(f"needle task {variant!r} does not exist; choose among {', '.join(VARIANTS)}")
    kinds = VARIANTS[variant]
    examples = []
    for row in range(n):
        rng = Random(f"{variant} {seed} {row}")
        asked = _ask(rng, kinds, "test", kinds.value)
        n_own = int(tokenizer.count(asked.facts).sum())
        chunks = weave_to_length(asked.facts, n_own, hay, token_budget, rng)
        if chunks is None:
            raise BadRequest(
                f"length {token_budget} does not hold the {len(asked.facts)} needles of {variant}; ask for"
                f" {LEAST_LENGTH} tokens or more"
            )
        name = f"niah-{variant}-{token_budget}-{seed}-{row}"
        examples.append(asked.over(chunks, name, f"niah-{variant}", kinds.kind))
    return tuple(examples)


def long_qa(
    examples: Sequence[Example], token_budget: int, books: Noise, seed: int, tokenizer: Tokenizer, task: str
) -> tuple[tuple[Example, ...], int]:
    """Questions over their paragraphs, then other questions' in random order, then books, up to a length; and
    how many were left out for exceeding it alone. A text that is there already is left out, so support stays
    what it was.
    """
    pool = list(dict.fromkeys(text for example in examples for text in example.chunks))
    n_tokens = dict(zip(pool, tokenizer.count(pool).tolist(), strict=True))
    out: list[Example] = []
    for row, example in enumerate(examples):
        rng = Random(f"{task} {seed} {row} {token_budget}")
        total = sum(n_tokens[text] for text in example.chunks)
        if total > token_budget:
            continue
        there = set(example.chunks)
        others = [text for text in pool if text not in there]
        rng.shuffle(others)
        totals = list(accumulate((n_tokens[text] for text in others), initial=total))
        n_others = bisect_right(totals, token_budget) - 1
        texts = [*enumerate(example.chunks), *((-1, text) for text in others[:n_others])]
        rng.shuffle(texts)
        # as many chunks of books as fit in what is left
        start, left = rng.randrange(len(books.texts)), token_budget - totals[n_others]
        n_books = books.n_fitting(start, left if n_others == len(others) else 0)
        chunks = weave([text for _, text in texts], books, n_books, rng, start)
        own_row = {was: now for now, (was, _) in enumerate(texts) if was >= 0}
        support = tuple(sorted(chunks.places[own_row[chunk_id]] for chunk_id in example.support))
        name = f"{example.id}-{token_budget}"
        out.append(replace(example, id=name, task=task, chunks=chunks, support=support))
    return tuple(out), len(examples) - len(out)
