"""Questions to a novel that is open: seconds to each choice and to the answer.

Medians over QUESTIONS by *general*, as the app asks it; --n tokens of text, 110,000 by default, some 500
chunks. Against sentence-transformers' CrossEncoder (install it for this) on the reranker's base encoder, in
its defaults, which reads the chunks that were read for the first choice.
"""

from __future__ import annotations

import statistics
import time
from itertools import pairwise

from sentence_transformers import CrossEncoder

from benchmarks import Row, empty_home
from benchmarks.prose import novels
from core.answer.evidence import answer_evidence, found_order
from core.answer.reader import load_reader
from core.base.events import Event, StepTaken, fold
from core.base.progress import finish
from core.corpus.opening import open_corpus
from core.encode.checkpoint import find_base
from core.encode.encoder import load_encoder
from core.ingest import read_document
from core.methods.qrag.agent import Agent
from core.methods.qrag.episode import Episode

QUESTIONS = (
    "Who speaks first?",
    "Who inherits the house?",
    "Why does the letter come too late?",
    "What does the widow say of the young man's debts?",
    "Where do the two brothers meet after the quarrel?",
    "Who is offended at the dinner, and why?",
)
"""The first warms up."""


def rows(n: int = 110_000) -> list[Row]:
    """Medians of a question, and how many chunks its first choice read."""
    agent, reader = Agent(load_encoder("general")), load_reader()
    base = find_base(agent.spec.rerank_base or agent.spec.base)
    theirs = CrossEncoder(str(base), num_labels=1, device="cpu")
    seconds: dict[str, list[float]] = {name: [] for name in ("first", "further", "answer", "theirs")}
    n_read = []
    with empty_home():
        corpus = finish(open_corpus([read_document(novels(n), "novel.txt")], agent.encoder)).corpus
        for i, question in enumerate(QUESTIONS):
            asked = Episode(question, corpus, agent.spec.episode_config())
            events, times = list[Event](), [time.perf_counter()]
            for _, event in agent.run_batch([asked]):
                events.append(event)
                if isinstance(event, StepTaken):
                    times.append(time.perf_counter())
            trace, answering = fold(events), time.perf_counter()
            texts = {chunk_id: corpus.text(chunk_id) for chunk_id in trace.evidence}
            answer_evidence(reader, [question], [texts], [found_order(trace)], [[]], [{}])
            answered = time.perf_counter()
            read = agent.look([(asked, ())])[0].reranked
            chunks = [] if read is None else [corpus.text(chunk_id) for chunk_id in read.chunk_ids.tolist()]
            reading = time.perf_counter()
            theirs.predict([(question, chunk) for chunk in chunks], show_progress_bar=False)
            if i:
                steps = [later - before for before, later in pairwise(times)]
                seconds["first"].append(steps[0])
                seconds["further"] += steps[1:]
                seconds["answer"].append(answered - answering)
                seconds["theirs"].append(time.perf_counter() - reading)
                n_read.append(len(chunks))
    median = {name: statistics.median(measured) for name, measured in seconds.items()}
    against = "CrossEncoder over the same chunks"
    return [
        Row("chunks", len(corpus), "chunks"),
        Row("chunks read for the first choice", statistics.median(n_read), "chunks"),
        Row("first choice", median["first"], "s", against, median["first"] / median["theirs"]),
        Row("each further choice", median["further"], "s"),
        Row("answer", median["answer"], "s"),
    ]
