"""`python app.py --public` as strangers meet it."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect

from app.services.settings import Settings
from app.services.visitors import ACTIONS_WAITING, owner_of_user
from core.runs.export.runs import export_runs
from core.runs.log import ExperimentLog, new_run_id
from tests.app.conftest import RunningApp, served, wait_ready
from tests.app.explore_page import paste, press_run, show_settings
from tests.app.raw_page import RawPage, named
from tests.conftest import OpenPage
from tests.settled import settle
from tests.waiting import wait_until

KEY_A, KEY_B = "ca" * 16, "cb" * 16
QUERY = "where was the apple before the hallway ?"
STEPS = "#qx-steps .qx-step"


def test_a_page_gets_nothing_of_another_by_its_ids(public_app: RunningApp) -> None:
    a, b = RawPage(public_app.url), RawPage(public_app.url)
    a.load(KEY_A)
    ran = a.press("qx-run", qx_question=QUERY)
    run_id, token = named("run_id", ran), named("token", ran)
    assert "best" in a.ask_strip("tiles", [token, 1, "q", 0, 10, 10])
    unknown = new_run_id()
    refusals = [re.search(r"there is no run[^;]*; [^\"\\]*", b.load(KEY_B, run)) for run in (run_id, unknown)]
    assert refusals[0].group().replace(run_id, unknown) == refusals[1].group(), (
        "no difference between another's run and none"
    )
    for guess in (run_id, unknown, "", None, [token]):
        for question, request in (
            ("tiles", [guess, 1, "q", 0, 10, 10]),
            ("runmap", [guess, 1, 10]),
            ("describe", [guess, 0, 1]),
            ("top", [guess, 1, "q", 0]),
        ):
            assert set(b.ask_strip(question, request)) == {"error"}
    b.press("qx-run", qx_question="who went to the office ?")
    assert QUERY not in b.received
    assert token not in b.received


def test_a_page_without_a_key_leaves_nothing(public_app: RunningApp) -> None:
    bare = RawPage(public_app.url)
    for key in ("", "not a key", "A" * 32):
        assert "must be 32 hex digits" in bare.load(key)
    assert "no document is open yet" in bare.press("qx-run", qx_question=QUERY)
    assert "reload it" in bare.press("qx-open-sample")
    assert not re.search(r"run_id\W+[0-9a-f]{32}", bare.received)


def test_one_who_queues_much_does_not_hold_up_the_others(public_app: RunningApp) -> None:
    greedy, modest = RawPage(public_app.url), RawPage(public_app.url)
    greedy.load(KEY_A)
    modest.load(KEY_B)
    with ThreadPoolExecutor(8) as threads:  # one after another, a quick server would keep up
        pressed = range(3 * ACTIONS_WAITING)
        answers = list(threads.map(lambda _: greedy.queue("qx-run", qx_question=QUERY), pressed))
    refused = [answer for answer in answers if answer.status_code != 200]
    assert refused
    assert all("of your actions wait for their turn" in answer.json()["detail"] for answer in refused)
    modest.press("qx-step", qx_question=QUERY)
    left = modest.waiting()
    assert left >= ACTIONS_WAITING // 2, "it was served long before what had been queued before it"
    greedy.receive()


def test_results_that_nobody_fetches_wait_and_are_few(public_app: RunningApp) -> None:
    address, values = f"{public_app.url}/gradio_api/call/get_run", [new_run_id(), "cd" * 16]
    asked = [httpx.post(address, json={"data": values}) for _ in range(ACTIONS_WAITING + 1)]
    assert [answer.status_code for answer in asked] == [200] * ACTIONS_WAITING + [503]
    assert "fetch their results" in asked[-1].json()["detail"]
    for answer in asked[:-1]:
        assert "there is no run" in httpx.get(f"{address}/{answer.json()['event_id']}").text
    assert httpx.post(address, json={"data": values}).status_code == 200


def test_those_who_sign_in_are_their_names_and_secrets_stay_secret(
    tmp_path: Path, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passwords = {"ann": "canary-5d0c2f7b91", "bob": "canary-e83a6604cd"}
    monkeypatch.setenv("QRAG_USERS", " ".join(f"{name}:{password}" for name, password in passwords.items()))
    tmp_path.chmod(0o755)  # as an earlier version made it
    with served(tmp_path, "--public", "--checkpoint", str(tiny)) as app:
        assert httpx.get(f"{app.url}/config").status_code == 401
        with pytest.raises(httpx.HTTPStatusError):
            RawPage(app.url, ("ann", passwords["bob"]))
        ann, again, bob = pages = [
            RawPage(app.url, (name, passwords[name])) for name in ("ann", "ann", "bob")
        ]
        ann.load(KEY_A)
        run_id = named("run_id", ann.press("qx-run", qx_question=QUERY))
        assert "there is no run" in bob.load(KEY_A, run_id), "the name counts, not the browser"
        assert QUERY in again.load(KEY_B, run_id)
        # fails inside: what the server says of that holds no secret either
        bob.press("qx-run", qx_question={"not": "a text"})
        wait_until((tmp_path / "log.duckdb.snapshot").exists)
    (path,) = tmp_path.rglob("*.duckdb")
    made = [tmp_path, *(file for file in tmp_path.rglob("*") if file.name != "app.out")]
    assert {path.name, f"{path.name}.snapshot", "chunks", "vectors"} <= {file.name for file in made}
    assert not [file for file in made if file.stat().st_mode & 0o077], "the machine's other accounts read it"
    with ExperimentLog.open(path) as log:
        owners = {
            owner for (owner,) in log.read(lambda con: con.execute("SELECT owner FROM runs").fetchall())
        }
        assert owner_of_user(Settings(public=True), "ann") in owners
        export_runs(
            log, [run_id], "json", tmp_path / "export", owner=owner_of_user(Settings(public=True), "ann")
        )
    secrets = [*passwords.values(), KEY_A, KEY_B]
    assert QUERY in (tmp_path / "export" / "runs.jsonl").read_text()
    for file in (found for found in tmp_path.rglob("*") if found.is_file()):
        content = file.read_bytes()
        assert not [secret for secret in secrets if secret.encode() in content], file
    for page in pages:
        assert not [secret for secret in [*secrets, *owners] if secret in page.received]


def list_runs(page: Page) -> None:
    page.get_by_role("tab", name="Experiments").click()
    expect(page.locator("#qx-runs-list .qx-query, #qx-runs-list .qx-empty").first).to_be_visible(
        timeout=30_000
    )


@pytest.mark.campaign
def test_a_reload_finds_the_document_that_was_open_and_nobody_else_does(
    public_app: RunningApp, open_page: OpenPage
) -> None:
    a, question = open_page(public_app.url), "Who keeps the ferry?"
    wait_ready(a)
    assert "doc=" not in a.url
    paste(a, "# The ferry\n\nMarta keeps the ferry. The river is wide.")
    title = a.locator("#qx-header .qx-doc-title")
    expect(title).to_have_text("The ferry", timeout=60_000)
    a.locator("#qx-question textarea").fill(question)
    settle(a)
    a.reload()
    wait_ready(a)
    expect(title).to_have_text("The ferry")
    expect(a.locator("#qx-question textarea")).to_have_value(question, timeout=20_000)
    expect(a.locator("#qx-notice")).to_be_empty()

    b = open_page(a.url)
    expect(b.locator("#qx-notice")).to_contain_text("closed by now; open it again", timeout=60_000)
    wait_ready(b)
    expect(b.locator("#qx-header .qx-doc-title")).not_to_have_text("The ferry")
    assert "Marta" not in b.content()
    assert "doc=" not in b.url, "what it names is not on this page"


@pytest.mark.campaign
def test_what_the_project_can_make_again_is_opened_by_its_address(
    public_app: RunningApp, open_page: OpenPage
) -> None:
    for name, title in (
        ("beacon-handbook.md", "The Beacon Handbook of Tern Rock"),
        ("story-10000", "Generated story, 10,000 tokens"),
    ):
        page = open_page(f"{public_app.url}/?doc={name}.{'0' * 16}")  # a page that nobody has open
        wait_ready(page)
        expect(page.locator("#qx-header .qx-doc-title")).to_have_text(title)
        expect(page.locator("#qx-notice")).to_be_empty()
        expect(page).to_have_url(re.compile(rf"doc={name}\.(?!0000)[0-9a-f]{{16}}$"))
        page.locator("#qx-question textarea").fill("Who?")
        settle(page)
        page.reload()
        wait_ready(page)
        expect(page.locator("#qx-question textarea")).to_have_value("Who?", timeout=20_000)


@pytest.mark.campaign
def test_two_browsers_share_what_its_owner_shares_and_nothing_else(
    public_app: RunningApp, open_page: OpenPage
) -> None:
    a = open_page(public_app.url)
    wait_ready(a)
    press_run(a)
    expect(a.locator("#qx-steps .qx-stop")).to_contain_text("Stopped", timeout=60_000)
    a.wait_for_url(re.compile(r"run=[0-9a-f]{32}"), timeout=20_000)
    address, n_steps = a.url, a.locator(STEPS).count()
    key = a.evaluate("localStorage.getItem('qrag-visitor')")
    assert re.fullmatch(r"[0-9a-f]{32}", key)

    b = open_page(address)
    expect(b.locator("#qx-notice")).to_contain_text("there is no run", timeout=60_000)
    wait_ready(b)
    assert b.evaluate("localStorage.getItem('qrag-visitor')") != key
    list_runs(b)
    expect(b.locator("#qx-runs-list .qx-query")).to_have_count(1)  # the sample's, made for this visitor
    assert address[-32:] not in b.locator("#qx-runs-list").inner_html()
    expect(b.get_by_role("tab", name="Train")).to_have_count(0)
    # evaluations over documents are kept, and not deleted with a visitor's runs
    expect(b.locator("#qx-whole")).to_have_count(0)

    list_runs(a)
    a.locator("#qx-runs-list .qx-query").first.click()
    a.get_by_role("button", name="Share…").click()
    a.get_by_role("button", name="Share it").click()
    expect(a.locator("#qx-run-head .qx-mark")).to_have_text("shared", timeout=20_000)

    b.goto(address)
    expect(b.locator(STEPS)).to_have_count(n_steps, timeout=60_000)
    b.locator("#qx-back").click()
    expect(b.locator(STEPS)).to_have_count(n_steps - 1)
    show_settings(b)
    b.locator("#qx-seed input").fill("7")
    b.locator("#qx-step").click()
    expect(b.locator(STEPS)).to_have_count(n_steps, timeout=30_000)
    b.wait_for_function("old => location.href !== old", arg=address)
    list_runs(b)
    expect(b.locator("#qx-runs-list .qx-query")).to_have_count(2)  # one is how the shared one went on

    a.goto(address)
    wait_ready(a)
    list_runs(a)
    expect(a.locator("#qx-runs-list .qx-query")).to_have_count(2)  # the sample's, too
    a.locator("#qx-runs-list .qx-query").first.click()
    a.get_by_role("button", name="Delete…").click()
    a.get_by_role("button", name="Delete for good").click()
    expect(a.locator("#qx-runs-list .qx-query")).to_have_count(1, timeout=20_000)
    b.goto(address)
    expect(b.locator("#qx-notice")).to_contain_text("there is no run", timeout=60_000)
