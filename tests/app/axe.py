"""What axe-core finds wrong with a page as it stands."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.settled import settle

GRAVE = {"serious", "critical"}
"""Impacts that keep somebody from using a thing. What is left below them are hints."""


def grave_faults(page: Page, within: str | None = None) -> list[tuple[str, object, str]]:
    """(rule, where, what to do) of each, on the whole page or in a part; empty where everybody can use it."""
    found = Axe().run(page, within, options={"resultTypes": ["violations"]}).response["violations"]
    return [
        (rule["id"], node["target"], node["failureSummary"])
        for rule in found
        if rule["impact"] in GRAVE
        for node in rule["nodes"]
    ]


def grave_faults_in_both(page: Page) -> list[tuple[str, object, str]]:
    """The same in dark and in light, where the page stays."""
    found = []
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        settle(page)
        found += grave_faults(page)
    return found
