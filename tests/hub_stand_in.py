"""A hub on this machine: a real HTTP server that speaks what huggingface_hub asks of the hub."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

TOKEN = "hf_standInTokenCanary0123456789abcdef"
"""The one token that is valid."""
OWNERS = ("someone", "team")
"""In whose name it may write."""


@dataclass
class Repository:
    """What the hub knows of one repository."""

    kind: str
    name: str
    private: bool | None
    hardware: str | None = None
    files: dict[str, bytes] = field(default_factory=dict)
    stored: dict[str, bytes] = field(default_factory=dict)
    """Content by SHA-256 of everything that ever travelled outside a commit."""
    large: dict[str, str] = field(default_factory=dict)
    """Path -> SHA-256 of the files that did."""
    commits: list[str] = field(default_factory=lambda: ["0" * 40])
    payloads: list[list[dict[str, Any]]] = field(default_factory=list)
    """The lines of each commit."""
    secrets: dict[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    squashed: int = 0

    @property
    def head(self) -> str:
        return self.commits[-1]


class Refused(Exception):
    """An answer other than 200."""

    def __init__(self, status: int, message: str, code: str = "") -> None:
        super().__init__(message)
        self.status, self.code = status, code


class HubStandIn:
    """The hub's state; `url` is its address while it is being served."""

    def __init__(self) -> None:
        self.url = ""
        self.repositories: dict[tuple[str, str], Repository] = {}
        self.requests: list[tuple[str, str]] = []
        self.refuse_next: Refused | None = None
        """Answer to the next request, once."""
        self.before: Callable[[str], None] = lambda _: None
        """Called with the path of a request before it is looked at; may ask things of the hub, or raise
        Refused.
        """
        self.lock = threading.RLock()

    def space(self, name: str) -> Repository:
        return self.repositories["spaces", name]

    def dataset(self, name: str) -> Repository:
        return self.repositories["datasets", name]

    def answer(
        self, method: str, target: str, body: bytes, authorization: str | None
    ) -> tuple[dict[str, str], bytes]:
        """Headers and body of the answer. Raises Refused."""
        path = unquote(urlsplit(target).path)
        self.requests.append((method, path))
        if self.refuse_next is not None:
            refusal, self.refuse_next = self.refuse_next, None
            raise refusal
        if path.startswith("/stored/"):  # a signed address: it needs no token
            return self._store(path, body)
        if authorization != f"Bearer {TOKEN}":
            raise Refused(401, "Invalid credentials in Authorization header")
        for pattern, handle in _ROUTES:
            found = re.fullmatch(pattern, f"{method} {path}")
            if found:
                query = {name: values[-1] for name, values in parse_qs(urlsplit(target).query).items()}
                result = handle(self, *found.groups(), body, query)
                if isinstance(result, tuple):
                    return result
                return ({"Content-Type": "application/json"}, json.dumps(result).encode())
        raise Refused(404, f"the stand-in knows no {method} {path}")

    def find(self, kind: str, name: str) -> Repository:
        try:
            return self.repositories[kind, name]
        except KeyError:
            raise Refused(404, "Repository not found", "RepoNotFound") from None

    def _store(self, path: str, body: bytes) -> tuple[dict[str, str], bytes]:
        _, _, kind, owner, name, sha256 = path.split("/")
        assert hashlib.sha256(body).hexdigest() == sha256
        self.find(kind, f"{owner}/{name}").stored[sha256] = body
        return {}, b""


def _create(hub: HubStandIn, body: bytes, _: Any) -> Any:
    wanted = json.loads(body)
    kind, name = f"{wanted['type']}s", f"{wanted['organization']}/{wanted['name']}"
    url = f"{hub.url}/{kind}/{name}"
    if (kind, name) in hub.repositories:
        raise Refused(409, json.dumps({"error": "You already created this repo", "url": url}))
    if wanted["organization"] not in OWNERS:
        raise Refused(
            403, f"You don't have the rights to create a repo under the namespace {wanted['organization']!r}"
        )
    private = {None: None, "private": True, "public": False}[wanted.get("visibility")]
    hub.repositories[kind, name] = Repository(
        kind, name, private, wanted.get("hardware"), {".gitattributes": b"*.parquet filter=lfs\n"}
    )
    return {"url": url}


def _info(hub: HubStandIn, kind: str, name: str, *_: Any) -> Any:
    repository = hub.find(kind, name)
    return {
        "id": name,
        "_id": "1",
        "sha": repository.head,
        "private": bool(repository.private),
        "tags": [],
        "downloads": 0,
        "likes": 0,
        "siblings": [],
    }


def _tree(hub: HubStandIn, kind: str, name: str, *_: Any) -> Any:
    repository = hub.find(kind, name)
    return [_tree_entry(repository, path) for path in sorted(repository.files)]


def _tree_entry(repository: Repository, path: str) -> dict[str, Any]:
    content = repository.files[path]
    entry = {"type": "file", "path": path, "size": len(content), "oid": hashlib.sha1(content).hexdigest()}
    return entry | (
        {"lfs": {"size": len(content), "oid": repository.large[path], "pointerSize": 130}}
        if path in repository.large
        else {}
    )


def _preupload(hub: HubStandIn, kind: str, name: str, body: bytes, _: Any) -> Any:
    repository = hub.find(kind, name)
    modes = {
        file["path"]: "lfs" if file["path"].endswith((".parquet", ".safetensors")) else "regular"
        for file in json.loads(body)["files"]
    }
    return {
        "files": [
            {"path": path, "uploadMode": mode, "shouldIgnore": False, "oid": _oid(repository, path)}
            for path, mode in modes.items()
        ]
    }


def _oid(repository: Repository, path: str) -> str | None:
    if path not in repository.files:
        return None
    content = repository.files[path]
    return repository.large.get(path) or hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def _batch(hub: HubStandIn, kind: str, name: str, body: bytes, _: Any) -> Any:
    stored = hub.find(kind, name).stored
    return {
        "objects": [
            entry if entry["oid"] in stored else entry | _upload_to(hub, kind, name, entry["oid"])
            for entry in json.loads(body)["objects"]
        ]
    }


def _upload_to(hub: HubStandIn, kind: str, name: str, sha256: str) -> dict[str, Any]:
    return {"actions": {"upload": {"href": f"{hub.url}/stored/{kind}/{name}/{sha256}"}}}


def _commit(hub: HubStandIn, kind: str, name: str, body: bytes, _: Any) -> Any:
    repository = hub.find(kind, name)
    lines = [json.loads(line) for line in body.splitlines()]
    header = lines[0]["value"]
    if header.get("parentCommit") not in (None, repository.head):
        raise Refused(412, "A commit has happened since. Please refresh and try again.")
    for line in lines[1:]:
        path = line["value"]["path"]
        match line["key"]:
            case "file":
                repository.files[path] = base64.b64decode(line["value"]["content"])
                repository.large.pop(path, None)
            case "lfsFile":
                repository.large[path] = line["value"]["oid"]
                repository.files[path] = repository.stored[line["value"]["oid"]]
            case "deletedFile":
                if path not in repository.files:
                    raise Refused(404, "A file with this name doesn't exist", "EntryNotFound")
                del repository.files[path]
                repository.large.pop(path, None)
    return _new_commit(repository, lines, f"{hub.url}/{kind}/{name}")


def _new_commit(repository: Repository, lines: list[dict[str, Any]], url: str) -> Any:
    repository.payloads.append(lines)
    repository.commits.append(
        hashlib.sha1(f"{repository.head}{len(repository.commits)}".encode()).hexdigest()
    )
    return {"commitUrl": f"{url}/commit/{repository.head}", "commitOid": repository.head, "success": True}


def _squash(hub: HubStandIn, kind: str, name: str, *_: Any) -> Any:
    repository = hub.find(kind, name)
    repository.squashed += 1
    repository.payloads.clear()
    repository.commits = [hashlib.sha1(repository.head.encode()).hexdigest()]
    return {}


def _stored_files(hub: HubStandIn, kind: str, name: str, *_: Any) -> Any:
    stored = hub.find(kind, name).stored
    return [
        {
            "fileOid": sha256,
            "filename": "",
            "oid": sha256,
            "pushedAt": "2026-01-01T00:00:00.000Z",
            "size": len(content),
        }
        for sha256, content in stored.items()
    ]


def _delete_stored(hub: HubStandIn, kind: str, name: str, body: bytes, _: Any) -> Any:
    for sha256 in json.loads(body)["deletions"]["sha"]:
        del hub.find(kind, name).stored[sha256]
    return {}


def _resolve(hub: HubStandIn, kind: str, name: str, commit: str, path: str, *_: Any) -> Any:
    repository = hub.find(kind, name)
    if path not in repository.files or commit != repository.head:
        raise Refused(404, "Entry not found", "EntryNotFound")
    content = repository.files[path]
    return {
        "ETag": f'"{hashlib.sha1(content).hexdigest()}"',
        "X-Repo-Commit": repository.head,
        "Content-Type": "application/octet-stream",
    }, content


def _set_secret(hub: HubStandIn, name: str, body: bytes, _: Any) -> Any:
    wanted = json.loads(body)
    hub.find("spaces", name).secrets[wanted["key"]] = wanted["value"]
    return {}


def _set_variable(hub: HubStandIn, name: str, body: bytes, _: Any) -> Any:
    wanted = json.loads(body)
    hub.find("spaces", name).variables[wanted["key"]] = wanted["value"]
    return {}


def _runtime(hub: HubStandIn, name: str, *_: Any) -> Any:
    hardware = hub.find("spaces", name).hardware or "cpu-basic"
    return {"stage": "BUILDING", "hardware": {"current": None, "requested": hardware}}


def _set_hardware(hub: HubStandIn, name: str, body: bytes, _: Any) -> Any:
    hub.find("spaces", name).hardware = json.loads(body)["flavor"]
    return _runtime(hub, name)


_REPOSITORY = r"(spaces|datasets)/([^/]+/[^/]+)"
_ROUTES: list[tuple[str, Callable[..., Any]]] = [
    (r"POST /api/repos/create", _create),
    (r"POST /api/validate-yaml", lambda *_: {"errors": [], "warnings": []}),
    (rf"GET /api/{_REPOSITORY}(?:/revision/[^/]+)?", _info),
    (rf"GET /api/{_REPOSITORY}/tree/[^/]+", _tree),
    (rf"POST /api/{_REPOSITORY}/preupload/main", _preupload),
    (rf"POST /{_REPOSITORY}\.git/info/lfs/objects/batch", _batch),
    (rf"POST /api/{_REPOSITORY}/commit/main", _commit),
    (rf"POST /api/{_REPOSITORY}/super-squash/main", _squash),
    (rf"GET /api/{_REPOSITORY}/lfs-files", _stored_files),
    (rf"POST /api/{_REPOSITORY}/lfs-files/batch", _delete_stored),
    (rf"(?:GET|HEAD) /{_REPOSITORY}/resolve/([^/]+)/(.+)", _resolve),
    (r"POST /api/spaces/([^/]+/[^/]+)/secrets", _set_secret),
    (r"POST /api/spaces/([^/]+/[^/]+)/variables", _set_variable),
    (r"GET /api/spaces/([^/]+/[^/]+)/runtime", _runtime),
    (r"POST /api/spaces/([^/]+/[^/]+)/hardware", _set_hardware),
]


@contextmanager
def serve_hub() -> Iterator[HubStandIn]:
    """The stand-in on a free port of the loopback, until the block ends."""
    hub = HubStandIn()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # an answer in one piece: behind its head, its body would wait for the client's leave

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            try:
                hub.before(urlsplit(self.path).path)
                with hub.lock:
                    headers, content = hub.answer(
                        self.command, self.path, body, self.headers.get("Authorization")
                    )
                self.send_response(200)
            except Refused as refusal:
                text = str(refusal)
                content = text.encode() if text.startswith("{") else json.dumps({"error": text}).encode()
                headers = {
                    "Content-Type": "application/json",
                    "X-Error-Message": text,
                    **({"X-Error-Code": refusal.code} if refusal.code else {}),
                }
                self.send_response(refusal.status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_GET = do_HEAD = do_POST = do_PUT = _serve

        def log_message(self, *_: Any) -> None:
            """Silence: what was asked stands in `requests`."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
