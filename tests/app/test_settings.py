"""Flags win over environment, environment over defaults; a Space is public."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.services.settings import Settings
from core.base.errors import BadRequest

ROOT = Path(__file__).resolve().parents[2]


def test_defaults_are_local() -> None:
    assert Settings.from_args([], {}) == Settings(
        host="127.0.0.1", port=None, public=False, log=None, checkpoint=None
    )


def test_flags_win_over_environment() -> None:
    environ = {"GRADIO_SERVER_NAME": "0.0.0.0", "GRADIO_SERVER_PORT": "9001"}
    assert Settings.from_args([], environ) == Settings(host="0.0.0.0", port=9001)
    settings = Settings.from_args(
        ["--host", "127.0.0.2", "--port", "9002", "--log", "runs.duckdb", "--checkpoint", "base"], environ
    )
    assert settings == Settings(host="127.0.0.2", port=9002, log=Path("runs.duckdb"), checkpoint="base")


def test_an_empty_flag_is_none() -> None:
    """As a script writes one whose variable is not set."""
    assert Settings.from_args(["--log", "", "--checkpoint", ""], {}) == Settings()


def test_a_space_is_public_and_reachable() -> None:
    assert Settings.from_args([], {"SPACE_ID": "someone/space"}) == Settings(host="0.0.0.0", public=True)


@pytest.mark.parametrize("port", ["0", "-1", "65536", "eighty"])
def test_a_port_that_is_none_is_refused_with_value_and_bound(port: str) -> None:
    with pytest.raises(BadRequest, match=rf"port='?{port}'? .*between 1 and 65535"):
        Settings.from_args([f"--port={port}"], {})


def test_entry_finds_the_package_beside_itself() -> None:
    """`app` is both a file and a package: started as a script, the file must import the
    package, not itself.
    """
    environ = {**os.environ, "GRADIO_SERVER_PORT": "eighty"}
    result = subprocess.run(
        [sys.executable, "app.py"], cwd=ROOT, env=environ, capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (2, "", 1), result.stderr
    assert result.stderr.startswith("port='eighty' is not a number")


def test_who_may_sign_in_comes_from_the_environment_and_is_not_repeated() -> None:
    settings = Settings.from_args([], {"QRAG_USERS": " ann:one:two-three  bob:correct-horse\n"})
    assert [(name, secret.get_secret_value()) for name, secret in settings.users] == [
        ("ann", "one:two-three"),
        ("bob", "correct-horse"),
    ]
    assert "horse" not in repr(settings)
    for wrong in ("ann:short", "anncorrect-horse", ":correct-horse", "bob:correct-horse bob:battery-staple"):
        with pytest.raises(BadRequest, match="QRAG_USERS") as refused:
            Settings.from_args([], {"QRAG_USERS": wrong})
        assert "horse" not in str(refused.value)
        assert "short" not in str(refused.value)


def test_signing_in_with_the_hub_needs_a_space_that_asks_for_it() -> None:
    assert Settings.from_args([], {"SPACE_ID": "someone/space", "OAUTH_CLIENT_ID": "id"}).hub_sign_in
    assert not Settings.from_args([], {"OAUTH_CLIENT_ID": "id"}).hub_sign_in


def test_names_of_the_app_come_from_flags_the_environment_and_the_space() -> None:
    flags = ["--allow-host", "Explorer.Example", "--allow-host", "[2001:db8::1]:8443"]
    assert Settings.from_args(flags, {"QRAG_ALLOW_HOST": "other.example"}).allow_hosts == (
        "explorer.example",
        "[2001:db8::1]:8443",
    )
    assert Settings.from_args([], {"QRAG_ALLOW_HOST": "a.example  b.example:81"}).allow_hosts == (
        "a.example",
        "b.example:81",
    )
    on_space = {"SPACE_ID": "someone/space", "SPACE_HOST": "someone-space.hf.space,explorer.example"}
    assert Settings.from_args([], on_space).space_hosts == ("someone-space.hf.space", "explorer.example")
    assert Settings.from_args([], {"SPACE_HOST": "someone-space.hf.space"}).space_hosts == ()
    for wrong in ("https://a.example", "a.example/b", "", "a.example:port", "*"):
        with pytest.raises(BadRequest, match="give NAME or NAME:PORT"):
            Settings.from_args(["--allow-host", wrong], {})
