"""Mails: what they say in whatever form, and bounds on hostile ones."""

from email.message import EmailMessage

import pytest

from core.base.errors import BadDocument
from core.ingest import read_document


def mail(**parts):
    made = EmailMessage()
    made["Subject"], made["From"], made["Date"] = (
        "Båten och Måsen",
        "Åsa <a@x.example>",
        "Mon, 04 Mar 2024 10:00:00 +0100",
    )
    if "text" in parts:
        made.set_content(parts["text"], cte="base64")
    if "page" in parts:
        (made.add_alternative if "text" in parts else made.set_content)(parts["page"], subtype="html")
    if "file" in parts:
        made.add_attachment(parts["file"], maintype="application", subtype="pdf", filename="a.pdf")
    return made.as_bytes()


HEAD = "Subject: Båten och Måsen\nFrom: Åsa <a@x.example>\nDate: Mon, 04 Mar 2024 10:00:00 +0100\n\n"
PAGE = "<p>Fee <b>340</b><p hidden>999</p>"


@pytest.mark.parametrize(
    ("parts", "text", "told"),
    [
        ({"text": "Avgiften är 340."}, "Avgiften är 340.", ""),
        ({"text": "Avgiften är 340.", "page": PAGE}, "Avgiften är 340.", ""),
        ({"text": "\n", "page": PAGE}, "Fee **340**", ""),
        ({"page": PAGE}, "Fee **340**", ""),
        ({"text": "340", "file": b"%PDF-"}, "340", "pictures and further pages left out: 1."),
    ],
)
def test_a_mail_gives_its_headers_and_its_text_or_page(parts, text, told):
    document = read_document(mail(**parts), "a.eml")
    assert (document.title, document.text) == ("Båten och Måsen", HEAD + text)
    assert told in document.told


def test_those_who_got_a_copy_are_named():
    text = read_document(b"To: a@x.example\nCc: Bo <b@x.example>\n\nThe fee is 340.", "a.eml").text
    assert text == "To: a@x.example\nCc: Bo <b@x.example>\n\nThe fee is 340."


def test_a_page_saved_as_a_mail_is_a_page():
    saved = (
        b"From: <Saved by Blink>\r\nSubject: Fees\r\nMIME-Version: 1.0\r\nContent-Type: multipart/related;\r\n"
        b'\ttype="text/html";\r\n\tboundary="x"\r\n\r\n--x\r\nContent-Type: text/html\r\n'
        b"Content-Transfer-Encoding: quoted-printable\r\n\r\n<p>A =\r\n340 =E2=80=94 b</p>\r\n--x--\r\n"
    )
    document = read_document(saved, "a.mhtml")
    assert (document.kind, document.text.partition("\n\n")[2]) == ("html", "A 340 — b")


@pytest.mark.parametrize(
    "data",
    [
        b"Content-Type: message/rfc822\n\n" * 5_000,
        b"".join(b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (i, i) for i in range(500)),
        b"Content-Type: text/plain; a=" + b'";"' * 5_000 + b"\n\ntext",
        b"Content-Type: multipart/mixed; boundary=b\n\n" + b"--b\n\n" * 20_000,
        b"Content-Type: multipart/mixed\n\ntext",
        b"Subject: only\n\n",
    ],
)
def test_hostile_mails_are_refused_in_a_sentence(data):
    with pytest.raises(BadDocument, match=r"^a\.eml .*(open that|open one that has)"):
        read_document(data, "a.eml")


def test_a_broken_subject_stays_as_it_stands():
    document = read_document(b"Subject: =?utf-8?b?x?=\n\nThe fee is 340.", "a.eml")
    assert (document.title, document.text) == ("=?utf-8?b?x?=", "Subject: =?utf-8?b?x?=\n\nThe fee is 340.")


@pytest.mark.parametrize("name", ["a.mhtml", "a.mht", "a.eml"])
def test_a_page_saved_under_the_name_of_a_mail_is_a_page(name: str) -> None:
    page = (
        "\ufeff<!DOCTYPE html><title>Ferry</title><body><h2>Fees</h2><p>At <b>six</b>.</p><script>x</script>"
    )
    document = read_document(page.encode(), name)
    assert (document.kind, document.text) == ("html", "Ferry\n\n## Fees\n\nAt **six**.")
