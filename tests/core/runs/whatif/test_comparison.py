"""Comparisons: the same loop for all methods, and exports read back."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations

import pytest

from core.base.config import EpisodeConfig
from core.base.errors import Cancelled
from core.base.events import fold
from core.base.metrics import jaccard
from core.corpus.index import Corpus
from core.encode.encoder import DualEncoder
from core.methods.qrag.agent import Agent
from core.methods.registry import BY_ENCODER, build_retriever
from core.runs.whatif.comparison import (
    CSV_HEAD,
    Column,
    Contestant,
    compare,
    comparison_csv,
    comparison_json,
    contestant,
)
from core.views.findings import looks
from tests.core.conftest import CorpusOf

CHUNKS = [
    "mary went to the kitchen .",
    "john got the milk there .",
    "the river was cold and long .",
    "=john left the milk in the office .",
    "daniel picked up the apple .",
    "mary came to the milk milk milk .",
]
QUERY = "where is the milk of john ?"


Arena = tuple[DualEncoder, DualEncoder, Callable[[Contestant], Corpus]]


@pytest.fixture
def arena(agents: dict[str, Agent], corpus_of: CorpusOf) -> Arena:
    """Trained and plain encoder, and a corpus for whoever asks."""
    agent, plain = agents["relative10"].encoder, agents["none"].encoder
    corpora = {encoder.fingerprint: corpus_of(encoder, CHUNKS) for encoder in (agent, plain)}
    return agent, plain, lambda one: corpora[one.encoder.fingerprint]


def compared(arena: Arena, config: EpisodeConfig, *methods: str) -> list[Column]:
    agent, plain, corpus_of = arena
    return list(compare(QUERY, [contestant(name, agent, plain, config) for name in methods], corpus_of))


def test_columns_are_what_each_method_answers_alone(arena: Arena) -> None:
    agent, plain, corpus_of = arena
    config = EpisodeConfig(step_budget=3)
    columns = compared(arena, config, *BY_ENCODER)
    assert [column.name for column in columns] == list(BY_ENCODER)
    for column in columns:
        retriever, _ = build_retriever(column.name, agent, plain)
        corpus = corpus_of(contestant(column.name, agent, plain, config))
        assert column.trace.chosen == fold(retriever.retrieve(QUERY, corpus, config)).chosen
        assert column.milliseconds > 0


def test_a_stop_threshold_is_the_agents_alone(arena: Arena) -> None:
    """In units of Q it is no chance, also where a method searches the agent's own vectors, as the light policy
    does.
    """
    columns = compared(arena, EpisodeConfig(step_budget=3, stop_threshold=1e6), *BY_ENCODER)
    taken = {column.name: len(column.trace.chosen) for column in columns}
    assert (taken["qrag"], taken["topk"], taken["multistep"]) == (0, 3, 3)
    agent, _, _ = arena
    assert agent.spec.trained
    config = EpisodeConfig(step_budget=3, stop_threshold=0.3)
    stops = {name: contestant(name, agent, agent, config).config.stop_threshold for name in BY_ENCODER}
    assert {name for name, stop in stops.items() if stop is not None} == {"qrag"}


def test_followers_take_as_many_as_the_first(arena: Arena) -> None:
    """And one at least, since a comparison with nothing shows nothing."""
    agent, plain, corpus_of = arena
    (free,) = compared(arena, EpisodeConfig(step_budget=4), "qrag")
    best = max(step.q_value for step in free.trace.steps)
    for threshold in (-1e6, best - 1e-6, 1e6):
        config = EpisodeConfig(step_budget=4, stop_threshold=threshold)
        unbound = config.with_(stop_threshold=None)
        others = [
            Contestant(name, *build_retriever(name, agent, plain), unbound, follows=True)
            for name in ("topk", "multistep")
        ]
        contestants = [contestant("qrag", agent, plain, config), *others]
        size, *followed = [len(column.trace.chosen) for column in compare(QUERY, contestants, corpus_of)]
        assert followed == [max(1, size)] * 2


def test_who_can_not_answer_does_not_keep_the_others_from_it(arena: Arena) -> None:
    agent, plain, corpus_of = arena
    many = contestant("qrag", agent, plain, EpisodeConfig(step_budget=7))
    fine = contestant("topk", agent, plain, EpisodeConfig(step_budget=2))
    refused, answered = compare(QUERY, [many, fine], corpus_of)
    assert (bool(refused.refused), refused.trace) == (True, None)
    assert answered.trace
    workspace = corpus_of(fine).workspace
    told = comparison_json(QUERY, [refused, answered], workspace)
    assert list(told["methods"]) == ["topk"]
    assert "step budget 7" in told["refused"]["qrag"]
    assert comparison_csv(QUERY, [refused], workspace).count("\n") == 1, "it is in no table"


def test_every_event_is_heard_and_hearing_may_end_it(arena: Arena) -> None:
    agent, plain, corpus_of = arena
    heard: list[tuple[str, str]] = []

    def listen(one: Contestant, event: object) -> None:
        heard.append((one.name, type(event).__name__))
        if len(heard) == 6:
            raise Cancelled

    contestants = [contestant(name, agent, plain, EpisodeConfig(step_budget=2)) for name in ("topk", "qrag")]
    columns = []
    with pytest.raises(Cancelled):
        columns.extend(compare(QUERY, contestants, corpus_of, listen))
    assert heard == [("topk", name) for name in ("RunStarted", "StepTaken", "StepTaken", "Stopped")] + [
        ("qrag", "RunStarted"),
        ("qrag", "StepTaken"),
    ]


def test_looks_are_told_apart_by_their_scores(arena: Arena) -> None:
    config = EpisodeConfig(step_budget=3)
    one, several = (column.trace for column in compared(arena, config, "topk", "qrag"))
    assert [taken for _, taken in looks(one)] == [one.chosen]
    assert [taken for _, taken in looks(several)] == [(chunk_id,) for chunk_id in several.chosen]
    (stopped,) = compared(arena, config.with_(stop_threshold=1e6), "qrag")
    assert [taken for _, taken in looks(stopped.trace)] == [()]


def test_exports_say_what_was_found(arena: Arena) -> None:
    agent, plain, corpus_of = arena
    config = EpisodeConfig(step_budget=4)
    columns = compared(arena, config, "topk", "bm25", "qrag")
    workspace = corpus_of(contestant("topk", agent, plain, config)).workspace
    told = json.loads(json.dumps(comparison_json(QUERY, columns, workspace, (1, 3)), allow_nan=False))
    chosen = {name: [row["chunk_id"] for row in entry["ranked"]] for name, entry in told["methods"].items()}
    assert chosen == {column.name: list(column.trace.chosen) for column in columns}
    assert told["support"]["bm25"]["hits"] == len({1, 3} & {*chosen["bm25"]})
    assert told["support"]["bm25"]["first_look_ranks"]["3"] == chosen["bm25"].index(3) + 1
    for a, b in combinations(chosen, 2):
        assert told["overlap"][a][b] == jaccard(chosen[a], chosen[b])
    assert "support" not in comparison_json(QUERY, columns, workspace)

    head, *rows = csv.reader(io.StringIO(comparison_csv(QUERY, columns, workspace, (1, 3))))
    assert tuple(head) == CSV_HEAD
    read = [dict(zip(head, row, strict=True)) for row in rows]
    pairs = [(name, chunk_id) for name, ids in chosen.items() for chunk_id in ids]
    assert [(row["method"], int(row["chunk_id"])) for row in read] == pairs
    assert {row["support"] for row in read if int(row["chunk_id"]) in (1, 3)} == {"1"}
    assert {row["text"] for row in read if row["chunk_id"] == "3"} == {"'" + CHUNKS[3]}
    assert {row["found_by"] for row in read} <= {"1", "2", "3"}


def test_what_a_review_took_back_was_found_by_the_others_alone(arena: Arena) -> None:
    agent, plain, corpus_of = arena
    reviewed = contestant("qrag", agent, plain, EpisodeConfig(step_budget=3, review_threshold=10.0))
    own = replace(reviewed, name="own")
    contestants = [own, contestant("topk", agent, plain, EpisodeConfig(step_budget=6))]
    columns = list(compare(QUERY, contestants, corpus_of))
    trace, workspace = columns[0].trace, corpus_of(own).workspace
    assert len(trace.taken_back) == 2
    found = {row["chunk_id"]: row["found_by"] for row in comparison_json(QUERY, columns, workspace)["chunks"]}
    by_own = {chunk_id for chunk_id, names in found.items() if "own" in names}
    assert by_own == {*trace.picks} == {*trace.evidence}
    assert len(comparison_json(QUERY, columns[:1], workspace)["chunks"]) == 1
    rows = csv.DictReader(io.StringIO(comparison_csv(QUERY, columns[:1], workspace)))
    expected = {chunk_id: int(chunk_id in trace.picks) for chunk_id in trace.chosen}
    assert {int(row["chunk_id"]): int(row["found_by"]) for row in rows} == expected
