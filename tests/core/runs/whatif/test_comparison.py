"""Comparisons: the same loop for all methods, and exports read back."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations

import pytest

from core.base.config import EpisodeConfig
from core.base.errors import BadRequest, Cancelled
from core.base.events import fold
from core.corpus.index import Corpus
from core.encode.encoder import DualEncoder
from core.methods.qrag.agent import Agent
from core.methods.registry import METHODS, build_retriever
from core.runs.whatif.comparison import (
    CSV_HEAD,
    Column,
    Contestant,
    compare,
    comparison_csv,
    comparison_json,
    contestant,
)
from core.views.findings import looks, overlap

CHUNKS = [
    "mary went to the kitchen .",
    "john got the milk there .",
    "the river was cold and long .",
    "=john left the milk in the office .",
    "daniel picked up the apple .",
    "mary came to the milk milk milk .",
]
QUERY = "where is the milk of john ?"
CorpusOf = Callable[[DualEncoder, Sequence[str]], Corpus]


@pytest.fixture
def arena(
    agents: dict[str, Agent], corpus_of: CorpusOf
) -> tuple[DualEncoder, DualEncoder, Callable[[Contestant], Corpus]]:
    """Trained and plain encoder, and a corpus for whoever asks."""
    agent, plain = agents["relative10"].encoder, agents["none"].encoder
    corpora = {encoder.fingerprint: corpus_of(encoder, CHUNKS) for encoder in (agent, plain)}
    return agent, plain, lambda one: corpora[one.encoder.fingerprint]


Arena = tuple[DualEncoder, DualEncoder, Callable[[Contestant], Corpus]]


def test_columns_are_what_each_method_answers_alone(arena: Arena) -> None:
    agent, plain, corpus_of = arena
    config = EpisodeConfig(step_budget=3)
    columns = list(compare(QUERY, [contestant(name, agent, plain, config) for name in METHODS], corpus_of))
    assert [column.name for column in columns] == list(METHODS)
    for column in columns:
        retriever, _ = build_retriever(column.name, agent, plain)
        alone = fold(
            retriever.retrieve(QUERY, corpus_of(contestant(column.name, agent, plain, config)), config)
        )
        assert column.trace is not None
        assert column.trace.chosen == alone.chosen
        assert column.milliseconds > 0


def test_a_stop_threshold_is_the_agents_alone(arena: Arena) -> None:
    agent, plain, corpus_of = arena
    config = EpisodeConfig(step_budget=3, stop_threshold=1e6)
    taken = {
        column.name: len(column.trace.chosen)
        for column in compare(QUERY, [contestant(m, agent, plain, config) for m in METHODS], corpus_of)
    }
    assert taken["qrag"] == 0
    assert taken["topk"] == taken["multistep"] == 3


def test_a_stop_threshold_in_units_of_q_is_no_chance(arena: Arena) -> None:
    """Also where a method searches the agent's own vectors, as the light policy does."""
    agent, _, _ = arena
    assert agent.spec.trained
    config = EpisodeConfig(step_budget=3, stop_threshold=0.3)
    stops = {name: contestant(name, agent, agent, config).config.stop_threshold for name in METHODS}
    assert {name for name, stop in stops.items() if stop is not None} == {"qrag"}


def test_followers_take_as_many_as_the_first(arena: Arena) -> None:
    """And one at least, since a comparison with nothing shows nothing."""
    agent, plain, corpus_of = arena
    free = fold(
        Agent(agent).run(
            QUERY, corpus_of(contestant("qrag", agent, plain, EpisodeConfig())), EpisodeConfig(step_budget=4)
        )
    )
    worth = sorted((step.q_value for step in free.steps), reverse=True)
    for threshold in (-1e6, worth[0] - 1e-6, 1e6):
        config = EpisodeConfig(step_budget=4, stop_threshold=threshold)
        first = contestant("qrag", agent, plain, config)
        others = [
            Contestant(m, *build_retriever(m, agent, plain), config.with_(stop_threshold=None), follows=True)
            for m in ("topk", "multistep")
        ]
        size, *followed = [len(column.trace.chosen) for column in compare(QUERY, [first, *others], corpus_of)]
        assert followed == [max(1, size)] * 2


def test_who_can_not_answer_does_not_keep_the_others_from_it(arena: Arena) -> None:
    agent, plain, corpus_of = arena
    many = contestant("qrag", agent, plain, EpisodeConfig(step_budget=7))
    fine = contestant("topk", agent, plain, EpisodeConfig(step_budget=2))
    refused, answered = compare(QUERY, [many, fine], corpus_of)
    assert isinstance(refused.error, BadRequest)
    assert refused.trace is None
    assert answered.trace is not None
    told = comparison_json(QUERY, [refused, answered], corpus_of(fine).workspace)
    assert list(told["methods"]) == ["topk"]
    assert "step budget 7" in told["refused"]["qrag"]


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
    agent, plain, corpus_of = arena
    config = EpisodeConfig(step_budget=3)
    one, several = (
        column.trace
        for column in compare(
            QUERY, [contestant(m, agent, plain, config) for m in ("topk", "qrag")], corpus_of
        )
    )
    assert [taken for _, taken in looks(one)] == [one.chosen]
    assert [taken for _, taken in looks(several)] == [(chunk_id,) for chunk_id in several.chosen]
    stopped = next(
        iter(compare(QUERY, [contestant("qrag", agent, plain, config.with_(stop_threshold=1e6))], corpus_of))
    ).trace
    assert [taken for _, taken in looks(stopped)] == [()]


def test_exports_say_what_was_found(arena: Arena) -> None:
    agent, plain, corpus_of = arena
    contestants = [
        contestant(name, agent, plain, EpisodeConfig(step_budget=4)) for name in ("topk", "bm25", "qrag")
    ]
    columns = list(compare(QUERY, contestants, corpus_of))
    workspace = corpus_of(contestants[0]).workspace
    told = json.loads(json.dumps(comparison_json(QUERY, columns, workspace, (1, 3)), allow_nan=False))
    chosen = {name: [row["chunk_id"] for row in entry["ranked"]] for name, entry in told["methods"].items()}
    assert chosen == {column.name: list(column.trace.chosen) for column in columns}
    assert told["support"]["bm25"]["hits"] == len({1, 3} & {*chosen["bm25"]})
    assert told["support"]["bm25"]["first_look_ranks"]["3"] == chosen["bm25"].index(3) + 1
    for a, b in combinations(chosen, 2):
        assert told["overlap"][a][b] == overlap(chosen[a], chosen[b])
    assert "support" not in comparison_json(QUERY, columns, workspace)

    head, *rows = csv.reader(io.StringIO(comparison_csv(QUERY, columns, workspace, (1, 3))))
    assert tuple(head) == CSV_HEAD
    read = [dict(zip(head, row, strict=True)) for row in rows]
    assert [(row["method"], int(row["chunk_id"])) for row in read] == [
        (name, chunk_id) for name, ids in chosen.items() for chunk_id in ids
    ]
    assert {row["support"] for row in read if int(row["chunk_id"]) in (1, 3)} == {"1"}
    assert {row["text"] for row in read if row["chunk_id"] == "3"} == {"'" + CHUNKS[3]}
    assert {row["found_by"] for row in read} <= {"1", "2", "3"}


def test_what_a_review_took_back_was_found_by_the_others_alone(arena: Arena) -> None:
    agent, plain, corpus_of = arena
    own = replace(
        contestant("qrag", agent, plain, EpisodeConfig(step_budget=3, review_threshold=10.0)), name="own"
    )
    contestants = [own, contestant("topk", agent, plain, EpisodeConfig(step_budget=6))]
    columns = list(compare(QUERY, contestants, corpus_of))
    trace = columns[0].trace
    assert trace is not None
    assert len(trace.taken_back) == 2
    workspace = corpus_of(own).workspace
    found = {row["chunk_id"]: row["found_by"] for row in comparison_json(QUERY, columns, workspace)["chunks"]}
    assert (
        {chunk_id for chunk_id, names in found.items() if "own" in names}
        == {*trace.picks}
        == {*trace.evidence}
    )
    assert len(comparison_json(QUERY, columns[:1], workspace)["chunks"]) == 1
    rows = list(csv.DictReader(io.StringIO(comparison_csv(QUERY, columns[:1], workspace))))
    assert {int(row["chunk_id"]): int(row["found_by"]) for row in rows} == {
        chunk_id: int(chunk_id in trace.picks) for chunk_id in trace.chosen
    }


def test_a_column_that_refused_is_in_no_table(arena: Arena) -> None:
    _, _, corpus_of = arena
    workspace = corpus_of(contestant("topk", *arena[:2], EpisodeConfig())).workspace
    assert comparison_csv(QUERY, [Column("qrag", None, error=BadRequest("no"))], workspace).count("\n") == 1
