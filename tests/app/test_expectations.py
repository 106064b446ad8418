"""Expectations wait for their element first (conftest), and hold and fail as Playwright's own."""

from __future__ import annotations

import time

import pytest
from playwright.sync_api import expect

from tests.conftest import OpenPage


def test_what_comes_is_awaited_and_what_does_not_fails_in_its_time(open_page: OpenPage) -> None:
    page = open_page("data:text/html,<p>one</p><i>two</i><i>three</i>")
    none = page.locator("#none")
    for hopeless in (expect(none).to_be_visible, expect(page.locator("i")).to_be_visible):
        begun = time.monotonic()
        with pytest.raises(AssertionError, match=r"not found|strict mode violation"):
            hopeless(timeout=700)
        assert time.monotonic() - begun < 10
    with pytest.raises(AssertionError, match="Actual value: one"):
        expect(page.locator("p")).to_have_text("two", timeout=300)
    expect(none).to_be_hidden()
    expect(none).not_to_be_visible()
    expect(none).to_have_count(0)
    expect(page.locator("i")).to_have_text(["two", "three"])
    page.evaluate("setTimeout(() => document.body.append(Object.assign(new Image(), { id: 'late' })), 300)")
    expect(page.locator("#late")).to_have_attribute("id", "late")
