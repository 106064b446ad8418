"""Every task that can be evaluated, by its name.

    qa1 ... qa5                      bAbI questions over books (BabiLong)
    niah-single-1 ... niah-multiquery    needles (RULER)
    generated                        the project's own documents
    hotpotqa, musique, 2wiki, nq, squad, clapnq        questions over their own paragraphs
    hotpotqa-pooled, ...             each over the paragraphs of all questions at hand
    hotpotqa-corpus, ...             the same and paragraphs of training questions, as many as HippoRAG has
    hotpotqa-long, ...               the same over all paragraphs of the set and books, up to a length
    a path                           a file or BEIR folder that `qa_sets` reads

Training and test parts never mix: the noise of a test part is books/eval or essays, that of a training part
books/train.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from core.base.errors import BadRequest
from core.ingest.tokenizer import Tokenizer
from core.lab.tasks.babi_world import TASKS as BABI_TASKS
from core.lab.tasks.babilong import Part, babilong_examples, name_length, parse_length, read_babi
from core.lab.tasks.beir import Passages
from core.lab.tasks.data import babi_folder, data_folder
from core.lab.tasks.example import Example, Noise
from core.lab.tasks.generated import generated_examples
from core.lab.tasks.noise import Source, read_noise
from core.lab.tasks.pooled import pooled
from core.lab.tasks.qa_sets import FOLDERS, read_qa
from core.lab.tasks.ruler import VARIANTS, hay_of, long_qa, needle_examples

PACKED = 64
"""Tokens up to which prose around needles is packed: Q-RAG's chunk size for RULER (appendix H)."""
NOISE_POOL = 300_000
"""Tokens of noise that haystacks shorter than this are cut from: it is read in a second, and hundreds of
questions share vectors.
"""
PARTS: tuple[Part, ...] = ("train", "test")


@dataclass(frozen=True, eq=False, slots=True)
class TaskSet:
    """Loaded examples."""

    name: str
    examples: tuple[Example, ...]
    left_out: int
    """Questions that don't fit in the length asked for."""
    description: str
    step_budget: int
    """Steps that the papers, or the number of support chunks, give an agent here."""


@dataclass(frozen=True, slots=True)
class Request:
    """What to load of a task."""

    name: str
    part: Part
    token_budget: int
    """0 for tasks whose chunks are given."""
    n: int | None
    seed: int
    data: Path | None
    tokenizer: Tokenizer


@dataclass(frozen=True, slots=True)
class Task:
    """How a task is loaded."""

    load: Callable[[Request], Loaded]
    step_budget: int
    length: str | None = None
    """Default length; None where a length can't be asked for."""
    has_training_part: bool = True
    n: int | None = None
    """Questions by default; None is all."""


def load_task(
    name: str,
    *,
    part: Part = "test",
    length: str | int | None = None,
    n: int | None = None,
    seed: int = 0,
    data: Path | None = None,
    tokenizer: Tokenizer,
) -> TaskSet:
    """The examples of a task; the same arguments give the same ones. Raises BadRequest."""
    task = TASKS.get(name) or (_PATH if Path(name).exists() else None)
    if task is None:
        raise BadRequest(
            f"task {name!r} does not exist; choose among {', '.join(TASKS)}, or name a file of questions"
        )
    parts = PARTS if task.has_training_part else PARTS[1:]
    if part not in parts:
        raise BadRequest(f"{name} has no part {part!r}; choose {' or '.join(parts)}")
    if length is not None and task.length is None:
        raise BadRequest(
            f"{name} has no length {length}: its chunks are given; leave the length out, or take {name}-long"
            " where there is one"
        )
    if n is not None and n < 1:
        raise BadRequest(f"n={n} must be at least 1")
    token_budget = 0 if task.length is None else parse_length(task.length if length is None else length)
    request = Request(name, part, token_budget, n or task.n, seed, data, tokenizer)
    examples, left_out, described = task.load(request)
    if not examples:
        raise BadRequest(f"no question of {name} fits in {token_budget:,} tokens; ask for a greater length")
    description = f"{len(examples):,} questions of {described}, seed {seed}"
    return TaskSet(name, tuple(examples), left_out, description, task.step_budget)


Loaded = tuple[Sequence[Example], int, str]
"""Examples, how many were left out, and of what they consist."""


def _babi(request: Request) -> Loaded:
    name, part, budget, tokenizer = request.name, request.part, request.token_budget, request.tokenizer
    source = _books(part)
    noise = read_noise(source, tokenizer, None, max(NOISE_POOL, budget), request.data)
    told = read_babi(babi_folder(request.data), name, part)
    made = babilong_examples(name, told, noise, budget, request.n, request.seed, tokenizer)
    over = f"each over {name_length(budget)} tokens of sentences from {source}"
    return *made, f"bAbI {name} ({part}), {over}"


def _needles(request: Request) -> Loaded:
    budget, seed, tokenizer = request.token_budget, request.seed, request.tokenizer
    variant = request.name.removeprefix("niah-")

    def essays() -> Noise:
        return read_noise("essays", tokenizer, PACKED, data=request.data)

    hay = hay_of(variant, essays, budget, seed, tokenizer)
    examples = needle_examples(variant, budget, request.n or 1, seed, hay, tokenizer)
    return examples, 0, f"{request.name}, needles in {name_length(budget)} tokens of {hay.name}"


def _generated(request: Request) -> Loaded:
    examples = list(generated_examples(request.token_budget, request.n or 1, request.seed, request.tokenizer))
    return examples, 0, f"the project's own stories, documents of {name_length(request.token_budget)} tokens"


def _qa(request: Request) -> Loaded:
    part = "eval" if request.part == "test" and request.name in FOLDERS else request.part
    examples = read_qa(request.name, part, request.data)
    shared = bool(examples) and isinstance(examples[0].chunks, Passages)
    over = "all over one corpus" if shared else "each over its own paragraphs"
    return _some(examples, request), 0, f"{request.name} ({part}), {over}"


def _pooled_qa(request: Request) -> Loaded:
    name = request.name.removesuffix("-pooled")
    part = "eval" if request.part == "test" else request.part
    examples = pooled(_some(read_qa(name, part, request.data), request), request.name)
    n_paragraphs = len(examples[0].chunks) if examples else 0
    return examples, 0, f"{name} ({part}), all over one pool of {n_paragraphs:,} paragraphs"


def _corpus_qa(request: Request) -> Loaded:
    name = request.name.removesuffix("-corpus")
    folder = data_folder(request.data) / FOLDERS[name]
    parts = [part for part in ("train", "train_more") if (folder / f"{part}.jsonl.gz").exists()]
    lent = (text for part in parts for other in read_qa(name, part, request.data) for text in other.chunks)
    examples = pooled(read_qa(name, "eval", request.data), request.name, lent, _CORPUS_SIZES[name])
    over = f"all over {len(examples[0].chunks):,} paragraphs of the set's questions"
    return _some(examples, request), 0, f"{name} (eval), {over}"


def _long_qa(request: Request) -> Loaded:
    name, source = request.name.removesuffix("-long"), _books(request.part)
    part = "eval" if request.part == "test" else "train"
    budget, tokenizer = request.token_budget, request.tokenizer
    books = read_noise(source, tokenizer, PACKED, budget, request.data)
    questions = read_qa(name, part, request.data)
    examples, left_out = long_qa(questions, budget, books, request.seed, tokenizer, request.name)
    over = f"each over {name_length(budget)} tokens of the set's paragraphs and {source}"
    return _some(examples, request), left_out, f"{name} ({part}), {over}"


def _books(part: Part) -> Source:
    return "books/eval" if part == "test" else "books/train"


def _some(examples: Sequence[Example], request: Request) -> Sequence[Example]:
    """`n` of the examples in their order, which ones decided by the seed."""
    if request.n is None or request.n >= len(examples):
        return examples
    rows = sorted(Random(f"{request.name} {request.seed}").sample(range(len(examples)), request.n))
    return [examples[row] for row in rows]


_QA_STEPS = {"hotpotqa": 2, "musique": 4, "2wiki": 4, "nq": 1, "squad": 1, "clapnq": 4}
_CORPUS_SIZES = {"hotpotqa": 9_221, "musique": 11_656, "2wiki": 6_119}
"""Paragraphs of the corpora that HippoRAG (arXiv 2405.14831), and others after it, searched."""
_PATH = Task(_qa, step_budget=4)

TASKS: dict[str, Task] = {
    **{name: Task(_babi, step_budget=4, length="1K") for name in BABI_TASKS},
    **{
        f"niah-{variant}": Task(_needles, step_budget=4, length="4K", has_training_part=False, n=100)
        for variant in VARIANTS
    },
    "generated": Task(_generated, step_budget=4, length="20K", has_training_part=False, n=48),
    **{name: Task(_qa, step_budget=steps) for name, steps in _QA_STEPS.items()},
    **{f"{name}-pooled": Task(_pooled_qa, step_budget=_QA_STEPS[name]) for name in _CORPUS_SIZES},
    **{
        f"{name}-corpus": Task(_corpus_qa, step_budget=_QA_STEPS[name], has_training_part=False)
        for name in _CORPUS_SIZES
    },
    **{f"{name}-long": Task(_long_qa, step_budget=4, length="32K") for name in _QA_STEPS if name != "clapnq"},
}
"""By name, with the steps of Q-RAG appendix H where it says."""
