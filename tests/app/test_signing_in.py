"""Guessing passwords gets slow, and nobody locks another out; secrets leave the environment."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import gradio as gr
import httpx
import pytest
from pydantic import SecretStr

from app.signing_in import (
    FORGET_SECONDS,
    FREE_GUESSES,
    GUESSES_AN_HOUR,
    LONGEST_WAIT,
    MOST_KEPT,
    Guesses,
    network_of,
    sign_in,
)
from app.start import hide_secrets
from tests.app.served import served

USERS = tuple((name, SecretStr(f"{name}-horse")) for name in ("ann", "bob", "cat", "dan"))
HTTP = httpx.Client(timeout=30)


class Clock:
    """Goes on when it is told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_each_wrong_password_doubles_the_wait() -> None:
    clock, waits = Clock(), []
    guesses = Guesses(clock)
    for _ in range(FREE_GUESSES + 12):
        waits.append(guesses.wait("ann", "1.1.1.1"))
        clock.now += waits[-1]
        assert guesses.wait("ann", "1.1.1.1") == 0
        guesses.count("ann", "1.1.1.1")
    assert waits == [0, 0, 0, *(2.0**n for n in range(9)), LONGEST_WAIT, LONGEST_WAIT, LONGEST_WAIT]
    for name, address in (("ann", "2.2.2.2"), ("bob", "1.1.1.1")):
        assert guesses.wait(name, address) == 0, "others are not kept waiting"
    guesses.welcome("ann", "1.1.1.1")
    assert guesses.wait("ann", "1.1.1.1") == 0


def test_a_day_has_few_guesses_however_many_addresses_make_them() -> None:
    def in_a_day(addresses: int) -> int:
        clock, n = Clock(), 0
        guesses = Guesses(clock)
        while clock.now < 86_400:
            pauses = [guesses.wait("ann", str(address)) for address in range(addresses)]
            if min(pauses) > 0:
                clock.now += min(pauses)
                continue
            guesses.count("ann", str(pauses.index(0)))
            n += 1
        return n

    assert in_a_day(1) < 86_400 / LONGEST_WAIT + 12
    assert 24 * GUESSES_AN_HOUR <= in_a_day(100) <= 25 * GUESSES_AN_HOUR


def test_a_network_that_signed_in_gets_in_while_others_guess_on() -> None:
    clock = Clock()
    guesses = Guesses(clock)
    guesses.welcome("ann", "home")
    for number in range(GUESSES_AN_HOUR):
        guesses.count("ann", f"stranger {number}")
        guesses.count("bob", f"stranger {number}")
    assert guesses.wait("ann", "home") == 0
    assert guesses.wait("ann", "elsewhere") == guesses.wait("bob", "home") == 60
    for _ in range(FREE_GUESSES + 20):
        guesses.count("ann", "home")
    assert guesses.wait("ann", "home") == LONGEST_WAIT, "its own wrong passwords count as anybody's"


def test_no_number_of_other_names_makes_a_name_that_may_sign_in_forgotten() -> None:
    guesses = Guesses(Clock(), names=["ann"])
    for number in range(GUESSES_AN_HOUR):
        guesses.count("ann", f"network {number}")
    for number in range(MOST_KEPT + 50):
        guesses.count(f"name {number}", "1.1.1.1")
    assert guesses.wait("ann", "another network") == 60
    assert len(guesses._of_all) == MOST_KEPT + 1


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("198.51.100.1", "198.51.100.1"),
        ("::ffff:198.51.100.1", "198.51.100.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::", "2001:db8:1:3::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("unknown", "unknown"),
        ("", ""),
    ],
)
def test_an_ipv6_address_counts_as_its_network(address: str, network: str) -> None:
    assert network_of(address) == network


def test_what_is_remembered_is_bounded_and_forgotten() -> None:
    clock = Clock()
    guesses = Guesses(clock)
    for _ in range(FREE_GUESSES + 8):
        guesses.count("ann", "1.1.1.1")
    clock.now += FORGET_SECONDS
    guesses.count("ann", "1.1.1.1")
    assert guesses.wait("ann", "1.1.1.1") == 0
    for number in range(MOST_KEPT + 50):
        guesses.count(f"name {number}", "1.1.1.1")
        guesses.welcome("ann", f"network {number}")
    assert len(guesses._of_each) == len(guesses._of_all) == len(guesses._signed_in) == MOST_KEPT


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A server that asks for a name and a password; each test has names of its own."""
    with gr.Blocks() as blocks:
        gr.Textbox()
    with served(blocks, auth=sign_in(USERS, Guesses(Clock()))) as url:
        yield url


def sign(url: str, name: str, password: str, address: str = "198.51.100.1") -> httpx.Response:
    """As through a proxy on this machine, which says who asks."""
    HTTP.cookies.clear()
    return HTTP.post(
        f"{url}/login",
        data={"username": name, "password": password},
        headers={"X-Forwarded-For": address},
    )


def test_the_right_password_has_to_wait_after_wrong_ones(url: str) -> None:
    for _ in range(FREE_GUESSES):
        assert sign(url, "ann", "wrong").json()["detail"] == "Incorrect credentials."
    for password in ("wrong", "ann-horse"):
        answer = sign(url, "ann", password)
        assert answer.status_code == 400
        assert answer.json()["detail"] == "too many wrong passwords for this name; try again in 1 seconds"
        assert not answer.cookies
    for name, password, address in (
        ("bob", "bob-horse", "198.51.100.1"),
        ("ann", "ann-horse", "198.51.100.2"),
    ):
        assert sign(url, name, password, address).json() == {"success": True}
    for _ in range(FREE_GUESSES):
        assert sign(url, "nobody", "wrong").json()["detail"] == "Incorrect credentials."
    assert "too many" in sign(url, "nobody", "wrong").json()["detail"], (
        "a name that nobody has is not told apart"
    )


def test_a_name_under_attack_from_changing_addresses_stays_usable(url: str) -> None:
    """A line's IPv6 addresses are one guesser; with a network each, they still don't lock out who was there."""
    assert sign(url, "cat", "cat-horse", "2001:db8:a::1").json() == {"success": True}
    for number in range(FREE_GUESSES):
        sign(url, "dan", "wrong", f"2001:db8:b::{number}")
    assert "too many" in sign(url, "dan", "dan-horse", "2001:db8:b::ffff").json()["detail"]
    for number in range(GUESSES_AN_HOUR):
        sign(url, "cat", "wrong", f"198.51.100.{number}")
    assert "too many" in sign(url, "cat", "cat-horse", "2001:db8:c::1").json()["detail"]
    assert sign(url, "cat", "cat-horse", "2001:db8:a::2").json() == {"success": True}


def test_half_a_character_is_a_wrong_password() -> None:
    assert not sign_in(USERS, Guesses(Clock()))("ann", "\ud800")


def test_the_login_cookie_is_not_sent_for_other_websites(url: str) -> None:
    cookies = sign(url, "bob", "bob-horse").headers.get_list("set-cookie")
    assert len(cookies) == 2
    assert [cookie for cookie in cookies if "samesite=none" in cookie.lower()] == []


def test_no_other_program_inherits_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("QRAG_USERS", "QRAG_LLM_KEY"):
        monkeypatch.setenv(name, "canary-5d0c2f7b91")
    hide_secrets()
    assert "canary" not in subprocess.run(["env"], capture_output=True, text=True, check=True).stdout
