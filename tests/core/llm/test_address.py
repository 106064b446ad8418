"""Addresses as people write them, and what counts as the open internet."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import replace

import pytest

from core.base.errors import BadRequest
from core.llm.address import HUB, Reach, is_open, reach_of_strangers, read_address
from core.llm.protocol import LlmError


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("http://localhost:11434", "http://localhost:11434/v1"),
        (" https://API.Example.org/v1/ ", "https://api.example.org/v1"),
        ("https://api.example.org:443/openai/v1/chat/completions", "https://api.example.org/openai/v1"),
        ("http://[::1]:8080/v1", "http://[::1]:8080/v1"),
        ("http://localhost.:80", "http://localhost/v1"),
        ("Hub", HUB),
    ],
)
def test_an_address_is_read_as_people_write_it(text: str, address: str) -> None:
    assert str(read_address(text)) == address
    assert read_address(address) == read_address(text)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "localhost:11434",
            "ftp://example.org",
            "file:///etc/passwd",
            "http://",
            "http:///v1",
            "http://a b",
            "http://exa\tmple.org",
        ),
        *(
            "http://example.org/v1?key=abc",
            "http://example.org#x",
            "http://exämple.org",
            "http://[::1",
            "http://example.org:99999",
            "http://example.org:0",
        ),
        *(
            "http://user:secret@example.org",
            "http://example.org\\@evil.example",
            "sk-canary-0123456789",
            "http://" + "a" * 2000,
        ),
    ],
)
def test_what_is_no_address_is_refused_without_being_repeated(text: str) -> None:
    with pytest.raises(BadRequest, match="language model's address") as refused:
        read_address(text)
    assert "secret" not in str(refused.value)
    assert "canary" not in str(refused.value)


@pytest.mark.parametrize(
    "ip", ["8.8.8.8", "2606:4700:4700::1111", "64:ff9b::808:808", "::ffff:8.8.8.8", "2002:808:808::1"]
)
def test_the_open_internet(ip: str) -> None:
    assert is_open(ip)


@pytest.mark.parametrize(
    "ip",
    [
        *(
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "224.0.0.1",
            "255.255.255.255",
        ),
        *(
            "::1",
            "::",
            "fe80::1",
            "fe80::1%eth0",
            "fc00::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "2002:7f00:1::",
            "64:ff9b::7f00:1",
            "64:ff9b::a00:1",
        ),
        # what clouds answer their machines with keys under: AWS and others, their IPv6, Alibaba, Azure,
        # Oracle
        *("::ffff:169.254.169.254", "fd00:ec2::254", "100.100.100.200", "168.63.129.16", "192.0.0.192"),
        # NAT64 around the cloud's, NAT64 of a network's own, IPv4-compatible and translated, site-local
        *(
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::7f00:1",
            "64:ff9b:1::808:808",
            "::127.0.0.1",
            "::10.0.0.1",
            "::8.8.8.8",
            "::ffff:0:127.0.0.1",
            "fec0::1",
            "feff::1",
        ),
        # 6to4 and Teredo around addresses inside, the client's under its mask; not given out
        *(
            "2002:a00:1::",
            "2002:a9fe:a9fe::1",
            "2002:a83f:8110::1",
            "2001:0:7f00:1:0:0:f7f7:f7f7",
            "2001:0:808:808:0:0:80ff:fffe",
            "4000::1",
            "2001:db8::1",
        ),
    ],
)
def test_what_lies_inside(ip: str) -> None:
    assert not is_open(ip)


def gives(*ips: str) -> Callable[..., list[tuple[object, ...]]]:
    return lambda _, port, **__: [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, port)) for ip in ips]


def test_one_address_inside_spoils_a_name() -> None:
    address, reach = read_address("https://api.example.org"), reach_of_strangers("api.example.org")
    open_ones = replace(reach, look_up=gives("8.8.8.8", "1.1.1.1"))
    assert open_ones.places(address) == [("8.8.8.8", 443), ("1.1.1.1", 443)]
    with pytest.raises(LlmError, match="leads into a private network"):
        replace(reach, look_up=gives("8.8.8.8", "10.0.0.1")).places(address)
    assert Reach(look_up=gives("10.0.0.1")).places(address) == [("10.0.0.1", 443)]


@pytest.mark.parametrize("host", ["2130706433", "0x7f.1", "127.1", "localhost"])
def test_other_spellings_of_this_machine_are_told_by_what_they_lead_to(host: str) -> None:
    with pytest.raises(LlmError, match="leads into a private network"):
        Reach((read_address(f"http://{host}"),), private=False).places(read_address(f"http://{host}"))
