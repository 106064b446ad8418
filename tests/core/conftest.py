"""The authors' four tiny checkpoints, imported once, and corpora over them: real parts that run in
milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from core.answer import reader
from core.encode import encoder
from core.encode.encoder import DualEncoder, load_encoder
from core.encode.reference import import_checkpoint
from core.index import Corpus
from core.opening import index_of
from core.qrag.agent import Agent
from core.types import workspace_of_chunks

REFERENCE = Path(__file__).resolve().parents[1] / "data" / "reference"
CorpusOf = Callable[[DualEncoder, Sequence[str]], Corpus]


@pytest.fixture(scope="session", autouse=True)
def models_stay_in_use() -> Iterator[None]:
    """Commands called in this process load each model once: what one of them loaded stays in use for the
    next.
    """
    kept: set[Any] = set()

    def keeping(get: Callable[..., Any]) -> Callable[..., Any]:
        def get_and_keep(folder: Path, device: Any) -> Any:
            model = get(folder, device)
            kept.add(model)
            return model

        return get_and_keep

    with pytest.MonkeyPatch.context() as patch:
        for models in (encoder.encoders_in_use, reader.readers_in_use):
            patch.setattr(models, "get", keeping(models.get))
        yield


@pytest.fixture(scope="session")
def reference() -> Path:
    """Golden episodes, checkpoints in the authors' format, and their base encoder."""
    return REFERENCE


@pytest.fixture(scope="session")
def tiny_checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of the imported checkpoints, by position setting. Not to be written to."""
    folders = {}
    for source in sorted((REFERENCE / "checkpoints").iterdir()):
        folders[source.name] = tmp_path_factory.mktemp("checkpoints") / source.name
        import_checkpoint(str(source), folders[source.name], base=str(REFERENCE / "tiny-bert"))
    return folders


@pytest.fixture(scope="session")
def agents(tiny_checkpoints: dict[str, Path]) -> dict[str, Agent]:
    """The agents of those checkpoints."""
    return {name: Agent(load_encoder(str(folder), "cpu")) for name, folder in tiny_checkpoints.items()}


@pytest.fixture(scope="session")
def minilm() -> DualEncoder:
    """The base encoder that ships."""
    return load_encoder("base", "cpu")


@pytest.fixture(scope="session")
def corpus_of() -> CorpusOf:
    """`corpus_of(encoder, chunks)`: a corpus without any cache."""

    def build(encoder: DualEncoder, chunks: Sequence[str]) -> Corpus:
        return Corpus(
            workspace_of_chunks(chunks, encoder.tokenizer.count(chunks)),
            index_of(encoder, encoder.encode_chunks(chunks)),
        )

    return build
