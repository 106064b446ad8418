"""The mixture behind *narrative*.

bAbI-like stories, own stories and needles among prose from novels. Stories come from the generators, without
end and of all lengths; those that stand in bAbI's test files are left out, and counted for the record. Noise
is drawn from the training novels; one window of it serves a whole update, so that it is embedded once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path
from random import Random
from typing import Any

from core.encode.tokens import FastTokenizer
from core.lab.tasks.babi_world import ACTORS, GIVERS, TASKS, UntestedStories
from core.lab.tasks.data import babi_folder
from core.lab.tasks.example import Example, Noise, weave
from core.lab.tasks.generated import story_example, training_rng
from core.lab.tasks.noise import compose_noise, find_calls, find_deeds, find_people, read_noise, rename_people
from core.lab.tasks.ruler import RANDOM_IDS, VARIANTS, needle_example, needle_hay

SHARES: dict[str, float] = {"qa1": 1, "qa2": 2, "qa3": 3, "qa4": 3, "qa5": 1.5, "stories": 8, "needles": 1}
"""How often each task is drawn, as weights."""
CHAINS: dict[str, float] = {"qa2": 1, "qa3": 1}
"""The shares of *chains*, the small training that the method's parts are compared on: a third of the work of
an update, and two or three facts each.
"""
PACKED_TOKENS, COMPOSED_TOKENS = 1_000_000, 100_000
"""Tokens of the rarer kinds of noise; single sentences are those of all training novels."""
WINDOW = {"sentences": 100, "deeds": 100, "calls": 100, "packed": 12, "composed": 60}
"""Chunks of noise that the episodes of an update share."""
FEWEST_NOISE, MOST_NOISE = 8, 100
"""Chunks of noise in an episode; what a window lacks is read twice."""
CUTS = {"sentences": 0.35, "deeds": 0.3, "calls": 0.2, "packed": 0.1, "composed": 0.05}
"""Episodes whose noise is a sentence a chunk, as the agent is served; or only sentences in which people go,
take and give; or only those of a few words that name somebody; or packed to 64 tokens; or the prose of the
project's own documents.
"""
NAMED = ("deeds", "calls")
"""Noise with people named as the stories' actors, who in a novel go somewhere, too."""
STORY_CUTS = {"sentences": 0.4, "packed": 0.1, "composed": 0.5}
"""The same for the project's own stories."""
RIVALS = 12
"""Chunks of a haystack that consists of needles."""
VALIDATION_SHARE = 0.1
"""End of the noise that only validation reads."""


class NarrativeMixture:
    """See the module; a `Mixture`."""

    def __init__(
        self,
        data: Path | None,
        tokenizer: FastTokenizer,
        name: str = "narrative",
        shares: Mapping[str, float] = SHARES,
    ) -> None:
        """Raises BadRequest when the data sets aren't there."""
        self.name = name
        self._tokenizer, self._shares = tokenizer, shares
        noises = {
            "sentences": read_noise("books/train", tokenizer, None, None, data),
            "packed": read_noise("books/train", tokenizer, 64, PACKED_TOKENS, data),
            "composed": compose_noise(training_rng(0), tokenizer, COMPOSED_TOKENS),
        }
        self._people = find_people(noises["sentences"].texts)
        noises["deeds"] = find_deeds(noises["sentences"], self._people)
        noises["calls"] = find_calls(noises["sentences"], self._people)
        borders = {cut: round(len(noise.texts) * (1 - VALIDATION_SHARE)) for cut, noise in noises.items()}
        self._noises = {cut: _slice(noise, 0, borders[cut]) for cut, noise in noises.items()}
        self._validation_noises = {cut: _slice(noise, borders[cut], None) for cut, noise in noises.items()}
        for i, cut in enumerate(NAMED, start=1):
            self._validation_noises[cut] = self._rename(self._validation_noises[cut], training_rng(i))
        self._stories = UntestedStories(babi_folder(data))

    def draw(self, rng: Random, n: int) -> list[Example]:
        windows = {cut: _window(noise, rng, WINDOW[cut]) for cut, noise in self._noises.items()}
        for cut in NAMED:
            windows[cut] = self._rename(windows[cut], rng)
        names = rng.choices(list(self._shares), list(self._shares.values()), k=n)
        return [self._compose(name, windows, rng, f"train-{i}") for i, name in enumerate(names)]

    def validation(self, n: int) -> list[Example]:
        """See `Mixture`; the tasks in turns."""
        rng, turns = Random("validation of the narrative mixture"), islice(cycle(self._shares), n)
        noises = self._validation_noises
        return [self._compose(name, noises, rng, f"validation-{i}") for i, name in enumerate(turns)]

    def describe(self) -> dict[str, Any]:
        noises = {
            cut: {"source": noise.name, "chunks": len(noise.texts)} for cut, noise in self._noises.items()
        }
        shares = dict(self._shares)
        return {"shares": shares, "noise": noises, "test_stories_left_out": len(self._stories)}

    def _rename(self, noise: Noise, rng: Random) -> Noise:
        return rename_people(noise, self._people, sorted({*ACTORS, *GIVERS}), rng, self._tokenizer)

    def _compose(self, name: str, noises: Mapping[str, Noise], rng: Random, example_id: str) -> Example:
        cuts = STORY_CUTS if name == "stories" else CUTS
        noise = noises[rng.choices(list(cuts), list(cuts.values()))[0]]
        n_noise = rng.randint(FEWEST_NOISE, MOST_NOISE)
        if name == "stories":
            return story_example(rng, noise, n_noise, self._tokenizer, example_id)
        if name == "needles":
            return self._needles(noise, n_noise, rng, example_id)
        [task] = [task for task in TASKS if task == name]
        story = self._stories.tell(task, rng)
        return story.over(weave(story.facts, noise, n_noise, rng), example_id, name)

    def _needles(self, noise: Noise, n_noise: int, rng: Random, example_id: str) -> Example:
        variant = rng.choice(list(VARIANTS))
        if VARIANTS[variant].kind != RANDOM_IDS:
            return needle_example(rng, variant, noise, n_noise, example_id)
        hay = needle_hay(rng, variant, RIVALS, self._tokenizer, "train")
        example = needle_example(rng, variant, hay, RIVALS, example_id)
        # as own texts: needles that differ by an id are worth a gradient
        return replace(example, chunks=tuple(example.chunks))


def _slice(noise: Noise, first: int, last: int | None) -> Noise:
    return Noise(noise.name, noise.texts[first:last], noise.n_tokens[first:last])


def _window(noise: Noise, rng: Random, size: int) -> Noise:
    first = rng.randrange(max(1, len(noise.texts) - size))
    return _slice(noise, first, first + size)
