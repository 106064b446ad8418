"""When a page has come to rest."""

from __future__ import annotations

import json
import time
from weakref import WeakKeyDictionary

from playwright.sync_api import Browser, BrowserContext, Page, Request, Route

_asked: WeakKeyDictionary[BrowserContext, set[Request]] = WeakKeyDictionary()
"""Requests that were not answered yet, by profile."""
QUIET_SECONDS = 0.4
STREAM_SECONDS = 3.0
"""A stream of events may stay open behind its last one: after so long without a change it counts as over."""

_WATCH = "new MutationObserver(() => { window.qxChanged = true; }).observe(document, \
{ subtree: true, childList: true, attributes: true, characterData: true })"
_MOVING = """() => {
  const fades = (one) => one.playState === "running" && Number.isFinite(one.effect?.getComputedTiming().endTime);
  const moving = document.getAnimations().filter(fades).map((one) => one.animationName ?? one.transitionProperty);
  if (window.qxChanged) moving.push("elements");
  window.qxChanged = false;
  return moving.map(String);
}"""


def new_context(browser: Browser, **options: object) -> BrowserContext:
    """A profile of its own, whose pages can be waited for with `settle`."""
    context = browser.new_context(**options)  # type: ignore[arg-type]
    asked: set[Request] = set()
    _asked[context] = asked
    context.add_init_script(_WATCH)
    # Playwright writes into what listens: no method of a set
    context.on("request", lambda request: asked.add(request))
    context.on("requestfinished", lambda request: asked.discard(request))
    context.on("requestfailed", lambda request: asked.discard(request))
    return context


def settle(page: Page, seconds: float = 30) -> None:
    """Returns when a page has been at rest for a while; fails with what goes on after `seconds`."""
    deadline = time.monotonic() + seconds
    moved = time.monotonic()
    while True:
        page.wait_for_timeout(100)  # in which Playwright hears of requests
        moving = page.evaluate(_MOVING)
        urls = [request.url for request in _asked[page.context] if "/heartbeat/" not in request.url]
        streams = [url for url in urls if "/queue/data" in url]
        moving += [url for url in urls if url not in streams]
        if moving:
            moved = time.monotonic()
        if time.monotonic() - moved > (STREAM_SECONDS if streams else QUIET_SECONDS):
            return
        assert time.monotonic() < deadline, f"after {seconds} s the page is not at rest: {moving + streams}"


def frames_drawn(page: Page) -> int:
    """In half a second, for the page's scripts."""
    browser = page.context.browser
    assert browser is not None
    browser.start_tracing(page=page, categories=["devtools.timeline"])
    page.wait_for_timeout(500)
    return sum(
        event["name"] == "FireAnimationFrame" for event in json.loads(browser.stop_tracing())["traceEvents"]
    )


def release(page: Page, held: list[Route]) -> None:
    """Lets what a page sends on its way, in the order in which it was sent: each once the server has the one
    before it, since connections overtake one another. Nothing is held from then on, though requests still
    pass by: once, after that had been ended here, the request for a stream was never answered.
    """
    assert held
    for route in held:
        with page.expect_event("requestfinished", lambda request, sent=route.request: request == sent):
            route.continue_()
    held.clear()
    page.route("**/queue/join*", lambda route: route.continue_())
    for route in held:  # came in between
        route.continue_()
    held.clear()
