"""A page without a browser: sends the events that a page's own script would."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import httpx


class RawPage:
    """One session of its own over HTTP."""

    def __init__(self, url: str, user: tuple[str, str] | None = None) -> None:
        """user: name and password to sign in with."""
        self._http = httpx.Client(base_url=url, timeout=120)
        if user is not None:
            self._http.post("/login", data={"username": user[0], "password": user[1]}).raise_for_status()
        self._config = self._http.get("/config").raise_for_status().json()
        self._components = {
            component["id"]: component.get("props", {}) for component in self._config["components"]
        }
        self._session = secrets.token_hex(6)
        self._sent: dict[str, int] = {}
        """Listeners by the id of the event that was sent."""
        self._waits: set[str] = set()
        """Events that were sent and have not ended."""
        self._answers: list[str] = []

    @property
    def received(self) -> str:
        """Everything that the server sent to this page, as it came."""
        return "".join(self._answers)

    def load(self, key: str, run_id: str = "", tab: str = "") -> str:
        """Opens the page as the holder of a visitor key, at a run's address and a tab if they are given;
        what came back.
        """
        (listener,) = (
            found
            for found in self._config["dependencies"]
            if found["backend_fn"] and any(name == "load" for _, name in found["targets"])
        )
        address = {"run": run_id, "tab": tab}
        self._join(listener, [None, key], {name: value for name, value in address.items() if value})
        return self.receive()

    def press(self, elem_id: str, event: str = "click", **values: Any) -> str:
        """What came back from an event; `values`: of components by elem_id, with _ for -, the others as they
        stand at first.
        """
        self.queue(elem_id, event, **values).raise_for_status()
        return self.receive()

    def follow(self, came: str) -> str:
        """What comes of the events that a page's script sends thereupon: of states that changed, and of
        listeners behind others.
        """
        followed = ""
        while due := self._due(came):
            for listener in due:
                self._join(
                    listener, [self._components[place].get("value") for place in listener["inputs"]], {}
                ).raise_for_status()
            came = self.receive()
            followed += came
        return followed

    def queue(self, elem_id: str, event: str = "click", **values: Any) -> httpx.Response:
        """The server's answer to the event itself, or to what follows it where it only hides something (it
        has no inputs then).
        """
        given = {name.replace("_", "-"): value for name, value in values.items()}
        listener = next(
            found
            for found in self._config["dependencies"]
            if [self._id(elem_id), event] in found["targets"] and found["backend_fn"]
        )
        if not listener["inputs"]:
            listener = next(
                (found for found in self._config["dependencies"] if found["trigger_after"] == listener["id"]),
                listener,
            )
        data = [
            given.get(props.get("elem_id"), props.get("value"))
            for props in (self._components[place] for place in listener["inputs"])
        ]
        return self._join(listener, data, {})

    def receive(self, at_the_end: Callable[[], object] | None = None) -> str:
        """What comes until nothing of this page waits any more; then `at_the_end` may send more, of which the
        same stream is to tell.
        """
        came = []
        with self._http.stream(
            "GET", "/gradio_api/queue/data", params={"session_hash": self._session}
        ) as stream:
            for line in filter(None, stream.iter_lines()):
                came.append(line)
                if '"process_completed"' in line:
                    self._waits.discard(json.loads(line.removeprefix("data: "))["event_id"])
                    if not self._waits and at_the_end is not None:
                        at_the_end, send = None, at_the_end
                        send()
                    if not self._waits:
                        break
        self._answers.append("\n".join(came))
        return self._answers[-1]

    def ask_strip(self, question: str, request: list[Any]) -> Any:
        """The answer of one of the strip's server functions."""
        body = {
            "session_hash": self._session,
            "component_id": self._id("qx-strip"),
            "fn_name": question,
            "data": request,
        }
        answer = self._http.post("/gradio_api/component_server", json=body)
        self._answers.append(answer.text)
        return answer.raise_for_status().json()

    def heartbeat(self) -> AbstractContextManager[httpx.Response]:
        """What tells the server that the page is open; leaving it closes the page."""
        return self._http.stream("GET", f"/gradio_api/heartbeat/{self._session}")

    def waiting(self) -> int:
        """Events that wait on the server, anybody's."""
        return int(self._http.get("/gradio_api/queue/status").json()["queue_size"])

    def _join(self, listener: dict[str, Any], data: list[Any], query: dict[str, str]) -> httpx.Response:
        body = {
            "data": data,
            "fn_index": listener["id"],
            "session_hash": self._session,
            "trigger_id": None,
            "event_data": None,
        }
        answer = self._http.post("/gradio_api/queue/join", params=query, json=body)
        self._answers.append(answer.text)
        if answer.is_success:
            event_id = answer.json()["event_id"]
            self._sent[event_id] = listener["id"]
            self._waits.add(event_id)
        return answer

    def _due(self, came: str) -> list[dict[str, Any]]:
        messages = [
            json.loads(line.removeprefix("data: ")) for line in came.splitlines() if line.startswith("data: ")
        ]
        states = {
            state
            for message in messages
            for state in (message.get("output") or {}).get("changed_state_ids") or ()
        }
        done = {
            self._sent[message["event_id"]]
            for message in messages
            if message["msg"] == "process_completed" and message["success"]
        }
        changes = [[state, "change"] for state in states]
        return [
            found
            for found in self._config["dependencies"]
            if found["backend_fn"]
            and (any(change in found["targets"] for change in changes) or found.get("trigger_after") in done)
        ]

    def _id(self, elem_id: str) -> int:
        return next(place for place, props in self._components.items() if props.get("elem_id") == elem_id)


def named(name: str, text: str) -> str:
    """The last value of 32 hex digits that stands behind a name in what a server sent."""
    return re.findall(rf"{name}\W+([0-9a-f]{{32}})", text)[-1]
