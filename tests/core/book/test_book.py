"""Three lines of Python, and what a notebook shows."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bs4 import BeautifulSoup

import core
from core.answer.evidence import EvidenceAnswer
from core.answer.protocol import State
from core.base.errors import BadRequest
from core.base.events import Stopped
from core.book.book import Book, BookComparison
from core.runs.foreign import places
from core.runs.foreign.files import ForeignCall, ForeignPassage, ForeignRun
from core.runs.log import open_reader

QUERY = "Who slept in the <b>mill</b>?"
PEOPLE = ("Anna", "Bela", "Cyrus", "Dora", "Emil")
TEXT = "".join(f"# {name} <script>\n\n{name} slept in the mill & went <i>home</i>.\n\n" for name in PEOPLE)


@pytest.fixture
def book(tiny_checkpoints: dict[str, Path], home: Path, tmp_path: Path) -> Book:
    (tmp_path / "book.md").write_text(TEXT, encoding="utf-8")
    folder = tiny_checkpoints["relative10"]
    return core.open(tmp_path / "book.md", agent=folder, log=home / "log.duckdb")


def test_a_book_is_asked_and_compared(book: Book, tmp_path: Path) -> None:
    run = book.ask(QUERY, k=3, log=True)
    assert [step.chunk_id for step in run.steps] == list(run.trace.chosen)
    places = [(passage.metadata["start"], passage.metadata["end"]) for passage in run.evidence]
    assert places == sorted(places)
    text = book.workspace.documents[0].text
    assert [text[start:end] for start, end in places] == [passage.text for passage in run.evidence]
    assert run.complete is None, "nobody measured it for this agent"
    assert run.answer is None or run.answer in text
    assert open_reader(book.log_path).get(run.run_id).trace.chosen == run.trace.chosen
    line = json.dumps({"query": QUERY, "retrieved": [2, 0]})
    (tmp_path / "mine.jsonl").write_text(f"{line}\n7", encoding="utf-8")
    [mine] = book.bring(tmp_path / "mine.jsonl")
    assert "left out: 1; the first: entry 2 of mine.jsonl is no JSON object" in book.notices[-1]
    assert "All 2 passages" in mine._repr_html_()
    both = book.compare(QUERY, ["qrag", "bm25", mine], k=3)
    assert both["qrag"].trace.chosen == run.trace.chosen
    assert both["imported-ranks:mine"].trace.chosen == (2, 0)
    with pytest.raises(BadRequest, match=r"'mine' is no key .* among 'qrag', 'bm25', 'imported-ranks:mine'"):
        both["mine"]
    assert (
        repr(both)
        == "<BookComparison: 'qrag' (3 chunks), 'bm25' (3 chunks), 'imported-ranks:mine' (2 chunks)>"
    )
    with pytest.raises(BadRequest, match="method 'nothing' does not exist"):
        book.ask(QUERY, "nothing")
    with pytest.raises(BadRequest, match="can't be read"):
        core.open("there-is-no-such-file.txt")


def test_runs_that_are_brought_stand_beside_others_of_their_question_and_chunks(
    book: Book, tiny_checkpoints: dict[str, Path], tmp_path: Path
) -> None:
    run = book.ask(QUERY, "bm25", k=1)
    both = book.compare(QUERY, ["bm25", run], k=2)
    assert [len(one.steps) for one in both.runs.values()] == [2, 1]
    assert both["bm25 (2)"] is run
    (tmp_path / "other.md").write_text(TEXT.replace("mill", "barn"), encoding="utf-8")
    other = core.open(tmp_path / "other.md", agent=str(tiny_checkpoints["relative10"]))
    with pytest.raises(BadRequest, match="searched other chunks"):
        other.compare(QUERY, ["bm25", run])
    with pytest.raises(BadRequest, match="not 'Who\\?'; compare runs of one question"):
        book.compare("Who?", run)
    for k in (2.5, float("nan"), "3", 0):
        with pytest.raises(BadRequest, match="must be a whole number, 1 or more"):
            book.ask(QUERY, k=k)  # type: ignore[arg-type]
    with pytest.raises(BadRequest, match="is NoneType, not text"):
        book.ask(None)  # type: ignore[arg-type]
    with pytest.raises(BadRequest, match="no language model is connected"):
        book.compare(QUERY, "resrag-llm")["resrag-llm"]
    assert repr(book.compare(QUERY, "resrag-llm")) == "<BookComparison: 'resrag-llm' refused>"
    with pytest.raises(BadRequest, match=r"SPARC is not among a book's methods.* python -m core sparc"):
        book.compare(QUERY, ["sparc"])


def test_a_document_is_folded_once_for_all_that_is_brought(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A watched retriever brings each call by itself."""
    folded, fold = list[str](), places._Folded
    monkeypatch.setattr(places, "_Folded", lambda text: folded.append(text) or fold(text))
    for name in PEOPLE[:2]:
        passage = ForeignPassage(text=f"{name.upper()} SLEPT in the mill")
        [run] = book.bring(ForeignRun(QUERY, (ForeignCall(QUERY, (passage,)),), "mine"))
        assert len(run.evidence) == 1
    assert len(folded) == 1


def test_a_question_longer_than_the_agent_reads_is_told(book: Book) -> None:
    most = book.agent.spec.max_state_part_tokens - 2
    both = book.compare("where " * (most + 1), ["qrag", "bm25"], k=1)
    told = f"Too long: the agent reads the first {most} of {most + 1} tokens. Ask in fewer words."
    assert (both["qrag"].notice, both["bm25"].notice) == (told, ""), "BM25 reads all words"
    assert told in both._repr_html_()
    assert book.ask("where " * most, k=1).notice == ""


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (None, r"^NoneType can't be opened; give a file's path or a document, or several$"),
        (5, "^int can't be opened"),
        (b"Anna", "^bytes can't be opened"),
        ([None], "^NoneType can't be opened"),
        ("https://example.org/x.pdf", "x.pdf is an address, and none is fetched; download it first"),
        ("Anna slept. " * 600, "^'.{80}' has 7,200 characters and is no file's path"),
        ("\0", "has 1 characters and is no"),
    ],
)
def test_what_is_no_document_is_one_sentence(given: Any, told: str) -> None:
    with pytest.raises(BadRequest, match=told):
        core.open(given)


def test_what_is_no_run_or_method_is_one_sentence(book: Book) -> None:
    with pytest.raises(BadRequest, match="int can't be brought; give a file's path or a run, or several"):
        book.bring(5)  # type: ignore[arg-type]
    with pytest.raises(BadRequest, match="the question is empty"):
        book.bring(ForeignRun(" ", (), "mine"))
    for methods in (None, [5]):
        with pytest.raises(BadRequest, match="can't be compared; give a method's name or a run"):
            book.compare(QUERY, methods)  # type: ignore[arg-type]
    assert len(book.ask(QUERY, "bm25", k=np.int64(2)).steps) == 2  # type: ignore[arg-type]
    with pytest.raises(BadRequest, match="k=True must be a whole number"):
        book.ask(QUERY, k=True)
    for key in (5, ["bm25"], slice(1)):
        with pytest.raises(BadRequest, match="is no key of this comparison; choose among 'bm25'"):
            BookComparison({}, {"bm25": "refused"})[key]  # type: ignore[index]


def test_a_notebook_shows_text_as_text(book: Book) -> None:
    run, both = book.ask(QUERY, k=3), book.compare(QUERY, ["qrag", "bm25"], k=3)
    for html, n_strips in ((run._repr_html_(), 1), (both._repr_html_(), 2)):
        page = BeautifulSoup(html, "html.parser")
        assert len(page.find_all("svg")) == n_strips
        assert page.find_all(["script", "i", "b"]) == []
        assert "<i>home</i>" in page.get_text()
    assert len(BeautifulSoup(run._repr_html_(), "html.parser").tbody.find_all("tr")) == len(run.evidence)
    twice = BeautifulSoup(book.compare(QUERY, [run, run])._repr_html_(), "html.parser")
    assert [head.get_text() for head in twice.find_all("th")] == ["chunk", "Q-RAG", "Q-RAG (2)"]
    started = replace(run.trace.started, config=run.trace.started.config.with_(review_threshold=0.35))
    stopped = Stopped("budget", 3, review=(0.4, 0.4, 0.1), taken_back=run.trace.chosen[2:])
    reviewed = replace(run, trace=replace(run.trace, started=started, stopped=stopped))
    assert f"chunk {run.trace.chosen[2]} taken back" in reviewed._repr_html_()


@pytest.mark.parametrize(
    ("state", "changes", "said"),
    [
        ("answer", {}, "Anna, 91 % sure"),
        ("guess", {}, "Best guess (91 %), please check: Anna"),
        ("absent", {"text": ""}, "Not in this document, as far as I see"),
        ("passages", {"text": "", "asks": "a number"}, "Asks for a number, which no words of a text are"),
    ],
)
def test_an_answer_is_told_as_on_the_pages(
    book: Book, state: State, changes: dict[str, Any], said: str
) -> None:
    values: dict[str, Any] = {"text": "Anna", "confidence": 0.91, "by": "reader", "state": state, **changes}
    run = replace(book.ask(QUERY, "bm25", k=1), reading=EvidenceAnswer(**values), complete=0.8)
    assert run.said.startswith(said)
    assert repr(run) == f"<BookRun: bm25 on {QUERY!r}; 1 chunk; {run.said}>"
    paragraphs = [part.get_text() for part in BeautifulSoup(run._repr_html_(), "html.parser").find_all("p")]
    assert paragraphs[1:3] == [f"{run.said}.", "The evidence is complete with a chance of 80 %."]
    assert (
        run.said in BeautifulSoup(BookComparison({"bm25": run}, {})._repr_html_(), "html.parser").get_text()
    )


def test_importing_it_is_quick() -> None:
    heavy = (
        "import core, sys; print(sorted({'torch', 'transformers', 'duckdb', 'numpy'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", heavy], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
