"""How the app was started.

Flags win over environment, environment over defaults; passwords come from the environment alone, since flags
are seen by everyone on the machine.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr

from core.base.errors import BadRequest
from core.llm import KEY_VARIABLE

USERS_VARIABLE = "QRAG_USERS"
"""Who may sign in, as `name:password` separated by spaces; without it, nobody has to."""
SHORTEST_PASSWORD = 8
HOSTS_VARIABLE = "QRAG_ALLOW_HOST"
LOOPBACK = "127.0.0.1"
EVERYWHERE = "0.0.0.0"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Frozen for the life of the process."""

    host: str = LOOPBACK
    """Address to listen on."""
    port: int | None = None
    """Port to listen on; None takes the first free one from 7860 upwards."""
    public: bool = False
    """Every visitor has documents and runs of their own, and what could harm others is off."""
    log: Path | None = None
    """The experiment log; None is the default one."""
    checkpoint: str | None = None
    """Name or folder of the checkpoint to begin with; None is the default one."""
    hub_sign_in: bool = False
    """Visitors may sign in with their account of the hub, and find their runs again in another browser."""
    users: tuple[tuple[str, SecretStr], ...] = ()
    """Name and password of everyone who may use the app; empty: whoever reaches it may."""
    allow_hosts: tuple[str, ...] = ()
    """NAME or NAME:PORT by which the app is addressed beside its own address, in lower case, as a proxy's."""
    space_hosts: tuple[str, ...] = ()
    """The same on a Space, as the hub gives it; empty elsewhere."""
    llm_url: str | None = None
    """Address of the language model for everyone who gives none; None: nobody has one but their own."""
    llm_model: str | None = None
    """What it is called there."""
    llm_key: SecretStr | None = None
    llm_reply_tokens: int | None = None
    """Most tokens of its replies; None: what each task needs."""
    llm_allow: str = ""
    """In public mode, the addresses whose hosts visitors may ask, between blanks; empty: none."""
    export_repository: str | None = None
    """Data set on the hub, OWNER/NAME, that holds a copy of the log; None keeps the log here alone."""

    def __post_init__(self) -> None:
        if self.port is not None and not 1 <= self.port <= 65535:
            raise BadRequest(f"port={self.port} must be between 1 and 65535")

    @classmethod
    def from_args(cls, args: Sequence[str], environ: Mapping[str, str] = os.environ) -> Settings:
        """Reads flags and environment; OAUTH_CLIENT_ID is there where a Space's front matter asks for it.

        Raises BadRequest for a port, a number, a host or a list of users that is none. An unknown flag ends
        the process with exit status 2, as argparse does.
        """
        flags = _parser().parse_args(args)
        on_space = bool(environ.get("SPACE_ID"))
        return cls(
            host=flags.host or environ.get("GRADIO_SERVER_NAME") or (EVERYWHERE if on_space else LOOPBACK),
            port=_number("port", flags.port or environ.get("GRADIO_SERVER_PORT"), "one between 1 and 65535"),
            public=flags.public or on_space,
            log=Path(flags.log) if flags.log else None,
            checkpoint=flags.checkpoint or None,
            hub_sign_in=on_space and bool(environ.get("OAUTH_CLIENT_ID")),
            users=_users(environ.get(USERS_VARIABLE, "")),
            allow_hosts=_hosts(flags.allow_host or environ.get(HOSTS_VARIABLE, "").split()),
            # several where the Space has a domain of its own
            space_hosts=_hosts(re.findall(r"[^,\s]+", environ.get("SPACE_HOST", ""))) if on_space else (),
            llm_url=environ.get("QRAG_LLM_URL") or None,
            llm_model=environ.get("QRAG_LLM_MODEL") or None,
            llm_key=SecretStr(environ[KEY_VARIABLE]) if environ.get(KEY_VARIABLE) else None,
            llm_reply_tokens=_number(
                "QRAG_LLM_REPLY_TOKENS", environ.get("QRAG_LLM_REPLY_TOKENS"), "one, or none"
            ),
            llm_allow=environ.get("QRAG_LLM_ALLOW", ""),
            export_repository=environ.get("QRAG_EXPORT_REPO") or None,
        )


def name_of(host: str) -> str:
    """The name or address in NAME, NAME:PORT, [IPV6]:PORT or a bare IPv6 address; empty for anything else.

    >>> name_of("localhost:7860"), name_of("[::1]:7860"), name_of("::1"), name_of("a/b")
    ('localhost', '::1', '::1', '')
    """
    parts = re.fullmatch(
        r"\[([0-9a-f:.]+)\](?::\d{1,5})?|([\w.-]+)(?::\d{1,5})?|([0-9a-f:]+)", host, re.ASCII
    )
    return next(filter(None, parts.groups())) if parts else ""


def _hosts(names: Sequence[str]) -> tuple[str, ...]:
    for name in names:
        if not name_of(name.lower()):
            raise BadRequest(
                f"host {name[:80]!r} is no name; give NAME or NAME:PORT as it stands in a browser's address"
                " line, without http://"
            )
    return tuple(name.lower() for name in names)


def _number(name: str, text: str | None, wanted: str) -> int | None:
    try:
        return int(text) if text else None
    except ValueError:
        raise BadRequest(f"{name}={text!r} is not a number; give {wanted}") from None


def _users(text: str) -> tuple[tuple[str, SecretStr], ...]:
    """What is wrong is said without the words themselves, which are secret."""
    users = []
    for number, pair in enumerate(text.split(), start=1):
        name, _, password = pair.partition(":")
        if not name or len(password) < SHORTEST_PASSWORD:
            raise BadRequest(
                f"user {number} of {USERS_VARIABLE} needs a name, a colon and a password of"
                f" {SHORTEST_PASSWORD} or more characters without spaces"
            )
        users.append((name, SecretStr(password)))
    if len({name for name, _ in users}) < len(users):
        raise BadRequest(
            f"{USERS_VARIABLE} names somebody twice; give each of the {len(users)} users a name of their own"
        )
    return tuple(users)


def _parser() -> argparse.ArgumentParser:
    about = "Watch a multi-step retriever work its way through a long document."
    parser = argparse.ArgumentParser(prog="app.py", description=about, allow_abbrev=False)
    host = (
        f"address to listen on (default {LOOPBACK}); whoever can reach another one is trusted fully unless"
        " --public is on"
    )
    public = (
        "visitors are strangers to each other: own runs and documents, bounds, no training (implied on a"
        " Space)"
    )
    allow = (
        "name by which the app is addressed beside its own address, such as a proxy's; may be repeated (or"
        f" {HOSTS_VARIABLE}, with blanks between)"
    )
    log = "the experiment log (default: the one in the data folder)"
    checkpoint = "the checkpoint to begin with (default: the one that ships with the app)"
    parser.add_argument("--host", help=host)
    parser.add_argument("--port", help="port to listen on (default: the first free one from 7860)")
    parser.add_argument("--public", action="store_true", help=public)
    parser.add_argument("--allow-host", action="append", metavar="NAME[:PORT]", help=allow)
    parser.add_argument("--log", metavar="FILE", help=log)
    parser.add_argument("--checkpoint", metavar="NAME_OR_DIR", help=checkpoint)
    return parser
