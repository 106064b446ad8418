"""Assembles the pages and the web app around them.

What each tab does is in app.pages.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import gradio as gr
from fastapi import FastAPI

from app.calls import endpoints
from app.calls import operations as api
from app.components.address import ADDRESS_SCRIPT, ASKED
from app.components.page import LOADING_SCRIPT, page
from app.components.tree import TREE_SCRIPT
from app.gradio_internals import (
    Pages,
    begin_pages_with,
    caller_at_hand,
    keep_no_configs,
    keep_signatures,
    keep_sliders_in_bounds,
    let_go_of_closed_pages,
)
from app.pages.compare.tab import CompareTab
from app.pages.evaluate.tab import EvaluateTab
from app.pages.evidence.tab import EvidenceTab
from app.pages.experiments.tab import ExperimentsTab
from app.pages.explore.tab import ExploreTab
from app.pages.sparc.tab import SparcTab
from app.pages.train.tab import TrainTab
from app.pages.widgets.requests import UseAgent
from app.pages.widgets.work import QUIET
from app.services.evaluations import Evaluations
from app.services.shared import Services
from app.services.sparc_runs import SparcRuns
from app.services.visitors import RETENTION
from app.signing_in import SIGN_IN_HINT, Guesses, sign_in
from app.theme import build_theme
from app.web import web_app
from core.base.home import ASSETS
from core.ingest.limits import MAX_FILE_BYTES

STYLES = [ASSETS / name for name in ("theme.css", "app.css", "strip.css", "sparc.css", "evidence.css")]


_TO_WHOLE = "() => setTimeout(() => document.getElementById('qx-whole-methods')?.scrollIntoView(), 300)"
"""Where the evaluation of one's own questions is shown, once its tab is."""


def build_app(services: Services) -> gr.Blocks:
    """The pages over shared services."""
    keep_no_configs()
    keep_signatures()
    keep_sliders_in_bounds()
    evaluations, sparc_runs = Evaluations(services), SparcRuns(services)
    with Pages(
        title="Q-RAG Explorer", analytics_enabled=False, delete_cache=(3600, 86400), fill_width=True
    ) as blocks:
        gr.Markdown("# Q-RAG Explorer", elem_id="qx-title")
        own_page = page(elem_id="qx-page")
        # Spaces install gradio with authlib
        if services.settings.hub_sign_in and find_spec("authlib") is not None:
            gr.LoginButton(size="sm", elem_id="qx-sign-in")
        with gr.Tabs(selected="explore", overflow_behavior="wrap", elem_id="qx-tabs") as tabs:
            with _tab("Explore", "explore") as explore_tab:
                explore = ExploreTab(services, evaluations, own_page)
            with _tab("Compare", "compare") as compare_tab:
                compare = CompareTab(services, explore.session, explore.controls.query, sparc_runs)
            with _tab("SPARC", "sparc") as sparc_tab:
                sparc = SparcTab(services, sparc_runs, explore.session, explore.controls.query, explore.page)
            with _tab("Evidence sets", "evidence") as evidence_tab:
                evidence = EvidenceTab(services, explore.session, explore.controls.query, explore.page)
            with _tab("Experiments", "experiments") as experiments_tab:
                experiments = ExperimentsTab(services, explore.session)
            with _tab("Evaluate", "evaluate") as evaluate_tab:
                evaluate = EvaluateTab(services, evaluations, explore.session)
            if not services.settings.public:  # strangers must not keep the machine busy for hours
                with _tab("Train", "train") as train_tab:
                    train = TrainTab(services)
                train.on_show(train_tab.select)
                others = (explore_tab, compare_tab, sparc_tab, evidence_tab, experiments_tab, evaluate_tab)
                for other in others:
                    train.on_hide(other.select)
                leads = _leads(explore.own.to_evaluate, tabs, "evaluate", evaluate.whole.wanted)
                leads.then(None, js=_TO_WHOLE, **QUIET)
                _leads(evaluate.whole.to_explore, tabs, "explore", explore.wanted)
                own_data = train.data, train.questions, train.start_from, train.further
                explore.own.to_train(tabs, explore.session, *own_data)
                train.explore.click(
                    lambda name: (gr.Tabs(selected="explore"), UseAgent(name)),
                    train.chosen,
                    [tabs, explore.wanted],
                    **QUIET,
                )
        words, hours = "Press ? for keys.", f"{RETENTION.total_seconds() / 3600:.0f} hours"
        if services.settings.public:
            words += f" What you open and run is yours alone until you share it, and deleted after {hours}."
        gr.Markdown(words, elem_id="qx-about")
        endpoints.register(api.Operations(services, compare.comparisons, sparc_runs, caller_at_hand))
        explore.on_load(blocks)
        let_go_of_closed_pages(blocks, services)
        shown = [explore.agent, own_page]
        explore_tab.select(explore.in_front, [explore.session, own_page], shown, **QUIET)
        explore.llm_panel.on_show(explore_tab.select)
        evaluate.on_show(evaluate_tab.select)
        compare.on_show(compare_tab.select)
        _leads(explore.to_compare, tabs, "compare", compare.wanted)
        sparc.on_show(sparc_tab.select)
        for source in (explore, compare, experiments):
            _leads(source.to_sparc, tabs, "sparc", sparc.wanted)
            _leads(source.to_sets, tabs, "evidence", evidence.wanted)
        evidence.on_show(evidence_tab.select)
        evidence.on_sample(explore.opens(evidence.to_sample).success)
        evidence.to_experiments.change(
            lambda to, session: (gr.Tabs(selected="experiments"), experiments.filtered(session, to[0])),
            [evidence.to_experiments, explore.session],
            [tabs, experiments.method],
            **QUIET,
        )
        experiments.on_show(experiments_tab.select)
        for tab in (compare, sparc, evidence, experiments, evaluate):
            _leads(tab.to_explore, tabs, "explore", explore.wanted)
        _open_what_is_asked(blocks, tabs, explore, (compare, experiments, evaluate))
    return blocks


def _open_what_is_asked(
    blocks: gr.Blocks,
    tabs: gr.Tabs,
    explore: ExploreTab,
    others: Sequence[CompareTab | ExperimentsTab | EvaluateTab],
) -> None:
    """Has the page begin with what its address asks for; Explore looks for itself."""
    came, arrival = gr.Textbox(visible=False), gr.Timer(0.3, active=False)
    names = json.dumps([tab.id for tab in tabs.children if isinstance(tab, gr.Tab)])
    first = f"() => qxAddress.first({names}, {json.dumps(ASKED)})"
    blocks.load(None, None, [tabs, came, arrival], js=first, **QUIET)

    # until Explore has opened what it shows, which may be what another tab asks for
    look = arrival.tick(lambda session: gr.Timer(active=session.awaits), explore.session, arrival, **QUIET)
    for tab in others:
        tab.on_arrival(look.then, came)


@contextmanager
def _tab(label: str, name: str) -> Iterator[gr.Tab]:
    """A tab that begins with its name once more, for those who find their way by headings."""
    with gr.Tab(label, id=name) as tab:
        gr.Markdown(f"## {label}", elem_classes="qx-unseen")
        yield tab
    tab.select(None, js=f"() => qxAddress.show('{name}')", **QUIET)


def _leads(source: gr.State, tabs: gr.Tabs, name: str, wanted: gr.State) -> Any:
    """What `source` says is put into `wanted`, and the tab `name` is shown."""
    return source.change(lambda value: (gr.Tabs(selected=name), value), source, [tabs, wanted], **QUIET)


def build_web_app(services: Services) -> FastAPI:
    """The pages as they are served."""
    settings = services.settings
    begin_pages_with(LOADING_SCRIPT)
    return web_app(
        build_app(services),
        settings,
        auth=sign_in(settings.users, Guesses(names=dict(settings.users))) if settings.users else None,
        auth_message=SIGN_IN_HINT,
        css_paths=STYLES,
        head=f"<script>{TREE_SCRIPT}{ADDRESS_SCRIPT}</script>",
        theme=build_theme(),
        max_file_size=MAX_FILE_BYTES,
        # its tools call the app without a password
        mcp_server=find_spec("mcp") is not None and not settings.users,
    )
