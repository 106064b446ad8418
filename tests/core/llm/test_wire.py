"""What the connection itself decides: whose certificate it trusts."""

from __future__ import annotations

import datetime as dt
import ipaddress
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from core.llm import wire
from core.llm.address import Reach, read_address
from core.llm.endpoint import connect
from core.llm.protocol import LlmError, Message
from tests.core.llm.conftest import QUICK
from tests.core.llm.test_endpoint import resolver
from tests.llm_server import LlmServer, serve_llm

ASKED = [Message("user", "Is it so?")]


def certificate(folder: Path) -> Path:
    """A file with a key and a certificate for `models.example` and 127.0.0.1, signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    names = x509.SubjectAlternativeName(
        [x509.DNSName("models.example"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    )
    now = dt.datetime.now(dt.UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    plain = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = folder / "test.pem"
    path.write_bytes(plain + signed.public_bytes(serialization.Encoding.PEM))
    return path


@contextmanager
def serve_with(path: Path) -> Iterator[LlmServer]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    with serve_llm(tls=context) as server:
        yield server


def test_a_certificate_must_be_trusted_and_name_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = certificate(tmp_path)
    with serve_with(path) as server:
        port = read_address(server.url).port
        with pytest.raises(LlmError, match=r"has no certificate to trust \(self-signed certificate\)$"):
            connect(server.url, "tiny", patience=QUICK).chat(ASKED)
        monkeypatch.setenv("SSL_CERT_FILE", str(path))
        wire._tls.cache_clear()
        assert connect(server.url, "tiny", patience=QUICK).chat(ASKED).text == "Yes."
        reach = Reach(look_up=resolver("127.0.0.1"))
        named = connect(f"https://models.example:{port}", "tiny", reach=reach, patience=QUICK)
        assert named.chat(ASKED).text == "Yes.", "the name is verified, not the address that it led to"
        other = connect(f"https://other.example:{port}", "tiny", reach=reach, patience=QUICK)
        with pytest.raises(LlmError, match=r"has no certificate to trust \(Hostname mismatch"):
            other.chat(ASKED)
        assert len(server.requests) == 2
    wire._tls.cache_clear()


def test_what_lies_deeper_than_a_reply_does_is_never_parsed() -> None:
    deep = b"[" * 200
    for within in (b'{"content": "' + deep + b'"}', b'{"content": "\\"' + deep, b"[]" * 200):
        assert list(wire._data_of([b"data:" + within])) == [b"data:" + within + b"\n", b"\n"]
    with pytest.raises(wire.Failed, match="no part of a chat reply"):
        list(wire._data_of([b'data:{"a": ' + deep]))
    assert list(wire._unless_deep([deep[:50], deep[50:]])) == [b""]
    assert list(wire._unless_deep([b'{"error": ', b'"down"}'])) == [b'{"error": "down"}']
