"""The Train tab: what starts which action, and what is shown then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import gradio as gr
import plotly.graph_objects as go

from app.components.tree import clicked, packs
from app.pages.train import view
from app.pages.train.layout import FROM_BASE, QUICK, TrainLayout, config_values
from app.pages.widgets.figures import drawn
from app.pages.widgets.notices import notice_in
from app.pages.widgets.work import EACH, QUIET, Update, in_line
from app.services.shared import Services
from app.services.trainings import (
    Order,
    ShownTraining,
    Trainings,
    checked_base,
    quick_config,
    recipe_config,
    shipped_seconds_an_update,
    startable_agents,
)
from core.base.errors import BadRequest, UserError
from core.lab.train.config import TrainConfig
from core.views.figures import step_figure, update_figure, validation_figure


class TrainTab(TrainLayout):
    """Built once; handlers are methods."""

    def __init__(self, services: Services) -> None:
        super().__init__()
        self.services = services
        self.trainings = Trainings(services.log_path)
        self._wire()

    def _wire(self) -> None:
        headings = [part for pair in self.figures.values() for part in pair]
        detail = [
            *(self.chosen, self.stamp, self.pages, self.timer, self.list, self.detail, self.header),
            *(self.explore, self.stop, self.resume, self.curves, *headings, *self.cards.values()),
            *(self.tables, self.validation, self.updates, self.notice, self.detail_notice),
        ]
        view_state = [self.chosen, self.stamp, self.pages]
        settings = list(self.settings.values())
        quick = in_line("train")
        order = [self.data, self.questions, self.name, self.start_from, self.base, *settings]
        self.start.click(packs(self._start, notice_in(self.notice)), order, detail, **quick)
        for button, act in ((self.stop, self.trainings.stop), (self.resume, self.trainings.resume)):
            button.click(packs(self._acting(act), notice_in(self.detail_notice)), view_state, detail, **quick)
        selects = [self.list.select, self.updates.select]
        gr.on(selects, packs(self._on_click), view_state, detail, **EACH, **quick)
        self.timer.tick(packs(self._tick), view_state, detail, **quick)
        chosen = [self.data, self.effort]
        self.data.change(packs(self._on_data), chosen, [self.own, *settings, self.estimate], **quick)
        self.effort.change(packs(self._on_effort), chosen, settings, **quick)
        paced = [self.settings[name] for name in ("updates", "episodes", "steps", "rank", "objective")]
        gr.on(
            [control.change for control in (*paced, self.base)],
            packs(self._estimate),
            [self.data, self.base, *settings],
            self.estimate,
            trigger_mode="always_last",
            **quick,
        )
        self._detail = detail

    def on_show(self, show: Callable[..., Any]) -> None:
        """`show`: listens for the tab's opening; a reload or restart finds what runs and what ended."""
        show(
            packs(self._shown),
            [self.chosen, self.pages, self.data, self.base, *self.settings.values()],
            [*self._detail, self.start_from, self.estimate],
            **QUIET,
        )

    def on_hide(self, hide: Callable[..., Any]) -> None:
        """`hide`: the listener of another tab's being opened; nobody watches then."""
        hide(lambda: gr.Timer(active=False), None, self.timer, **QUIET)

    def further(self, agent: str) -> gr.Dropdown:
        """What to start from: this agent, if it can be trained further."""
        starts = _starts()
        return gr.Dropdown(starts, value=agent) if (agent, agent) in starts else gr.Dropdown(starts)

    # Handlers; each returns updates by component

    def _shown(self, chosen: str, pages: tuple[int, int], data: str, base: str, *settings: Any) -> Update:
        return {
            **self._view(chosen, pages),
            self.start_from: gr.Dropdown(_starts()),
            **self._estimate(data, base, *settings),
        }

    def _start(
        self, data: str, questions: str | None, name: str, start_from: str, base: str, *settings: Any
    ) -> Update:
        agents = startable_agents()
        if start_from and start_from not in agents:
            raise BadRequest(f"agent {start_from[:80]!r} can't be trained further; choose one of the list")
        config = replace(self._config(data, settings), start_from=agents.get(start_from))
        own = Path(questions) if data == "own" and questions else None
        order = Order((name or "").strip(), config, checked_base(base or ""), own)
        self.trainings.start(order)
        return {**self._view(order.name, (0, 0)), self.notice: []}

    def _config(self, data: str, settings: tuple[Any, ...]) -> TrainConfig:
        """The controls' values, checked. Raises BadRequest."""
        values = dict(zip(self.settings, settings, strict=True))
        for name, value in values.items():
            if value is None and name != "top_k_actions":
                raise BadRequest(f"{self.settings[name].label.lower()} is empty; give a number")
        values["position_kind"] = "relative" if values["position_kind"] else "none"
        kinds = {field.name: field.type for field in fields(TrainConfig)}
        whole = {name: int(value) for name, value in values.items() if kinds[name] == "int"}
        best = {"top_k_actions": int(values["top_k_actions"] or 0) or None}
        return TrainConfig(**{**recipe_config(data).to_json(), **values, **whole, **best})

    def _acting(self, action: Callable[[str], None]) -> Callable[..., Update]:
        """A handler that does something with the training in view."""

        def handler(chosen: str, _stamp: Any, pages: tuple[int, int]) -> Update:
            action(chosen)
            return {**self._view(chosen, pages), self.detail_notice: []}

        return handler

    def _on_click(self, chosen: str, _stamp: Any, pages: tuple[int, int], event: gr.EventData) -> Update:
        action, argument = clicked(event)
        if action == "training":
            return self._view(argument, (pages[0], 0))
        if action in ("trainings-page", "updates-page") and argument.isdecimal():
            page = int(argument)
            return self._view(chosen, (page, pages[1]) if action == "trainings-page" else (pages[0], page))
        return {}

    def _tick(self, chosen: str, stamp: Any, pages: tuple[int, int]) -> Update:
        """Nothing is sent while nothing has changed: the page keeps zoom, focus and scroll."""
        trainings = self.trainings.all()
        if stamp == _stamp(trainings, chosen):
            return {}
        return self._view(chosen, pages)

    def _on_data(self, data: str, effort: str) -> Update:
        values = config_values(quick_config(data) if effort == QUICK else recipe_config(data))
        fields = {component: values[name] for name, component in self.settings.items()}
        return {
            self.own: gr.Row(visible=data == "own"),
            **fields,
            **self._estimate(data, "", *fields.values()),
        }

    def _on_effort(self, data: str, effort: str) -> Update:
        """What makes a training quick, or full again; all else stays as somebody set it."""
        quick, full = config_values(quick_config(data)), config_values(recipe_config(data))
        wanted = quick if effort == QUICK else full
        return {self.settings[name]: wanted[name] for name in wanted if quick[name] != full[name]}

    def _estimate(self, data: str, base: str, *settings: Any) -> Update:
        try:
            config = self._config(data, settings)
            seconds = self.trainings.seconds_an_update(config, checked_base(base or ""))
        except UserError:
            return {self.estimate: []}  # told when the training is begun
        return {self.estimate: view.estimate(seconds, shipped_seconds_an_update(config), config.updates)}

    # Views

    def _view(self, chosen: str, pages: tuple[int, int]) -> Update:
        """The list and the training in view: the chosen one, else the one that runs, else the latest."""
        trainings = self.trainings.all()
        by_name = {training.name: training for training in trainings}
        live = next((training for training in trainings if training.is_live), None)
        training = by_name.get(chosen) or live or next(iter(trainings), None)
        name = training.name if training else ""
        detail = (
            self._detail_view(training, pages[1]) if training else {self.detail: gr.Column(visible=False)}
        )
        return {
            self.chosen: name,
            self.stamp: _stamp(trainings, name),
            self.pages: pages,
            self.timer: gr.Timer(active=live is not None),
            self.list: view.training_list(trainings, name, pages[0]),
            **detail,
        }

    def _detail_view(self, training: ShownTraining, page: int) -> Update:
        update = {
            self.detail: gr.Column(visible=True),
            self.header: view.header(training),
            self.explore: gr.Button(visible=training.has_agent),
            self.stop: gr.Button(
                visible=training.can_stop or training.state == "stopping", interactive=training.can_stop
            ),
            self.resume: gr.Button(visible=training.can_resume),
            self.curves: gr.Column(visible=bool(training.updates)),
            self.tables: gr.Column(visible=bool(training.events)),
            self.validation: view.validation_table(training),
            self.updates: view.update_table(training, page),
        }
        if not training.updates:
            return update
        words, figures = view.curve_words(training), _figures(training)
        update |= {card: gr.Column(visible=name in figures) for name, card in self.cards.items()}
        for name, draw in figures.items():
            heading, figure = self.figures[name]
            update |= {heading: view.curve_heading(name, words.get(name, "")), figure: drawn(draw)}
        return update


def _figures(training: ShownTraining) -> dict[str, Callable[[], go.Figure]]:
    """How each figure of a training is drawn; fine-tuning on labels has neither Q targets nor exploration."""
    events = training.events
    drawn: dict[str, Callable[[], go.Figure]] = {
        "success": lambda: update_figure(events, "success", "share of episodes"),
        "loss": lambda: update_figure(events, view.loss_name(training), "loss", log=True),
        "reward": lambda: step_figure(events, "reward", "reward", stacked=True),
    }
    if not view.is_supervised(training):
        drawn |= {
            "q": lambda: step_figure(events, "q", "Q", beside="v"),
            "entropy": lambda: step_figure(events, "entropy", "nats"),
        }
    if training.validations:
        drawn["score"] = lambda: validation_figure(events)
    return drawn


def _stamp(trainings: list[ShownTraining], chosen: str) -> Any:
    """What decides whether the page is out of date."""
    return chosen, [(training.name, training.state, len(training.events)) for training in trainings]


def _starts() -> list[tuple[str, str]]:
    return [FROM_BASE, *((name, name) for name in startable_agents())]
