"""Small data sets in the shape of the real ones, for what trains and measures evidence sets."""

from __future__ import annotations

from pathlib import Path

from core.lab.train.set_questions import SETS
from tests.core.lab.tasks.conftest import write_lines

QUESTION = "Where did the poet live whom the painter Anna Bell knew?"
CHUNKS = (
    "Anna Bell: Anna Bell was a painter. She was born in Oslo. She knew Carl Dahl.",
    "Rain: It rained. It went on raining.",
    "Carl Dahl (poet): Carl Dahl was a poet. He lived in Turku. He wrote.",
)


def write_sets(folder: Path) -> None:
    """Every set with 14 questions in its training part and two in its test part; `natural` with two pages, an
    essay, a novel and a meeting.
    """
    chunks = [
        {"title": title, "text": text} for title, _, text in (chunk.partition(": ") for chunk in CHUNKS)
    ]
    for name, source in SETS.items():
        for part, n in ((source.train, 14), (source.test, 2)):
            known = {"answer": "Turku", "support": [0, 2], "chunks": chunks}
            names = [f"{name}-{part}-{i}" for i in range(n)]
            asked = [known | {"id": each, "question": f"{QUESTION} {each}"} for each in names]
            write_lines(folder / source.folder / f"{part}.jsonl.gz", *asked)
    texts = {
        "a.html": (
            "<h1>Boats</h1><p>The red boat was built in Bergen by two brothers.</p><p>It sank in a storm near"
            " the cape.</p>"
        ),
        "b.html": "<h1>Bread</h1><p>Rye bread is baked for twelve hours in a slow oven.</p>",
        "essay-x.txt": "Writing well takes many drafts. Nobody sees the first of them.",
        "Doyle_Hound_1902.txt": "The hound was kept on an island in the mire. Nobody went there at night.",
        "meeting_product_val1.txt": (
            "Ann: the remote control should cost twelve euros. Bo: agreed by all of us."
        ),
    }
    quotes = {
        "a.html": "built in Bergen by two brothers",
        "b.html": "baked for twelve hours in a slow oven",
        "essay-x.txt": "Nobody sees the first of them",
    }
    quotes |= {
        "Doyle_Hound_1902.txt": "kept on an island in the mire",
        "meeting_product_val1.txt": "should cost twelve euros",
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    records = [
        {"id": name, "document": name, "kind": "single", "question": f"What of {name}?"}
        | {"answer": quote, "support": [quote]}
        for name, quote in quotes.items()
    ]
    lost = records[0] | {"id": "lost", "support": ["a quote that stands nowhere"]}
    for part in ("train", "validation"):
        write_lines(folder / "natural" / f"{part}.jsonl.gz", *records, lost)
