"""Questions about whole documents on the Evaluate tab."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from app.pages.evaluate.documents import view
from app.services.document_evaluations import (
    DocumentOrder,
    DocumentsProgress,
    evaluate_files,
    keep_evaluation,
    kept_evaluation,
)
from app.services.shared import Services
from core.base.errors import BadRequest, Cancelled
from core.lab.evaluate.documents import read_document_rows
from core.lab.studies.documents import documents
from core.lab.tasks.documents import DocumentQuestion
from core.lab.tasks.samples import list_samples
from core.llm.endpoint import connect
from core.llm.wire import Patience
from core.views.charts import cell_text
from core.views.draw.nodes import Node
from tests.app.axe import grave_faults
from tests.app.conftest import RunningApp, choose_files, wait_ready
from tests.conftest import CAMPAIGN, OpenPage
from tests.llm_server import Request, serve_llm

MANUAL = """# Lamps

The keeper's manual says that oil lamps are filled at noon. Wicks are trimmed every third day, before the lamps are lit.

# Ferry

The ferry leaves from the eastern pier. Tickets cost four crowns, and children travel free of charge.
"""
METHODS = ("auto", "bm25")
_SHOWN = ("auto", "bm25", "hybrid")


def question(name: str, kind: str, text: str, *quotes: str) -> str:
    return json.dumps(
        {
            "id": name,
            "document": "manual.md",
            "kind": kind,
            "question": text,
            "answer": "noon" if quotes else "",
            "support": quotes,
        }
    )


@pytest.fixture(scope="module")
def services(services_of_file: Services) -> Services:
    return services_of_file


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    """A manual, and three questions, one of which quotes what isn't there."""
    folder = tmp_path_factory.mktemp("dropped")
    manual, asked = folder / "manual.md", folder / "questions.jsonl"
    manual.write_text(MANUAL, encoding="utf-8")
    lines = [
        question(
            "1",
            "bridge",
            "When are lamps filled, and what does a ticket cost?",
            "oil lamps are filled at noon",
            "Tickets cost four crowns",
        ),
        question("2", "unanswerable", "Who founded the <b>university</b>?"),
        question("3", "single", "Who painted the pier?", "The pier was painted by Ruth."),
    ]
    asked.write_text("\n".join(lines), encoding="utf-8")
    return manual, asked


@pytest.fixture(scope="module")
def heard(services: Services, files: tuple[Path, ...]) -> list[DocumentsProgress]:
    """What an evaluation of the files said, its end last."""
    heard: list[DocumentsProgress] = []
    ended = evaluate_files(services, DocumentOrder(files, METHODS, k=2), heard.append)
    assert ended.rows == heard[-1].rows
    return [*heard, ended]


def test_rows_come_document_by_document_and_faults_are_told(
    heard: list[DocumentsProgress], tmp_path: Path
) -> None:
    *heard, ended = heard
    assert [(row.id, row.method) for row in ended.rows] == [
        (name, method) for name in "12" for method in METHODS
    ]
    assert [one.id for one in ended.questions] == ["1", "2"]
    assert {row.checkpoint for row in ended.rows} == {"tiny", ""}, "the agent that the app began with"
    assert all(row.covered == (True, True) for row in ended.rows if row.id == "1"), (
        "two chunks are all of the manual"
    )
    assert (ended.n_done, ended.n_documents, ended.ended) == (1, 1, True)
    (fault,) = ended.left_out
    assert "question 3" in fault
    assert any(state.document == "manual.md" and state.now is not None for state in heard)
    told = json.dumps(view.methods(ended))
    assert "painted by Ruth" in told
    assert "2 questions about 1 of 1 document." in told
    assert "asking its questions" in json.dumps(view.following(heard[-2]))
    assert "of 2 chunks" not in json.dumps(view.following(heard[-2])), "the index is no count that moves"
    (tmp_path / view.ROWS_FILE).write_text(_download(view.methods(ended)), encoding="utf-8")
    assert read_document_rows(tmp_path / view.ROWS_FILE) == list(ended.rows)
    assert "2 of 2" in json.dumps(view.questions(ended, page=7)), "the last page stands for those behind it"
    key = keep_evaluation(ended, "ann")
    assert kept_evaluation(key, "ann") == ended
    assert f"?tab=evaluate&documents={key}" in json.dumps(view.methods(ended, key))
    with pytest.raises(BadRequest, match="is not kept here"):
        kept_evaluation(key, "bob")


def test_an_answer_in_doubt_is_told_as_one(heard: list[DocumentsProgress]) -> None:
    ended = heard[-1]
    for answer, reliable, words in (
        ("noon", True, '"noon", " ", ["span", {"class": "qx-mark qx-hit"}, ["\\u2713 right"]]'),
        ("dawn", True, '"dawn", " ", ["span", {"class": "qx-mark qx-warn"}, ["\\u2717 wrong"]]'),
        ("noon", False, "noon (guess)"),
    ):
        told = {"answer": answer, "answer_reliable": reliable, "answer_state": None if reliable else "guess"}
        rows = tuple(replace(row, **told) for row in ended.rows)
        assert words in json.dumps(view.questions(replace(ended, rows=rows), page=0))
    rows = tuple(replace(row, answer=None) for row in ended.rows)
    assert "no answer" in json.dumps(view.questions(replace(ended, rows=rows), page=0))


def test_three_figures_come_first_beside_the_best_of_the_other_methods() -> None:
    """And with so many rows of agents that may not stop, the study has a third table, which isn't shown."""
    kept = [row for row in read_document_rows(Path("results/documents.jsonl.gz")) if row.method in _SHOWN]
    asked = tuple(DocumentQuestion(key, "a.md", "single", "?", (), ()) for key in {row.id for row in kept})
    state = DocumentsProgress(questions=asked, rows=tuple(kept), ended=True)
    found, answered = documents(kept, kinds=()).tables[:2]
    cells = [(table, column) for table, column in ((found, 3), (found, 4), (answered, 3))]
    of_method = [{row[1]: cell_text(row[column]).split()[0] for row in table.rows} for table, column in cells]
    assert all(values["hybrid"] > values["bm25"] for values in of_method), "else the test shows nothing"
    head, _, first, more, *_ = view.methods(state)
    told = [re.findall(r"([\w-]+) ([\d.]+) \[", value) for value in _values(first)]
    assert [[name for name, _ in pairs] for pairs in told] == [["Q-RAG", "hybrid"]] * 3
    for pairs, values in zip(told, of_method, strict=True):
        assert all(
            abs(float(value) - float(values[name.replace("Q-RAG", "auto")])) <= 0.0051
            for name, value in pairs
        )
    assert more[1]["open"] is False
    assert json.dumps(more).count('"qx-table"') == 2
    assert len(_download([head]).splitlines()) == len(kept)
    alone = view.methods(replace(state, rows=tuple(row for row in kept if row.method == "auto")))
    assert all(value.startswith("Q-RAG ") and "hybrid" not in value for value in _values(alone[2]))

    unknown = [replace(row, answers=(), answer_reliable=True) for row in kept]
    _, _, numbers, *_ = view.methods(replace(state, rows=tuple(unknown)))
    assert [name[2][0] for _, _, (_, name) in numbers[2]] == [
        "passages found",
        "all passages found",
        "reliable answers",
    ]


def _values(numbers: Node) -> list[str]:
    return [label[2][0] for _, _, (label, _) in numbers[2]]


def test_a_language_model_is_a_method_and_what_it_fails_at_is_told(
    services: Services, files: tuple[Path, ...]
) -> None:
    def script(request: Request) -> str:
        return '{"Document_1": []}' if "university" in request.messages[-1]["content"] else "Lamps are nice."

    order = DocumentOrder(files, ("bm25", "resrag-llm"), k=2)
    with pytest.raises(BadRequest, match="resrag-llm asks a language model and none is connected"):
        evaluate_files(services, order, lambda _: None)
    with serve_llm(script) as server:
        model = connect(server.url, "tiny", patience=Patience(attempts=1))
        ended = evaluate_files(services, order, lambda _: None, model)
    assert [(row.id, row.method) for row in ended.rows] == [("1", "bm25"), ("2", "bm25"), ("2", "resrag-llm")]
    assert any("1: resrag-llm has no row: " in fault for fault in ended.left_out)
    told = json.dumps(view.questions(ended, page=0))
    assert "the language model wrote no set" in told
    assert "RES-RAG, language model" in told


def test_an_agent_stops_where_the_page_was_told_to(services: Services, files: tuple[Path, ...]) -> None:
    order = DocumentOrder(files, ("auto",), k=2)
    services.agents.use_threshold("tiny", 1e6)
    try:
        ended = evaluate_files(services, order, lambda _: None)
    finally:
        services.agents.use_threshold("tiny", None)
    assert all(row.stopped for row in ended.rows)
    assert not any(row.stopped for row in evaluate_files(services, order, lambda _: None).rows)


def test_a_cancel_ends_it_before_the_next_document(services: Services, files: tuple[Path, ...]) -> None:
    def cancelled(_: DocumentsProgress) -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        evaluate_files(services, DocumentOrder(files, METHODS), cancelled)


@pytest.mark.parametrize(
    ("names", "methods", "words"),
    [
        (["manual.md"], METHODS, "0 files end in .jsonl; drop one"),
        (["a.jsonl", "b.jsonl", "manual.md"], METHODS, "2 files end in .jsonl"),
        (["a.jsonl"], METHODS, "no document is chosen"),
        (["a.jsonl", "x/manual.md", "y/manual.md"], METHODS, "two files are called manual.md"),
        (["a.jsonl", *(f"{i}.md" for i in range(51))], METHODS, "51 documents are more than 50"),
        (["a.jsonl", "manual.md"], (), "no method is chosen"),
    ],
)
def test_files_that_can_not_be_evaluated(
    services: Services, tmp_path: Path, names: Sequence[str], methods: tuple[str, ...], words: str
) -> None:
    with pytest.raises(BadRequest, match=words):
        evaluate_files(
            services, DocumentOrder(tuple(tmp_path / name for name in names), methods), lambda _: None
        )


def test_a_document_that_was_not_dropped_is_told_without_our_folder(
    services: Services, files: tuple[Path, ...], tmp_path: Path
) -> None:
    other = tmp_path / "other.md"
    other.write_text("The pier is closed.")
    with pytest.raises(BadRequest, match=r"document 'manual\.md' is not in what was dropped"):
        evaluate_files(services, DocumentOrder((other, files[1]), METHODS), lambda _: None)


@pytest.fixture(scope="module")
def page(tiny_app: RunningApp, open_for_file: OpenPage) -> Iterator[Page]:
    """The Evaluate tab."""
    page = open_for_file(tiny_app.url)
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    wait_ready(page, 120)
    page.get_by_role("tab", name="Evaluate", exact=True).click()
    yield page
    assert errors == [], "on the console"


def test_a_folder_is_dropped_asked_and_read_off(page: Page, files: tuple[Path, ...]) -> None:
    page.get_by_role("tab", name="My documents").click()
    choose_files(page, "#qx-whole-files", files[0])
    ask(page)
    expect(page.locator("#qx-whole-notice")).to_contain_text("0 files end in .jsonl", timeout=30_000)
    choose_files(page, "#qx-whole-files", files[1])
    ask(page)
    expect(page.locator("#qx-whole-scores .qx-number")).to_have_count(3, timeout=120_000)
    expect(page.locator("#qx-whole-scores table").first).to_be_hidden()
    page.locator("#qx-whole-scores summary").click()
    expect(page.locator("#qx-whole-scores tbody tr").first).to_contain_text("Q-RAG")
    expect(page.locator("#qx-whole-questions tbody tr")).to_have_count(2)
    expect(page.locator("#qx-whole-questions")).to_contain_text("Who founded the <b>university</b>?")
    with page.expect_download() as download:
        page.get_by_role("button", name="Rows as JSON lines").click()
    assert len(read_document_rows(download.value.path())) == 8

    asked = page.locator("#qx-whole-questions .qx-link").first
    words = asked.inner_text()
    asked.click()
    expect(page.locator("#qx-header .qx-doc-title")).to_have_text("Lamps", timeout=60_000)
    expect(page.locator("#qx-story")).to_contain_text("Stopped", timeout=60_000)
    expect(page.locator("#qx-question textarea")).to_have_value(words)
    page.get_by_role("tab", name="Evaluate", exact=True).click()

    page.locator("#qx-whole-files").get_by_role("button", name="Clear").first.click()
    expect(page.locator("#qx-whole-files")).not_to_contain_text("manual")
    assert grave_faults(page) == []
    if not CAMPAIGN:
        return
    ask(page)  # the samples, then
    expect(page.locator("#qx-whole-progress")).to_contain_text(list_samples()[0].key, timeout=60_000)
    page.locator("#qx-whole-cancel").click()
    expect(page.locator("#qx-whole-notice")).to_contain_text("Cancelled", timeout=30_000)
    expect(page.locator("#qx-whole-run")).to_be_enabled(timeout=60_000)


def ask(page: Page) -> None:
    page.locator("#qx-whole-run").click()


def _download(nodes: list) -> str:  # type: ignore[type-arg]
    """The argument of the download button, wherever it is."""
    for node in nodes:
        if isinstance(node, list):
            tag, attributes, children = node
            if tag == "button" and attributes.get("data-act") == "download":
                return str(attributes["data-arg"])
            if found := _download(children):
                return found
    return ""
