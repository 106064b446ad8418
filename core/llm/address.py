"""Where language models may be asked.

Addresses, the list that a public server keeps, and what a host name resolves to at the moment of asking.
Decides: plain http and https, no names or passwords in an address, no query. Where strangers give addresses,
only listed hosts count, and every address that such a host resolves to must lie in the open internet,
addresses wrapped in other addresses included. The caller connects to what `Reach.places` returned and looks
nothing up again, so a name that changes its mind gains nothing. What is wrong with an address is said without
repeating it: people paste keys into the wrong field.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from core.base.errors import BadRequest
from core.llm.protocol import LlmError

HUB = "https://router.huggingface.co/v1"
"""The hub's inference where no provider is named. `hub` is short for it."""
EXAMPLE = "http://localhost:11434/v1"
PORTS = {"http": 80, "https": 443}
_LONGEST = 1000
"""Characters of an address."""
_GIVEN_OUT = ipaddress.ip_network("2000::/3")
"""All IPv6 addresses of the open internet; all others wrap an IPv4 address or stay in a network."""
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
"""Wraps the IPv4 internet where a network speaks IPv6 alone."""
_OF_CLOUDS = tuple(map(ipaddress.ip_network, ("168.63.129.16/32", "192.0.0.0/24")))
"""Where Azure and Oracle answer their own machines with keys, in ranges that Python calls global."""

_PATTERN = re.compile(
    r"(?P<scheme>https?)://(?P<host>[a-z0-9](?:[a-z0-9._-]{0,250}[a-z0-9.])?|\[[0-9a-f:.]{2,45}\])(?::(?P<port>[0-9]{1,5}))?(?P<path>(?:/[\w.~%+:-]*)*)",
    re.IGNORECASE | re.ASCII,
)

Place = tuple[int, tuple[Any, ...]]
"""(address family, socket address), as sockets take them."""
LookUp = Callable[..., Sequence[Any]]
"""`socket.getaddrinfo`, or something like it."""


@dataclass(frozen=True, slots=True)
class Address:
    """Base address of an endpoint; `/chat/completions` comes behind it."""

    scheme: str
    host: str
    """Lower case; an IPv6 address without its brackets."""
    port: int
    path: str

    @property
    def netloc(self) -> str:
        """Host, with the port where it is not the usual one."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> tuple[str, str, int]:
        """What a list of hosts compares, and what a key belongs to."""
        return self.scheme, self.host, self.port

    def __str__(self) -> str:
        return f"{self.scheme}://{self.netloc}{self.path}"


def read_address(text: str) -> Address:
    """The address in `text`, with `/v1` where it has no path. Raises BadRequest.

    >>> str(read_address("http://localhost:11434/")), read_address("hub").netloc
    ('http://localhost:11434/v1', 'router.huggingface.co')
    """
    text = text.strip()
    if len(text) > _LONGEST:
        raise BadRequest(
            f"the language model's address has {len(text):,} characters and may have {_LONGEST:,}; give one"
            f" such as {EXAMPLE}"
        )
    if "@" in text:
        raise BadRequest(
            "the language model's address holds a name or a password; leave them out and give the key by"
            " itself"
        )
    match = _PATTERN.fullmatch(HUB if text.lower() == "hub" else text)
    if match is None:
        raise BadRequest(
            "the language model's address must be http:// or https://, a host and perhaps a port and a path;"
            f" give one such as {EXAMPLE}, or: hub"
        )
    scheme = match["scheme"].lower()
    port = int(match["port"] or PORTS[scheme])
    if not 1 <= port <= 65535:
        raise BadRequest(f"port {port} in the language model's address must be between 1 and 65535")
    path = match["path"].rstrip("/").removesuffix("/chat/completions") or "/v1"
    return Address(scheme, match["host"].lower().strip("[]").rstrip("."), port, path)


def is_open(ip: str) -> bool:
    """Whether an IP address lies in the open internet, and so does any IPv4 address that it wraps.

    A network may wrap IPv4 behind a prefix of its own choice (RFC 6052), which an address doesn't show.

    >>> is_open("1.1.1.1"), is_open("169.254.169.254"), is_open("::ffff:10.0.0.1")
    (True, False, False)
    """
    address = ipaddress.ip_address(ip.partition("%")[0])
    if isinstance(address, ipaddress.IPv4Address):
        return (
            address.is_global
            and not address.is_multicast
            and not any(address in network for network in _OF_CLOUDS)
        )
    if address in _NAT64 or address.ipv4_mapped:
        return is_open(str(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)))
    wrapped = [one for one in (address.sixtofour, *(address.teredo or ())) if one is not None]
    return address in _GIVEN_OUT and address.is_global and all(is_open(str(one)) for one in wrapped)


@dataclass(frozen=True, slots=True)
class Reach:
    """Where calls may go."""

    listed: tuple[Address, ...] | None = None
    """Whose hosts may be asked; None: any."""
    private: bool = True
    """Whether a host may lie in this machine or its network."""

    def check(self, address: Address) -> None:
        """Raises BadRequest for a host that is not listed."""
        if self.listed is not None and address.origin not in {listed.origin for listed in self.listed}:
            choice = "whoever runs it would have to list the host"
            if self.listed:
                choice = "choose one of " + ", ".join(map(str, self.listed))
            raise BadRequest(f"this server does not ask language models at {address.netloc}; {choice}")

    def places(self, address: Address, look_up: LookUp = socket.getaddrinfo) -> list[Place]:
        """What to connect to, best first. Raises LlmError for a forbidden host, OSError for unknown ones."""
        addresses = look_up(address.host, address.port, type=socket.SOCK_STREAM)
        if not self.private and not all(is_open(str(place[0])) for *_, place in addresses):
            raise LlmError(
                f"{address.netloc} leads into a private network, which this server does not enter; choose a"
                " host of the open internet"
            )
        return [(family, place) for family, *_, place in addresses]


ANYWHERE = Reach()
"""For the person whose machine it is."""


def reach_of_strangers(listed: str) -> Reach:
    """The reach of a public server's visitors; `listed`: addresses or hosts (https). Raises BadRequest."""
    words = [word if "://" in word or word.lower() == "hub" else f"https://{word}" for word in listed.split()]
    return Reach(tuple(map(read_address, words)), private=False)
