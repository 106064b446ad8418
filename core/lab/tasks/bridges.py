"""Two-hop questions made from paragraphs alone.

One paragraph names another one's title, and the question hides that name. From "Shirley Temple: ... was named
ambassador to Ghana" and "Ghana: a country in West Africa ..." comes a question with the sentence of the first
without "Ghana", and half the words of a sentence of the second. The second can hardly be found by its words,
but by the name in the first. Such questions are clumsy; they teach where to go on from a chosen paragraph, of
which labelled sets have few examples.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from core.ingest.sentences import split_sentences
from core.lab.tasks.example import Example

TASK = "bridges"
MAX_LINKS = 3
"""Questions that one paragraph may begin or end: no hub of the collection is asked about again and again."""
KEPT_WORDS = 0.5
"""Share of the words of the second paragraph's sentence that stay in the question."""
NAME_CHANCE = 0.5
"""How often the question names the first paragraph's title where its sentence doesn't."""
MOST_WORDS = 14
"""Words of the question on each side of the hidden name, and out of the second paragraph, at most."""

_PREFIX = 8
"""Letters by which a name is looked up; shorter names are left out."""

_CAPITAL = re.compile(r"\b[A-Z]")
_CLASS = re.compile(r"\b(?:is|was|are|were) (?:an?|the) ((?:[\w-]+ ){0,5}[\w-]+)")
_END_OF_CLASS = re.compile(
    r" (?:of|in|from|who|that|which|and|for|by|on|at|to|with"
    r"|located|known|based|born|born|directed|written|released)\b.*"
)


@dataclass(frozen=True)
class Link:
    """A sentence of one paragraph that names the title of another."""

    source: int
    """Row of the paragraph that names."""
    target: int
    """Row of the paragraph that is named."""
    sentence: str
    start: int
    """Where in the sentence the name begins."""
    name: str


def find_links(texts: Sequence[str], forbidden: Collection[str] = ()) -> list[Link]:
    """Links between paragraphs "title: text". Titles in `forbidden` neither begin nor end one; titles of a
    single word are too often words of the language.
    """
    titles: dict[str, int] = {}
    for row, text in enumerate(texts):
        title, colon, _ = text.partition(": ")
        name = plain_title(title)
        if colon and " " in name and len(name) >= _PREFIX and title not in forbidden:
            titles.setdefault(name, row)
    by_prefix: dict[str, list[str]] = defaultdict(list)
    for name in titles:
        by_prefix[name[:_PREFIX]].append(name)
    begun: dict[int, int] = defaultdict(int)
    ended: dict[int, int] = defaultdict(int)
    links = []
    for row, text in enumerate(texts):
        title, colon, body = text.partition(": ")
        if not colon or title in forbidden:
            continue
        for sentence, start, name in _mentions(body, by_prefix):
            target = titles[name]
            if (
                begun[row] < MAX_LINKS
                and ended[target] < MAX_LINKS
                and name not in title
                and plain_title(title) not in name
            ):
                begun[row] += 1
                ended[target] += 1
                links.append(Link(row, target, sentence, start, name))
    return links


def ask(link: Link, texts: Sequence[str], rng: Random) -> Example:
    """A question supported by the link's two paragraphs, its only chunks; the answer is the hidden name."""
    target_text = texts[link.target].partition(": ")[2]
    sentences = [target_text[start:end] for start, end in split_sentences(target_text)]
    kind = _class_of(sentences[0]) if sentences else ""
    hidden = f"this {kind}" if kind else rng.choice(("it", "this one"))
    before, after = link.sentence[: link.start].split(), link.sentence[link.start + len(link.name) :].split()
    parts = [*before[-rng.randint(3, MOST_WORDS) :], hidden, *after[: rng.randint(3, MOST_WORDS)]]
    title = plain_title(texts[link.source].partition(": ")[0])
    if title not in link.sentence and rng.random() < NAME_CHANCE:
        parts = [f"{title}:", *parts]
    about = rng.choice(sentences).replace(link.name, "") if sentences else ""
    words = [word for word in about.split() if word not in link.name.split() and rng.random() < KEPT_WORDS]
    question = " ".join([*parts, *words[:MOST_WORDS]])
    return Example(
        f"bridge-{link.source}-{link.target}",
        TASK,
        question,
        (texts[link.source], texts[link.target]),
        (0, 1),
        (link.name,),
        "bridge",
    )


def plain_title(title: str) -> str:
    """The title without what tells it from others of the same name.

    >>> plain_title("Emma (novel)")
    'Emma'
    """
    return re.sub(r"\s*\(.*\)$", "", title)


def _mentions(body: str, by_prefix: dict[str, list[str]]) -> Iterator[tuple[str, int, str]]:
    """(sentence, place in it, title) of each title that a text names."""
    spans: list[tuple[int, int]] = []
    for match in _CAPITAL.finditer(body):
        place = match.start()
        for name in by_prefix.get(body[place : place + _PREFIX], ()):
            behind = place + len(name)
            if body.startswith(name, place) and not body[behind : behind + 1].isalnum():
                # only where something is named: cutting is the slow part
                spans = spans or split_sentences(body)
                start, end = next((start, end) for start, end in spans if place < end)
                yield body[start:end], place - start, name


def _class_of(sentence: str) -> str:
    """What a first sentence says its subject is, at most two words: "was an American film director"."""
    match = _CLASS.search(sentence)
    return " ".join(_END_OF_CLASS.sub("", match.group(1)).split()[-2:]) if match else ""
