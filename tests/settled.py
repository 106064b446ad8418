"""When a page has come to rest: nothing asked of the server, no timer due, nothing that fades or glides.

A condition in the place of waits of fixed length, which are too long on a quiet machine and too short on a busy one.
"""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page

_COUNT = """() => {
  const due = window.qxDue = new Map();
  const { fetch, setTimeout, clearTimeout } = window;
  window.fetch = (...given) => {
    const key = {}, url = String(given[0]?.url ?? given[0]), over = () => due.delete(key);
    if (url.includes("/heartbeat/")) return fetch(...given);
    due.set(key, url);
    const reply = fetch(...given);
    // the stream of answers is open until all have come
    reply.then((come) => url.includes("/queue/data") ? come.clone().text().finally(over).catch(() => {}) : over(), over);
    return reply;
  };
  window.setTimeout = (run, after = 0, ...rest) => {
    const key = setTimeout(() => { due.delete(key); typeof run === "function" ? run(...rest) : (0, eval)(run); }, after);
    if (after <= 1000) due.set(key, `${after} ms: ${run}`);
    return key;
  };
  window.clearTimeout = (key) => { due.delete(key); clearTimeout(key); };
}"""
_REST = """async (milliseconds) => {
  const fades = (one) => one.playState === "running" && Number.isFinite(one.effect?.getComputedTiming().endTime);
  const until = performance.now() + milliseconds;
  let moving = [];
  for (let still = 0; still < 3;) {
    await new Promise(requestAnimationFrame);
    moving = [...qxDue.values(), ...document.getAnimations().filter(fades).map((one) => one.animationName ?? one.transitionProperty)];
    still = moving.length ? 0 : still + 1;
    if (performance.now() > until) return moving.map((one) => String(one).slice(0, 200));
  }
  return [];
}"""


def new_context(browser: Browser, **options: Any) -> BrowserContext:
    """A profile of its own, whose pages can be waited for with `settle`."""
    context = browser.new_context(**options)
    context.add_init_script(f"({_COUNT})()")
    return context


def settle(page: Page, seconds: float = 30) -> None:
    """Returns when a page has come to rest for three frames; fails with what goes on after `seconds`."""
    moving = page.evaluate(_REST, 1000 * seconds)
    assert not moving, f"after {seconds} s the page is not at rest: {moving}"
