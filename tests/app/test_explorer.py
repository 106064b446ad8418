"""What Run, Step, Back, force and forbid do to a session and to the log: real agent, real log, no browser."""

from __future__ import annotations

import gc
import json
import threading
from collections.abc import Iterator
from contextlib import closing
from copy import copy
from dataclasses import replace
from pathlib import Path

import gradio as gr
import pytest

from app.pages.explore import diagnosis as diagnosis_view
from app.pages.explore import story as story_view
from app.pages.explore import view as present
from app.pages.explore.strip_source import RunStrip
from app.pages.explore.tab import ExploreTab
from app.services.evaluations import Evaluations
from app.services.explorer import Explorer
from app.services.in_view import Labelled, RunInView
from app.services.opener import _ONE_SAMPLE, Opener, find_chunk
from app.services.recent import Recent
from app.services.session import Session
from app.services.settings import Settings
from app.services.shared import Services
from app.services.underway import RunAtWork, RunsUnderway
from core.answer.evidence import EvidenceAnswer
from core.base.config import EpisodeConfig
from core.base.errors import BadDocument, BadRequest, Cancelled, LogError, RunNotFound
from core.base.events import Stopped
from core.base.progress import finish
from core.base.types import Document
from core.encode.reference import import_checkpoint
from core.lab.evaluate.completeness import LOW
from core.lab.tasks.narrative import generate_narrative
from core.lab.tasks.samples import list_samples
from core.methods.choice import Choice
from core.runs.whatif.diagnosis import MOST_STEPS, Diagnosis, Remedy
from tests.app.opened import FORTY_DAYS, ask, pasted, pasted_documents
from tests.reranker import REFERENCE, add_reranker
from tests.waiting import wait_until

QUERY = "where was the apple before the hallway ?"
CONFIG = EpisodeConfig(step_budget=4)


@pytest.fixture
def explorer(services: Services) -> Explorer:
    return Explorer(services)


@pytest.fixture
def session(explorer: Explorer) -> Session:
    return pasted(explorer.services, FORTY_DAYS)


def test_a_notice_leads_to_the_chunk_where_it_stands(explorer: Explorer) -> None:
    agent = explorer.services.agents.default_checkpoint
    text = "Mary went home. Jöhn left the garden. Sandra ".encode() + b"\xff sat."
    opened = finish(Opener(explorer, Session(), agent, "sentences", 8).content(text, "a.txt"))
    documents = explorer.documents(opened)
    text = documents.workspace.documents[0].text
    (chunk_id,) = documents.workspace.overlapping(0, text.index("\ufffd"), text.index("\ufffd") + 1)
    header = json.dumps(present.document_header(documents))
    assert chunk_id > 0
    assert f'"data-act": "open", "data-arg": "{chunk_id}"' in header


def last(sessions: Iterator[Session]) -> Session:
    *_, end = sessions
    return end


def chosen(explorer: Explorer, session: Session) -> tuple[int, ...]:
    run = explorer.run_of(session)
    return run.trace.chosen[: session.cursor]


def test_the_document_decides_who_answers_unless_an_agent_was_named(
    services: Services, tmp_path: Path
) -> None:
    story, prose = (
        Document("story", generate_narrative(2_000).text, "text"),
        Document("prose", "It rained. Nobody came.", "text"),
    )
    assert {services.agents.choice_for([one]).checkpoint for one in (story, prose)} == {
        services.agents.default_checkpoint
    }
    with closing(Services(Settings(log=tmp_path / "other.duckdb"))) as free:
        assert free.agents.choice_for([story, prose]) == Choice("narrative", "qrag")
        assert free.agents.choice_for([prose, story]) == Choice("general", "qrag")


def test_steps_equal_a_run_and_are_one_logged_run(explorer: Explorer, session: Session) -> None:
    whole = last(explorer.advance(session, QUERY, CONFIG, None))
    stepped = session
    for _ in range(4):
        stepped = last(explorer.advance(stepped, QUERY, CONFIG, 1))
    assert chosen(explorer, whole) == chosen(explorer, stepped)
    runs = explorer.services.log.search(owner=None)
    assert runs.total == 2
    assert {row.status for row in runs.rows} == {"complete"}


def test_a_step_says_what_it_owes_to_those_before(explorer: Explorer, session: Session) -> None:
    session = last(explorer.advance(session, QUERY, CONFIG, None))
    run = explorer.run_of(session)
    without = explorer.without_each(run, 2)
    assert without == pytest.approx([run.trace.steps[0].scores.q_values[run.trace.chosen[1]]], abs=1e-5), (
        "only the question is left"
    )
    step, looking = run.trace.steps[1], replace(session, look=2)
    words = json.dumps(present.steps(run, looking, without))
    assert f"chunk {run.trace.chosen[0]:,}: Q {without[0]:.3f} instead of {step.q_value:.3f}" in words
    folded = json.dumps(present.steps(run, looking))
    assert "instead of" not in folded
    assert folded.count('"why"') == 3, "nothing comes before the first"


def test_sampling_does_not_depend_on_how_the_run_was_paused(explorer: Explorer, session: Session) -> None:
    config = CONFIG.with_(temperature=1.0, seed=5)
    whole = last(explorer.advance(session, QUERY, config, None))
    stepped = last(explorer.advance(session, QUERY, config, 1))
    stepped = last(explorer.advance(explorer.back(stepped), QUERY, config, 1))
    stepped = last(explorer.advance(stepped, QUERY, config, None))
    assert chosen(explorer, whole) == chosen(explorer, stepped)


def test_back_and_step_with_nothing_changed_is_the_same_run(explorer: Explorer, session: Session) -> None:
    whole = last(explorer.advance(session, QUERY, CONFIG, None))
    back = explorer.back(explorer.back(whole))
    assert back.cursor == 2
    again = last(explorer.advance(back, QUERY, CONFIG, 1))
    assert (again.run, again.cursor) == (whole.run, 3)


def test_going_on_with_other_settings_forks_a_child(explorer: Explorer, session: Session) -> None:
    whole = last(explorer.advance(session, QUERY, CONFIG, None))
    back = explorer.back(explorer.back(whole))
    child = last(explorer.advance(back, QUERY, CONFIG.with_(step_budget=3), None))
    parent_run, child_run = explorer.run_of(whole), explorer.run_of(child)
    assert child.corpus == whole.corpus, "nothing is embedded again"
    assert chosen(explorer, child)[:2] == chosen(explorer, whole)[:2]
    logged = explorer.services.log.get(child_run.run_id)
    assert (logged.record.parent_run_id, logged.record.fork_step) == (parent_run.run_id, 2)
    assert [step.chunk_id for step in logged.trace.steps] == list(chosen(explorer, child))
    assert explorer.services.log.get(parent_run.run_id).n_steps == 4, "the parent is as it was"


def test_step_at_the_end_says_so_and_goes_on_with_a_larger_budget(
    explorer: Explorer, session: Session
) -> None:
    whole = last(explorer.advance(session, QUERY, CONFIG, None))
    with pytest.raises(BadRequest, match="this run has stopped"):
        list(explorer.advance(whole, QUERY, CONFIG, 1))
    further = last(explorer.advance(whole, QUERY, CONFIG.with_(step_budget=6), 1))
    assert chosen(explorer, further)[:4] == chosen(explorer, whole)
    assert further.cursor == 5


def test_a_forced_chunk_is_marked_and_forks(explorer: Explorer, session: Session) -> None:
    whole = last(explorer.advance(session, QUERY, CONFIG, None))
    other = next(i for i in range(39) if i not in chosen(explorer, whole))
    forced = last(explorer.force(explorer.back(explorer.back(whole)), QUERY, CONFIG, other))
    assert chosen(explorer, forced) == (*chosen(explorer, whole)[:2], other)
    run = explorer.run_of(forced)
    assert run.trace.steps[2].chosen_by == "person"
    going_on = last(explorer.advance(forced, QUERY, CONFIG, 1))
    assert going_on.run == forced.run, "the next step goes on in the same child"
    with pytest.raises(BadRequest, match="budget of 4 steps"):
        list(explorer.force(going_on, QUERY, CONFIG, 0))
    with pytest.raises(BadRequest, match="budget of 1 step is used up"):
        list(explorer.force(going_on, QUERY, CONFIG.with_(step_budget=1), 0))
    with pytest.raises(BadRequest, match="already chosen"):
        list(explorer.force(forced, QUERY, CONFIG, other))


def test_forbidding_a_chosen_chunk_runs_on_without_it_and_can_be_taken_back(
    explorer: Explorer, session: Session
) -> None:
    whole = last(explorer.advance(session, QUERY, CONFIG, None))
    unwanted = chosen(explorer, whole)[1]
    without = last(explorer.forbid(whole, QUERY, CONFIG, unwanted))
    assert unwanted not in chosen(explorer, without)
    assert len(chosen(explorer, without)) == 4
    allowed = explorer.allow(without, unwanted)
    again = last(explorer.advance(explorer.reset(allowed), QUERY, CONFIG, None))
    assert chosen(explorer, again) == chosen(explorer, whole)
    with pytest.raises(BadRequest, match="does not exist"):
        list(explorer.forbid(whole, QUERY, CONFIG, 10_000))


def test_closing_a_run_early_logs_it_as_cancelled(explorer: Explorer, session: Session) -> None:
    sessions = explorer.advance(session, QUERY, CONFIG, None)
    first = next(sessions)
    sessions.close()
    run = explorer.run_of(first)
    logged = explorer.services.log.get(run.run_id)
    assert (logged.status, logged.n_steps) == ("cancelled", 1)


def test_a_run_that_goes_on_elsewhere_is_left_to_it(explorer: Explorer, session: Session) -> None:
    elsewhere = explorer.advance(session, QUERY, CONFIG, None)
    first = next(elsewhere)
    with pytest.raises(BadRequest, match="goes on elsewhere"):
        list(explorer.advance(first, QUERY, CONFIG, 1))
    explorer.reset(first)
    whole = last(elsewhere)
    run = explorer.run_of(whole)
    assert (whole.cursor, explorer.services.log.get(run.run_id).status) == (4, "complete")


def test_a_run_comes_back_after_a_restart_and_goes_on_as_a_child(
    explorer: Explorer, session: Session
) -> None:
    half = last(explorer.advance(last(explorer.advance(session, QUERY, CONFIG, 1)), QUERY, CONFIG, 1))
    run = explorer.run_of(half)
    before = chosen(explorer, half)
    explorer.services.close()
    with closing(Services(explorer.services.settings)) as later:
        again = Explorer(later)
        attached = finish(again.attach(run.run_id))
        assert chosen(again, attached) == before
        shown = again.run_of(attached)
        assert shown.positions(2) is not None
        assert shown.q_values(2).tolist() == run.q_values(2).tolist()
        going_on = last(again.advance(attached, QUERY, CONFIG, None))
        child = again.run_of(going_on)
        assert child.parent_run_id == run.run_id
        assert chosen(again, going_on)[:2] == before
        with pytest.raises(RunNotFound):
            finish(again.attach("0" * 32))


def test_two_apps_share_a_home_and_the_second_leaves_its_runs_in_the_inbox(explorer: Explorer) -> None:
    with closing(Services(explorer.services.settings)) as second:
        opened = pasted(second, "john went to the office . mary went home .")
        _, run = ask(Explorer(second), opened, QUERY, EpisodeConfig(step_budget=1))
        assert explorer.services.log.import_inbox() == 1  # type: ignore[union-attr]  # the first one owns the log
        assert explorer.services.log.get(run.run_id).n_steps == 1


def test_a_damaged_log_is_left_alone_and_the_app_goes_on(tiny: Path, tmp_path: Path) -> None:
    log = tmp_path / "damaged.duckdb"
    log.write_bytes(b"this is no database " * 1000)
    before = log.read_bytes()
    with closing(Services(Settings(checkpoint=str(tiny), log=log))) as services:
        assert "damaged.duckdb" in services.log_notice
        opened = pasted(services, "john went to the office . mary went home .")
        _, run = ask(Explorer(services), opened, QUERY, EpisodeConfig(step_budget=1))
        assert len(run.trace.chosen) == 1
    assert log.read_bytes() == before
    log.unlink()
    with closing(Services(Settings(checkpoint=str(tiny), log=log))) as healthy:
        assert healthy.log.import_inbox() == 1  # type: ignore[union-attr]  # it owns the new log


def test_a_run_ends_that_the_log_can_not_take(tiny: Path, tmp_path: Path) -> None:
    log = tmp_path / "damaged.duckdb"
    log.write_bytes(b"this is no database " * 1000)
    Path(f"{log}.inbox").write_text("no folder")
    services = Services(Settings(checkpoint=str(tiny), log=log))
    explorer = Explorer(services)

    def begin() -> Session:
        return ask(explorer, pasted(services, FORTY_DAYS), QUERY, CONFIG, 1)[0]

    session = begin()
    with pytest.raises(LogError, match="could not be left in"):
        services.leave_run(session.run)
    assert explorer.run_of(session).ended
    services.release(begin().tokens, ())
    services.release(session.tokens, ())
    assert services.library.runs.all() == services.library.corpora.all() == []
    begin()
    services.close()


def test_a_beam_runs_whole_and_steps_back(explorer: Explorer, session: Session) -> None:
    config = CONFIG.with_(beam_width=3)
    stepped = last(explorer.advance(session, QUERY, config, 1))
    assert stepped.cursor == 4, "a plan is made as a whole"
    back = explorer.back(stepped)
    assert last(explorer.advance(back, QUERY, config, 1)).run == stepped.run


def test_a_plan_that_may_not_choose_a_chunk_begins_anew(explorer: Explorer, session: Session) -> None:
    config = CONFIG.with_(beam_width=3)
    planned = last(explorer.advance(session, QUERY, config, None))
    third = chosen(explorer, planned)[2]
    other = last(explorer.forbid(planned, QUERY, config, third))
    run = explorer.run_of(other)
    assert third not in run.trace.chosen
    assert [step.step for step in run.trace.steps] == [1, 2, 3, 4]
    fresh = last(explorer.advance(replace(session, forbidden=(third,)), QUERY, config, None))
    assert run.trace.chosen == chosen(explorer, fresh)


def test_a_smaller_budget_keeps_no_more_steps_than_it_has(explorer: Explorer, session: Session) -> None:
    ended = last(explorer.advance(session, QUERY, CONFIG, None))
    back = explorer.back(ended)
    smaller = last(explorer.advance(back, QUERY, CONFIG.with_(step_budget=2), None))
    assert chosen(explorer, smaller) == chosen(explorer, ended)[:2]


@pytest.mark.parametrize("text", ["", "   \n "])
def test_pasting_nothing_is_one_sentence(explorer: Explorer, text: str) -> None:
    with pytest.raises(BadDocument, match=";"):
        pasted(explorer.services, text)


def test_what_is_added_lies_behind_what_is_open_whose_questions_stay(explorer: Explorer) -> None:
    sample, agent = list_samples()[0], explorer.services.agents.default_checkpoint
    opened = finish(Opener(explorer, Session(), agent).sample(sample.key))
    before = explorer.documents(opened)
    both = finish(Opener(explorer, opened, agent, "sentences", 12, beside=before).pasted("The heron stood."))
    after = explorer.documents(both)
    assert [document.sha256 for document in after.workspace.documents[:1]] == [
        before.workspace.documents[0].sha256
    ]
    assert after.workspace[len(after.workspace) - 1].text == "The heron stood."
    assert len(after.questions) == len(sample.questions)
    for old, new in zip(before.questions, after.questions, strict=True):
        held = " ".join(after.workspace[chunk_id].text for chunk_id in new.support)
        assert all(
            before.workspace.documents[0].text[start:end] in after.workspace.documents[0].text
            for _, start, end in new.spans
        )
        assert new.support, "cut anew into smaller chunks"
        assert all(
            before.workspace.documents[0].text[start:end].split()[0] in held for _, start, end in old.spans
        )
    with pytest.raises(BadDocument, match="open already; choose something else"):
        finish(Opener(explorer, both, agent, beside=after).pasted("The heron stood."))
    assert explorer.documents(both) is after, "what was open stays"


def test_a_sample_beside_documents_of_ones_own_keeps_nobody_waiting(
    explorer: Explorer, session: Session
) -> None:
    agent, beside = explorer.services.agents.default_checkpoint, explorer.documents(session)
    opening = Opener(explorer, session, agent, "sentences", 9, beside=beside).sample(list_samples()[0].key)
    with closing(opening):
        assert next(opening).stage
        assert not _ONE_SAMPLE.locked(), "those documents may be long"


def test_what_is_added_leaves_the_question_that_was_typed(explorer: Explorer, session: Session) -> None:
    with gr.Blocks():
        page = ExploreTab(explorer.services, Evaluations(explorer.services), gr.HTML())
    adds = page.openings._opener(Opener.pasted, adds=True)
    updates = list(adds(session, "The heron stood.", "tiny", "", None, "", False))
    assert page.header in updates[-1], "opened"
    assert not any(page.controls.query in update for update in updates)


def test_find_walks_through_all_places_and_around(explorer: Explorer, session: Session) -> None:
    workspace = explorer.documents(session).workspace
    places, at = [], None
    for _ in range(5):
        at, _ = find_chunk(workspace, "GARDEN", at)
        places.append(at)
        assert "garden" in workspace[at].text
    assert places == sorted(set(places))
    assert find_chunk(workspace, "garden", places[0])[1] == "Match 2 of 8."
    assert find_chunk(workspace, "garden", len(workspace) - 1)[1] == "Match 1 of 8, from the top again."
    assert find_chunk(workspace, "#7", None) == (7, "")
    assert find_chunk(workspace, "day 0 ", len(workspace) - 1)[0] == 0
    assert find_chunk(workspace, "DAY 7 .", None)[0] == 7
    for wanted, sentence in (
        ("#100,000", "does not exist"),
        ("zebra", "does not occur"),
        (" ", "type the text"),
    ):
        with pytest.raises(BadRequest, match=sentence):
            find_chunk(workspace, wanted, None)


def test_find_tells_all_matches_of_a_chunk_and_that_it_began_again(explorer: Explorer) -> None:
    agent = explorer.services.agents.default_checkpoint
    first = finish(Opener(explorer, Session(), agent).pasted("john sat ."))
    beside = explorer.documents(first)
    both = finish(Opener(explorer, first, agent, beside=beside).pasted("mary sat . mary sat ."))
    workspace = explorer.documents(both).workspace
    told = [find_chunk(workspace, "sat", after)[1] for after in (None, 0, 1)]
    assert told == ["Match 1 of 3.", "Matches 2 to 3 of 3.", "Match 1 of 3, from the top again."]


def test_find_looks_across_its_pieces_whatever_the_case(
    explorer: Explorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "One two.\n\nThree İSTANBUL four.\n\nFive ΟΔΟΣ six.\n\nSeven eight."
    workspace = pasted_documents(explorer.services, text, 8).workspace
    for piece in (1, 2, 7, 1_000):
        monkeypatch.setattr("app.services.opener._PIECE", piece)
        for wanted, where in {
            "istanbul FOUR": "İSTANBUL",
            "οδοσ": "ΟΔΟΣ",
            "οδος six": "ΟΔΟΣ",
            "EIGHT": "eig",
        }.items():
            found, _ = find_chunk(workspace, wanted, None)
            assert where in workspace[found].text
        with pytest.raises(BadRequest, match="does not occur"):
            find_chunk(workspace, "eightx", None)


def test_a_question_longer_than_the_agent_reads_is_told(explorer: Explorer, session: Session) -> None:
    documents = explorer.documents(session)
    most = documents.agent.spec.max_state_part_tokens - 2
    told = json.dumps(present.question_cut(documents, "where " * (most + 1)))
    assert f"the agent reads the first {most} of {most + 1} tokens" in told
    assert present.question_cut(documents, "where " * most) == []


def test_forgotten_documents_say_so(explorer: Explorer) -> None:
    gc.collect()
    with pytest.raises(BadRequest, match="not open any more"):
        list(explorer.advance(Session(corpus="gone"), QUERY, CONFIG, None))


def test_a_chosen_chunk_has_the_place_of_its_card_wherever_the_strip_names_it(
    explorer: Explorer, session: Session
) -> None:
    run = explorer.run_of(last(explorer.advance(session, QUERY, CONFIG, None)))
    strip = RunStrip(run)
    for step in run.trace.steps:
        assert step.position is not None
        for look in range(step.step, run.trace.n_looks + 1):
            assert strip.describe(step.chunk_id, look)["rho"] == pytest.approx(step.position)


def test_where_nothing_was_left_no_distribution_is_drawn(
    explorer: Explorer, session: Session, caplog: pytest.LogCaptureFixture
) -> None:
    n_chunks = len(explorer.documents(session).corpus)
    session = replace(session, forbidden=tuple(range(1, n_chunks)), draws=True)
    end = last(explorer.advance(session, QUERY, CONFIG, None))
    with gr.Blocks():
        page = ExploreTab(explorer.services, Evaluations(explorer.services), gr.HTML())
    shown = page.panels.figures(explorer.run_of(end), replace(end, look=2))
    assert not caplog.records
    assert shown[page.distribution] is None
    title = json.dumps(shown[page.distribution_title])
    assert "at the stop" in title
    assert "no chunk could be chosen" in title


def test_what_the_review_took_back_counts_in_no_sum(explorer: Explorer, session: Session) -> None:
    ended = last(explorer.advance(session, QUERY, CONFIG, None))
    run = explorer.run_of(ended)
    reviewed = Stopped("budget", 4, review=(0.1, 0.9, 0.9, 0.9), taken_back=run.trace.chosen[:1])
    run = replace(run, trace=replace(run.trace, stopped=reviewed))
    tokens = sum(run.documents.workspace[chunk_id].n_tokens for chunk_id in run.trace.chosen[1:])
    assert f"3 chunks, {tokens:,} tokens" in json.dumps(present.steps(run, ended))
    assert f"3 chunks, {tokens:,} tokens" in json.dumps(story_view.story(run, ended))
    assert "3 chunks" in json.dumps(present.evidence(run, ended))


def test_a_run_without_a_sure_answer_and_labels_offers_other_ways(
    explorer: Explorer, session: Session
) -> None:
    ended = last(explorer.advance(session, QUERY, CONFIG, None))
    run = explorer.run_of(ended)
    assert diagnosis_view.diagnosis(run, ended) == [], "nothing was read yet"
    answered = EvidenceAnswer("the office", 0.9, "reader")
    assert diagnosis_view.diagnosis(replace(run, answer=answered), ended) == []
    unsure = replace(run, answer=replace(answered, state="guess"))
    assert '"data-act": "compare"' in json.dumps(diagnosis_view.diagnosis(unsure, ended))
    assert '"data-act": "longer"' not in json.dumps(diagnosis_view.diagnosis(unsure, ended))
    known = replace(run, label=Labelled(QUERY, "the garden", 0, run.trace.picks))
    for state, sees in (("unsure", "can't tell which words answer it"), ("absent", "sees no answer in it")):
        asked = replace(known, answer=replace(answered, state=state))
        assert f"the reader {sees}" in json.dumps(diagnosis_view.diagnosis(asked, ended))
    early = replace(unsure, trace=replace(run.trace, stopped=Stopped("threshold", 4, 0.1)))
    assert '"data-act": "longer"' in json.dumps(diagnosis_view.diagnosis(early, ended))


def test_what_grows_in_memory_makes_room_too() -> None:
    kept = Recent[str](10, len)
    for name in "ab":
        kept.put(name, name)
    assert kept.update("b", lambda before: 10 * before) == 10 * "b"
    assert kept.all() == [10 * "b"]


def test_documents_that_make_room_take_their_finished_runs_along(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.services.library.MAX_CORPORA_BYTES", 1)
    with closing(Services(Settings(checkpoint=str(tiny), log=tmp_path / "log.duckdb"))) as services:
        for day in range(3):
            text = f"mary travelled to the garden on day {day} ."
            ask(Explorer(services), pasted(services, text), QUERY, EpisodeConfig(step_budget=1))
        assert len(services.library.corpora.all()) == len(services.library.runs.all()) == 1


def test_a_missed_chunk_is_told_by_its_ranks_and_found_by_bm25(explorer: Explorer, session: Session) -> None:
    ended = last(explorer.advance(session, QUERY, CONFIG, None))
    run = explorer.run_of(ended)
    missed = Diagnosis(
        7, 2, 3, None, None, ranks=(5, 4, 3, 2, 6), remedies=(Remedy("bm25", 1, 2), Remedy("longer", 5, 3))
    )
    shown = json.dumps(diagnosis_view.diagnosis(replace(run, diagnosis=missed), ended), ensure_ascii=False)
    assert "It stood at rank 5, came up to 2 at step 4 and was never chosen." in shown
    assert "Compare with BM25" in shown
    assert "chunk 7 is at rank 1 there" in shown
    assert "found 2 → 3 of 3" in shown

    lost = replace(missed, remedies=())
    shown = json.dumps(diagnosis_view.diagnosis(replace(run, diagnosis=lost), ended), ensure_ascii=False)
    most = min(MOST_STEPS, run.n_chunks)
    tried = f"Tried without finding it: {most} steps and the first {CONFIG.step_budget} chunks of BM25."
    assert tried in shown

    parted = replace(missed, split=(6, 7), remedies=(Remedy("cut", 128, 3),))
    shown = json.dumps(diagnosis_view.diagnosis(replace(run, diagnosis=parted), ended), ensure_ascii=False)
    assert "Its passage is cut over chunks 6 to 7." in shown
    assert "Cut at 128 tokens" in shown
    assert "found 2 → 3 of 3" in shown


FACTS = {
    "Lamps": "The oil lamps of the lighthouse are filled at noon.",
    "Ferry": "The ferry leaves from the eastern pier at six.",
    "Fog": "The bell is rung every two minutes in fog.",
    "Kitchen": "Bread is baked on Mondays and Thursdays.",
    "Garden": "Cabbages are planted in April.",
    "Stores": "Rope and tar lie in the shed.",
    "Boats": "Two boats are painted each spring.",
    "Mail": "Letters come with the supply ship.",
    "Stairs": "There are ninety steps.",
    "Water": "Rain fills the cistern.",
    "Clock": "The clock is wound on Sundays.",
    "Flags": "A red flag means that the doctor is wanted.",
    "Tools": "The long saw hangs behind the door.",
    "Paint": "The tower is painted white.",
}
MANUAL = "\n\n".join(f"# {title}\n\n{fact}" for title, fact in FACTS.items())


def test_evidence_that_is_probably_incomplete_is_said_to_be_with_what_to_do(
    explorer: Explorer, session: Session
) -> None:
    def told(curves: dict[int, float], budget: int = 4) -> tuple[str, str]:
        """Diagnosis and evidence of a run, as under an agent with these shares of complete evidence."""
        end = last(explorer.advance(session, QUERY, EpisodeConfig(step_budget=budget), None))
        run = explorer.run_of(end)
        agent = copy(run.documents.agent)
        lines = {size: ((0.0, share),) for size, share in curves.items()}
        agent.spec = agent.spec.model_copy(update={"lead_curves": lines})
        run = replace(run, documents=replace(run.documents, agent=agent))
        return json.dumps(diagnosis_view.diagnosis(run, end)), json.dumps(present.evidence(run, end))

    doubt, summary = told({4: 0.9})
    assert doubt == "[]"
    assert "evidence like this was complete in 9 of 10 cases" in summary

    doubt, summary = told({4: 0.3, 8: 0.6})
    assert "3 in 10 such runs found everything within 4 chunks" in doubt
    assert '"data-act": "longer", "data-arg": "8"' in doubt
    assert "complete in 6 of 10" in doubt
    assert '"data-act": "compare"' in doubt
    assert "evidence like this" not in summary

    doubt, _ = told({4: 0.3})
    assert '"data-act": "longer", "data-arg": "8"' in doubt
    assert "those that come next" in doubt
    doubt, _ = told({4: 0.3}, budget=12)
    assert "within the first 4 chunks" in doubt
    assert '"longer"' not in doubt, "the most that Explore takes"
    doubt, _ = told({4: 0.3}, budget=3)
    assert doubt == "[]", "nothing was measured of three chunks"


@pytest.mark.campaign
def test_the_agent_for_documents_knows_a_clear_question_from_a_vague_one(tmp_path: Path) -> None:
    with closing(Services(Settings(log=tmp_path / "log.duckdb"))) as services:
        explorer = Explorer(services)
        session = finish(Opener(explorer, Session(), "general", "structure", 24).pasted(MANUAL))
        config = explorer.documents(session).agent.spec.episode_config().with_(step_budget=4)

        def complete(question: str) -> float:
            run = explorer.run_of(last(explorer.advance(session, question, config, None)))
            assert run.completeness is not None
            assert run.to_json()["completeness"] == round(run.completeness, 4)
            return run.completeness

        assert complete("When are the oil lamps of the lighthouse filled?") >= LOW
        assert complete("What happened to them in the end?") < LOW


def test_a_run_outlives_its_page_and_is_cancelled_while_it_reads_again(tmp_path: Path) -> None:
    agent, log = tmp_path / "agent", tmp_path / "log.duckdb"
    import_checkpoint(str(REFERENCE / "checkpoints" / "none"), agent, base=str(REFERENCE / "tiny-bert"))
    add_reranker(agent)
    with closing(Services(Settings(checkpoint=str(agent), log=log))) as services:
        explorer, name = Explorer(services), services.agents.default_checkpoint
        session = finish(Opener(explorer, Session(), name, "structure", 24).pasted(MANUAL))
        runs = RunsUnderway(explorer)
        go = threading.Event()

        def slowly(explorer: Explorer, session: Session) -> Iterator[Session]:
            for after in explorer.advance(session, QUERY, CONFIG, None):
                yield after
                go.wait(20)

        underway = runs.start(session, slowly)
        page = underway.followed()
        seen = next(now for now in page if now.session is not None)
        page.close()  # reloaded
        run = services.library.runs.get(underway.run_token)
        assert seen.session.underway == underway.key
        assert runs.of_run(run.run_id, None) is underway
        assert runs.of_run(run.run_id, "another visitor") is None
        go.set()
        *_, end = underway.followed()
        assert end.session is not None
        assert explorer.run_of(end.session).trace.stopped is not None
        assert runs.of_run(run.run_id, None) is None

        go.clear()

        def held(explorer: Explorer, session: Session) -> Iterator[Session]:
            go.wait(20)
            yield from explorer.advance(session, "Who?", CONFIG, None)

        underway = runs.start(session, held)
        underway.cancel(wait=0)
        go.set()
        assert all(now.session is None for now in underway.followed())
        run = services.library.runs.get(underway.run_token)
        assert run.ended
        services.log.flush()
        assert services.own_log.get(run.run_id).status == "cancelled"


def test_a_step_may_end_before_its_page_follows_it(explorer: Explorer, session: Session) -> None:
    def step(explorer: Explorer, session: Session) -> Iterator[Session]:
        yield from explorer.advance(session, QUERY, CONFIG, 1)

    underway = RunsUnderway(explorer).start(session, step)
    wait_until(lambda: underway.is_over)
    (now,) = underway.followed()
    assert now.session is not None
    assert not explorer.run_of(now.session).ended, "the page may go on with it"


def test_a_run_whose_page_never_came_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    underway = RunAtWork("key", None)
    underway.followed().close()  # type: ignore[attr-defined]  # a generator
    underway.reads(1, 2)
    monkeypatch.setattr("app.services.underway.LEFT_SECONDS", -1.0)
    with pytest.raises(Cancelled):
        underway.reads(1, 2)


def test_a_run_is_left_once_its_page_has_been_told_what_it_was_being_told() -> None:
    underway, told, shows = RunAtWork("key", None), [], threading.Event()

    def page() -> None:
        with underway.in_view():
            shows.set()
            wait_until(lambda: underway.is_left)
            told.append("what had been drawn")

    showing = threading.Thread(target=page)
    showing.start()
    shows.wait(20)
    underway.leave(wait=20)
    assert told
    showing.join()
    assert list(underway.followed()) == [], "what comes of it is not shown any more"
    with underway.in_view():  # of a page that takes nothing any more
        underway.leave(wait=0.01)


def test_nobody_ends_a_run_before_its_first_step(explorer: Explorer, session: Session) -> None:
    documents, services = explorer.documents(session), explorer.services
    events = documents.agent.run(QUERY, documents.corpus, CONFIG)
    run = services.begin_run(next(events), documents)
    services.leave_run(run.token)
    assert not services.library.runs.get(run.token).ended


def test_what_two_store_of_a_run_at_once_both_stays(
    explorer: Explorer, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = explorer.services
    run = explorer.run_of(last(explorer.advance(session, QUERY, CONFIG, None)))
    reading = services.read(run, run.trace.evidence)

    def read(run: RunInView, _: object) -> EvidenceAnswer:
        services.waited(run, 2.0)
        return reading

    monkeypatch.setattr(services, "read", read)
    services.answer(run)
    kept = services.library.runs.get(run.token)
    assert (kept.waited, kept.answer) == (2.0, reading)
    services.library.runs.drop(run.token)
    assert services.waited(run, 1.0).waited == 1.0
    assert services.library.runs.get(run.token) is None, "what is gone stays so"


def test_the_last_run_of_a_question_is_shown_over_what_is_open(explorer: Explorer, session: Session) -> None:
    assert explorer.made_before(session, QUERY, CONFIG) is None
    end = last(explorer.advance(session, QUERY, CONFIG, None))
    explorer.services.log.flush()
    made = explorer.made_before(session, QUERY, CONFIG)
    assert (made.corpus, made.cursor) == (session.corpus, end.cursor)
    assert explorer.run_of(made).run_id == explorer.run_of(end).run_id
    assert explorer.made_before(session, QUERY, CONFIG.with_(step_budget=1)) is None
