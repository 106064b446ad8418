"""Two small documents to train on and one that validates, with questions whose quotes stand in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.core.lab.tasks.conftest import write_lines

PLACES = ("harbour", "mill", "chapel", "orchard", "quarry", "lighthouse")


def sentence(name: str, place: str) -> str:
    return f"On the last evening {name} carried the {place} lantern over to the {place} gate."


def filler(place: str) -> str:
    return " ".join(
        f"Nobody at the {place} spoke of the {i}th lantern, for the {place} had many of them and little oil."
        for i in range(12)
    )


def write_whole_documents(folder: Path) -> Path:
    """A data folder; every place has a paragraph longer than a chunk and a sentence that answers."""
    asked: dict[str, list[dict[str, Any]]] = {"train": [], "validation": []}
    for name, part in (("anna", "train"), ("boris", "train"), ("clara", "validation")):
        (folder / f"{name}.txt").write_text(
            "\n\n".join(f"{filler(place)}\n\n{sentence(name, place)}" for place in PLACES)
        )
        for i, place in enumerate(PLACES):
            quotes = (
                [sentence(name, place)] if i % 2 else [sentence(name, place), sentence(name, PLACES[i - 1])]
            )
            kind, question = "single" if i % 2 else "bridge", f"Who took the {place} lantern?"
            about = {"id": f"{name}-{i}", "document": f"{name}.txt", "kind": kind, "answer": name}
            asked[part].append(about | {"question": question, "support": quotes})
        nobody = about | {"id": f"{name}-none", "kind": "unanswerable", "question": "Who sank the boat?"}
        asked[part].append(nobody | {"answer": "", "support": []})
    for part, records in asked.items():
        write_lines(folder / "natural" / f"{part}.jsonl.gz", *records)
    return folder
