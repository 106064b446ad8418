"""Labelled examples from the project's own stories.

Whole generated documents for evaluation, short haystacks for training, where the facts stand among noise that
all examples of a batch share. A few training examples pack facts and the prose around them up to 64 tokens,
so that other chunk sizes aren't foreign to the agent; support is then every chunk that holds a deciding fact.
Seeds: evaluation draws from `Random(integer)` at FIRST_SEED and above, the documents in sample_docs from
small integers, training from text (`training_rng`): Python keeps the two kinds apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from random import Random

import numpy as np

from core.base.config import ChunkConfig
from core.base.types import Document, Workspace
from core.ingest import Tokenizer, chunk_document
from core.ingest.packing import Units, pack
from core.lab.tasks.example import Example, Noise, weave
from core.lab.tasks.narrative import generate_narrative
from core.lab.tasks.prose import compose_paragraph
from core.lab.tasks.samples import span_chunks
from core.lab.tasks.story import GeneratedStory, tell_story

TASK = "generated"
CHUNKING = ChunkConfig(chunker="sentences", max_tokens=64, one_sentence=True)
"""How *narrative* reads a plain text in the app."""
FIRST_SEED = 1_000_000_000
"""Seeds of evaluation documents begin here."""
QUESTIONS_PER_DOCUMENT = 12
"""What `generate_narrative` asks by default: what a visitor sees."""

SIZES = (1, 1, 2, 12)
"""Weights of stories whose documents are asked 3, 6, 9 and 12 questions: those of long documents have up to
120 facts, and are not learned from short ones.
"""
ALONE_CHANCE = 0.9
"""How often the facts of a training example stand alone, rather than packed with prose."""
MOST_JOINED = 0.5
"""Chance that a fact follows the one before it directly, drawn for each packed example between 0 and this."""
PROSE_AROUND = 4
"""Sentences composed after a fact, and at most before it: enough to fill a chunk around it."""


def generated_examples(n_tokens: int, n: int, seed: int, tokenizer: Tokenizer) -> Iterator[Example]:
    """n questions of one to three facts about the ends of documents of `n_tokens` tokens, twelve questions a
    document. Raises BadRequest outside the lengths of `generate_narrative`.
    """
    for first in range(0, n, QUESTIONS_PER_DOCUMENT):
        document_seed = FIRST_SEED + 100_000 * seed + first // QUESTIONS_PER_DOCUMENT
        yield from islice(document_examples(n_tokens, document_seed, tokenizer), n - first)


def document_examples(n_tokens: int, seed: int, tokenizer: Tokenizer) -> Iterator[Example]:
    """The questions of one generated document over its chunks, which they share."""
    narrative = generate_narrative(n_tokens, seed, QUESTIONS_PER_DOCUMENT)
    document = Document(f"generated-{seed}", narrative.text, "text")
    workspace = Workspace((document,), (chunk_document(document, CHUNKING, tokenizer),))
    chunks = tuple(workspace.texts())
    for i, asked in enumerate(narrative.questions, start=1):
        support, name = span_chunks(workspace, 0, asked.support), f"{document.title}-q{i}"
        kind = f"{asked.hops} facts"
        yield Example(name, TASK, asked.question, chunks, support, (asked.answer,), kind)


def training_rng(seed: int) -> Random:
    """A generator whose stories no evaluation document shares."""
    return Random(f"training {seed}")


def story_example(
    rng: Random, noise: Noise, n_noise: int, tokenizer: Tokenizer, example_id: str = ""
) -> Example:
    """A training example: one question of a story, the chunks of its facts among `n_noise` chunks of noise.
    The story has as many facts and questions as a document's may have, drawn anew each time, the greater of
    two draws, as documents are mostly long; questions of more facts are asked more often.
    """
    [n_each] = rng.choices((1, 2, 3, 4), SIZES)
    greater = max(rng.random(), rng.random())
    n_facts = 9 * n_each + int(greater * (21 * n_each + 1))
    story = tell_story(rng, n_facts, 3 * n_each)
    hops = [question.hops for question in story.questions]
    [asked] = rng.choices(story.questions, hops)
    if rng.random() < ALONE_CHANCE:
        own = [fact.text for fact in story.facts]
        chunk_of_fact = list(range(len(own)))
    else:
        own, chunk_of_fact = _pack_with_prose(rng, story, tokenizer)
    chunks = weave(own, noise, n_noise, rng)
    support = tuple(sorted({chunks.places[chunk_of_fact[row]] for row in asked.support}))
    return Example(example_id, TASK, asked.question, chunks, support, (asked.answer,), f"{asked.hops} facts")


def _pack_with_prose(rng: Random, story: GeneratedStory, tokenizer: Tokenizer) -> tuple[list[str], list[int]]:
    """Chunks that hold the facts and the prose around them, and for each fact the chunk it is in. Facts that
    follow each other directly stand between the same paragraphs, and each such group is packed for itself.
    """
    join_chance = MOST_JOINED * rng.random()
    groups: list[list[str]] = []
    for fact in story.facts:
        if groups and rng.random() < join_chance:
            groups[-1].append(fact.text)
        else:
            groups.append([fact.text])
    sentences: list[str] = []
    group: list[int] = []
    at: list[int] = []
    """Which sentences are facts."""
    for number, facts in enumerate(groups):
        before = list(compose_paragraph(rng))
        before = before[len(before) - int(rng.random() * (PROSE_AROUND + 1)) :]
        at += range(len(sentences) + len(before), len(sentences) + len(before) + len(facts))
        paragraph = [*before, *facts, *islice(compose_paragraph(rng), PROSE_AROUND)]
        sentences += paragraph
        group += [number] * len(paragraph)
    text = " ".join(sentences)
    lengths = [len(sentence) + 1 for sentence in sentences]
    ends = np.cumsum(lengths)
    spans = np.stack([ends - lengths, ends - 1], axis=1)
    units = Units(spans, np.array(group, dtype=np.int32))
    chunks, _ = pack(text, units, CHUNKING.max_tokens, tokenizer)
    holding = np.searchsorted(chunks.spans[:, 0], spans[at, 0], side="right") - 1
    kept, chunk_of_fact = np.unique(holding, return_inverse=True)
    texts = [text[start:end] for start, end in chunks.spans[kept].tolist()]
    return texts, chunk_of_fact.tolist()
