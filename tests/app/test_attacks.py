"""A public app under attack over HTTP."""

from __future__ import annotations

import json
import random
import secrets
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest

from app.services.settings import Settings
from app.services.visitors import owner_of
from tests.app.conftest import RunningApp
from tests.app.opened import PLACES
from tests.app.raw_page import RawPage, named
from tests.app.test_api import FUNCTIONS, call
from tests.conftest import COUNTS, RecordAttack

QUERY = "who was in the office ?"
FILE = {"path": "/etc/passwd", "meta": {"_type": "gradio.FileData"}}
VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    2**31,
    2**63,
    2**200,
    1e308,
    -0.0,
    0.5,
    "",
    " ",
    "none",
    "null",
    "\0",
    "\ud800",
    "\u202e",
    "\n" * 50,
    "a" * 100_000,
    "../../etc/passwd",
    "/etc/passwd",
    "file:///etc/passwd",
    "http://169.254.169.254/",
    "' OR 1=1 --",
    "%s%n",
    "<script>alert(1)</script>",
    "${7*7}",
    [],
    {},
    [[]],
    [[1]],
    [[1, 2, 3]],
    [1e9],
    [None],
    ["qrag"] * 1_000,
    FILE,
    [FILE],
    {"__type__": "update", "visible": True},
    {"$ref": "#"},
    "0" * 32,
    "f" * 64,
    "sparc",
    "qrag",
    "river-chronicle.txt",
    "html",
    QUERY,
    json.loads("[" * 200 + "]" * 200),
)


@dataclass(frozen=True)
class Holder:
    """A visitor, and all that somebody else could want of theirs."""

    key: str
    word: str
    """Stands in their document, and nowhere else."""
    document_id: str
    run_id: str

    @property
    def names(self) -> tuple[str, ...]:
        """By which the server knows what is theirs."""
        return self.document_id, self.run_id, owner_of(Settings(public=True), self.key) or ""


def settled(url: str) -> Holder:
    key, word = secrets.token_hex(16), f"canary{secrets.token_hex(6)}"
    text = "\n\n".join(f"{word} travelled to the {PLACES[i % 5]} on day {i} ." for i in range(12))
    document_id = call(url, "open_document", text=text, chunker="sentences", max_tokens=12, visitor=key)[1][
        0
    ]["document_id"]
    event, data = call(url, "run_agent", document_id=document_id, query=f"{QUERY} {word}", visitor=key)
    assert event == "complete", data
    return Holder(key, word, document_id, data[0]["run_id"])


def forged(url: str, name: str, arguments: dict[str, Any]) -> tuple[str, Any]:
    """(event, data) of a call; the event is "refused" where it was no call at all, the status where the
    server failed.
    """
    try:
        return call(url, name, **arguments)
    except urllib.error.HTTPError as refusal:
        return "refused" if 400 <= refusal.code < 500 else str(refusal.code), refusal.read().decode()


def test_forged_calls_are_answered_or_refused_in_a_sentence(
    public_app: RunningApp, record_attack: RecordAttack
) -> None:
    url, victim, rng = public_app.url, settled(public_app.url), random.Random(9)
    with urllib.request.urlopen(f"{url}/gradio_api/info", timeout=60) as reply:
        endpoints = json.load(reply)["named_endpoints"]
    taken = {
        name: [parameter["parameter_name"] for parameter in endpoints[f"/{name}"]["parameters"]]
        for name in sorted(FUNCTIONS)
    }
    values = (*VALUES, *victim.names)
    own = settled(url)
    over_document, of_run = {"document_id": own.document_id, "query": QUERY}, {"run_id": own.run_id}
    sound: dict[str, dict[str, Any]] = dict.fromkeys(
        ("run_agent", "step_run", "run_sparc", "compare", "retrieve"), over_document
    )
    sound["import_run"] = {
        "document_id": own.document_id,
        "content": json.dumps({"query": QUERY, "retrieved": [0]}),
    }
    sound |= {"open_document": {"text": QUERY}, "search_runs": {}, "get_run": of_run, "export_run": of_run}
    outcomes = {"complete": 0, "error": 0, "refused": 0}
    assert sound.keys() == taken.keys(), "each call is attacked"
    for number in range(COUNTS.forged_calls):
        name = rng.choice(sorted(taken))
        forgeries = {
            parameter: rng.choice(values)
            for parameter in rng.sample(taken[name], min(rng.choice((1, 1, 1, 2, 4)), len(taken[name])))
        }
        arguments = {"visitor": own.key, **sound[name], **forgeries}
        told = f"call {number}: {name} {json.dumps(arguments)[:1_000]}"
        event, data = forged(url, name, arguments)
        assert event in outcomes, told
        if event == "error":
            assert isinstance(data["error"], str), told
            assert data["error"].strip().count("\n") == 0, told
        assert victim.word not in json.dumps(data), told
        outcomes[event] += 1
    assert call(url, "search_runs", visitor=victim.key)[1][0]["total"] == 1
    assert "Traceback" not in (public_app.home / "app.out").read_text()
    assert min(outcomes["complete"], outcomes["error"]) > 0
    record_attack(
        "forged calls over HTTP",
        COUNTS.forged_calls,
        f"{outcomes['complete']:,} answered, {outcomes['error'] + outcomes['refused']:,} refused in a"
        " sentence; nothing of another's",
    )


@pytest.mark.campaign
def test_many_visitors_get_nothing_of_each_other(public_app: RunningApp, record_attack: RecordAttack) -> None:
    """All at once, each by the ids of all others: over HTTP, and on a page of their own."""
    url = public_app.url

    def attack(thief: Holder) -> tuple[int, str]:
        """How much one tried, and all that came."""
        page, n_tried = RawPage(url), 0
        came = [page.load(thief.key)]
        for victim in holders:
            if victim is thief:
                continue
            by_run: list[dict[str, Any]] = [{"run_id": victim.run_id}]
            by_document = [{"document_id": victim.document_id, "query": QUERY}]
            tries = [
                (name, one)
                for name in ("get_run", "export_run", "step_run", "open_document")
                for one in by_run
            ]
            tries += [(name, one) for name in ("run_agent", "step_run", "compare") for one in by_document]
            for name, arguments in tries:
                event, data = call(url, name, **arguments, visitor=thief.key)
                assert event == "error", (name, data)
                came.append(json.dumps(data))
            for asked in (victim.document_id, tokens[victim]):
                came.append(json.dumps(page.ask_strip("tiles", [asked, 1, "q", 0, 10, 10])))
            came.append(RawPage(url).load(thief.key, victim.run_id))
            n_tried += len(tries) + 3
        listed = call(url, "search_runs", visitor=thief.key)[1][0]
        assert {run["run_id"] for run in listed["runs"]} >= {thief.run_id}
        return n_tried, "".join((*came, json.dumps(listed), page.received))

    with ThreadPoolExecutor(8) as threads:
        holders = list(threads.map(lambda _: settled(url), range(COUNTS.visitors)))
        tokens = dict(zip(holders, threads.map(lambda holder: token_of(url, holder), holders), strict=True))
        attacked = list(threads.map(attack, holders))
    for thief, (_, came) in zip(holders, attacked, strict=True):
        assert not [victim.word for victim in holders if victim is not thief and victim.word in came]
    record_attack(
        f"{COUNTS.visitors} visitors at once, each by the ids of all others",
        sum(n_tried for n_tried, _ in attacked),
        "no text, question or id of another's came",
    )


def token_of(url: str, holder: Holder) -> str:
    """By which the holder's own page asks for what it draws."""
    page = RawPage(url)
    return named("token", page.load(holder.key, holder.run_id))
