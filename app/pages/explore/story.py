"""The story line of the run in view: which steps it tells."""

from __future__ import annotations

from functools import partial

from app.pages.explore.view import answer_in_view, first_steps
from app.services.in_view import RunInView
from app.services.session import Session
from core.views.draw.nodes import Node, h
from core.views.draw.story import story_nodes
from core.views.quotes import passage_in
from core.views.story import story_of

INVITATION = "Ask a question. You will see which passages the agent picks, and why it stopped."


def story(run: RunInView | None, session: Session) -> list[Node]:
    """The line of the steps that are in view, and whole once their run has ended and was read."""
    if run is None or (not session.cursor and run.trace.stopped is None):
        return [h("p.qx-empty", INVITATION)]
    trace, workspace = first_steps(run.trace, session.cursor), run.documents.workspace
    answer = answer_in_view(run, session)
    line = story_of(trace, partial(passage_in, workspace), run.gold, answer, run.known_answer)
    tokens = sum(workspace[chunk_id].n_tokens for chunk_id in trace.picks)
    return story_nodes(line, look=session.look, n_looks=run.trace.n_looks, tokens=tokens)
