"""The agents that ship, on what a first visitor sees and on small sets of the generators."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from core.answer.checkpoint import LARGE, SMALL
from core.answer.reader import load_reader
from core.base.config import EpisodeConfig
from core.base.events import Trace, fold
from core.base.progress import finish
from core.base.types import Document
from core.corpus.index import Corpus
from core.corpus.opening import chunk_documents, index_workspace, open_corpus
from core.encode.checkpoint import find_checkpoint
from core.encode.encoder import DualEncoder, load_encoder
from core.encode.engine import ENGINE_VARIABLE
from core.encode.packaged import READER_VARIABLE
from core.encode.tokens import FastTokenizer
from core.ingest import read_document
from core.lab.evaluate.run import Setting, evaluate
from core.lab.evaluate.summary import summarise
from core.lab.tasks.babi_world import TASKS, tell_babi
from core.lab.tasks.example import Example, weave
from core.lab.tasks.generated import generated_examples, training_rng
from core.lab.tasks.noise import compose_noise
from core.lab.tasks.samples import Sample, SampleQuestion, find_quote, list_samples, span_chunks
from core.methods.choice import Encoders
from core.methods.qrag.agent import Agent
from core.methods.qrag.retriever import AgentRetriever
from core.methods.registry import build_retriever
from core.methods.sparc.build import build_agents, build_retrievals
from core.methods.sparc.events import SparcConfig
from core.methods.sparc.run import run_sparc
from core.methods.sparc.trace import fold_sparc
from core.runs.whatif.comparison import contestant
from tests.conftest import CAMPAIGN
from tests.core.conftest import CorpusOf

SAMPLES = list_samples() if CAMPAIGN else list_samples()[:1]
PART = slice(None) if CAMPAIGN else slice(15_000, 55_000)
"""Of the first sample: that of `make test` holds what seven questions need, three of them three hops."""
AGENT_OF = {".txt": "narrative", ".md": "multi-hop", ".html": "multi-hop"}
LEAST_RIGHT = {"river-chronicle.txt": 8, "harbour-almanac.html": 6, "beacon-handbook.md": 3}
"""Questions of each sample, of nine or ten, whose whole support is found: behind half of the handbook's
chains multi-hop stops too early.
"""
LEAST_FOUND = {"river-chronicle.txt": 10, "harbour-almanac.html": 7, "beacon-handbook.md": 8}
"""The same with what the app opens a document under by itself, of ten, nine and ten; what is missing are
second and third passages, which share no word with the question, and *general* looks once.
"""


@pytest.fixture(scope="module")
def encoders() -> dict[str, DualEncoder]:
    names = {"base", *(AGENT_OF[sample.path.suffix] for sample in SAMPLES)}
    return {name: load_encoder(name, "cpu") for name in names}


def supporting(corpus: Corpus, question: SampleQuestion) -> set[int]:
    """Chunks of the only document that hold the question's support."""
    text = corpus.workspace.documents[0].text
    return set(span_chunks(corpus.workspace, 0, [find_quote(text, quote) for quote in question.support]))


@pytest.fixture
def almanac() -> Sample:
    return next(sample for sample in list_samples() if sample.path.suffix == ".html")


def document_of(sample: Sample) -> Document:
    content = sample.path.read_bytes()
    return read_document(content[PART] if sample.key == list_samples()[0].key else content, sample.path.name)


def opened(sample: Sample, encoder: DualEncoder) -> Corpus:
    return finish(open_corpus([document_of(sample)], encoder)).corpus


def asked(sample: Sample, corpus: Corpus) -> list[SampleQuestion]:
    """Those whose support is in the document."""
    text = corpus.workspace.documents[0].text
    return [question for question in sample.questions if all(quote in text for quote in question.support)]


def least(of: dict[str, int], sample: Sample) -> int:
    return of[sample.key] if CAMPAIGN else 7


def own_run(encoder: DualEncoder, question: SampleQuestion, corpus: Corpus) -> Trace:
    return fold(Agent(encoder).run(question.question, corpus, encoder.spec.episode_config()))


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.key)
def test_sample_questions(encoders: dict[str, DualEncoder], sample: Sample) -> None:
    """With the trained agent that is nearest to the kind of document, stopping by itself."""
    encoder = encoders[AGENT_OF[sample.path.suffix]]
    corpus = opened(sample, encoder)
    traces = {question: own_run(encoder, question, corpus) for question in asked(sample, corpus)}
    right = [supporting(corpus, question) <= set(trace.evidence) for question, trace in traces.items()]
    assert sum(right) >= least(LEAST_RIGHT, sample)
    if sample.key == list_samples()[0].key:  # a first visitor's, of the most hops
        question = max(sample.questions, key=lambda known: known.hops)
        trace = traces[question]
        assert (question.hops, trace.stopped.reason) == (3, "threshold")
        assert set(trace.chosen) == supporting(corpus, question), "three hops and nothing else"


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.key)
def test_sample_questions_with_what_the_app_picks(sample: Sample) -> None:
    """Checkpoint, method, chunking, budget and stop are all the app's own."""
    encoders = Encoders(None, "cpu")
    document = document_of(sample)
    choice, encoder = encoders.choice(document)
    beside = encoders.beside(choice.method, encoder)
    picked = contestant(choice.method, encoder, beside, encoder.spec.episode_config())
    corpus = finish(index_workspace(finish(chunk_documents([document], encoder)), picked.encoder)).corpus
    right = 0
    for question in asked(sample, corpus):
        trace = fold(picked.retriever.retrieve(question.question, corpus, picked.config))
        right += supporting(corpus, question) <= set(trace.picks)
    assert right >= least(LEAST_FOUND, sample)


@pytest.mark.campaign
def test_general_reads_its_best_chunks_again_where_the_larger_encoder_is_used(
    monkeypatch: pytest.MonkeyPatch, almanac: Sample
) -> None:
    """Three of the almanac's first four questions; eight of its nine were measured. Without that encoder it
    is the agent that it was, over the same vectors; the other engine chooses the same.
    """
    monkeypatch.setenv(READER_VARIABLE, "small")
    without = DualEncoder(find_checkpoint("general"), "cpu")
    monkeypatch.delenv(READER_VARIABLE)
    encoder = DualEncoder(find_checkpoint("general"), "cpu")
    assert (without.reranker, without.spec.rerank_weight) == (None, 0)
    assert without.spec.lead_curves.keys() == encoder.spec.lead_curves.keys() != set()
    assert without.vector_fingerprint == encoder.vector_fingerprint
    assert without.fingerprint != encoder.fingerprint
    corpus = opened(almanac, encoder)
    traces = {question: own_run(encoder, question, corpus) for question in almanac.questions[:4]}
    assert all(step.reranked_q is not None for trace in traces.values() for step in trace.steps)
    assert sum(supporting(corpus, question) <= set(trace.picks) for question, trace in traces.items()) >= 3
    monkeypatch.setenv(ENGINE_VARIABLE, "openvino")
    compiled = DualEncoder(find_checkpoint("general"), "cpu")
    question, trace = next(iter(traces.items()))
    assert set(own_run(compiled, question, corpus).chosen) == set(trace.chosen)


@pytest.mark.campaign
@pytest.mark.parametrize("reader", [SMALL, LARGE], ids=["small", "large"])
def test_sparc_without_a_language_model_answers_every_question_of_the_first_sample(
    encoders: dict[str, DualEncoder], reader: Path
) -> None:
    """With all that ships, at its defaults: among its branches the one whose evidence is complete wins,
    however sure the reader is of another.
    """
    first, encoder, plain, config = list_samples()[0], encoders["narrative"], encoders["base"], SparcConfig()
    own = opened(first, encoder)
    beside = finish(index_workspace(own.workspace, plain)).corpus
    retrievals = build_retrievals(config, encoder, plain, lambda one: own if one is encoder else beside)
    agents = build_agents(None, load_reader(reader, "cpu"), config)
    assert len(first.questions) == 10
    for question in first.questions:
        trace = fold_sparc(run_sparc(question.question, own, agents, retrievals, config))
        assert (question.id, trace.answer) == (question.id, question.answer)
        assert supporting(own, question) <= set(trace.note.chunk_ids)


def stories(tokenizer: FastTokenizer) -> list[Example]:
    noise = compose_noise(training_rng(7), tokenizer, 4_000)
    rng = Random(7)
    examples = []
    for task in TASKS:
        for i in range(4):
            told = tell_babi(task, rng)
            chunks = weave(told.facts, noise, max(0, 60 - len(told.facts)), rng)
            examples.append(told.over(chunks, f"{task}-{i}", task))
    return examples


@pytest.mark.campaign
def test_narrative_on_stories_and_documents(encoders: dict[str, DualEncoder]) -> None:
    scores = {}
    for name in ("narrative", "base"):
        encoder = encoders[name]
        examples = [*stories(encoder.tokenizer), *generated_examples(5_000, 12, 7, encoder.tokenizer)]
        config = encoder.spec.episode_config().with_(step_budget=4)
        rows = list(
            evaluate(examples, Setting(split="test"), AgentRetriever(Agent(encoder)), encoder, config)
        )
        metrics = summarise(rows).metrics
        scores[name] = metrics["fact_f1_reviewed"] or metrics["fact_f1"] or 0.0  # the base has no review
    assert scores["narrative"] > 0.85
    assert scores["narrative"] > scores["base"] + 0.3


def test_the_base_finds_what_is_meant_without_a_word_in_common(
    encoders: dict[str, DualEncoder], corpus_of: CorpusOf
) -> None:
    encoder = encoders["base"]
    corpus = corpus_of(
        encoder, ["Our train leaves at noon.", "A physician treats illnesses.", "Rain is expected."]
    )
    expected = dict.fromkeys(("qrag", "topk", "hybrid", "threshold"), (1,)) | {"bm25": ()}
    for method, chosen in expected.items():
        retriever, _ = build_retriever(method, encoder, encoder)
        asked = retriever.retrieve("what does a doctor do?", corpus, EpisodeConfig(step_budget=1))
        assert (method, fold(asked).chosen) == (method, chosen)
