"""When a page has come to rest: nothing asked of the server, no timer due, nothing that fades or glides.

A condition in the place of waits of fixed length, which are too long on a quiet machine and too short on a
busy one.
"""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, Route

_COUNT = r"""() => {
  const due = window.qxDue = new Map();
  const { fetch, setTimeout, clearTimeout, requestAnimationFrame } = window;
  window.qxLater = setTimeout;
  const answered = new Set();
  const joined = async (reply) => {
    const { event_id } = await reply.clone().json();
    if (event_id && !answered.has(event_id)) due.set(event_id, `the answer of ${event_id}`);
  };
  // A stream may outlive its last answer: where a second one was opened beside it, either may have brought them all.
  const listen = async (reply) => {
    let line = "";
    for await (const part of reply.clone().body.pipeThrough(new TextDecoderStream())) {
      const lines = (line + part).split("\n");
      line = lines.pop();
      for (const whole of lines.filter((one) => one.includes('"process_completed"'))) {
        const { event_id } = JSON.parse(whole.slice("data:".length));
        answered.add(event_id);
        due.delete(event_id);
      }
    }
  };
  window.qxFrames = 0;
  window.requestAnimationFrame = (run) => {
    window.qxFrames++;
    return requestAnimationFrame(run);
  };
  window.fetch = (...given) => {
    const key = {}, url = String(given[0]?.url ?? given[0]), over = () => due.delete(key);
    if (url.includes("/heartbeat/")) return fetch(...given);
    due.set(key, url);
    const reply = fetch(...given);
    if (url.includes("/queue/data")) reply.then(listen).catch(() => {});
    (url.includes("/queue/join") ? reply.then(joined) : reply).then(over, over);
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
  for (let still = 0; still < 3;) { // frames are dear where nothing is drawn by hardware: none is asked for while something goes on
    await new Promise((next) => (moving.length ? qxLater(next, 50) : requestAnimationFrame(next)));
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


def frames_asked_for(page: Page, milliseconds: int = 500) -> int:
    """By the page's scripts, in this time."""
    count = (
        "async (time) => { const before = qxFrames; await new Promise((over) => setTimeout(over, time));"
        " return qxFrames - before; }"
    )
    return int(page.evaluate(count, milliseconds))


def settle(page: Page, seconds: float = 30) -> None:
    """Returns when a page has come to rest for three frames; fails with what goes on after `seconds`."""
    moving = page.evaluate(_REST, 1000 * seconds)
    assert not moving, f"after {seconds} s the page is not at rest: {moving}"


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
