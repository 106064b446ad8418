"""`python -m benchmarks.animation`.

Draws README's picture, a run on the Explore page in the real app: the question, each choice, and the answer.
Waiting is left out, so that the animation says nothing of speed.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import Page, expect

from benchmarks import ROOT
from benchmarks.serving import PATIENCE, answered, app_page, reset

PLACE = ROOT / "assets" / "explore.gif"
_MILLISECONDS = (1600, 1900, 1900, 1900, 3600)
_COLOURS = 128
_APART = 50
"""Least square of the distance between two colours: nearer ones are shown as one."""


def frames(page: Page) -> Iterator[Image.Image]:
    """The page before the run, after each choice, and with the answer."""
    answered(page)
    reset(page)
    yield _frame(page)
    for n_steps in (1, 2, 3):
        page.locator("#qx-step").click()
        expect(page.locator("#qx-steps .qx-step")).to_have_count(n_steps, timeout=PATIENCE)
        yield _frame(page)
    page.locator("#qx-run").click()
    answered(page)
    yield _frame(page)


def _frame(page: Page) -> Image.Image:
    page.mouse.move(0, 0)
    page.wait_for_timeout(1_500)  # what moves has come to rest
    return Image.open(io.BytesIO(page.screenshot())).convert("RGB")


def save(pictures: list[Image.Image], place: Path) -> None:
    """The most frequent colours as they are, others as the nearest of them: Pillow's way tints grounds."""
    packed = np.stack([np.asarray(picture) for picture in pictures]) @ np.array([1 << 16, 1 << 8, 1])
    numbers, place_of, counts = np.unique(packed, return_inverse=True, return_counts=True)
    colours = np.stack([numbers >> 16, numbers >> 8 & 255, numbers & 255], axis=1)
    chosen: list[np.ndarray] = []
    for colour in colours[np.argsort(-counts, kind="stable")]:
        if len(chosen) < _COLOURS and all(((colour - other) ** 2).sum() >= _APART for other in chosen):
            chosen.append(colour)
    distances = ((colours[:, None] - np.stack(chosen)) ** 2).sum(axis=2)
    frames = distances.argmin(axis=1).astype(np.uint8)[place_of].reshape(packed.shape)
    first, *others = (Image.fromarray(frame, "P") for frame in frames)
    for picture in (first, *others):
        picture.putpalette(np.stack(chosen).astype(np.uint8).tobytes())
    first.save(place, save_all=True, append_images=others, duration=_MILLISECONDS, loop=0, optimize=True)


if __name__ == "__main__":
    with app_page(1200, 780) as page:
        save(list(frames(page)), PLACE)
