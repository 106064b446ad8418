"""The rules: which queries, which chunks, which sentences, and when it is enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from core.methods.sparc.agents import BranchResult, Rewrite, RewriteTask, SupportedAnswer, Turn
from core.methods.sparc.events import Note
from core.methods.sparc.retrievals import Remaining, Retrievals
from core.methods.sparc.rules import (
    CONFIDENT,
    CONFIDENT_WHEN_COMPLETE,
    COVERED,
    RuleAgents,
    by_worth,
    evidence,
)
from core.methods.sparc.words import mentions, names, plain, repeats, title, without_wh, words
from tests.core.methods.sparc.conftest import FIRST_HOP, QUESTION, SECOND_HOP, STORY, KnowingReader

RULES = RuleAgents(KnowingReader({}), 2)


def test_names_that_the_evidence_brings_are_looked_for_with_what_is_still_open(
    retrievals: Retrievals,
) -> None:
    task = RewriteTask(QUESTION, Note("", (FIRST_HOP,)), 1, ("bm25",), (QUESTION,))
    rewrites, cost = RULES.rewrite(task, Turn(retrievals))
    assert rewrites[0].query == "Tamsin Orrell town founder born"
    assert rewrites[0].strategy == "bm25"
    assert "rules: Tamsin Orrell stands in chunk 2" in rewrites[0].reason
    assert cost.calls == 0


def test_queries_complement_each_other_and_nothing_is_asked_twice(retrievals: Retrievals) -> None:
    asked = (QUESTION, "Tamsin Orrell born")
    task = RewriteTask(QUESTION, Note("", (FIRST_HOP, 3, 0)), 3, ("bm25", "dense"), asked)
    rewrites, _ = RULES.rewrite(task, Turn(retrievals))
    assert len({(one.query, one.strategy) for one in rewrites}) == 3
    assert not any(one.query.startswith("Tamsin Orrell") for one in rewrites)
    assert rewrites[0].query.startswith("Olive Penn")


def test_without_evidence_each_name_of_the_question_is_a_query(retrievals: Retrievals) -> None:
    task = RewriteTask("Was the Red Lantern older than the Harbour Gate?", Note(), 3, ("bm25", "dense"))
    rewrites, _ = RULES.rewrite(task, Turn(retrievals))
    assert [(one.query, one.strategy) for one in rewrites[:2]] == [
        ("Red Lantern older", "bm25"),
        ("Harbour Gate older", "bm25"),
    ]
    assert rewrites[2].query == task.question


def test_a_query_that_comes_up_twice_keeps_its_first_place(retrievals: Retrievals) -> None:
    task = RewriteTask("Is the Red Lantern Inn the Red Lantern by the Harbour?", Note(), 2, ("bm25",))
    openings = [Rewrite(query, "bm25", "") for query in ("Red lantern", "harbour", "red Lantern")]
    rules = RuleAgents(KnowingReader({}), 2)
    rules._openings = lambda _: openings  # type: ignore[method-assign]
    assert rules.rewrite(task, Turn(retrievals))[0] == tuple(openings[:2])


def test_linked_chunks_are_worth_more_than_those_that_share_a_word(retrievals: Retrievals) -> None:
    found = [7, 5, 4, SECOND_HOP, FIRST_HOP, FIRST_HOP]
    order = [chunk_id for chunk_id, _ in by_worth(QUESTION, found, retrievals)]
    assert order[0] == FIRST_HOP
    assert order.index(SECOND_HOP) < order.index(5)
    assert sorted(order) == [2, 4, 5, 6, 7]


def test_a_note_is_small_and_keeps_what_is_worth_most(retrievals: Retrievals) -> None:
    manager, turn = RULES, Turn(retrievals)
    found = retrievals.search("bm25", QUESTION, 5)
    first, _ = manager.update(QUESTION, QUESTION, Note(), found, turn)
    assert len(first.chunk_ids) == 2
    assert first.chunk_ids[0] == FIRST_HOP
    assert "founded by Tamsin Orrell" in first.text
    later, _ = manager.update(
        QUESTION, "Tamsin Orrell", first, retrievals.search("bm25", "Tamsin Orrell", 1), turn
    )
    assert later.chunk_ids[0] == FIRST_HOP
    unchanged, _ = manager.update(QUESTION, "hills", later, retrievals.search("bm25", "hills", 2), turn)
    assert unchanged == later


def test_merged_notes_hold_each_chunk_once_within_the_bound(retrievals: Retrievals) -> None:
    branches = [
        BranchResult(i, "", Note("", ids), "", None, (), "continue")
        for i, ids in enumerate([(FIRST_HOP, 7), (SECOND_HOP, FIRST_HOP)], start=1)
    ]
    note, weighed, _ = RULES.merge(QUESTION, branches[0], branches[1:], Turn(retrievals))
    assert note.chunk_ids == (FIRST_HOP, SECOND_HOP)
    assert [one.chunk_id for one in weighed] == [FIRST_HOP, SECOND_HOP, 7]
    assert sorted((one.worth for one in weighed), reverse=True) == [one.worth for one in weighed]


def test_the_surest_answer_on_the_fuller_note_is_the_best_branch(retrievals: Retrievals) -> None:
    both = Note("", (FIRST_HOP, SECOND_HOP))
    poor = BranchResult(1, "", Note("", (7,)), "hills", 0.6, (7,), "continue")
    good = BranchResult(2, "", both, "Quillmarsh", 0.6, (SECOND_HOP,), "continue")
    none = BranchResult(3, "", both, "", 0.99, (), "continue")
    best, reason, _ = RULES.select(QUESTION, [poor, good, none], Turn(retrievals))
    assert (best, reason.startswith("rules: ")) == (2, True)
    told = [("Sallowfield", 0.7), ("Quillmarsh", 0.5), ("quillmarsh", 0.5)]
    branches = [BranchResult(i, "", both, *one, (), "continue") for i, one in enumerate(told, start=1)]
    best, *_ = RULES.select(QUESTION, branches, Turn(retrievals))
    assert best == 2, "branches that agree outvote one that does not"


@dataclass
class Agent:
    """Sources of which the agent's view counts: what it needs, by default both chunks."""

    remaining: Remaining | None
    needs: tuple[int, ...] | None = (FIRST_HOP, SECOND_HOP)

    def needed(self, *_: object) -> tuple[int, ...] | None:
        return self.needs

    def left_to_find(self, *_: object) -> Remaining | None:
        return self.remaining

    def text(self, chunk_id: int) -> str:
        return STORY[chunk_id]

    def rarity(self, _: str) -> float:
        return 1.0


NOTHING_LEFT, SOMETHING_LEFT = Remaining(3, 0.1, 0.3), Remaining(3, 0.4, 0.3)


@pytest.mark.parametrize(
    ("answer", "confidence", "remaining", "verdict", "why"),
    [
        (
            "Quillmarsh",
            CONFIDENT_WHEN_COMPLETE,
            NOTHING_LEFT,
            "stop",
            "would take nothing more (Q 0.10, threshold",
        ),
        ("Quillmarsh", CONFIDENT_WHEN_COMPLETE - 0.01, NOTHING_LEFT, "continue", "less than"),
        ("Quillmarsh", 0.99, SOMETHING_LEFT, "continue", "would still take chunk 3"),
        ("", 0.99, NOTHING_LEFT, "continue", "no answer beyond the words of the question"),
    ],
)
def test_it_stops_when_the_evidence_is_complete_and_the_reader_sure_enough(
    answer: str, confidence: float, remaining: Remaining, verdict: str, why: str
) -> None:
    told, note = SupportedAnswer(answer, confidence, ()), Note("", (FIRST_HOP,))
    judged, reason, _ = RULES.judge(QUESTION, "", told, note, Turn(Agent(remaining)))
    assert (judged, why in reason) == (verdict, True)


def test_an_agent_alone_does_not_make_evidence_complete() -> None:
    """It would add nothing to a chunk that holds hardly a word of the question."""
    told, turn = SupportedAnswer("hills", 0.99, ()), Turn(Agent(NOTHING_LEFT, needs=(7,)))
    verdict, reason, _ = RULES.judge(QUESTION, "", told, Note("", (7,)), turn)
    assert (verdict, "of what is asked" in reason) == ("continue", True)


def test_evidence_of_which_the_agent_takes_nothing_is_not_complete() -> None:
    turn, note = Turn(Agent(NOTHING_LEFT, needs=())), Note("", (FIRST_HOP, SECOND_HOP))
    assert evidence(QUESTION, note.chunk_ids, turn.sources).chunk_ids == ()
    verdict, reason, _ = RULES.judge(QUESTION, "", SupportedAnswer("Quillmarsh", 0.99, ()), note, turn)
    assert (verdict, reason) == ("continue", "rules: the agent would take none of the chunks")


def test_without_an_agent_it_stops_when_most_of_what_is_asked_is_there(retrievals: Retrievals) -> None:
    whole, beside = Note("", (FIRST_HOP, SECOND_HOP)), Note("", (7,))
    most, little = (evidence(QUESTION, note.chunk_ids, retrievals).covered for note in (whole, beside))
    assert most >= COVERED > little
    for note, sure, wanted in (
        (whole, CONFIDENT, "stop"),
        (whole, CONFIDENT - 0.01, "continue"),
        (beside, 0.99, "continue"),
    ):
        told = SupportedAnswer("Quillmarsh", sure, ())
        verdict, reason, _ = RULES.judge(QUESTION, "", told, note, Turn(retrievals))
        assert (verdict, "of what is asked" in reason) == (wanted, True)


def test_complete_evidence_wins_over_a_surer_reader() -> None:
    sure = BranchResult(1, "", Note("", (7,)), "hills", 0.97, (7,), "continue")
    both = (FIRST_HOP, SECOND_HOP)
    whole = BranchResult(2, "", Note("", both), "Quillmarsh", 0.5, both, "stop")

    class Two(Agent):
        def needed(self, _: str, chunk_ids: Sequence[int]) -> tuple[int, ...]:
            return tuple(chunk_ids)

        def left_to_find(self, _: str, known: Sequence[int]) -> Remaining:
            return NOTHING_LEFT if FIRST_HOP in known else SOMETHING_LEFT

    best, reason, _ = RULES.select(QUESTION, [sure, whole], Turn(Two(None)))
    assert best == 2
    assert reason.startswith("rules: the agent would add nothing, its chunks hold")


def test_the_reader_reads_what_the_agent_needs_and_never_answers_with_the_question() -> None:
    turn = Turn(Agent(NOTHING_LEFT, (SECOND_HOP, FIRST_HOP)))
    reading, _ = RuleAgents(KnowingReader({"Harbour Gate": 0.9, "Quillmarsh": 0.5}), 2).answer(
        QUESTION, Note("", (0, FIRST_HOP, SECOND_HOP)), turn
    )
    assert (reading.answer, reading.citations) == ("Quillmarsh", (SECOND_HOP,))
    repeated, _ = RuleAgents(KnowingReader({"Blue Lantern": 0.97}), 2).answer(
        QUESTION, Note("", (FIRST_HOP,)), turn
    )
    assert (repeated.answer, repeated.citations) == ("", ())


def test_an_answer_that_repeats_the_question() -> None:
    blanket = "Where was the blanket before the chapel?"
    assert repeats(blanket, "the chapel")
    assert not repeats(blanket, "Chapel Hill")
    assert not repeats("Who is older, Ann or Tom?", "Tom")
    assert not repeats("Between Ann and Tom, who is older?", "Ann")


def test_words_names_and_titles() -> None:
    assert words("Who wrote the book of the year, and when?") == ["wrote", "book", "year"]
    assert without_wh("In which year was Ada born?") == "In year was Ada born?"
    text = "The poet Emily Bronte was born in Thornton. She lived in the West Riding of Yorkshire."
    assert names(text) == ["Emily Bronte", "Thornton", "West Riding of Yorkshire"]
    assert (title(STORY[0]), title("It was late.")) == ("Harbour Gate", "")
    assert mentions(plain("She met Vitellius in 69."), "Vitellius (emperor)")
    assert not mentions(plain("Vitelliusville"), "Vitellius")
