"""The same question over the same text cut in several ways."""

from __future__ import annotations

import pytest

from core.base.config import CHUNKERS, EpisodeConfig
from core.base.errors import BadRequest, Cancelled
from core.base.events import fold
from core.base.progress import finish
from core.base.types import Document
from core.corpus.opening import OpenProgress, open_corpus
from core.methods.qrag.agent import Agent
from core.methods.qrag.retriever import AgentRetriever
from core.runs.whatif.cuts import (
    MAX_TOKENS,
    SIZES,
    Cut,
    across_cuts,
    check_size,
    chunks_of,
    share_found,
    sizes_for,
    spans_of,
)

pytestmark = pytest.mark.usefixtures("home")


STORY = Document(
    "Story",
    "".join(f"Mary went to the garden on day {i}. John got the milk there. " for i in range(40)),
    "text",
)

PAGE = Document(
    "Page",
    "# House\n\nThe old house said nothing.\n\n"
    + "\n\n".join(f"Day {i} was cold. Nobody came." for i in range(20)),
    "markdown",
)
QUERY = "where is the milk of john ?"
CONFIG = EpisodeConfig(step_budget=3)


def made(agent: Agent, **more: object) -> list[Cut]:
    return list(across_cuts(QUERY, [STORY, PAGE], AgentRetriever(agent), agent.encoder, CONFIG, **more))


def test_every_cut_is_what_opening_the_documents_that_way_gives(agent: Agent) -> None:
    cuts = made(agent)
    ways = [(chunker, size) for chunker in CHUNKERS for size in sizes_for(agent.spec)]
    assert [cut.name for cut in cuts] == [f"{chunker}, {size} tokens" for chunker, size in ways]
    for cut, (chunker, size) in zip(cuts, ways, strict=True):
        again = finish(
            open_corpus([STORY, PAGE], agent.encoder, [agent.spec.chunk_config(chunker, size)] * 2)
        )
        assert again.n_embedded == 0, "the cut is in the cache"
        assert cut.opened.corpus.workspace.texts() == again.corpus.workspace.texts()
        assert cut.column.trace.chosen == fold(agent.run(QUERY, again.corpus, CONFIG)).chosen


def test_sizes_end_with_what_the_agent_reads(agent: Agent) -> None:
    for read, sizes in ((256, [32, 64, 96, 128, 254]), (100, [32, 64, 96, 98]), (600, list(SIZES))):
        assert sizes_for(agent.spec.model_copy(update={"max_chunk_tokens": read})) == sizes


def test_a_cut_with_fewer_chunks_than_steps_says_so(agent: Agent) -> None:
    short = Document("Short", "Mary went to the garden. " * 3 + "John got the milk there. " * 3, "text")
    cuts = list(across_cuts(QUERY, [short], AgentRetriever(agent), agent.encoder, CONFIG))
    refused = [cut for cut in cuts if cut.column.trace is None]
    assert refused
    assert all("step budget 3 is above" in cut.column.refused for cut in refused)


def test_a_cancel_keeps_what_was_embedded(agent: Agent) -> None:
    heard: list[str] = []

    def cancel(name: str, progress: OpenProgress) -> None:
        heard.append(name)
        if progress.stage == "indexing" and len(set(heard)) == 2:
            raise Cancelled

    with pytest.raises(Cancelled):
        made(agent, on_progress=cancel)
    first, second, *_ = [cut.opened for cut in made(agent) if cut.opened]
    assert first.n_embedded == second.n_embedded == 0


def test_found_text_is_counted_in_characters_that_are_not_blank(agent: Agent) -> None:
    ways = [agent.spec.chunk_config("sentences", 32)] * 2
    workspace = finish(open_corpus([STORY, PAGE], agent.encoder, ways)).corpus.workspace
    ids = (0, 2, len(workspace) - 1)
    assert chunks_of(workspace, spans_of(workspace, ids)) == ids, "spans lead back to their chunks"
    chunk = workspace[3]
    half = (0, chunk.start, chunk.start + (chunk.end - chunk.start) // 2)
    assert share_found(workspace, [3], [half]) == 1.0
    assert share_found(workspace, [2], [half]) == 0.0
    twice = [half, half, (0, half[1], half[1] + 1)]
    assert share_found(workspace, [3], twice) == 1.0, "what is named twice counts once"
    assert share_found(workspace, [3], []) is None
    assert share_found(workspace, [], [half]) == 0.0
    across = (0, workspace[3].start, workspace[4].end)  # with the blank between them, which lies in neither
    assert share_found(workspace, [3, 4], [across]) == 1.0
    letters = [len("".join(workspace[i].text.split())) for i in (3, 4)]
    assert share_found(workspace, [4], [across]) == pytest.approx(letters[1] / sum(letters))
    assert share_found(workspace, [3], [(1, *half[1:])]) == 0.0, "another document"


def test_long_documents_are_refused_before_anything_is_embedded() -> None:
    check_size(MAX_TOKENS)
    with pytest.raises(BadRequest, match="1,000,001 tokens, more than 1,000,000: 10 cuts"):
        check_size(MAX_TOKENS + 1)
