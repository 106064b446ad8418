"""Paths, files, sign-in and bodies between the front door and Gradio, over real HTTP."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import gradio as gr
import httpx
import pytest
from gradio.utils import get_upload_folder
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from app import doors
from app.doors import (
    MAX_BODY_BYTES,
    MAX_DOCUMENT_BYTES,
    MAX_FORM_BYTES,
    MAX_MCP_CALLS,
    MAX_NESTING,
    MAX_STRUCTURE,
    MAX_UPLOAD_BYTES,
    Doors,
    Structure,
)
from app.signing_in import Guesses, sign_in
from tests.app.raw_page import RawPage
from tests.app.served import served
from tests.conftest import CAMPAIGN, RecordAttack
from tests.waiting import wait_until

JOIN = "/gradio_api/queue/join"
HTTP = httpx.Client(timeout=60)


def page() -> gr.Blocks:
    """Shows how many bytes a file has, and how many letters a text."""
    with gr.Blocks() as blocks:
        files, text, size = (
            gr.File(elem_id="files", file_count="multiple"),
            gr.Textbox(elem_id="text"),
            gr.Textbox(),
        )
        open_files = gr.Button(elem_id="open")
        open_files.click(lambda paths: sum(len(Path(path).read_bytes()) for path in paths), files, size)
        text.change(len, text, size)
    return blocks


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served(page()) as url:
        yield url


@pytest.fixture(scope="module")
def closed_url() -> Iterator[str]:
    """Asks for a name and a password."""
    users = (("ann", SecretStr("correct-horse")),)
    with served(page(), auth=sign_in(users, Guesses())) as url:
        yield url


@pytest.mark.parametrize(
    "path",
    [
        "/gradio_api/proxy=http://127.0.0.1:9/",
        "/gradio_api/run/search_runs",
        "/gradio_api/api/search_runs",
        "/gradio_api/token",
        "/gradio_api/stream/a/b/1/playlist.m3u8",
        "/gradio_api/vibe-code/",
        "/gradio_api/file/etc/passwd",
        "/gradio_api/deep_link",
        "/monitoring",
        "/custom_component/a/client/b/c.js",
        "/gradio_api/startup-events",
    ],
)
def test_gradio_s_other_paths_are_closed(url: str, path: str) -> None:
    for ask in (HTTP.get, HTTP.post):
        answer = ask(url + path)
        assert answer.status_code == 404
        assert answer.json() == {"detail": "there is nothing at this address; begin at /"}


@pytest.mark.parametrize(
    "named",
    [
        "http://198.51.100.7/a.png",
        "HTTPS://198.51.100.7/a.png",
        "//198.51.100.7/a.png",
        "http%3A%2F%2F198.51.100.7%2Fa.png",
        "%2568ttp%253A%252F%252F198.51.100.7/a.png",
        "file:///etc/passwd",
        "data:text/html,x",
        "/etc/passwd",
        "app.py",
        "",
        "{folder}/../passwd",
        "{folder}/uploads/a/b.txt",
        "{folder}%00.png",
    ],
)
def test_a_file_s_address_names_nothing_else(url: str, named: str) -> None:
    named = named.format(folder=get_upload_folder())
    answer = HTTP.get(f"{url}/gradio_api/file={named}")
    assert answer.status_code == 403
    assert answer.json() == {"detail": "no file is handed out at this address"}
    assert answer.headers["Content-Security-Policy"] == "sandbox; default-src 'none'"


@pytest.mark.parametrize("name", ["run.html", "run.svg", "run.png"])
def test_what_is_handed_out_is_kept_apart_from_the_app(url: str, name: str) -> None:
    file = Path(get_upload_folder()) / "made" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("<script>alert(1)</script>")
    upload(url, b"since then Gradio has another folder for what it may hand out")
    answer = HTTP.get(f"{url}/gradio_api/file={file}")
    assert answer.text == file.read_text()
    assert answer.headers["Content-Security-Policy"] == "sandbox; default-src 'none'"
    assert answer.headers["Content-Disposition"].startswith("attachment")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def upload(url: str, text: bytes) -> Path:
    [path] = HTTP.post(f"{url}/gradio_api/upload", files={"files": ("note.txt", text)}).json()
    return Path(path)


def test_uploads_are_opened_and_handed_out_to_nobody(url: str) -> None:
    first, second = upload(url, b"the same words"), upload(url, b"the same words")
    assert first.parent != second.parent, "whoever has the same words learns nothing of the other's"
    for path in (first, second, first.parent / "other.txt"):
        for ask in (HTTP.get, HTTP.head):
            assert ask(f"{url}/gradio_api/file={path}").status_code == 403
    assert first.parents[1].stat().st_mode & 0o077 == 0
    opened = RawPage(url).press("open", files=[file_data(str(first))])
    assert '"data":["14"]' in opened.replace(" ", "")


def file_data(path: Any) -> dict[str, Any]:
    return {"path": path, "meta": {"_type": "gradio.FileData"}}


@pytest.mark.parametrize(
    "given",
    [
        file_data("http://198.51.100.7/a.txt"),
        {"path": "http://198.51.100.7/a.txt"},
        file_data("//198.51.100.7/a.txt"),
        file_data("ftp:/a.txt"),
        file_data("/etc/passwd"),
        file_data(get_upload_folder() + "/../a.txt"),
        file_data(get_upload_folder()),
        {"a": [[file_data("https://198.51.100.7/")]]},
        file_data(["http://198.51.100.7/"]),
    ],
)
def test_an_event_names_no_address(url: str, given: Any) -> None:
    for elem_id, event, value in (("open", "click", {"files": [given]}), ("text", "change", {"text": given})):
        came = RawPage(url).queue(elem_id, event, **value)
        assert came.status_code == 400, elem_id
        assert "names a file that was not uploaded here" in came.json()["detail"]


@pytest.mark.parametrize("depth", range(90, 1_010) if CAMPAIGN else (90, 110, 942, 943, 944, 1_000))
def test_no_nesting_hides_what_an_event_names(url: str, depth: int) -> None:
    """Gradio parses a body a few calls deeper than the doors do: one of them gives up before the other."""
    event = {"data": [[file_data("/etc/hostname")]], "fn_index": 0, "session_hash": "a"}
    body = json.dumps(event).encode()[:-1] + b', "more": ' + b"[" * depth + b"]" * depth + b"}"
    answer = post(url, body)
    assert answer.status_code == (400 if depth < MAX_NESTING else 413)


def test_a_file_that_was_not_uploaded_is_refused_behind_the_doors_too(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Doors, "_names_only_uploads", lambda *_: True)
    came = RawPage(url).press("open", files=[file_data("/etc/hostname")])
    assert '"success":false' in came.replace(" ", "")
    assert '"data":["' not in came.replace(" ", "")


def test_texts_that_stall_hold_up_large_ones_alone_and_not_for_long(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "MAX_BODY_BYTES": 1_000,
        "MAX_DOCUMENT_BYTES": 10_000,
        "MAX_ARRIVING_BYTES": 18_500,
        "STALLED_SECONDS": 1.5,
    }.items():
        monkeypatch.setattr(doors, name, value)
    stalled = [begun(url, 10_000, 9_999) for _ in range(2)]
    wait_until(lambda: " 503 " in answer_of(begun(url, 3_000, 3_000)))
    assert '"data":["4"]' in RawPage(url).press("text", "change", text="four").replace(" ", "")
    assert [" 408 " in answer_of(line) for line in stalled] == [True, True]
    assert " 503 " not in answer_of(begun(url, 3_000, 3_000))


def test_a_text_that_trickles_is_cut_off(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "MAX_BODY_BYTES": 1_000,
        "STALLED_SECONDS": 1.0,
        "LEAST_BYTES_A_SECOND": 10**9,
    }.items():
        monkeypatch.setattr(doors, name, value)
    line = begun(url, 10_000, 5_000)
    with suppress(OSError):
        for _ in range(20):
            time.sleep(0.1)
            line.sendall(b"1")
    assert " 408 " in answer_of(line)


def begun(url: str, length: int, n_sent: int) -> socket.socket:
    """A connection that has sent a part of a body."""
    host, port = url.removeprefix("http://").split(":")
    line = socket.create_connection((host, int(port)), timeout=30)
    head = f"POST {JOIN} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\n"
    line.sendall(f"{head}Content-Length: {length}\r\nConnection: close\r\n\r\n".encode() + b"1" * n_sent)
    return line


def answer_of(line: socket.socket) -> str:
    with line:
        return line.makefile("rb").read().decode()


def test_names_of_pages_that_were_never_loaded_push_out_no_page() -> None:
    blocks = page()
    with served(blocks) as url:
        RawPage(url).press("text", "change", text="four")
        (loaded,), component = blocks.state_holder.session_data, next(iter(blocks.blocks))
        for number in range(5):
            body = {
                "session_hash": f"made up {number}",
                "component_id": component,
                "fn_name": "x",
                "data": [],
            }
            HTTP.post(f"{url}/gradio_api/component_server", json=body)
        assert loaded in blocks.state_holder
        assert len(blocks.state_holder.session_data) <= 2
        form = {"session_hash": (None, "made up"), "component_id": (None, "1"), "fn_name": (None, "x")}
        answer = HTTP.post(f"{url}/gradio_api/component_server", files=form)
        assert answer.status_code == 400
        assert "no component was asked, or in no JSON" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        (JOIN, b'{"data": [], "fn_index": -1, "session_hash": "a"}', 422, "there is no function -1; load"),
        (JOIN, b"\xff", 400, "send JSON in UTF-8"),
        (
            "/gradio_api/component_server",
            b'{"session_hash": "a", "component_id": 0.5, "fn_name": "a", "data": []}',
            400,
            "no component was asked",
        ),
    ],
)
def test_a_forged_event_is_refused_in_a_sentence(
    url: str, path: str, body: bytes, status: int, words: str
) -> None:
    answer = post(url, body, path)
    assert (answer.status_code, words in answer.json()["detail"]) == (status, True)


def test_a_stream_that_there_is_not_ends_in_order(url: str) -> None:
    """As after a restart, of which a page that stayed open knows nothing."""
    for path in ("queue/data?session_hash=gone", "call/v2/none/gone"):
        answer = httpx.get(f"{url}/gradio_api/{path}")
        assert (answer.status_code, "404: Not Found" in answer.text) == (200, True)


def test_no_other_website_signs_anybody_out(closed_url: str) -> None:
    for site, status in (("cross-site", 403), ("same-origin", 302)):
        headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate"}
        assert HTTP.get(f"{closed_url}/logout", headers=headers).status_code == status


def test_only_uploads_make_folders(url: str) -> None:
    folder = Path(get_upload_folder()) / "uploads"

    def n_folders() -> int:
        return len(list(folder.iterdir())) if folder.is_dir() else 0

    before = n_folders()
    for path in ("upload", "upload/", "upload_progress"):
        HTTP.head(f"{url}/gradio_api/{path}", follow_redirects=False)
        HTTP.get(f"{url}/gradio_api/{path}", follow_redirects=False)
    assert HTTP.post(f"{url}/gradio_api/upload", content=b"nothing").status_code >= 400
    nameless = HTTP.post(f"{url}/gradio_api/upload", files={"files": ("", b"nothing")})
    assert (nameless.status_code, nameless.json()["detail"]) == (
        422,
        "a file came without a name; give it one",
    )
    wait_until(lambda: n_folders() == before)  # it goes once the answer is there


def test_an_upload_that_breaks_off_leaves_nothing(url: str) -> None:
    folder, place = Path(get_upload_folder()) / "uploads", urlsplit(url)
    before = set(folder.rglob("*"))
    head = f"POST /gradio_api/upload HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Length: 5000000\r\n"
    form = "Content-Type: multipart/form-data; boundary=b\r\n\r\n--b\r\n"
    part = 'Content-Disposition: form-data; name="files"; filename="a.txt"\r\n\r\n'
    with socket.create_connection((str(place.hostname), place.port or 80)) as sender:
        sender.sendall((head + form + part).encode() + b"a" * 1_000_000)
        wait_until(lambda: any(file.is_file() for file in set(folder.rglob("*")) - before))
    wait_until(lambda: set(folder.rglob("*")) == before)


def test_uploads_end_where_the_room_for_them_does(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    upload(url, b"some bytes")
    for name, value in (("MAX_KEPT_BYTES", 3), ("MAX_KEPT", 1), ("LEAST_FREE_SHARE", 1.1)):
        with monkeypatch.context() as patch:
            patch.setattr(doors, name, value)
            answer = HTTP.post(f"{url}/gradio_api/upload", files={"files": ("note.txt", b"a")})
        assert (answer.status_code, answer.json()["detail"]) == (
            503,
            "there is no room for more files today; paste a text",
        )
    upload(url, b"some bytes")


def test_folders_of_uploads_that_went_take_no_room(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gradio deletes a file after a day, and its folders never."""
    file = upload(url, b"some bytes")
    file.unlink()
    monkeypatch.setattr(doors, "EMPTY_SECONDS", -1.0)
    upload(url, b"some bytes")
    assert not file.parents[1].exists()


def test_so_many_calls_over_mcp_are_at_work_at_a_time(tmp_path: Path) -> None:
    async def calls() -> list[int]:
        may_end, statuses = asyncio.Event(), list[int]()

        async def waits(_scope: Any, _receive: Any, send: Any) -> None:
            await may_end.wait()
            await send({"type": "http.response.start", "status": 200, "headers": []})

        async def hear(message: Any) -> None:
            statuses.extend([message["status"]] if "status" in message else [])

        async def nothing() -> Any:
            return {"type": "http.request", "body": b""}

        door = Doors(waits, tmp_path)
        scope = {"type": "http", "method": "POST", "path": "/gradio_api/mcp/", "headers": [], "app": None}
        at_work = [asyncio.create_task(door(scope, nothing, hear)) for _ in range(MAX_MCP_CALLS)]
        await asyncio.sleep(0)
        await door(scope, nothing, hear)
        may_end.set()
        await asyncio.gather(*at_work)
        await door(scope, nothing, hear)
        return statuses

    with ThreadPoolExecutor(1) as thread:  # in this one a browser's loop may run
        statuses = thread.submit(lambda: asyncio.run(calls())).result()
    assert statuses == [503, *[200] * (MAX_MCP_CALLS + 1)]


def post(url: str, body: bytes, path: str = JOIN) -> httpx.Response:
    """On a connection of its own, which the server may cut off."""
    return httpx.post(url + path, content=body, headers={"Content-Type": "application/json"}, timeout=60)


def test_a_body_of_many_parts_is_cut_off_and_a_long_text_is_not(
    url: str, record_attack: RecordAttack
) -> None:
    nested = b'{"data":[' + b",".join([b"[]"] * MAX_STRUCTURE) + b"]}"
    deep = b'{"data":' + b"[" * (MAX_STRUCTURE + 1)
    hidden = '{"data":["\u2200",'.encode("utf-16") + ("[]," * 10).encode("utf-16-le")
    for body, status, words in (
        (nested, 413, "brackets and commas"),
        (deep, 413, "levels deep"),
        (hidden, 400, "NUL byte"),
        (b'{"data":["' + b"a" * MAX_DOCUMENT_BYTES, 413, "more than"),
    ):
        answer = post(url, body)
        assert answer.status_code == status
        assert words in answer.json()["detail"]
    record_attack("bodies of calls, deep, long and hidden", 4, "all refused in a sentence")
    text = 'say "[{,\\' * 200_000
    counted = RawPage(url).press("text", "change", text=text)
    assert f'"data":["{len(text)}"]' in counted.replace(" ", "")


@pytest.mark.parametrize(
    ("path", "most"),
    [
        ("/gradio_api/component_server", MAX_BODY_BYTES),
        ("/gradio_api/call/search_runs", MAX_BODY_BYTES),
        ("/gradio_api/call/v2/open_document", MAX_DOCUMENT_BYTES),
        ("/gradio_api/call/import_run", MAX_DOCUMENT_BYTES),
        ("/gradio_api/call/v2/import_run", MAX_DOCUMENT_BYTES),
        ("/gradio_api/upload", MAX_UPLOAD_BYTES),
        ("/login", MAX_FORM_BYTES),
    ],
)
def test_how_much_a_request_may_bring_depends_on_its_path(url: str, path: str, most: int) -> None:
    answer = answer_to_headers(url, path, most + 1)
    assert " 413 " in answer
    assert f"more than {most:,} bytes" in answer


def test_a_body_that_tells_no_length_may_bring_no_more(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doors, "MAX_DOCUMENT_BYTES", 10_000)
    endless = (b"a" * 1_000 for _ in range(50))
    answer = httpx.post(url + JOIN, content=endless, headers={"Content-Type": "application/json"})
    assert (answer.status_code, "more than 10,000 bytes" in answer.json()["detail"]) == (413, True)


def answer_to_headers(url: str, path: str, length: int) -> str:
    """What comes before a body is sent, of which not a byte ever is."""
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as line:
        head = f"POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\n"
        line.sendall(f"{head}Content-Length: {length}\r\nConnection: close\r\n\r\n".encode())
        return line.makefile("rb").read().decode()


def test_the_sign_in_is_looked_at_before_the_body(closed_url: str) -> None:
    for path in (
        JOIN,
        "/gradio_api/upload",
        "/gradio_api/component_server",
        "/gradio_api/call/v2/open_document",
    ):
        assert " 401 " in answer_to_headers(closed_url, path, 1000)
    for path in ("/gradio_api/heartbeat/a", "/gradio_api/info", f"/gradio_api/file={get_upload_folder()}/a"):
        assert HTTP.get(closed_url + path).status_code == 401
    forged = {"Cookie": "access-token-x=1; access-token-unsecure-x=1"}
    assert HTTP.get(f"{closed_url}/gradio_api/info", headers=forged).status_code == 401
    assert "auth_required" in HTTP.get(closed_url).text
    came = RawPage(closed_url, user=("ann", "correct-horse")).press("text", "change", text="four")
    assert '"data":["4"]' in came.replace(" ", "")


@pytest.mark.parametrize("name", ["X-Gradio-Server", "X-Forwarded-Host"])
def test_no_header_of_a_stranger_s_becomes_the_app_s_address(url: str, name: str) -> None:
    headers = {name: "http://evil.example" if name == "X-Gradio-Server" else "evil.example"}
    for path in ("/", "/config"):
        assert "evil.example" not in HTTP.get(url + path, headers=headers).text


json_values = st.recursive(
    st.none() | st.integers() | st.text(st.sampled_from('a,[{}"\\\n\u2200')),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.sampled_from('b,"\\')), inner),
)


@given(json_values, st.integers(1, 9))
def test_structure_is_counted_however_the_bytes_are_cut(value: Any, size: int) -> None:
    written = json.dumps(value, ensure_ascii=False).encode()
    structure = Structure()
    for start in range(0, len(written), size):
        structure.feed(written[start : start + size])
    outside = re.sub(rb'"(?:[^"\\]|\\.)*"', b"", written)
    assert structure.n == len(re.findall(rb"[\[{,]", outside))
    assert structure.depth == depth_of(value)


def depth_of(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth_of, inner), default=0)


@pytest.mark.campaign
def test_no_foreign_server_is_asked_and_no_foreign_script_runs(chromium_path: str) -> None:
    """In a network of their own, where a hostile server has an address that looks public. Needs Linux."""
    walled = ["unshare", "--net", "--map-root-user", sys.executable, "-m", "tests.app.walled", chromium_path]
    ended = subprocess.run(walled, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout.splitlines()[-1])
    by_chromium = {"/link", "/redirect", "/favicon.ico"}
    assert set(found["asked"]) <= by_chromium, "the app asked for what only it was led to"
    assert not [title for title in found["titles"] if "mine" in title]
    assert "names a file that was not uploaded here" in found["came"]
