"""What overrides Gradio's private parts does what Gradio's own does: the same events through both give the
same results.

The blocks have a file of their own, test_lean. What differs on purpose is tested where it is decided:
test_visitors, test_sessions, test_front_door.
"""

from __future__ import annotations

import ast
import json
import re
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from typing import Any

import gradio as gr
import httpx
import pytest
from gradio.mcp import GradioMCPServer
from gradio.queueing import Event, Queue
from gradio.routes import templates
from gradio.state_holder import SessionState, StateHolder
from packaging.requirements import Requirement

from app.calls import endpoints
from app.calls.operations import Operations
from app.gradio_internals.blocks import LeanBlocks
from app.gradio_internals.head import begin_pages_with
from app.gradio_internals.queue import FairQueue, PageQueue, queue_up
from app.gradio_internals.scripts import ASSETS, IN_VAIN, lean
from app.gradio_internals.sessions import OwnValues, Sessions, keep_lean
from app.services.settings import Settings
from app.services.shared import Services
from tests.app.conftest import ROOT
from tests.app.raw_page import RawPage
from tests.app.served import served
from tests.conftest import CAMPAIGN


def test_gradio_is_the_version_whose_private_parts_are_known() -> None:
    listed = (ROOT / "requirements.txt").read_text().splitlines()
    (gradio,) = (Requirement(line) for line in listed if line.startswith("gradio"))
    assert (str(gradio.specifier), gradio.extras) == ("==6.31.*", {"mcp"})
    assert gradio.specifier.contains(version("gradio"))
    leaning = {
        path.name: path.read_text()
        for path in (ROOT / "app").rglob("*.py")
        if re.search(r"Leans on\s+Gradio", path.read_text())
    }
    assert {
        "blocks.py",
        "queue.py",
        "sessions.py",
        "endpoints.py",
        "front_door.py",
        "head.py",
        "scripts.py",
    } <= leaning.keys()
    for name, text in leaning.items():
        assert "(6.31)" in text, name


def counting_page(kind: type[gr.Blocks] = gr.Blocks) -> gr.Blocks:
    """Counts a page's clicks, tells what it does bit by bit, and fails when asked to."""

    def count(n: int, words: str) -> Iterator[Any]:
        if words == "fail":
            raise gr.Error("as asked", print_exception=False)
        if words == "break":
            raise RuntimeError("inside")
        for part in range(3):
            yield n, f"{words} {part}", gr.skip()
        yield n + 1, gr.update(placeholder="done"), f"{words} {n + 1}"

    with kind(analytics_enabled=False) as blocks:
        n = gr.State(0)
        words, said = gr.Textbox("", elem_id="words"), gr.Textbox("", elem_id="said")
        gr.Button(elem_id="count").click(count, [n, words], [n, words, said], concurrency_limit=1)
        gr.Button(elem_id="echo").click(lambda words: words[::-1], words, said, concurrency_limit=2)
    return blocks


def outcomes(received: str) -> list[Any]:
    """What came, in its order, without ids, times and places in the line."""
    messages = [json.JSONDecoder().raw_decode(told)[0] for told in received.split("data: ")[1:]]
    told = [(message["msg"], message.get("success"), message.get("output") or {}) for message in messages]
    return [
        (kind, success, output.get("data"), output.get("error"))
        for kind, success, output in told
        if kind != "estimation"
    ]


N_PAGES = 3 if CAMPAIGN else 2


def story(url: str) -> list[list[Any]]:
    """What pages get that press buttons, all at once and one after another."""
    pages = [RawPage(url) for _ in range(N_PAGES)]
    for number, page in enumerate(pages):
        for words in (f"page {number}", "fail", "again", "break", "once more"):
            page.press("count", words=words)
        page.press("echo", words=f"page {number}")
    for page in pages:
        for _ in range(4):
            page.queue("count", words="in a row").raise_for_status()
    for page in pages:
        page.receive()
    return [outcomes(page.received) for page in pages]


@pytest.fixture(scope="module")
def gradios_own() -> list[list[Any]]:
    with served(counting_page().queue(max_size=64, api_open=False)) as url:
        told = story(url)
    assert [kind for kind, *_ in told[0]].count("process_completed") == 10
    assert "page 0 1" in str(told[0])
    return told


@pytest.mark.parametrize(
    ("kind", "settings", "own_sessions"),
    [
        (LeanBlocks, Settings(public=True), True),
        *(
            pytest.param(*parts, marks=pytest.mark.campaign)
            for parts in (
                (LeanBlocks, None, True),
                (gr.Blocks, Settings(public=True), False),
                (gr.Blocks, Settings(), False),
            )
        ),
    ],
)
def test_queues_and_sessions_bring_pages_what_gradio_s_bring(
    gradios_own: list[list[Any]],
    services: Services,
    kind: type[gr.Blocks],
    settings: Settings | None,
    own_sessions: bool,
) -> None:
    """settings: of the queue; None has Gradio's own."""
    page = counting_page(kind)
    blocks = queue_up(page, settings, 64) if settings else page.queue(max_size=64, api_open=False)
    if settings:
        assert type(blocks._queue) is (FairQueue if settings.public else PageQueue)
    with served(blocks) as url:
        sessions = keep_lean(blocks, services) if own_sessions else None
        assert story(url) == gradios_own
        assert sessions is None or len(sessions.session_data) >= N_PAGES


def test_events_are_taken_in_gradio_s_order_where_pages_differ() -> None:
    def order(kind: type[Queue]) -> list[tuple[Any, ...]]:
        blocks = counting_page()
        options = {"settings": Settings(public=True)} if kind is FairQueue else {}
        plain = blocks.queue()._queue
        queue = kind(
            live_updates=False,
            concurrency_count=plain.max_thread_count,
            update_intervals=1,
            max_size=None,
            blocks=blocks,
            default_concurrency_limit=plain.default_concurrency_limit,
            **options,
        )
        count, _ = blocks.fns.values()
        queue.create_event_queue_for_fn(count)
        (line,) = queue.event_queue_per_concurrency_id.values()
        for number in range(6):
            event = Event(f"page {number}", count, None, None)  # type: ignore[arg-type]
            event.data = gr.data_classes.PredictBodyInternal(
                session_hash=event.session_hash, fn_index=0, data=[]
            )
            line.queue.append(event)
        assert len(queue) == 6
        taken: list[Any] = []
        while (found := queue.get_events()) is not None:
            taken.append(([event.session_hash for event in found[0]], found[1], found[2]))
        line.queue.append(event)
        line.current_concurrency = 1
        assert queue.get_events() is None, "the line is at work"
        return taken

    orders = [order(kind) for kind in (Queue, PageQueue, FairQueue)]
    assert [len(taken) for taken in orders] == [6] * 3
    for taken in orders[1:]:
        assert [(who, batch) for who, batch, _ in taken] == [(who, batch) for who, batch, _ in orders[0]]


def test_a_session_holds_what_gradio_s_would() -> None:
    gone: list[Any] = []
    with gr.Blocks() as blocks:
        kept = gr.State([1])
        short = gr.State(0, time_to_live=0, delete_callback=gone.append)
        words = gr.Textbox("old", elem_id="words")

    def told(kind: type[SessionState]) -> list[Any]:
        gone.clear()
        session = kind(blocks)
        said: list[Any] = [key._id in session for key in (kept, short, words)]
        session[kept._id].append(2)
        session[short._id] = "secret"
        session[words._id] = gr.Textbox("new", elem_id="words", render=False)
        session._update_value_in_config(words._id, "typed")
        session._update_config(words._id)
        said += [
            session[kept._id],
            session[short._id],
            session[words._id].value,
            session.get(kept._id),
            session.get(99, "none"),
            99 in session,
        ]
        said += [key._id in session for key in (kept, short, words)]
        time.sleep(0.01)
        said += [sorted((state._id, value, expired) for state, value, expired in session.state_components)]
        other = kind(blocks)
        said += [other[kept._id], other[words._id].value]
        return said

    assert told(OwnValues) == told(SessionState)


def test_sessions_are_kept_and_forgotten_as_gradio_s_are(services: Services) -> None:
    gone: list[Any] = []
    with gr.Blocks() as blocks:
        state = gr.State(0, time_to_live=0, delete_callback=gone.append)
    blocks.state_session_capacity = 3

    def told(holder: StateHolder) -> list[Any]:
        gone.clear()
        holder.set_blocks(blocks)
        for name in ("a", "b", "c", "a", "d", "e"):
            holder[name][state._id] = name
        said: list[Any] = [
            list(holder.session_data),
            sorted(holder.time_last_used),
            [name in holder for name in "abcde"],
        ]
        time.sleep(0.01)
        holder.delete_all_expired_state()
        return [*said, gone.copy(), holder["e"][state._id], list(holder.session_data)]

    assert told(Sessions(services)) == told(StateHolder())


def waited_for(blocks: gr.Blocks, hang_up: bool) -> tuple[list[bool], str]:
    """What `call_at_hand` said while a call was at work, and what came of it."""
    said: list[bool] = []

    def work() -> str:
        left = endpoints.call_at_hand()
        deadline = time.monotonic() + (20 if hang_up else 0.3)
        while time.monotonic() < deadline and True not in said:
            said.append(left())
            time.sleep(0.01)
        return "done"

    with blocks:
        gr.api(work, api_name="work")
    with served(blocks) as url, httpx.Client(base_url=url, timeout=30) as http:
        result = (
            "/gradio_api/call/v2/work/"
            + http.post("/gradio_api/call/v2/work", json={}).raise_for_status().json()["event_id"]
        )
        if not hang_up:
            return said, http.get(result).text
        with http.stream("GET", result):
            until(lambda: bool(said))
        until(lambda: True in said)
    return said, ""


def until(true: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize(
    "queued",
    [
        lambda blocks: queue_up(blocks, Settings(), 64),
        pytest.param(lambda blocks: blocks.queue(), marks=pytest.mark.campaign),
        pytest.param(lambda blocks: queue_up(blocks, Settings(public=True), 64), marks=pytest.mark.campaign),
    ],
)
def test_a_caller_is_there_until_it_hangs_up_whoever_s_queue_it_is(
    queued: Callable[[gr.Blocks], gr.Blocks],
) -> None:
    stayed, came = waited_for(queued(gr.Blocks()), hang_up=False)
    assert set(stayed) == {False}
    assert '"done"' in came
    left, _ = waited_for(queued(gr.Blocks()), hang_up=True)
    assert left[0] is False
    assert left[-1] is True


def test_functions_are_described_as_gradio_would_describe_them(services: Services) -> None:
    operations = Operations(services, None, None)  # type: ignore[arg-type]
    names = (
        "open_document",
        "run_agent",
        "step_run",
        "run_sparc",
        "compare",
        "search_runs",
        "get_run",
        "export_run",
    )

    def described(own: bool) -> Any:
        with gr.Blocks() as blocks:
            if own:
                endpoints.register(operations)
            else:
                for name in names:
                    gr.api(getattr(operations, name), api_name=name)
        return blocks.get_api_info()

    assert described(True) == described(False)
    assert set(described(True)["named_endpoints"]) == {f"/{name}" for name in names}


def test_answers_over_mcp_are_gradio_s_in_json() -> None:
    def described() -> dict[str, int]:
        return {}

    with gr.Blocks() as blocks:
        gr.api(described, api_name="none")
    blocks.mcp_server_obj = GradioMCPServer(blocks)
    answer = {"run_id": "0a", "n": 3, "score": 0.5, "none": None, "yes": True, "texts": ["é", "a\nb"]}
    (theirs,) = blocks.mcp_server_obj.postprocess_output_data([answer], "http://127.0.0.1")
    endpoints.answer_in_json(blocks)
    (ours,) = blocks.mcp_server_obj.postprocess_output_data([answer], "http://127.0.0.1")
    assert json.loads(ours.text) == ast.literal_eval(theirs.text) == answer
    assert (ours.type, type(ours)) == (theirs.type, type(theirs))


def test_scripts_stand_in_pages_of_a_process_that_has_served_some_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert templates.env.loader is not None
    assert templates.env.cache is not None
    monkeypatch.setitem(vars(templates.env.loader), "get_source", None)  # as it was, after the test
    del vars(templates.env.loader)["get_source"]
    templates.env.cache.clear()
    with served(counting_page()) as url:
        assert "from_then_on" not in httpx.get(url, timeout=30).text
        begin_pages_with("const from_then_on = 1;")
        assert "from_then_on" in httpx.get(url, timeout=30).text
    templates.env.cache.clear()


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A page behind the app's own doors."""
    with served(counting_page(), app_kwargs=endpoints.server_options(Settings())) as url:
        yield url


@pytest.mark.parametrize("kind", IN_VAIN)
def test_a_script_is_gradio_s_but_for_what_it_does_in_vain(url: str, kind: str) -> None:
    (path,) = ASSETS.glob(f"{kind}-*.js")
    text = path.read_text(encoding="utf-8")
    for what, instead in IN_VAIN[kind]:
        before, text = text, re.sub(what, instead, text)
        assert len(before) - 10 < len(text) < len(before) + 100
        assert text != before
    other = next(ASSETS.glob("index-*.js"))
    answer, gradios = (httpx.get(f"{url}/assets/{script.name}", timeout=30) for script in (path, other))
    assert gradios.text == other.read_text(encoding="utf-8")
    assert answer.headers["content-type"] == gradios.headers["content-type"]
    assert answer.text == text


def test_a_script_of_another_version_stays_as_it_is(url: str) -> None:
    (blocks,), (core,) = (list(ASSETS.glob(f"{kind}-*.js")) for kind in IN_VAIN)
    assert lean(blocks.name, "core") is lean(core.name, "Blocks") is None
    assert httpx.get(f"{url}/assets/core-00000000.js", timeout=30).status_code == 404


def test_the_front_door_changes_no_answer_to_the_app_s_own_page(url: str) -> None:
    asked = [
        ("GET", "/", {}),
        ("GET", "/theme.css", {}),
        ("GET", "/gradio_api/startup-events", {}),
        ("POST", "/gradio_api/queue/join", {}),
    ]

    def told(url: str) -> list[Any]:
        answers = [
            httpx.request(method, url + path, json=body, headers={"Origin": url}, timeout=30)
            for method, path, body in asked
        ]
        # the page itself holds numbers drawn for it
        texts = [re.sub(url.rpartition(":")[2], "PORT", answer.text) for answer in answers[1:]]
        types = [(answer.status_code, answer.headers["content-type"]) for answer in answers]
        return [*types, *texts, outcomes(story_of_one(url))]

    with served(counting_page()) as gradios:
        assert told(url) == told(gradios)


def story_of_one(url: str) -> str:
    page = RawPage(url)
    page.press("count", words="one")
    return page.received
