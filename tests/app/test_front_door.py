"""Other websites, names that lead here, proxies and a Space's frame."""

from __future__ import annotations

import http.server
import json
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import gradio as gr
import httpx
import pytest
from playwright.sync_api import Browser, Playwright

from app.calls.endpoints import answering
from app.front_door import Addresses, OwnPages
from app.services.settings import Settings
from tests import coroutines
from tests.app.conftest import RunningApp, wait_ready
from tests.app.raw_page import RawPage
from tests.app.served import served
from tests.conftest import CHROMIUM_FLAGS, OpenPage

SPACE = Settings(host="0.0.0.0", public=True, space_hosts=("owner-name.hf.space",))
HTTP = httpx.Client(timeout=30)
ASKED: list[Any] = [
    ("GET", "/config"),
    ("POST", "/gradio_api/call/v2/search_runs"),
    ("OPTIONS", "/gradio_api/queue/join"),
    *(
        pytest.param(*asked, marks=pytest.mark.campaign)
        for asked in (
            ("GET", "/"),
            ("POST", "/gradio_api/upload"),
            ("POST", "/gradio_api/queue/join"),
            ("GET", "/gradio_api/queue/data?session_hash=a"),
            ("GET", "/gradio_api/heartbeat/a"),
            ("POST", "/gradio_api/mcp/"),
            ("POST", "/login"),
        )
    ),
]
PREFLIGHT = {"Access-Control-Request-Method": "POST"}


def port_of(url: str) -> str:
    return url.rpartition(":")[2]


@pytest.mark.parametrize(("method", "path"), ASKED)
def test_another_website_is_refused_whatever_it_asks(tiny_app: RunningApp, method: str, path: str) -> None:
    port = port_of(tiny_app.url)
    for origin in (
        "https://evil.example",
        f"http://evil.example:{port}",
        f"http://127.0.0.1:{int(port) ^ 1}",
        f"http://127.0.0.1:{port}@evil.example",
        "null",
        "",
    ):
        answer = HTTP.request(method, tiny_app.url + path, headers={"Origin": origin, **PREFLIGHT})
        assert answer.status_code == 403, origin
        assert "may not use this app" in answer.json()["detail"]
        assert not [name for name in answer.headers if name.startswith("access-control")]
    for site in ("cross-site", "same-site"):
        assert (
            HTTP.request(
                method, tiny_app.url + path, headers={"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"}
            ).status_code
            == 403
        )


@pytest.mark.parametrize(("method", "path"), ASKED)
def test_a_name_that_leads_here_is_refused(tiny_app: RunningApp, method: str, path: str) -> None:
    """As after DNS rebinding, when a browser takes the website's pages for the app's own."""
    port = port_of(tiny_app.url)
    for host in (
        f"evil.example:{port}",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "192.0.2.7",
        "[2001:db8::1]",
        "a b",
        "",
    ):
        answer = HTTP.request(method, tiny_app.url + path, headers={"Host": host, "Origin": f"http://{host}"})
        assert answer.status_code == 403, host
        assert "does not answer to the name" in answer.json()["detail"]


def test_the_app_s_own_pages_and_callers_without_a_page_are_served(tiny_app: RunningApp) -> None:
    port = port_of(tiny_app.url)
    for host in (
        f"127.0.0.1:{port}",
        f"localhost:{port}",
        f"LOCALHOST:{port}",
        "localhost",
        f"[::1]:{port}",
        "127.0.0.53",
    ):
        own = {"Host": host, "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}
        for headers in ({"Host": host}, {**own, "Origin": f"http://{host}"}, own):
            assert HTTP.get(f"{tiny_app.url}/gradio_api/queue/status", headers=headers).status_code == 200
    from_a_link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert HTTP.get(f"{tiny_app.url}/?run=0", headers=from_a_link).status_code == 200


def test_browsers_are_told_what_they_may_do(tiny_app: RunningApp) -> None:
    for path in ("/", "/config", "/assets/none.js", "/gradio_api/info"):
        headers = HTTP.get(tiny_app.url + path).headers
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Frame-Options"] == "SAMEORIGIN"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert re.search(
            r"default-src 'self'; .*connect-src 'self'; .*object-src 'none'; .*frame-ancestors 'self'$",
            headers["Content-Security-Policy"],
        )


def test_browsers_keep_scripts_and_styles_alone(tiny_app: RunningApp) -> None:
    page = HTTP.get(tiny_app.url)
    scripts = re.findall(r"(?:src|href)=\"\./(assets/[^\"]+)", page.text)
    assert scripts
    for path in scripts:
        answer = HTTP.get(f"{tiny_app.url}/{path}")
        assert answer.status_code == 200
        assert answer.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    missing = HTTP.get(f"{tiny_app.url}/{scripts[0]}".replace("index-", "none-"))
    for answer in (page, missing, HTTP.get(f"{tiny_app.url}/config")):
        assert "immutable" not in answer.headers.get("Cache-Control", "")


FILE_LIKE: list[Any] = [
    {"path": "/etc/passwd", "meta": {"_type": "gradio.FileData"}},
    {"path": "http://127.0.0.1:9/x", "meta": {"_type": "gradio.FileData"}},
    {"path": 7, "meta": {"_type": "gradio.FileData"}},
    {"path": "a\0b", "url": "x", "meta": {"_type": "gradio.FileData"}},
    [{"path": "x" * 5000, "meta": {"_type": "gradio.FileData"}}],
]


@pytest.mark.parametrize(
    ("name", "argument"),
    [
        ("open_document", "text"),
        *(
            pytest.param(*given_to, marks=pytest.mark.campaign)
            for given_to in (("search_runs", "text"), ("search_runs", "limit"), ("get_run", "run_id"))
        ),
    ],
)
@pytest.mark.parametrize("given", FILE_LIKE)
def test_an_argument_that_looks_like_a_file_is_refused_in_a_sentence(
    tiny_app: RunningApp, name: str, argument: str, given: Any
) -> None:
    call = f"{tiny_app.url}/gradio_api/call/v2/{name}"
    event = HTTP.post(call, json={argument: given})
    assert event.status_code == 400
    assert "names a file that was not uploaded here" in event.json()["detail"]


def test_a_page_s_value_that_looks_like_a_file_is_refused_in_a_sentence(tiny_app: RunningApp) -> None:
    page = RawPage(tiny_app.url)
    page.load("")
    for given in FILE_LIKE:
        came = page.queue("qx-open-files", qx_files=[given])
        assert came.status_code == 400
        assert "names a file that was not uploaded here" in came.json()["detail"]


def test_a_reply_that_looks_like_a_file_offers_none() -> None:
    """A run that a visitor imports may hold such a label; Gradio would put the file where anybody can fetch
    it.
    """
    path = str(Path("README.md").resolve())

    def label() -> dict[str, Any]:
        return {"label": [{"path": path, "meta": {"_type": "gradio.FileData"}}]}

    with gr.Blocks() as blocks:
        gr.api(answering(label), api_name="label")
    with served(blocks) as url:
        call = f"{url}/gradio_api/call/v2/label"
        came = HTTP.get(f"{call}/{HTTP.post(call, json={}).json()['event_id']}").text
    assert json.loads(came.partition("data: ")[2]) == [{"label": [{"path": path}]}]


@contextmanager
def small_app(settings: Settings) -> Iterator[str]:
    with gr.Blocks() as blocks:
        gr.Textbox()
    with served(blocks, settings) as url:
        yield url


def status(url: str, **headers: str) -> int:
    return HTTP.get(
        f"{url}/config", headers={name.replace("_", "-"): value for name, value in headers.items()}
    ).status_code


def test_a_proxy_s_name_has_to_be_given() -> None:
    with small_app(Settings(public=True, allow_hosts=("explorer.example", "other.example:8443"))) as url:
        for host, origin, taken in (
            ("explorer.example", "https://explorer.example", True),
            ("explorer.example:443", "https://explorer.example", True),
            (
                "127.0.0.1:7860",
                "https://explorer.example",
                True,
            ),  # the proxy passes its own name for the app on
            ("127.0.0.1:7860", "https://other.example:8443", True),
            ("127.0.0.1:7860", "https://other.example", False),
            ("127.0.0.1:7860", "https://explorer.example:8443", False),
            ("127.0.0.1:7860", "https://evil.example", False),
            ("evil.example", "https://explorer.example", False),
        ):
            assert (status(url, Host=host, Origin=origin) == 200) is taken, (host, origin)
        root = partial(root_said, url)
        assert root("explorer.example") == "https://explorer.example"
        for forwarded in (
            "evil.example",
            "explorer.example, evil.example",
            "evil.example, explorer.example",
            "explorer.example/evil",
        ):
            assert "evil" not in root(forwarded)
        assert status(url, Host="evil.example", X_Forwarded_Host="explorer.example") == 403, (
            "what a proxy says is no proof of a name"
        )


def root_said(url: str, forwarded_host: str) -> str:
    """The address that Gradio gives a page for its own."""
    headers = {"X-Forwarded-Host": forwarded_host, "X-Forwarded-Proto": "https"}
    return str(HTTP.get(f"{url}/config", headers=headers).json()["root"])


def test_a_space_s_page_works_in_the_hub_s_frame_and_nowhere_else() -> None:
    with small_app(SPACE) as url:
        for host in ("owner-name.hf.space", "10.1.2.3:7860"):
            assert (
                status(url, Host=host, Origin="https://owner-name.hf.space", Sec_Fetch_Site="same-origin")
                == 200
            )
            for origin in (
                "https://huggingface.co",
                "https://other-name.hf.space",
                "https://evil.example",
                "null",
            ):
                assert status(url, Host=host, Origin=origin) == 403
        framed = {
            "Sec-Fetch-Site": "cross-site",
            "Sec-Fetch-Mode": "navigate",
            "Sec-Fetch-Dest": "iframe",
            "Host": "owner-name.hf.space",
        }
        answer = HTTP.get(url, headers=framed)
        assert answer.status_code == 200
        assert answer.headers["Content-Security-Policy"].endswith(
            "frame-ancestors 'self' https://huggingface.co"
        )
        assert "X-Frame-Options" not in answer.headers


@pytest.mark.parametrize(
    ("settings", "only_known"),
    [
        (Settings(), True),
        (Settings(public=True), True),
        (Settings(host="localhost", public=True), True),
        (Settings(host="0.0.0.0"), True),
        (Settings(host="0.0.0.0", public=True, allow_hosts=("a.example",)), True),
        (Settings(host="0.0.0.0", public=True), False),
        (SPACE, False),
    ],
)
def test_where_names_are_checked(settings: Settings, only_known: bool) -> None:
    assert Addresses.of(settings).only_these is only_known


def test_a_local_app_that_others_reach_answers_to_addresses_but_to_no_name() -> None:
    with small_app(Settings(host="0.0.0.0")) as url:
        for host, taken in (
            ("192.168.1.5:7860", True),
            ("[fe80::1]:7860", True),
            ("localhost", True),
            ("evil.example", False),
            ("2130706433.example", False),
        ):
            assert (status(url, Host=host, Origin=f"http://{host}") == 200) is taken, host


def test_websockets_are_closed_to_other_websites() -> None:
    """Gradio has none today."""
    sent: list[dict[str, Any]] = []

    async def inner(_: Any, __: Any, send: Callable[[Any], Any]) -> None:
        await send({"type": "websocket.accept"})

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def connect(origin: str) -> None:
        scope = {"type": "websocket", "headers": [(b"host", b"localhost:7860"), (b"origin", origin.encode())]}
        await OwnPages(inner, Addresses.of(Settings()))(scope, None, send)

    for origin in ("https://evil.example", "http://localhost:7860"):
        coroutines.run(connect(origin))
    assert [message["type"] for message in sent] == ["websocket.close", "websocket.accept"]


@contextmanager
def foreign_site(folder: Path) -> Iterator[int]:
    """A website of somebody else's, at 127.0.0.2; its port."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            """Nothing."""

    (folder / "index.html").write_text("<title>foreign</title>")
    server = http.server.ThreadingHTTPServer(("127.0.0.2", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


ATTACK = """async (app) => {
  const tries = {
    config: () => fetch(app + "/config", { credentials: "include" }),
    opaque: () => fetch(app + "/config", { mode: "no-cors" }),
    call: () => fetch(app + "/gradio_api/call/v2/search_runs", { method: "POST", body: "{}", headers: { "Content-Type": "application/json" } }),
    simple: () => fetch(app + "/gradio_api/call/v2/search_runs", { method: "POST", body: "{}" }),
    upload: () => {
      const form = new FormData();
      form.append("files", new Blob(["x"]), "x.txt");
      return fetch(app + "/gradio_api/upload", { method: "POST", body: form });
    },
    events: () => new Promise((take, refuse) => {
      const source = new EventSource(app + "/gradio_api/queue/data?session_hash=a");
      source.onopen = take; source.onerror = refuse;
    }),
    script: () => new Promise((take, refuse) => {
      const script = document.createElement("script");
      script.src = app + "/theme.css"; script.onload = take; script.onerror = refuse;
      document.head.append(script);
    }),
  };
  const came = {};
  for (const [name, one] of Object.entries(tries)) {
    try { const answer = await one(); came[name] = answer?.text ? await answer.text() : "came"; } catch { came[name] = null; }
  }
  return came;
}"""


FRAME = """(app) => new Promise((loaded) => {
  const frame = document.createElement("iframe");
  frame.addEventListener("load", loaded);  // Chromium says so of a page that it refuses to show, too
  frame.src = app;
  document.body.append(frame);
})"""


@pytest.mark.campaign
def test_a_foreign_page_in_chromium_reads_and_does_nothing(
    tiny_app: RunningApp, playwright_driver: Playwright, chromium_path: str, tmp_path: Path
) -> None:
    port = port_of(tiny_app.url)
    flags = [
        *CHROMIUM_FLAGS,
        "--host-resolver-rules=MAP evil.example 127.0.0.2, MAP led-astray.example 127.0.0.1",
    ]
    uploads = set(tiny_app.home.parent.rglob("x.txt"))
    with foreign_site(tmp_path) as foreign_port:
        browser: Browser = playwright_driver.chromium.launch(executable_path=chromium_path, args=flags)
        try:
            page = browser.new_page()
            for site in (f"http://evil.example:{foreign_port}", f"http://127.0.0.2:{foreign_port}"):
                for app in (tiny_app.url, f"http://localhost:{port}", f"http://led-astray.example:{port}"):
                    page.goto(site)
                    assert {name: came for name, came in page.evaluate(ATTACK, app).items() if came} == {}, (
                        site,
                        app,
                    )
                    page.evaluate(FRAME, app)
                    assert not [frame for frame in page.frames[1:] if frame.locator("gradio-app").count()]
            page.goto(f"http://led-astray.example:{port}/")
            assert "does not answer to the name 'led-astray.example'" in page.content()
            came = page.evaluate(
                "async () => { const answer = await fetch('/config'); return [answer.status, await"
                " answer.text()]; }"
            )
            assert came[0] == 403
            assert "components" not in came[1]
        finally:
            browser.close()
    assert set(tiny_app.home.parent.rglob("x.txt")) == uploads
    assert HTTP.get(f"{tiny_app.url}/gradio_api/queue/status").json()["queue_size"] == 0


@pytest.mark.campaign
def test_the_app_s_own_page_breaks_none_of_its_rules(tiny_app: RunningApp, open_page: OpenPage) -> None:
    page = open_page("about:blank")
    broken: list[str] = []
    page.on(
        "console",
        lambda message: (
            broken.append(message.text)
            if "Content Security Policy" in message.text or "403" in message.text
            else None
        ),
    )
    page.goto(tiny_app.url)
    wait_ready(page, 120)
    for tab in ("Compare", "SPARC", "Experiments", "Evaluate", "Train"):
        page.get_by_role("tab", name=tab, exact=True).click()
        page.get_by_role("heading", name=tab, exact=True).wait_for(state="attached")
    assert broken == []


def test_a_request_without_a_name_is_refused(tiny_app: RunningApp) -> None:
    with socket.create_connection(("127.0.0.1", int(port_of(tiny_app.url))), timeout=30) as line:
        line.sendall(b"GET /config HTTP/1.0\r\n\r\n")
        answer = line.makefile("rb").read()
    assert b" 403 " in answer.partition(b"\r\n")[0]
    assert "detail" in json.loads(answer.partition(b"\r\n\r\n")[2])
