"""What every panel of Explore shows for a session."""

from __future__ import annotations

from typing import Any

import gradio as gr
import numpy as np

from app.pages.explore import diagnosis as diagnosis_view
from app.pages.explore import story as story_view
from app.pages.explore import view as present
from app.pages.explore.at_work import part_standing
from app.pages.explore.controls import read_controls
from app.pages.explore.layout import ExploreLayout
from app.pages.widgets.figures import drawn
from app.pages.widgets.work import Update
from app.services.explorer import Explorer
from app.services.in_view import RunInView
from app.services.session import Session
from core.base.config import EpisodeConfig
from core.base.errors import UserError
from core.corpus.layout import LEAST_CHUNKS
from core.corpus.tiles import MODES
from core.views.draw import answers as answer_view
from core.views.draw.nodes import Node
from core.views.draw.steps import decision
from core.views.draw.strip import slopes, strip_value
from core.views.draw.trail import gold_trail
from core.views.draw.words import figure_title
from core.views.figures import best_q_figure, distribution_figure, parts_figure
from core.views.story import missed_support


class Panels:
    """Updates by component."""

    def __init__(self, page: ExploreLayout, explorer: Explorer, session: gr.State) -> None:
        self._page, self._explorer, self._session = page, explorer, session
        self._library = explorer.services.library

    def line(self, session: Session, config: EpisodeConfig | None) -> Update:
        """What is set, as long as it can be told."""
        documents = self._library.corpora.get(session.corpus)
        if documents is None or config is None:
            return {}
        words = present.settings_line(documents.agent.spec, config, documents.trained)
        return {self._page.asking.line: words}

    def standing(self, session: Session, config: EpisodeConfig | None, query: str) -> list[Node]:
        """What there is to say of the question and its settings, beside the run in view."""
        documents, run = self._library.corpora.get(session.corpus), self._explorer.run_of(session)
        return [
            *present.question_cut(documents, query),
            *present.standing(run, session, config, query),
            *part_standing(run, documents, session),
        ]

    def shown(self, session: Session, controls: tuple[Any, ...]) -> Update:
        """Every panel, with what the controls hold; without settings where one is empty."""
        try:
            query, config = read_controls(controls)
        except UserError:
            query, config = str(controls[0] or ""), None
        return {**self.view(session, query, config), **self.figures(self._explorer.run_of(session), session)}

    def reading_only(self, session: Session) -> Update:
        """Where somebody reads on; nothing else changes."""
        page = self._page
        documents, run = self._library.corpora.get(session.corpus), self._explorer.run_of(session)
        return {
            self._session: session,
            page.reading: present.reading(documents, run, session),
            page.reading_view: present.reading_views(session),
            page.reading_notice: [],
        }

    def address(self, session: Session) -> str | None:
        """The run in view, or what is open."""
        if run := self._explorer.run_of(session):
            return f"run={run.run_id}"
        documents = self._library.corpora.get(session.corpus)
        return f"doc={self._library.name_of(documents)}" if documents else None

    def view(self, session: Session, query: str, config: EpisodeConfig | None) -> Update:
        """Every panel for a session."""
        page = self._page
        documents, run = self._library.corpora.get(session.corpus), self._explorer.run_of(session)
        session = page.own.at(session, run.trace.started.query if run else query)
        return {
            self._session: session,
            page.page: self.address(session),
            page.header: present.document_header(documents),
            page.warning: present.warning(documents),
            page.asking.status: present.standing_at(run, session),
            page.sharing.said: [],
            page.asking.notice: [],
            page.reading_notice: [],
            page.asking.standing: self.standing(session, config, query),
            page.earlier: [],
            page.strip: _strip(run, session),
            page.story: story_view.story(run, session),
            page.diagnosis: diagnosis_view.diagnosis(run, session),
            page.steps: present.steps(run, session),
            page.reading: present.reading(documents, run, session),
            page.reading_view: present.reading_views(session),
            page.answer: present.answered(run, session),
            page.cite: gr.update(visible=present.answer_in_view(run, session) is not None),
            **self.cited(run, session),
            page.evidence: present.evidence(run, session),
            page.back: gr.update(interactive=session.cursor > 0),
            **({} if session.underway else {page.reset: gr.update(interactive=run is not None)}),
            **self.line(session, config),
        }

    def cited(self, run: RunInView | None, session: Session) -> Update:
        """What a language model said of the evidence in view."""
        at_end = run is not None and session.cursor == len(run.trace.steps)
        return {self._page.cited: answer_view.cited(run.cited if run and at_end else None)}

    def figures(self, run: RunInView | None, session: Session) -> Update:
        """The plotly figures, once they are near what the browser shows."""
        page = self._page
        if run is None or not run.trace.n_looks:
            return {page.figures: gr.update(visible=False), page.near: ""}
        if not session.draws:
            return {page.figures: gr.update(visible=False), page.near: run.token}
        look, score = session.look, run.method.score_name
        has_parts = any(step.content_q is not None for step in run.trace.steps)
        title, words = f"Best {score} per step and the threshold", decision(run.trace, session.cursor)
        at = "the stop" if run.trace.stopped and look > len(run.trace.steps) else f"step {look}"
        left = _left(run, look)
        counts = "chunks that could be chosen, log scale" if len(left) else "no chunk could be chosen"
        return {
            page.figures: gr.update(visible=True),
            page.near: "",
            page.decision: figure_title(title, words),
            page.best: drawn(lambda: best_q_figure(run.trace)),
            page.trail_card: gr.update(visible=bool(run.gold)),
            page.trail: gold_trail(present.first_steps(run.trace, session.cursor), run.gold),
            page.distribution_title: figure_title(f"Distribution of {score} at {at}", counts),
            page.distribution: (
                drawn(lambda: distribution_figure(left, run.config.stop_threshold)) if len(left) else None
            ),
            page.parts_card: gr.update(visible=has_parts),
            page.parts: drawn(lambda: parts_figure(run.trace)) if has_parts else None,
        }


def _left(run: RunInView, look: int) -> np.ndarray:
    """Q of the chunks that could be chosen at a look."""
    values = run.q_values(look)
    free = ~np.isnan(values)
    free[list(run.unavailable(look))] = False
    return np.extract(free, values)


def _strip(run: RunInView | None, session: Session) -> dict[str, Any] | None:
    """The strip's value for the steps that the cursor keeps."""
    if run is None or not run.trace.n_looks:
        return None
    workspace, trace = run.documents.workspace, run.trace
    at_end = session.cursor == len(trace.steps)
    return strip_value(
        token=run.token,
        n_chunks=run.n_chunks,
        n_looks=trace.n_looks if at_end else max(1, min(trace.n_looks, session.cursor + 1)),
        look=session.look,
        scale=run.scale,
        threshold=run.config.stop_threshold,
        chosen=[
            {"step": step.step, "chunk_id": step.chunk_id, "by": step.chosen_by}
            for step in trace.steps[: session.cursor]
        ],
        gold=run.gold,
        missed=missed_support(trace, run.gold) if at_end else (),
        forbidden=session.forbidden,
        marks=session.marks,
        searched=run.config.searched,
        documents=[
            {"title": document.title, "first_chunk": int(first)}
            for document, first in zip(workspace.documents, workspace.borders[:-1], strict=True)
        ],
        intervals=slopes(run.ruler(session.look)),
        stopped=at_end and trace.n_looks > len(trace.steps),
        modes=MODES if run.config.temperature else tuple(mode for mode in MODES if mode != "p"),
        score_name=run.method.score_name,
        probability_name=f"p at T = {run.config.temperature:g}",
        chunk_map={"of": run.documents.name, "least": LEAST_CHUNKS},
    )
