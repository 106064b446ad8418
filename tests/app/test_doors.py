"""Paths, files, sign-in and bodies between the front door and Gradio, over real HTTP."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gradio as gr
import httpx
import pytest
from gradio.utils import get_upload_folder
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from app.calls.endpoints import server_options
from app.doors import MAX_BODY_BYTES, MAX_DOCUMENT_BYTES, MAX_FORM_BYTES, MAX_STRUCTURE, Structure
from app.gradio_internals.blocks import LeanBlocks
from app.services.settings import Settings
from app.signing_in import Guesses, sign_in
from tests.app.raw_page import RawPage
from tests.app.served import served
from tests.conftest import RecordAttack

JOIN = "/gradio_api/queue/join"
HTTP = httpx.Client(timeout=60)


def page() -> gr.Blocks:
    """Shows how many bytes a file has, and how many letters a text."""
    with LeanBlocks() as blocks:
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
    with served(page(), app_kwargs=server_options(Settings()), allowed_paths=[get_upload_folder()]) as url:
        yield url


@pytest.fixture(scope="module")
def closed_url() -> Iterator[str]:
    """Asks for a name and a password."""
    users = (("ann", SecretStr("correct-horse")),)
    with served(page(), auth=sign_in(users, Guesses()), app_kwargs=server_options(Settings())) as url:
        yield url


@pytest.mark.parametrize(
    "path",
    [
        "/gradio_api/proxy=http://127.0.0.1:9/",
        "/gradio_api/run/predict",
        "/gradio_api/token",
        "/gradio_api/stream/a/b/1/playlist.m3u8",
        "/gradio_api/vibe-code/",
        "/gradio_api/file/etc/passwd",
        "/gradio_api/deep_link",
        "/monitoring",
        "/custom_component/a/client/b/c.js",
    ],
)
def test_gradio_s_other_paths_are_closed(url: str, path: str) -> None:
    answer = HTTP.get(url + path)
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
        {"a": [[file_data("https://198.51.100.7/")]]},
        file_data(["http://198.51.100.7/"]),
    ],
)
def test_an_event_names_no_address(url: str, given: Any) -> None:
    for elem_id, event, value in (("open", "click", {"files": [given]}), ("text", "change", {"text": given})):
        came = RawPage(url).press(elem_id, event, **value)
        assert "names a file that was not uploaded here" in came, elem_id


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
        (deep, 413, "brackets and commas"),
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
        ("/login", MAX_FORM_BYTES),
    ],
)
def test_how_much_a_request_may_bring_depends_on_its_path(url: str, path: str, most: int) -> None:
    answer = answer_to_headers(url, path, most + 1)
    assert " 413 " in answer
    assert f"more than {most:,} bytes" in answer


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
    assert structure.n == len(re.findall(rb"[\[{,]", re.sub(rb'"(?:[^"\\]|\\.)*"', b"", written)))


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
