"""What can be trained by name.

A mixture, the settings that suit it, and how the agent will be served.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from core.base.errors import BadRequest
from core.encode.checkpoint import CheckpointSpec, find_base
from core.encode.packaged import MINILM
from core.encode.tokens import FastTokenizer
from core.lab.train.config import TrainConfig
from core.lab.train.general import GeneralMixture
from core.lab.train.mixtures import Mixture, OwnMixture
from core.lab.train.multihop import MultiHopMixture
from core.lab.train.narrative import CHAINS, NarrativeMixture


@dataclass(frozen=True)
class Recipe:
    """Defaults of one kind of training; flags change single settings."""

    settings: dict[str, Any]
    served: dict[str, Any]
    """Fields of the checkpoint's spec, but those of positions."""
    build: Callable[[Path | None, FastTokenizer], Mixture]
    """From the data folder, or the file of a person's own questions, and the base encoder's tokenizer."""


_NARRATIVE = {
    "description": "Finds facts in stories: who was where, who carried what. Reads positions.",
    "max_chunk_tokens": 98,
    "max_state_part_tokens": 98,
    "chunk_tokens": {"structure": 96, "sentences": 64},
    "one_sentence": True,
    "suits": ("story",),
    "step_budget": 5,
}
_CHAIN_SETTINGS = {"updates": 80, "episodes": 8, "steps": 4, "validate_every": 40, "n_validation": 60}
_PARAGRAPHS = {
    "description": "Finds the paragraphs that answer a question in several hops. Reads no positions.",
    "max_chunk_tokens": 130,
    "max_state_part_tokens": 130,
    "chunk_tokens": {"structure": 128, "sentences": 128},
    "step_budget": 4,
}
_DOCUMENTS = {
    "description": (
        "Finds the passages that answer questions about real documents: novels, manuals, pages, meetings."
        " Counts words, reads no positions."
    ),
    "normalize": True,
    "scale": 1.0,
    "word_weight": 0.3,
    "reads_choices": False,
    "max_chunk_tokens": 222,
    "max_state_part_tokens": 130,
    "chunk_tokens": {"structure": 220, "sentences": 220},
    "suits": ("html", "markdown", "text"),
    "step_budget": 4,
}
_WITHOUT_POSITIONS = {"position_kind": "none", "steps": 4, "learning_rate": 4e-4}
_DOCUMENT_SETTINGS = _WITHOUT_POSITIONS | {
    "objective": "supervised",
    "target_towers": False,
    "episodes": 16,
    "updates": 200,
    "n_validation": 40,
}
_PARAGRAPH_SETTINGS = _WITHOUT_POSITIONS | {"episodes": 8, "updates": 640}

RECIPES: dict[str, Recipe] = {
    "narrative": Recipe({"exploring_starts": 0.5}, _NARRATIVE, NarrativeMixture),
    "chains": Recipe(_CHAIN_SETTINGS, _NARRATIVE, partial(NarrativeMixture, name="chains", shares=CHAINS)),
    "multi-hop": Recipe(_PARAGRAPH_SETTINGS, _PARAGRAPHS, lambda data, _: MultiHopMixture(data)),
    "multi-hop-without-musique": Recipe(
        _PARAGRAPH_SETTINGS, _PARAGRAPHS, lambda data, _: MultiHopMixture(data, without=("musique",))
    ),
    "general": Recipe(_DOCUMENT_SETTINGS, _DOCUMENTS, GeneralMixture),
    "own": Recipe(_PARAGRAPH_SETTINGS | {"updates": 300}, _PARAGRAPHS, lambda file, _: OwnMixture(file)),
}


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything that a `Trainer` needs but a folder."""

    config: TrainConfig
    spec: CheckpointSpec
    mixture: Mixture
    base: Path
    """Folder of the base encoder. A local one travels with the checkpoint, one from the hub is named in it.
    """


def plan_training(
    name: str, *, agent: str, source: Path | None = None, base: str = MINILM, **settings: Any
) -> Plan:
    """`source`: folder of the data sets, or the file of own questions. Raises BadRequest, BadCheckpoint."""
    if name not in RECIPES:
        raise BadRequest(f"training data {name!r} is unknown; choose one of {', '.join(RECIPES)}")
    if not 1 <= len(agent) <= 100:
        raise BadRequest(
            f"the agent's name has {len(agent)} characters, there must be between 1 and 100; name it with"
            " --name"
        )
    folder = find_base(base)
    recipe = RECIPES[name]
    config = TrainConfig(**{"data": name} | recipe.settings | settings)
    served = recipe.served | {
        "position_kind": config.position_kind,
        "position_resolution": 1 / 64 if config.position_kind == "relative" else None,
    }
    spec = CheckpointSpec(
        name=agent,
        trained=True,
        base="." if Path(base).is_dir() else base,
        weights="adapters",
        halves=1,
        **{"scale": 1 / 3} | served,
    )
    return Plan(config, spec, recipe.build(source, FastTokenizer(folder)), folder)
