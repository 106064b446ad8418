"""Hostile and broken files by the thousand."""

from __future__ import annotations

import gc
import os
import random
import struct
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from core.base.errors import BadDocument
from core.ingest import Converter, read_documents
from core.ingest.limits import MAX_TITLE_CHARACTERS
from core.lab.tasks.samples import list_samples
from tests.conftest import CAMPAIGN, COUNTS, RecordAttack
from tests.core.ingest.made import (
    docx_parts,
    encrypted_pdf,
    encrypted_zip,
    epub_parts,
    make_docx,
    make_epub,
    make_pdf,
    make_zip,
    paragraph,
    table,
    with_declared_size,
)

SLOWEST = 20.0
"""Seconds that one of these small files may take on a busy machine; most take a hundredth of one."""
MAX_GROWTH = 64 * 1024
"""KB that the memory may grow after the first quarter of the files."""

LINES = ["The ferry left at six.", "Anna (the keeper) hid the letter.", "Über die Brücke, 100 % sicher."]
LETTER = (
    paragraph("The letter", "Heading1")
    + "".join(map(paragraph, LINES))
    + table([["day", "rain"], ["Monday", "three"]])
)
CHAPTERS = [
    "<h1>One</h1><p>The ferry <b>left</b> at six.</p>",
    "<h1>Two</h1><table><tr><th>a</th></tr><tr><td>b</td></tr></table>",
]
MAIL = (
    b"Subject: =?utf-8?b?w4VzYQ==?=\r\nFrom: a@x.example\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\n"
    b"--x\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\nw4VzYQ==\r\n"
    b"--x\r\nContent-Type: text/html; charset=cp1252\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n"
    b"<p>f=F6re<p hidden>9\r\n--x--\r\n"
)


EXTENSIONS = (
    *(".txt", ".md", ".html", ".pdf", ".docx", ".epub", ".zip"),
    *(".json", ".eml", ".exe", "", ".DOCX", ".tar.gz"),
)


NAMES = (
    *("../../../etc/passwd", "/etc/shadow", "C:\\Windows\\x.txt", "a\0b.txt", "\u202etxt.exe", "..", "\n.md"),
    *("a/" * 200 + "b.txt", ".hidden", "ü𝒳\ud7ff.md"),
)


BYTES = (
    *(b"\0", b"\xff", b"\xed\xa0\x80", b"\xff\xff\xff\xff", b"\0\0\0\0", b"\x80" * 8, b"<![CDATA[", b"<!--"),
    *(b"%PDF-", b"PK\x01\x02", b"\x1b[2J", b"&a;"),
)


XML = (
    *("<!DOCTYPE d [<!ENTITY a 'a'>]>", "<w:p>" * 30, "</w:body>", "<w:t>\ufffe</w:t>", "&#xD800;"),
    *("&undefined;", "<![CDATA[x", "<w:tbl><w:tr><w:tc>", "\x01", "<!--"),
)


PDF = (
    *(b"/Filter /FlateDecode ", b"/Filter [/LZWDecode /RunLengthDecode] ", b"/Length 99999999 "),
    *(b"/Count -1 ", b"/Kids [2 0 R] ", b"/Contents 2 0 R ", b"<<" * 50, b"[" * 500),
)


Seeds = dict[str, bytes]
Mutation = Callable[[random.Random, bytes, Seeds], bytes]


def seeds() -> Seeds:
    """Sound files to begin with, by extension and number."""
    samples = {
        f"{sample.path.suffix}{i}": sample.path.read_bytes() for i, sample in enumerate(list_samples())
    }
    small = {
        ".pdf": make_pdf([LINES, LINES], "Tides"),
        ".pdf2": encrypted_pdf([LINES], ""),
        ".docx": make_docx(LETTER, "The letter"),
        ".epub": make_epub(CHAPTERS, "A book"),
        ".zip": make_zip({"a.txt": "\n".join(LINES), "b.md": "# B\n\n- x\n- y", "c.html": CHAPTERS[1]}),
        ".zip2": make_zip(
            {"in.zip": make_zip({"a.txt": LINES[0]}), "a.docx": make_docx(LETTER)}, zipfile.ZIP_STORED
        ),
        ".zip3": encrypted_zip({"a.txt": LINES[0]}),
        ".txt9": "\n".join(LINES).encode("utf-16"),
        ".html9": (
            b'<meta charset="utf-7"><script type="application/ld+json">{"a":'
            b' "\\ud800"}</script><table><tr><td>x<p>y<li>z</table>'
        ),
        ".json9": b'{"a": "\\u00c5sa \\ud83d\\ude00 \\\\u0041"}',
        ".eml": MAIL,
    }
    return samples | small


def truncated(rng: random.Random, data: bytes, _: Seeds) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def bits_flipped(rng: random.Random, data: bytes, _: Seeds) -> bytes:
    out = bytearray(data)
    for _flip in range(rng.choice((1, 1, 2, 8, 64))):
        if out:
            out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
    return bytes(out)


def slice_moved(rng: random.Random, data: bytes, _: Seeds) -> bytes:
    a, b, at = (rng.randrange(len(data) + 1) for _i in range(3))
    piece = data[min(a, b) : max(a, b)][:5_000]
    return rng.choice(
        (data[:at] + piece + data[at:], data[: min(a, b)] + data[max(a, b) :], piece * rng.randrange(1, 20))
    )


def bytes_put_in(rng: random.Random, data: bytes, _: Seeds) -> bytes:
    for _i in range(rng.choice((1, 3, 20))):
        piece, at = rng.choice(BYTES), rng.randrange(len(data) + 1)
        data = data[:at] + piece + data[at + rng.choice((0, len(piece))) :]
    return data


def spliced(rng: random.Random, data: bytes, others: Seeds) -> bytes:
    other = others[rng.choice(sorted(others))]
    at, other_at = rng.randrange(len(data) + 1), rng.randrange(len(other))
    return rng.choice((data + other, other[:other_at] + data, data[:at] + other[other_at:]))


def sizes_made_up(rng: random.Random, data: bytes, _: Seeds) -> bytes:
    return with_declared_size(data, rng.choice((0, 1, 2**31, 2**32 - 1))) if data.startswith(b"PK") else data


def number_changed(rng: random.Random, data: bytes, _: Seeds) -> bytes:
    """A field of four bytes behind some signature of a zip says something else."""
    signature = rng.choice((b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"))
    at = data.find(signature)
    if at < 0:
        return data
    at += rng.randrange(4, 42, 2)
    return data[:at] + struct.pack("<I", rng.choice((0, 1, 8, 99, 2**16, 2**31, 2**32 - 1))) + data[at + 4 :]


def packed_anew(rng: random.Random, data: bytes, _: Seeds) -> bytes:
    """A mutated file in a sound archive, under a hostile name, sometimes in several layers."""
    methods = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2)
    for _layer in range(rng.choice((1, 1, 1, 2, 4))):
        name = rng.choice((*NAMES, f"x{rng.choice(EXTENSIONS)}"))
        data = make_zip(
            {name: data} | ({"fine.txt": LINES[0]} if rng.random() < 0.3 else {}), rng.choice(methods)
        )
    return data


def part_broken(rng: random.Random, _: bytes, others: Seeds) -> bytes:
    """An office file or e-book with one broken part in a sound archive, or a PDF with one wrong entry: what
    gets as far as the libraries.
    """
    parts = rng.choice((docx_parts(LETTER, "The letter"), epub_parts(CHAPTERS, "A book"), None))
    if parts is None:
        pdf = others[".pdf"]
        at = rng.choice([i for i in range(len(pdf)) if pdf.startswith(b"<< ", i)]) + 3
        return pdf[:at] + rng.choice(PDF) + pdf[at:]
    name = rng.choice(sorted(parts))
    content = parts[name]
    raw = content if isinstance(content, bytes) else content.encode()
    at = rng.randrange(len(raw) + 1)
    put_in = raw[:at] + rng.choice(XML).encode() + raw[at:]
    broken = rng.choice(
        (raw[:at], put_in, put_in, raw.decode().encode("utf-16"), bits_flipped(rng, raw, others), b"")
    )
    if rng.random() < 0.1:
        del parts[name]
        return make_zip(parts)
    return make_zip({**parts, name: broken})


MUTATIONS: tuple[Mutation, ...] = (
    *(truncated, bits_flipped, bits_flipped, slice_moved, bytes_put_in, spliced, sizes_made_up),
    *(number_changed, packed_anew, part_broken, part_broken),
)


def hostile_file(seed: int, sound: Seeds) -> tuple[bytes, str]:
    """(bytes, name) of the file of a seed: one to three mutations."""
    rng = random.Random(seed)
    kind = rng.choice(sorted(sound))
    data = sound[kind]
    for _ in range(rng.choice((1, 1, 2, 3))):
        data = rng.choice(MUTATIONS)(rng, data, sound)
    suffix = kind.rstrip("0123456789") if rng.random() < 0.8 else rng.choice(EXTENSIONS)
    return data, f"{rng.choice(('file', *NAMES))}{suffix}"


def resident(pid: int | None) -> int:
    """KB of memory that a process holds; 0 for none."""
    if pid is None:
        return 0
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


def check(data: bytes, name: str, converter: Converter) -> str:
    """Reads a file; "read" or "refused". Fails when what comes is neither documents that can be used nor a
    sentence that can be shown.
    """
    try:
        documents = read_documents(data, name, converter)
    except BadDocument as error:
        sentence = str(error)
        assert sentence.isprintable()
        assert 20 < len(sentence) < 1_500
        assert "; " in sentence
        return "refused"
    assert documents
    for shown, document in documents.items():
        assert shown.isprintable()
        assert document.title.strip()
        assert document.title.isprintable()
        assert len(document.title) <= MAX_TITLE_CHARACTERS
        assert document.text.strip()
        assert "\0" not in document.text
        document.text.encode()  # no lone surrogates
        assert document.told.isprintable()
    return "read"


def test_hostile_files_give_documents_or_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_attack: RecordAttack
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    sound = seeds()
    outcomes: Counter[str] = Counter()
    own: list[int] = []
    children: dict[int | None, list[int]] = {}
    gc.collect()  # what earlier tests left open goes now
    n_descriptors = len(os.listdir("/proc/self/fd"))
    with Converter() as converter:
        if CAMPAIGN:
            # among so many some are taken for scans: text recognition takes its memory once, and now
            check(make_pdf([[]]), "scan.pdf", converter)
        for seed in range(COUNTS.hostile_files):
            data, name = hostile_file(seed, sound)
            began = time.monotonic()
            try:
                outcomes[check(data, name, converter)] += 1
            except Exception as error:
                raise AssertionError(f"seed {seed}, {name!r}, {len(data):,} bytes: {error!r}") from error
            assert time.monotonic() - began < SLOWEST, f"seed {seed}, {name!r}, {len(data):,} bytes"
            own.append(resident(os.getpid()))
            children.setdefault(converter.pid, []).append(resident(converter.pid))
    assert min(outcomes["read"], outcomes["refused"]) > COUNTS.hostile_files / 10
    for sizes in (own, *children.values()):
        quarter = len(sizes) // 4
        assert max(sizes[quarter:]) - max(sizes[: quarter + 1]) < MAX_GROWTH
    left = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert left == ({".ses": 0} if CAMPAIGN else {}), "text recognition marks that it was there"
    assert len(os.listdir("/proc/self/fd")) <= n_descriptors
    record_attack(
        "damaged and hostile files, opened as documents",
        COUNTS.hostile_files,
        f"{outcomes['read']:,} read, {outcomes['refused']:,} refused in a sentence",
    )
