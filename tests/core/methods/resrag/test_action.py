"""The structured action: what it looks like as JSON, and that nothing else gets in."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.base.errors import BadRequest
from core.base.types import ChunkTable, Document, Workspace, join_workspaces, workspace_of_chunks
from core.methods.resrag.action import Action, action_json, action_of, chunk_ids_of, evidence_of, parse_action

SIZES = st.lists(st.integers(0, 6), min_size=1, max_size=5)


@st.composite
def actions(draw: st.DrawFn) -> tuple[Action, list[int]]:
    sizes = draw(SIZES)
    return tuple(
        tuple(draw(st.lists(st.integers(1, size), unique=True))) if size else () for size in sizes
    ), sizes


@given(actions())
def test_actions_survive_json_and_chunk_ids(drawn: tuple[Action, list[int]]) -> None:
    action, sizes = drawn
    assert parse_action(json.dumps(action_json(action)), sizes) == action
    borders = np.concatenate([[0], np.cumsum(sizes)])
    assert action_of(chunk_ids_of(action, borders), borders) == action


JSON = st.recursive(st.none() | st.booleans() | st.floats() | st.integers() | st.text(), st.lists).map(
    json.dumps
)


@given(st.text() | JSON, SIZES)
def test_whatever_is_parsed_is_valid_or_refused_in_one_sentence(text: str, sizes: list[int]) -> None:
    try:
        action = parse_action(text, sizes)
    except BadRequest as error:
        said = str(error)
        assert "; " in said
        assert "\n" not in said
        assert len(said) < 300
        return
    assert [len(set(numbers)) for numbers in action] == list(map(len, action))
    for numbers, size in zip(action, sizes, strict=True):
        assert all(1 <= number <= size for number in numbers)


@given(actions(), st.data())
def test_one_wrong_number_is_named(drawn: tuple[Action, list[int]], data: st.DataObject) -> None:
    action, sizes = drawn
    document = data.draw(st.integers(0, len(sizes) - 1))
    wrong = data.draw(st.sampled_from([0, -1, sizes[document] + 1, 1.0, True, "1", None, [1], 10**70]))
    values: dict[str, list[object]] = {key: [*numbers] for key, numbers in action_json(action).items()}
    values[f"Document_{document + 1}"].append(wrong)
    with pytest.raises(BadRequest, match=f"^Document_{document + 1} of the action holds"):
        parse_action(json.dumps(values), sizes)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * 100_000, "no JSON"),
        ('{"Document_1": [1]}', "lacks Document_2"),
        (
            '{"Document_1": [1], "Document_2": [], "Document_3": []}',
            "'Document_3', and the documents are Document_1 to Document_2",
        ),
        ('{"Document_1": [1], "Document_1": [2], "Document_2": []}', "names 'Document_1' twice"),
        ('{"Document_1": [2, 2], "Document_2": []}', "holds 2 twice"),
        ('{"Document_1": [], "Document_2": [1]}', "the document has no chunks"),
    ],
)
def test_wrong_actions(text: str, said: str) -> None:
    with pytest.raises(BadRequest, match=said):
        parse_action(text, [3, 0])


def test_evidence_follows_the_action_and_brings_the_json_ld_of_all_documents() -> None:
    page = Document("page", "", "html", ({"@type": "Recipe"},))
    empty = ChunkTable(*(np.zeros(0, np.int64) for _ in range(5)), heading_paths=((),))
    first, last = workspace_of_chunks(["a", "b", "c"], np.ones(3)), workspace_of_chunks(["d"], np.ones(1))
    workspace = join_workspaces([first, Workspace((page,), (empty,)), last])
    evidence = evidence_of(((3, 1), (), (1,)), workspace)
    assert (evidence.chunk_ids, evidence.texts) == ((2, 0, 3), ("c", "a", "d"))
    assert evidence.json_ld == ((), ({"@type": "Recipe"},), ())
