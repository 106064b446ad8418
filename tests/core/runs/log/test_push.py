"""Who may push runs: signatures, clocks, tokens."""

from __future__ import annotations

import pytest
from pydantic import SecretStr

from core.base.errors import BadRequest
from core.runs.log.push import (
    PUSH,
    WANTED,
    WINDOW,
    PushGate,
    PushRefused,
    PushTarget,
    signed_headers,
    token_of,
)
from tests.conftest import RecordAttack

TOKEN = SecretStr("a token that both ends know")
REFUSED = "all refused in a sentence"


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def refusal(gate: PushGate, headers: dict[str, str], asked: str = PUSH) -> str:
    with pytest.raises(PushRefused) as refused:
        gate.digest(asked, headers)
    assert refused.value.status in (401, 409)
    return str(refused.value)


def test_what_is_signed_is_taken_once(record_attack: RecordAttack) -> None:
    clock = Clock()
    gate = PushGate(TOKEN, clock)
    headers = signed_headers(TOKEN, PUSH, b"a run", clock.now)
    assert gate.digest(PUSH, headers) == headers["x-qrag-digest"]
    assert "came before" in refusal(gate, headers)
    clock.now += WINDOW / 2
    assert "came before" in refusal(gate, headers)
    record_attack("pushes of runs, sent again or late", 2, REFUSED)
    assert gate.digest(PUSH, signed_headers(TOKEN, PUSH, b"a run", clock.now)) == headers["x-qrag-digest"]


@pytest.mark.parametrize("name", ["x-qrag-time", "x-qrag-digest", "x-qrag-signature"])
def test_every_part_is_signed(name: str, record_attack: RecordAttack) -> None:
    clock = Clock()
    gate, headers = PushGate(TOKEN, clock), signed_headers(TOKEN, PUSH, b"a run", clock.now)
    others = ("", "0", "é", headers[name][:-1], f"{headers[name]} ", "nan", "9" * 5_000)
    for other in others:
        assert "not signed with this app's token" in refusal(gate, {**headers, name: other})
    without = {key: value for key, value in headers.items() if key != name}
    assert "not signed with this app's token" in refusal(gate, without)
    assert "not signed" in refusal(gate, headers, WANTED)
    other_token = signed_headers(SecretStr("another token, as long"), PUSH, b"a run", clock.now)
    assert "not signed" in refusal(gate, other_token)
    assert gate.digest(PUSH, headers)  # nothing of this has used it up
    record_attack("pushes of runs, forged", len(others) + 3, REFUSED)


def test_clocks_may_be_apart_by_a_window(record_attack: RecordAttack) -> None:
    clock = Clock()
    gate = PushGate(TOKEN, clock)
    began, clock.now = clock.now, clock.now + 3 * WINDOW
    for seconds in (-WINDOW, 0.0, WINDOW):
        gate.digest(PUSH, signed_headers(TOKEN, PUSH, b"a run", clock.now + seconds))
    for seconds in (-WINDOW - 1, WINDOW + 1):
        headers = signed_headers(TOKEN, PUSH, b"a run", clock.now + seconds)
        assert f"signed {WINDOW + 1:.0f} s {'before' if seconds < 0 else 'after'} it came" in refusal(
            gate, headers
        )
    late = signed_headers(TOKEN, PUSH, b"a run", clock.now + WINDOW)
    assert "came before" in refusal(gate, late)
    clock.now += 2 * WINDOW + 1
    assert "set the clocks" in refusal(gate, late)  # still refused when the gate may forget it
    restarted = PushGate(TOKEN, Clock())
    assert "before this app started" in refusal(restarted, signed_headers(TOKEN, PUSH, b"a run", began - 1))
    record_attack("pushes of runs, sent again or late", 5, REFUSED)


def test_a_token_can_not_be_guessed_and_is_not_told() -> None:
    assert token_of({}) is None
    with pytest.raises(BadRequest, match="QRAG_PUSH_TOKEN has 15 characters; take 16 or more") as short:
        token_of({"QRAG_PUSH_TOKEN": "canary-canary-c"})
    assert "canary" not in str(short.value)
    target = PushTarget.at("http://127.0.0.1:1/", {"QRAG_PUSH_TOKEN": "canary-canary-canary"})
    assert target.address == "http://127.0.0.1:1"
    assert "canary" not in repr(target)


@pytest.mark.parametrize(
    ("url", "environ", "sentence"),
    [
        ("ftp://host", {"QRAG_PUSH_TOKEN": "a" * 16}, "must begin with http:// or https://"),
        ("explorer.example.org", {"QRAG_PUSH_TOKEN": "a" * 16}, "must begin with http:// or https://"),
        ("http://host", {}, "QRAG_PUSH_TOKEN is not set"),
    ],
)
def test_a_target_that_is_none(url: str, environ: dict[str, str], sentence: str) -> None:
    with pytest.raises(BadRequest, match=sentence):
        PushTarget.at(url, environ)
