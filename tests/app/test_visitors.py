"""Public mode: what one visitor may see and do of another's, and how much of the machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path

import pytest

from app.services import visitors
from app.services.agents import PLAIN
from app.services.comparisons import ComparisonOrder, Comparisons, CutRow
from app.services.evaluations import OWN, EvaluationOrder, Evaluations, available_tasks
from app.services.experiments import Experiments
from app.services.explorer import Explorer
from app.services.in_view import RunInView
from app.services.opener import Opener
from app.services.session import Session
from app.services.settings import Settings
from app.services.shared import Services
from app.services.visitors import (
    DOCUMENTS_OPEN,
    LOGGED_BYTES_PER_DAY,
    MOST_STEPS,
    NOBODY,
    READING_SECONDS_PER_DAY,
    RUNS_IN_FLIGHT,
    TOKENS_PER_DAY,
    Allowance,
    Turns,
    newcomer,
    owner_of,
    owner_of_user,
)
from core.answer.evidence import EvidenceAnswer
from core.base.config import EpisodeConfig
from core.base.errors import BadRequest, RunNotFound
from core.base.progress import finish
from core.corpus.opening import OpenProgress
from core.ingest import read_pasted
from core.lab.tasks.samples import list_samples
from core.runs.export.runs import export_runs
from core.runs.log import new_evaluation, new_run_id
from tests.app.opened import ask, pasted
from tests.core.lab.evaluate.rows import make_row

PUBLIC, LOCAL = Settings(public=True), Settings()
KEY_A, KEY_B, KEY_C = "0a" * 16, "0b" * 16, "0c" * 16
A, B, C = (owner_of(PUBLIC, key) for key in (KEY_A, KEY_B, KEY_C))
QUERY = "where was the apple before the hallway ?"
CONFIG = EpisodeConfig(step_budget=4)
TEXT = "\n\n".join(
    f"{('john', 'mary')[i % 2]} travelled to the {('hallway', 'garden', 'office')[i % 3]} on day {i} ."
    for i in range(30)
)


@pytest.fixture
def services(tiny: Path, tmp_path: Path) -> Iterator[Services]:
    with closing(Services(Settings(checkpoint=str(tiny), log=tmp_path / "log.duckdb", public=True))) as made:
        yield made


@pytest.fixture
def explorer(services: Services) -> Explorer:
    return Explorer(services)


def opened(explorer: Explorer, owner: str | None, text: str = TEXT) -> Session:
    return pasted(explorer.services, text, owner=owner)


def advanced(
    explorer: Explorer, session: Session, steps: int | None = None, config: EpisodeConfig = CONFIG
) -> tuple[Session, RunInView]:
    return ask(explorer, session, QUERY, config, steps)


def share(services: Services, run: RunInView) -> None:
    services.own_log.share(run.run_id, run.owner)


def test_a_visitor_is_the_hash_of_a_key_and_nobody_needs_one_in_local_mode() -> None:
    assert owner_of(LOCAL, "") is None
    assert owner_of_user(LOCAL, "ann") is None
    assert newcomer(LOCAL) is None
    assert A is not None
    assert len(A) == 64
    assert KEY_A not in A
    assert len({A, B, owner_of_user(PUBLIC, "ann"), owner_of_user(PUBLIC, KEY_A)}) == 4
    for wrong in ("", "0A" * 16, "0a" * 15, "0a" * 16 + "\n", "zz" * 16, A):
        with pytest.raises(BadRequest, match="must be 32 hex digits") as refused:
            owner_of(PUBLIC, wrong)
        assert not wrong or wrong not in str(refused.value), "what might be a key is not repeated"


def test_b_gets_nothing_of_a_by_any_id(explorer: Explorer) -> None:
    services = explorer.services
    session, run = advanced(explorer, opened(explorer, A))
    unknown = new_run_id()
    sentences = []
    for run_id in (run.run_id, unknown):
        with pytest.raises(RunNotFound) as refused:
            finish(explorer.attach(run_id, B))
        sentences.append(str(refused.value).replace(run_id, "ID"))
    assert sentences[0] == sentences[1], "a run of another can't be told from one that doesn't exist"
    thief = replace(session, owner=B)
    assert explorer.run_of(thief) is None
    for attempt in (
        lambda: list(explorer.advance(thief, QUERY, CONFIG, 1)),
        lambda: list(explorer.force(thief, QUERY, CONFIG, 3)),
        lambda: list(explorer.forbid(thief, QUERY, CONFIG, 3)),
        lambda: finish(explorer.change_agent(thief, services.agents.default_checkpoint)),
    ):
        with pytest.raises(BadRequest, match="not open any more"):
            attempt()
    for attempt in (
        lambda: services.delete_run(run.run_id, B),
        lambda: share(services, replace(run, documents=replace(run.documents, owner=B))),
    ):
        with pytest.raises(RunNotFound):
            attempt()
    assert services.own_log.search(owner=B).total == 0  # type: ignore[union-attr]
    assert services.own_log.search(owner=None).total == 0  # type: ignore[union-attr]
    assert services.own_log.search(owner=A).total == 1  # type: ignore[union-attr]


def test_a_shared_run_is_looked_at_and_gone_on_from_without_touching_it(explorer: Explorer) -> None:
    services = explorer.services
    session, run = advanced(explorer, opened(explorer, A), 2)
    share(services, run)
    seen = finish(explorer.attach(run.run_id, B))
    theirs = explorer.run_of(seen)
    assert theirs.others
    assert theirs.trace.chosen == run.trace.chosen
    assert {theirs.token, seen.corpus}.isdisjoint({run.token, session.corpus}), (
        "tokens of another's run would draw and drive it"
    )
    child_session, child = advanced(explorer, seen)
    assert (child.owner, child.parent_run_id, child.fork_step) == (B, run.run_id, 2)
    explorer.leave(child_session)
    explorer.leave(seen)
    after = explorer.run_of(session)
    assert not after.ended, "another's leaving does not end it"
    session, run = advanced(explorer, session, 1)
    assert finish(explorer.attach(run.run_id, B)).cursor == 3, "it is seen as it is now"
    assert services.own_log.search(owner=A).total == 1  # type: ignore[union-attr]
    assert services.own_log.search(owner=B).total == 1  # type: ignore[union-attr]
    services.delete_run(run.run_id, A)
    for owner in (A, B):
        with pytest.raises(RunNotFound):
            finish(explorer.attach(run.run_id, owner))
    assert finish(explorer.attach(child.run_id, B)).cursor == 4


def test_own_runs_in_view_open_as_they_are(explorer: Explorer) -> None:
    session, run = advanced(explorer, opened(explorer, A), 1)
    again = finish(explorer.attach(run.run_id, A))
    assert (again.run, again.owner) == (session.run, A)


def test_a_page_that_has_not_said_who_it_is_leaves_no_trace(explorer: Explorer) -> None:
    assert newcomer(explorer.services.settings) == NOBODY
    for attempt in (
        lambda: opened(explorer, NOBODY),
        lambda: finish(explorer.attach(new_run_id(), NOBODY)),
    ):
        with pytest.raises(BadRequest, match="reload it"):
            attempt()
    with pytest.raises(BadRequest, match="reload it"):
        explorer.services.keep_evaluation(new_evaluation([make_row()], {}, NOBODY))
    assert explorer.services.own_log.search(owner=NOBODY).total == 0  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("what", "most", "words"),
    [
        (
            "read",
            TOKENS_PER_DAY,
            r"about 11 tokens to read, and 10 of the 20,000,000 .* left; choose something shorter",
        ),
        (
            "log",
            LOGGED_BYTES_PER_DAY // 4,
            r"fill the 4,000,000,000 bytes .*; search a shorter document",
        ),
    ],
)
def test_a_day_has_so_much_for_each(what: str, most: int, words: str) -> None:
    today = [date(2026, 1, 1)]
    take = getattr(Allowance(lambda: today[0]), what)
    take(A, most - 10)
    with pytest.raises(BadRequest, match=words):
        take(A, 11)
    take(A, 10)
    take(B, most)
    take(None, 10 * most)
    today[0] = date(2026, 1, 2)
    take(A, most)


def test_a_day_has_so_many_seconds_of_reading_files_for_each(
    explorer: Explorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    today = [date(2026, 1, 1)]
    allowance = Allowance(lambda: today[0])
    allowance.take_time(A, READING_SECONDS_PER_DAY - 1)
    with pytest.raises(BadRequest, match=r"took the 1,200 s .* in a day; open plain text"):
        allowance.take_time(A, 2)
    allowance.take_time(B, 1)
    allowance.take_time(None, 2 * READING_SECONDS_PER_DAY)
    today[0] = date(2026, 1, 2)
    allowance.take_time(A, 1)

    page = f"<html><p>{TEXT.replace('garden', 'harbour')}</p></html>"
    opened(explorer, A, page)
    monkeypatch.setattr(visitors, "READING_SECONDS_PER_DAY", 1e-6)
    for attempt in (
        lambda: opened(explorer, A, page),
        lambda: finish(
            Opener(explorer, Session(owner=A), explorer.services.agents.default_checkpoint).content(
                page.encode(), "a.html"
            )
        ),
    ):
        with pytest.raises(BadRequest, match="reading your files and making maps of them took"):
            attempt()
    assert opened(explorer, A).corpus, "text needs no reading"
    assert opened(explorer, None, page).corpus


def test_runs_and_imports_count_what_the_log_keeps_of_them(
    explorer: Explorer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _, run = advanced(explorer, opened(explorer, A))
    log = explorer.services.log
    file = export_runs(log, [run.run_id], "json", tmp_path / "run.jsonl", owner=A)
    looks = len(run.trace.steps) + (run.trace.stopped is not None and run.trace.stopped.scores is not None)
    monkeypatch.setattr(visitors, "LOGGED_BYTES_PER_DAY", 4 * looks * len(run.documents.corpus))
    with pytest.raises(BadRequest, match="your runs of today"):
        advanced(explorer, opened(explorer, A))
    experiments = Experiments(explorer.services)
    with pytest.raises(BadRequest, match="your runs of today"):
        experiments.take_in(file, A)
    assert experiments.take_in(file, B) == 1, "B's day has room for it, and it gets an id of B's"


def test_a_visitors_run_has_a_bounded_budget(explorer: Explorer) -> None:
    long = CONFIG.with_(step_budget=MOST_STEPS + 1)
    with pytest.raises(BadRequest, match="step budget 33 is above 32"):
        advanced(explorer, opened(explorer, A, "\n\n".join([TEXT, TEXT.replace("day", "night")])), None, long)
    order = EvaluationOrder(
        "qa1", (explorer.services.agents.default_checkpoint,), step_budget=MOST_STEPS + 1, owner=A
    )
    with pytest.raises(BadRequest, match="step budget 33 is above 32"):
        Evaluations(explorer.services).run(order, lambda _: None)


def test_only_what_has_to_be_embedded_counts() -> None:
    allowance = Allowance()
    meter = allowance.meter(A, 4 * TOKENS_PER_DAY)
    for done in (75, 100):
        meter(OpenProgress("embedding", done, 100, n_cached=75))
    allowance.read(A, TOKENS_PER_DAY * 3 // 4)
    with pytest.raises(BadRequest, match="and 0 of"):
        allowance.read(A, 1)


def test_what_is_too_much_is_refused_before_it_is_embedded(
    explorer: Explorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(explorer, A)
    spent = explorer.services.library.allowance.read_today(A)
    monkeypatch.setattr(visitors, "TOKENS_PER_DAY", spent)
    assert opened(explorer, A).corpus, "its vectors are known by now"
    with pytest.raises(BadRequest, match=f"and 0 of the {spent} that a visitor has for a day"):
        opened(explorer, A, TEXT.replace("garden", "meadow"))


@pytest.fixture
def nothing_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QRAG_HOME", str(tmp_path / "home"))


@pytest.mark.usefixtures("nothing_known")
def test_what_opening_costs_a_visitor_says_nothing_of_others(explorer: Explorer) -> None:
    """Whoever opens a text that somebody else has opened, in whatever way, is told and charged what the first
    one was.
    """
    services, text = explorer.services, "\n\n".join(TEXT.split("\n\n")[:12])
    _, run = advanced(explorer, opened(explorer, A, text))
    share(services, run)

    def costs(owner: str | None) -> list[tuple[int, int]]:
        """(chunks embedded, tokens charged) of each way."""
        told, again = [], partial(opened, explorer, owner, text)
        for way in (
            lambda: finish(services.attach(run.run_id, owner=owner)).documents.n_embedded,
            lambda: explorer.documents(opened(explorer, owner, text.replace("john", "ann"))).n_embedded,
            lambda: explorer.documents(finish(explorer.change_agent(again(), PLAIN))).n_embedded,
            lambda: sum(row.n_embedded for row in cut(again())),
            lambda: Experiments(services).replay(run.run_id, owner, lambda _: None).n_embedded_again,
        ):
            before = services.library.allowance.read_today(owner)
            told.append((way(), services.library.allowance.read_today(owner) - before))
        return told

    def cut(session: Session) -> tuple[CutRow, ...]:
        return Comparisons(services).across_cuts(
            explorer.documents(session), ComparisonOrder(QUERY, (), 3), lambda _: None
        )

    first = costs(B)
    assert [n_embedded > 0 and charged > 0 for n_embedded, charged in first] == [*[True] * 4, False]
    assert costs(C) == first
    assert costs(B) == [(0, 0)] * 5, "their own openings are known"


@pytest.mark.usefixtures("nothing_known")
def test_the_projects_own_documents_are_embedded_once_for_all(explorer: Explorer) -> None:
    agent = explorer.services.agents.default_checkpoint
    key = list_samples()[1].key
    first, second = (
        explorer.documents(finish(Opener(explorer, Session(owner=owner), agent).sample(key)))
        for owner in (A, B)
    )
    assert first.n_embedded > 0
    assert (second.n_embedded, explorer.services.library.allowance.read_today(B)) == (0, 0)
    beside = [*second.workspace.documents, read_pasted(TEXT)]
    theirs = explorer.documents(finish(explorer.open(Session(owner=B), beside, agent)))
    assert theirs.n_embedded > first.n_embedded, "with a text of their own it is theirs"


def test_the_same_evidence_of_the_projects_own_documents_is_read_once_for_all(explorer: Explorer) -> None:
    services, agent = explorer.services, explorer.services.agents.default_checkpoint

    def answered(session: Session) -> EvidenceAnswer | None:
        return services.answer(advanced(explorer, session)[1]).answer

    samples = [
        finish(Opener(explorer, Session(owner=owner), agent).sample(list_samples()[1].key))
        for owner in (A, B)
    ]
    first, second = map(answered, samples)
    assert first is second
    own, others = (answered(opened(explorer, owner)) for owner in (A, B))
    assert own is not others, "how long it takes would tell that somebody else has asked it"
    assert own == others


def test_one_more_document_closes_the_visitors_own_oldest(explorer: Explorer) -> None:
    other = opened(explorer, B)
    first, run = advanced(explorer, opened(explorer, A))
    more = [opened(explorer, A) for _ in range(DOCUMENTS_OPEN)]
    assert explorer.run_of(first) is None
    with pytest.raises(BadRequest, match="not open any more"):
        explorer.documents(first)
    for session in (other, *more):
        assert explorer.documents(session).token == session.corpus
    assert finish(explorer.attach(run.run_id, A)).cursor == 4, "the log has it"


@pytest.mark.campaign
@pytest.mark.usefixtures("nothing_known")
def test_documents_without_a_run_are_found_by_their_visitor_after_a_restart(
    explorer: Explorer, tmp_path: Path
) -> None:
    folder = tmp_path / "home" / "opened" / str(A)
    oldest, first, *_, last = [
        explorer.documents(opened(explorer, A, f"{TEXT}\n\nDay {i} .")) for i in range(DOCUMENTS_OPEN)
    ]
    changed = explorer.documents(finish(explorer.change_agent(Session(corpus=last.token, owner=A), PLAIN)))
    assert len(list(folder.iterdir())) == DOCUMENTS_OPEN, "the bound of what is open"
    explorer.services.close()
    with closing(Services(explorer.services.settings)) as services:
        again = Explorer(services)
        agent = services.agents.default_checkpoint
        for documents in (last, changed):
            found = again.documents(finish(Opener(again, Session(owner=A), agent).named(documents.name)))
            assert found.workspace.documents == documents.workspace.documents
            assert found.workspace.configs == documents.workspace.configs
            assert (found.name, found.agent.spec.name) == (documents.name, documents.agent.spec.name)
            assert found.n_embedded == services.library.allowance.read_today(A) == 0
        (kept,) = folder.glob(f"{first.name}.npz")
        kept.write_bytes(kept.read_bytes()[:-40])
        for name, owner in (
            *((last.name, other) for other in (B, None, NOBODY)),
            *((name, A) for name in (oldest.name, first.name, f"../{A}/{last.name}", "")),
        ):
            with pytest.raises(BadRequest, match=r"is closed by now|away for too long"):
                finish(Opener(again, Session(owner=owner), agent).named(name))


def test_one_more_unfinished_run_closes_the_one_left_for_longest(explorer: Explorer) -> None:
    log = explorer.services.log
    advanced(explorer, opened(explorer, B), 1)
    left, *others = [advanced(explorer, opened(explorer, A), 1) for _ in range(RUNS_IN_FLIGHT + 1)]
    assert log.get(left[1].run_id, A).status == "cancelled"
    assert log.search(owner=A, status="running").total == RUNS_IN_FLIGHT
    assert log.search(owner=B, status="running").total == 1
    _, child = advanced(explorer, left[0], 1)
    assert (child.parent_run_id, child.fork_step) == (left[1].run_id, 1)
    assert advanced(explorer, others[-1][0], 1)[1].run_id == others[-1][1].run_id


def test_what_others_would_feel_is_off(explorer: Explorer) -> None:
    services = explorer.services
    evaluations = Evaluations(services)
    for attempt in (
        lambda: services.agents.use_threshold(services.agents.default_checkpoint, 0.5),
        lambda: evaluations.use_for_now(new_run_id(), 0.5),
        lambda: evaluations.make_default(new_run_id(), 0.5),
    ):
        with pytest.raises(BadRequest, match="the same for all visitors"):
            attempt()
    assert OWN not in available_tasks(services.settings)
    with pytest.raises(BadRequest, match="start the app on your machine"):
        evaluations.run(
            EvaluationOrder(
                OWN, (services.agents.default_checkpoint,), questions=Path("questions.jsonl"), owner=A
            ),
            lambda _: None,
        )


def test_evaluations_are_their_makers(explorer: Explorer) -> None:
    evaluations = Evaluations(explorer.services)
    rows = [make_row(id=str(number)) for number in range(3)]
    made = new_evaluation(rows, {}, A)
    explorer.services.keep_evaluation(made)
    assert [entry.evaluation_id for entry in evaluations.all(A)] == [made.evaluation_id]
    assert evaluations.summary(made.evaluation_id, A).n == 3
    assert evaluations.stop_curve(made.evaluation_id, A).points
    for other in (B, None, NOBODY):
        assert evaluations.all(other) == []
        for attempt in (
            evaluations.get,
            evaluations.summary,
            evaluations.stop_curve,
            evaluations.reliability,
        ):
            with pytest.raises(RunNotFound):
                attempt(made.evaluation_id, other)
        with pytest.raises(RunNotFound):
            evaluations.episode(made.evaluation_id, 0, other)


def test_an_evaluation_reads_of_the_days_tokens(explorer: Explorer) -> None:
    evaluations = Evaluations(explorer.services)
    # whose haystacks would take minutes to compose
    order = EvaluationOrder(
        "generated", (explorer.services.agents.default_checkpoint,), length="10M", n=30, owner=A
    )
    with pytest.raises(BadRequest, match="300,000,000 tokens to read"):
        evaluations.run(order, lambda _: None)


def test_those_who_wait_get_their_turn_in_rounds() -> None:
    turns, waiting, served = Turns(), ["a1", "a2", "a3", "a4", "b1", "c1", "b2"], []
    while waiting:
        served.append(waiting.pop(turns.next("agent", [event[0] for event in waiting])))
        if len(served) == 2:
            waiting.append("d1")
    assert served == ["a1", "b1", "c1", "d1", "a2", "b2", "a3", "a4"]
    assert turns.next("open", ["d", "a"]) == 0, "other lines have turns of their own"
