"""Cancel on every page.

It ends what runs at that moment, each event by itself, before it answers. What it shows is shown once more,
since the browser may draw late what was cancelled.
"""

from __future__ import annotations

import gradio as gr

from app.build import build_app
from app.services.shared import Services

LISTED = ("qx-run", "qx-sql", "qx-evaluate", "qx-whole")
SOME = {"qx-cancel", "qx-compare-cancel", "qx-sparc-cancel", "qx-run-cancel", "qx-evaluate-cancel"}


def test_every_cancel_frees_its_button_again_after_its_own_answer(services: Services) -> None:
    blocks = build_app(services)
    names = {key: getattr(block, "elem_id", None) for key, block in blocks.blocks.items()}
    listeners = list(blocks.fns.values())
    cancelling = {
        names[target]
        for listener in listeners
        if listener.cancels
        for target, _ in listener.targets
        if target is not None
    }
    assert cancelling > SOME
    for cancel in cancelling:
        [answer] = [
            listener
            for listener in listeners
            if not listener.cancels and any(names.get(target) == cancel for target, _ in listener.targets)
        ]
        ends = [
            listener
            for listener in listeners
            if listener.cancels and any(names.get(target) == cancel for target, _ in listener.targets)
        ]
        assert {len(listener.cancels) for listener in ends} == {1}
        assert max(listener._id for listener in ends) < answer._id
        [again] = [listener for listener in listeners if listener.trigger_after == answer._id]
        assert cancel in {names[block._id] for block in again.outputs}
        assert not again.trigger_only_on_success


def test_presses_in_a_row_are_all_heard(services: Services) -> None:
    """In lists and tables of Experiments and Evaluate."""
    blocks = build_app(services)
    modes = {
        blocks.blocks[target].elem_id: listener.trigger_mode
        for listener in blocks.fns.values()
        for target, event in listener.targets
        if event == "select" and isinstance(blocks.blocks.get(target), gr.HTML)
    }
    lists = {name: mode for name, mode in modes.items() if name.startswith(LISTED)}
    assert {"qx-runs-list", "qx-sql-answer", "qx-whole-questions", "qx-evaluate-list"} < {*lists}
    assert {*lists.values()} == {"multiple"}
