"""Language models that visitors give."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import gradio as gr
import pytest
from playwright.sync_api import Page, expect
from pydantic import SecretStr

from app.build import STYLES
from app.components.tree import TREE_SCRIPT
from app.pages.widgets.llm_panel import LlmPanel, standing
from app.services.language_models import LanguageModels, Metered, new_token
from app.services.session import Session
from app.services.settings import Settings
from app.services.shared import Services
from app.services.visitors import LLM_TOKENS_PER_HOUR, LlmAllowance
from app.theme import build_theme
from core.base.errors import BadRequest
from core.llm.endpoint import EndpointLlm
from core.llm.protocol import LlmCancelled, LlmError, Message, Sampling
from tests.app.served import served
from tests.conftest import OpenPage
from tests.core.llm.scripted import ScriptedLlm
from tests.llm_server import KEY, Answers, LlmServer, refuses, serve_llm

ASKED = [Message("user", "Is it so?")]
HERE = Session(llm="0" * 32)


def models_of(most: int = 10, **settings: object) -> LanguageModels:
    return LanguageModels(replace(Settings(), **settings), most)


@pytest.fixture
def server() -> Iterator[LlmServer]:
    with serve_llm() as server:
        yield server


def test_a_model_is_found_by_its_session_alone_and_forgotten(server: LlmServer) -> None:
    models = models_of()
    assert models.get(HERE) is None
    models.give(HERE, server.url, "tiny", SecretStr(KEY))
    llm = models.get(HERE)
    assert llm.chat(ASKED).text == "Yes."
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert models.get(Session(llm=new_token())) is None
    assert models.get(Session()) is None
    models.forget(HERE)
    assert models.get(HERE) is None
    assert KEY not in repr(vars(models))


def test_a_key_stays_with_its_host(server: LlmServer) -> None:
    models = models_of()
    models.give(HERE, server.url, "tiny", SecretStr(KEY))
    models.give(HERE, server.url, "other", SecretStr(""))
    llm = models.get(HERE)
    llm.chat(ASKED)
    assert (server.requests[0].body["model"], server.requests[0].headers["authorization"]) == (
        "other",
        f"Bearer {KEY}",
    )
    with serve_llm() as elsewhere:
        models.give(HERE, elsewhere.url, "tiny", SecretStr(" "))
        llm = models.get(HERE)
        llm.chat(ASKED)
        assert "authorization" not in elsewhere.requests[0].headers


def test_the_oldest_goes_when_there_are_too_many() -> None:
    models = models_of(most=2)
    sessions = [Session(llm=new_token()) for _ in range(3)]
    for session in sessions:
        models.give(session, "http://localhost:1", "m", SecretStr(""))
    assert [models.get(session) is not None for session in sessions] == [False, True, True]


def test_strangers_give_nothing_unless_a_host_is_listed(tmp_path: Path) -> None:
    closed = models_of(public=True)
    assert not closed.may_give
    with pytest.raises(BadRequest, match="this server takes no language models from its visitors"):
        closed.give(HERE, "https://api.example.org", "m", SecretStr(KEY))
    listing = models_of(public=True, llm_allow="http://localhost:9 hub")
    assert listing.may_give
    assert listing.listed == ("http://localhost:9/v1", "https://router.huggingface.co/v1")
    with pytest.raises(
        BadRequest,
        match=(
            r"does not ask language models at api.example.org; choose one of http://localhost:9/v1,"
            r" https://router"
        ),
    ):
        listing.give(HERE, "https://api.example.org", "m", SecretStr(KEY))
    with pytest.raises(BadRequest, match="loads no models of its visitors"):
        listing.give_local(HERE, str(tmp_path))
    listing.give(HERE, "http://localhost:9", "m", SecretStr(KEY))
    llm = listing.get(HERE)
    with pytest.raises(LlmError, match="localhost:9 leads into a private network"):
        llm.chat(ASKED)


def test_a_model_for_everyone_may_lie_inside(server: LlmServer) -> None:
    environ = {
        "QRAG_LLM_URL": server.url,
        "QRAG_LLM_MODEL": "house",
        "QRAG_LLM_KEY": KEY,
        "QRAG_LLM_REPLY_TOKENS": "3000",
        "QRAG_LLM_ALLOW": "hub",
        "SPACE_ID": "someone/space",
    }
    settings = Settings.from_args([], environ)
    assert KEY not in repr(settings)
    models = LanguageModels(settings)
    llm = models.get(Session())
    assert (llm.chat(ASKED).text, llm.reply_tokens) == ("Yes.", 3000)
    assert "house, given by whoever runs this app, 300,000 tokens an hour for each visitor." in str(
        standing(models, HERE)
    )
    with pytest.raises(BadRequest, match="QRAG_LLM_URL and QRAG_LLM_MODEL belong together"):
        models_of(llm_url=server.url)


def test_an_hour_s_tokens_are_counted_by_what_was_taken_and_begin_anew() -> None:
    now = [datetime(2026, 5, 1, 13, 50, tzinfo=UTC)]
    allowance = LlmAllowance(lambda: now[0])
    one, other = (Metered(ScriptedLlm(lambda _: "Yes."), owner, allowance) for owner in ("a" * 64, "b" * 64))
    asked, replied = 3, 1
    large = Sampling(max_tokens=LLM_TOKENS_PER_HOUR - asked - (asked + replied))
    for _ in range(2):
        assert one.chat(ASKED, large).completion_tokens == replied
    with pytest.raises(
        LlmError,
        match=(
            "299,996 tokens, and 299,992 of the 300,000 that a visitor has for an hour are left; come back"
            " after 14:00 UTC"
        ),
    ):
        one.chat(ASKED, large)
    assert other.chat(ASKED, large).text == "Yes."
    now[0] += timedelta(minutes=10)
    assert one.chat(ASKED, large).text == "Yes."


def test_what_one_hour_gives_back_is_no_gift_to_the_next() -> None:
    """The hour turns while a call is settled."""
    first, owner = datetime(2026, 5, 1, 13, 59, 59, tzinfo=UTC), "a" * 64
    moments = [first]
    allowance = LlmAllowance(lambda: moments.pop(0) if len(moments) > 1 else moments[0])
    hour = allowance.reserve(owner, 100_000)
    moments[:] = [first, first + timedelta(seconds=2)]
    allowance.settle(owner, hour, 100_000, 0)
    with pytest.raises(LlmError, match="and 300,000 of the 300,000"):
        allowance.reserve(owner, LLM_TOKENS_PER_HOUR + 1)


def test_a_call_that_is_cancelled_stays_counted_and_one_that_fails_does_not() -> None:
    allowance = LlmAllowance()
    most = Sampling(max_tokens=LLM_TOKENS_PER_HOUR - 3)
    with pytest.raises(LlmError, match="no reply left"):
        Metered(ScriptedLlm([]), "b" * 64, allowance).chat(ASKED, most)
    with pytest.raises(LlmCancelled):
        Metered(ScriptedLlm(["Yes."]), "b" * 64, allowance).chat(ASKED, most, cancelled=lambda: True)
    with pytest.raises(LlmError, match="and 0 of the 300,000"):
        Metered(ScriptedLlm(["Yes."]), "b" * 64, allowance).chat(ASKED, Sampling(max_tokens=1))


def test_a_page_without_a_token_is_sent_to_reload() -> None:
    with pytest.raises(BadRequest, match="reload it"):
        models_of().give(Session(), "http://localhost:1", "m", SecretStr(""))


@pytest.mark.campaign
def test_a_model_in_this_app_is_loaded_once(tiny_causal: Path) -> None:
    models = models_of()
    other = Session(llm=new_token())
    models.give_local(HERE, str(tiny_causal))
    models.give_local(other, str(tiny_causal))
    assert models.get(HERE) is models.get(other) is not None
    with pytest.raises(BadRequest, match="the model has no name"):
        models.give_local(HERE, "  ")


def test_sessions_that_are_over_take_their_models_along(services: Services) -> None:
    gone, stays = Session(llm=new_token()), Session(llm=new_token())
    for session in (gone, stays):
        services.language_models.give(session, "http://localhost:1", "m", SecretStr(KEY))
    services.release({*gone.tokens, *stays.tokens}, set(stays.tokens))
    assert services.language_models.get(gone) is None
    assert isinstance(services.language_models.get(stays), EndpointLlm)


# In a browser


@pytest.fixture
def panel_url(services: Services) -> Iterator[str]:
    with gr.Blocks() as blocks:
        LlmPanel(services, gr.State(HERE))
    head = f"<script>{TREE_SCRIPT}</script>"
    with served(blocks, css_paths=STYLES, theme=build_theme(), head=head) as url:
        yield url


def says(page: Page, what: str, seconds: float = 10) -> None:
    expect(page.locator("#qx-llm-notice")).to_contain_text(what, timeout=1000 * seconds)


def test_the_panel_saves_tests_and_forgets(panel_url: str, services: Services, open_page: OpenPage) -> None:
    page = open_page(panel_url)
    page.get_by_text("Language model").click()
    expect(page.locator("#qx-llm-standing")).to_contain_text("None is set")
    page.locator("#qx-llm-test").click()
    says(page, "no language model is set")
    with serve_llm(refuses("json_schema")) as server:
        address, model, key = (page.locator(f"#qx-llm-{name} input") for name in ("address", "model", "key"))
        address.fill("localhost:1")
        model.fill("tiny")
        key.fill(KEY)
        page.locator("#qx-llm-save").click()
        says(page, "must be http:// or https://")
        address.fill(server.url)
        page.locator("#qx-llm-save").click()
        expect(page.locator("#qx-llm-standing")).to_contain_text(
            f"tiny at {server.url.removeprefix('http://').removesuffix('/v1')}, with a key, given by you"
        )
        expect(key).to_have_value("")
        expect(key).to_have_attribute("type", "password")
        page.locator("#qx-llm-tokens input").fill("4000")
        page.locator("#qx-llm-test").click()
        says(page, "keeps to JSON, and is told the schema in words")
        assert server.requests[-1].headers["authorization"] == f"Bearer {KEY}"
        assert server.requests[-1].body["max_tokens"] == 4000
        server.answer("Hello.", "Hello.")
        page.locator("#qx-llm-test").click()
        says(page, "tiny replies, but writes no JSON that can be used")
        server.answer(Answers(401), Answers(401))
        page.locator("#qx-llm-test").click()
        says(page, "refused the key (401)")
        stored = page.evaluate(
            "JSON.stringify([{...localStorage}, {...sessionStorage}, document.documentElement.outerHTML])"
        )
        assert KEY not in stored
    page.locator("#qx-llm-forget").click()
    expect(page.locator("#qx-llm-standing")).to_contain_text("None is set")
    assert services.language_models.get(HERE) is None
