"""Where language models may be asked.

Where strangers give addresses, only listed hosts count, and every address that such a host resolves to must
lie in the open internet, addresses wrapped in other addresses included. The caller connects to what
`Reach.places` returned and looks nothing up again.
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
_GIVEN_OUT = ipaddress.ip_network("2000::/3")
"""All IPv6 addresses of the open internet; all others wrap an IPv4 address or stay in a network."""
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
"""Wraps the IPv4 internet where a network speaks IPv6 alone."""
_OF_CLOUDS = tuple(map(ipaddress.ip_network, ("168.63.129.16/32", "192.0.0.0/24")))
"""Where Azure and Oracle answer their own machines with keys, in ranges that Python calls global."""
_PATTERN = re.compile(
    r"(?P<scheme>https?)://(?P<host>[a-z0-9](?:[a-z0-9._-]{0,250}[a-z0-9.])?|\[[0-9a-f:.]{2,45}\])"
    r"(?::0*(?P<port>[1-9][0-9]{0,4}))?(?P<path>(?:/[\w.~%+:-]*)*)",
    re.IGNORECASE | re.ASCII,
)
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
    """The address in `text`, with `/v1` where it has no path. Raises BadRequest, without repeating the text:
    people paste keys into the wrong field.

    >>> str(read_address("http://localhost:11434/")), read_address("hub").netloc
    ('http://localhost:11434/v1', 'router.huggingface.co')
    """
    text = text.strip()
    match = _PATTERN.fullmatch(HUB if text.lower() == "hub" else text[:1000])
    scheme = match["scheme"].lower() if match else ""
    port = int(match["port"] or PORTS[scheme]) if match else 0
    if not match or len(text) > 1000 or port > 65535:
        raise BadRequest(
            "the language model's address must be http:// or https://, a host and perhaps a port and a path,"
            " up to 1,000 characters without a name, a password or a query; give one such as"
            f" {EXAMPLE}, or: hub"
        )
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
        of_a_cloud = any(address in network for network in _OF_CLOUDS)
        return address.is_global and not address.is_multicast and not of_a_cloud
    if address in _NAT64 or address.ipv4_mapped:
        return is_open(str(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)))
    wrapped = [ip for ip in (address.sixtofour, *(address.teredo or ())) if ip is not None]
    return address in _GIVEN_OUT and address.is_global and all(is_open(str(ip)) for ip in wrapped)


@dataclass(frozen=True, slots=True)
class Reach:
    """Where calls may go."""

    listed: tuple[Address, ...] | None = None
    """Whose hosts may be asked; None: any."""
    private: bool = True
    """Whether a host may lie in this machine or its network."""
    look_up: LookUp = socket.getaddrinfo

    def check(self, address: Address) -> None:
        """Raises BadRequest for a host that is not listed."""
        if self.listed is not None and address.origin not in {listed.origin for listed in self.listed}:
            listed = ", ".join(map(str, self.listed))
            choice = f"choose one of {listed}" if listed else "whoever runs it would have to list the host"
            raise BadRequest(f"this server does not ask language models at {address.netloc}; {choice}")

    def places(self, address: Address) -> list[tuple[str, int]]:
        """(IP, port) to connect to, best first. Raises LlmError for a forbidden host, OSError if unknown."""
        try:
            found = self.look_up(address.host, address.port, type=socket.SOCK_STREAM)
        except UnicodeError as error:  # between two points stands nothing, or too much
            raise socket.gaierror from error
        places = [(str(place[0]), int(place[1])) for *_, place in found]
        if not self.private and not all(is_open(ip) for ip, _ in places):
            raise LlmError(
                f"{address.netloc} leads into a private network, which this server does not enter; choose a"
                " host of the open internet"
            )
        return places


ANYWHERE = Reach()
"""For the person whose machine it is."""


def reach_of_strangers(listed: str) -> Reach:
    """The reach of a public server's visitors; `listed`: addresses or hosts (https). Raises BadRequest."""
    words = [word if "://" in word or word.lower() == "hub" else f"https://{word}" for word in listed.split()]
    return Reach(tuple(map(read_address, words)), private=False)
