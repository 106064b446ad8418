"""The child process: its limits, cancelling, and that nothing is left of it, however it ends."""

import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

import pytest

from core.base.errors import BadDocument, Cancelled
from core.ingest import Converter, converter, read_document
from core.ingest.html import read_html
from core.ingest.limits import MAX_CONVERSION_SECONDS
from tests.conftest import ROOT, few
from tests.core.ingest.made import make_docx, make_long_pdf, make_pdf, make_pdf_bomb, paragraph


@cache
def slow():
    return make_long_pdf()


@pytest.fixture(autouse=True)
def no_temporary_file_is_left(tmp_path, monkeypatch):
    """Every test here also shows this."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield
    assert list(tmp_path.iterdir()) == []


def is_alive(pid):
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_one_child_serves_one_opening_is_told_no_environment_and_ends_with_it(monkeypatch):
    monkeypatch.setenv("API_KEY", "canary-in-the-mine")
    before = len(os.listdir("/proc/self/fd"))
    with Converter() as shared:
        assert read_document(make_docx(paragraph("one")), "a.docx", shared).text == "one"
        pid = shared.pid
        assert read_document(make_docx(paragraph("two")), "b.docx", shared).text == "two"
        assert shared.pid == pid
        assert is_alive(pid)
        assert b"canary-in-the-mine" not in Path(f"/proc/{pid}/environ").read_bytes()
    assert not is_alive(pid)
    assert shared.pid is None
    assert len(os.listdir("/proc/self/fd")) == before


def test_cancelling_ends_the_child_at_once():
    seen = []

    def cancel(*_):
        seen.append(shared.pid)
        if len(seen) > 5:
            raise Cancelled

    with Converter() as shared:
        with pytest.raises(Cancelled):
            read_document(slow(), "slow.pdf", shared, cancel)
        assert not is_alive(seen[0])
        assert read_document(make_docx(paragraph("next")), "a.docx", shared).text == "next"


def test_what_takes_too_long_is_ended(monkeypatch):
    assert converter.seconds_for(6_600) < MAX_CONVERSION_SECONDS / 4
    assert converter.seconds_for(64_000_000) == MAX_CONVERSION_SECONDS
    monkeypatch.setattr(converter, "seconds_for", lambda _: 1)
    with Converter() as shared:
        with pytest.raises(
            BadDocument, match=r"slow\.pdf takes longer to convert than 1 s; open a part of it"
        ):
            read_document(slow(), "slow.pdf", shared)
        assert shared.pid is None
    monkeypatch.setattr(converter, "MAX_READING_SECONDS", 0)
    with pytest.raises(
        BadDocument, match=r"longer than 0 s when it came to a\.pdf; open fewer files at once"
    ):
        read_document(make_pdf([["text"]]), "a.pdf")


@pytest.mark.campaign
def test_a_conversion_that_takes_too_much_memory_is_ended():
    with pytest.raises(BadDocument, match=r"big\.pdf needs more than 1,073,741,824 bytes of memory to be"):
        read_document(make_pdf_bomb(1_100), "big.pdf")


@pytest.mark.parametrize(
    ("sent", "sentence"),
    few(
        [
            (signal.SIGXCPU, "takes longer to convert than [0-9]+ s; open a part"),
            (signal.SIGKILL, "needs more than 1,073,741,824 bytes of memory"),
            (signal.SIGSEGV, "could not be converted \\(the converter ended with status -11\\)"),
        ]
    ),
)
def test_a_child_that_dies_is_told_about_and_replaced(sent, sentence):
    with Converter() as shared:
        with pytest.raises(BadDocument, match=sentence):
            read_document(slow(), "slow.pdf", shared, lambda *_: os.kill(shared.pid, sent))
        assert read_document(make_docx(paragraph("next")), "a.docx", shared).text == "next"


def test_a_killed_parent_takes_its_child_along(tmp_path):
    source = (
        "import sys; sys.path.insert(0, '.')\nfrom core.ingest import Converter, read_document\nfrom"
        " tests.core.ingest.test_converter import slow\nwith Converter() as shared: read_document(slow(),"
        " 'slow.pdf', shared, lambda *_: print(shared.pid, flush=True))\n"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", source]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, env=environment) as parent:
        child = int([parent.stdout.readline() for _ in range(5)][-1])
        assert is_alive(child)
        parent.kill()
    until = time.monotonic() + 30
    while is_alive(child) and time.monotonic() < until:
        time.sleep(0.05)
    assert not is_alive(child)


def test_a_title_of_any_length_comes_through_clipped():
    document = read_document(make_docx(paragraph("text"), "Tides " * 500_000), "a.docx")
    assert document.title.startswith("Tides Tides")
    assert len(document.title) == 200


PAGE = (
    '<title>Tides</title><script type=\'application/ld+json\'>{"a": "\\ud83d"}</script><h1>Tides</h1><p>The'
    " ferry left ```at six.</p>"
)


def test_small_pages_are_read_without_a_child_and_others_in_it_alike(monkeypatch):
    monkeypatch.setattr(converter, "MAX_OWN_TAGS", 100)
    monkeypatch.setattr(converter, "MAX_OWN_CHARACTERS", 1_000)
    with Converter() as shared:
        own = shared.read_page(PAGE, "a.html")
        assert shared.pid is None
        assert shared.convert(PAGE.encode(), "html", "a.html") == own == read_html(PAGE, "a.html")
        assert own.json_ld == ({"a": "\ufffd"},)
    with Converter() as shared:
        assert shared.read_page("<p>" * 50, "a.html").markdown == ""
        assert shared.read_page("<p>" * 50, "b.html").markdown == ""
        assert shared.pid is None
        assert shared.read_page("<p>One more.", "c.html").markdown == "One more."
        assert shared.pid is not None
    with Converter() as shared:
        assert shared.read_page("<p>" + "x" * 1_000, "a.html").markdown == "x" * 1_000
        assert shared.pid is not None


@pytest.mark.campaign
def test_the_childs_limits_hold_where_a_lower_hard_one_is_set():
    with Converter() as shared:
        read_document(make_docx(paragraph("one")), "a.docx", shared)
        ticks = Path(f"/proc/{shared.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        used = sum(map(int, ticks)) // os.sysconf("SC_CLK_TCK")
        resource.prlimit(shared.pid, resource.RLIMIT_CPU, (used + 3, used + 3))  # one to two seconds are left
        assert read_document(make_docx(paragraph("two")), "b.docx", shared).text == "two"
        with pytest.raises(BadDocument, match=r"slow\.pdf takes longer to convert than"):
            read_document(slow(), "slow.pdf", shared)


def test_all_time_that_goes_by_is_counted_and_may_end_it():
    seconds = []

    class NoneLeft(Exception):
        pass

    def spend(passed):
        seconds.append(passed)
        if sum(seconds) > 0.5:
            raise NoneLeft

    with Converter(spend) as shared:
        shared.read_page(PAGE, "a.html")
        assert 0 < sum(seconds) < 0.5
        with pytest.raises(NoneLeft):
            read_document(slow(), "slow.pdf", shared)
        assert shared.pid is None
        with pytest.raises(NoneLeft):
            shared.read_page(PAGE, "a.html")


@pytest.mark.campaign
def test_hostile_gaps_and_unfinished_tags_take_linear_time():
    source = (
        "import resource; from core.ingest.decode import decode; from core.ingest.html import"
        " read_html\nresource.setrlimit(resource.RLIMIT_CPU, (15, 15))\ndecode(b'<meta ' * 600_000, 'a.html',"
        " is_html=True)\nfor gap in (' ', '\\n', ' \\n'): read_html('<pre>a' + gap * 300_000 + 'x</pre><p>a'"
        " + gap * 300_000 + 'x', 'a.html')\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", source], cwd=ROOT, env=environment, check=True)
