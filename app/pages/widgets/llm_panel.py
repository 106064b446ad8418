"""The panel in which a visitor says which language model to ask.

An endpoint with a key, or a model in this app. Whoever places it needs nothing of it but, perhaps, `changed`:
the model is found by `services.language_models.get(session)`. Several panels over one session show the same
model once their tab is opened. The key's field is emptied as soon as its key is taken, and nothing sends it
back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import gradio as gr
from pydantic import SecretStr

from app.components.tree import packs, tree
from app.pages.widgets.notices import notice, notice_in
from app.pages.widgets.work import QUIET, Update, in_line
from app.services.language_models import LanguageModels
from app.services.session import Session
from app.services.shared import Services
from core.llm.address import EXAMPLE
from core.llm.endpoint import EndpointLlm
from core.llm.probe import probe
from core.llm.protocol import Llm, Reply, Structure
from core.views.draw.nodes import Node, act, h

ENDPOINT, LOCAL = "endpoint", "local"
_STRUCTURES: dict[Structure, str] = {
    "json_schema": "keeps to a JSON schema",
    "grammar": "is kept to a JSON schema, token by token",
    "json_object": "keeps to JSON, and is told the schema in words",
    "text": "writes JSON in free text",
}
FOR_SCRIPTS = (
    "Give it as llm to run_sparc, over HTTP or MCP: it stands for this model while this page is open, and"
    " holds no key"
)


class LlmPanel:
    """Built once inside the Blocks that is being made; handlers are methods."""

    def __init__(self, services: Services, session: gr.State, place: str = "llm") -> None:
        """`place`: names the panel's elements, `qx-PLACE-...`; each panel of a page has its own."""
        self.models, self.session = services.language_models, session
        self.changed = gr.State(0)
        """Goes up when another model was given, or forgotten."""
        with gr.Accordion("Language model", open=False, elem_id=f"qx-{place}"):
            self.standing = tree(standing(self.models, None), elem_id=f"qx-{place}-standing")
            with gr.Column(visible=self.models.may_give):
                self._build_fields(place, local=not services.settings.public)
            self.notice = tree(elem_id=f"qx-{place}-notice")
        self._wire()

    def _build_fields(self, place: str, local: bool) -> None:
        kinds = [("Behind an address", ENDPOINT), ("In this app", LOCAL)]
        self.kind = gr.Radio(
            kinds, value=ENDPOINT, label="Where it runs", visible=local, elem_id=f"qx-{place}-kind"
        )
        line = partial(gr.Textbox, max_lines=1, max_length=1000)
        with gr.Row() as self.at_address:
            self.address = line(
                value=self.models.listed[0] if len(self.models.listed) == 1 else "",
                label="Address",
                info=" or ".join(self.models.listed) or "OpenAI-compatible; hub: the hub's inference",
                placeholder=next(iter(self.models.listed), EXAMPLE),
                elem_id=f"qx-{place}-address",
                min_width=200,
            )
            self.model = line(
                label="Model",
                info="As its server calls it",
                max_length=200,
                elem_id=f"qx-{place}-model",
                min_width=160,
            )
            self.key = line(
                label="Key",
                info="Kept in the server's memory until you leave",
                type="password",
                max_length=4000,
                html_attributes=gr.InputHTMLAttributes(autocomplete="off", spellcheck=False),
                elem_id=f"qx-{place}-key",
                min_width=160,
            )
        self.source = line(
            label="Model",
            info="A folder on this machine, or a hub id; loaded when it is saved",
            visible=False,
            elem_id=f"qx-{place}-source",
        )
        self.tokens = gr.Number(
            0,
            label="Longest reply",
            info="In tokens, thoughts included; 0: what each task needs",
            precision=0,
            elem_id=f"qx-{place}-tokens",
            min_width=160,
        )
        with gr.Row(elem_classes="qx-buttons"):
            button = partial(gr.Button, min_width=80)
            self.save = button("Save", variant="primary", elem_id=f"qx-{place}-save")
            self.test = button("Test", elem_id=f"qx-{place}-test")
            self.forget = button("Forget", elem_id=f"qx-{place}-forget")

    def _wire(self) -> None:
        typed = [self.address, self.model, self.key, self.source]
        outputs = [self.changed, self.standing, *typed, self.tokens, self.notice]
        fields = [self.session, self.changed, self.tokens, self.kind, *typed]
        quick = in_line("llm")
        refusal = notice_in(self.notice)
        self.save.click(packs(self._save, refusal), fields, outputs, **quick)
        self.test.click(packs(self._test, refusal), fields, outputs, **quick)
        self.forget.click(packs(self._forget), [self.session, self.changed], outputs, **quick)
        self.kind.change(_places, self.kind, [self.at_address, self.source], **quick)

    def on_show(self, show: Callable[..., Any]) -> None:
        """`show`: the listener of the tab's being opened, or of the page's."""
        shown = packs(lambda session: {self.standing: standing(self.models, session)})
        show(shown, self.session, [self.standing], **QUIET)

    # Handlers; each returns or yields updates by component

    def _test(
        self, session: Session, changed: int, tokens: int | None, *fields: str | None
    ) -> Iterator[Update]:
        """One tiny call of what the fields say, or, where empty, of the model that would be asked."""
        if any(fields[1:]):
            yield from self._save(session, changed, tokens, *fields)
        llm = self.models.get(session)
        if llm is None:
            yield {self.notice: notice("no language model is set; give the address of one and its name")}
            return
        yield {self.notice: notice(f"Asking {llm.name}…", "info")}
        yield {self.notice: tested(llm.name, probe(llm))}

    def _save(
        self, session: Session, changed: int, tokens: int | None, *fields: str | None
    ) -> Iterator[Update]:
        """Raises UserError; what was set before stays then."""
        kind, address, model, key, source = ((field or "").strip() for field in fields)
        if kind == LOCAL:
            yield {self.notice: notice("Loading the model…", "info")}
            self.models.give_local(session, source, tokens or None)
        else:
            self.models.give(session, address, model, SecretStr(key), tokens or None)
        yield {self.key: "", **self._given(session, changed)}

    def _forget(self, session: Session, changed: int) -> Update:
        self.models.forget(session)
        emptied = dict.fromkeys((self.address, self.model, self.key, self.source), "")
        return {**emptied, self.tokens: 0, **self._given(session, changed)}

    def _given(self, session: Session, changed: int) -> Update:
        now = standing(self.models, session)
        return {self.changed: changed + 1, self.standing: now, self.notice: []}


def _places(kind: str) -> tuple[gr.Row, gr.Textbox]:
    return gr.Row(visible=kind == ENDPOINT), gr.Textbox(visible=kind == LOCAL)


def standing(models: LanguageModels, session: Session | None) -> list[Node]:
    """Which model is asked; `session` None before the page has one."""
    own = None if session is None else models.own(session)
    copy: Node | None = None
    if session is not None and own is not None:
        words = f"{_described(own)}, given by you."
        copy = act("copy", session.llm, "Copy name for calls", title=FOR_SCRIPTS)
    elif models.default is not None:
        most = models.tokens_per_hour
        bound = "" if most is None else f", {most:,} tokens an hour for each visitor"
        words = f"{models.default.name}, given by whoever runs this app{bound}."
    else:
        words = "None is set: the built-in reader answers."
    closed = "" if models.may_give else " This server takes none from its visitors."
    return [h("p.qx-mut.qx-sm", words + closed, *([" ", copy] if copy is not None else []))]


def _described(llm: Llm) -> str:
    if isinstance(llm, EndpointLlm):
        return f"{llm.name} at {llm.address.netloc}, {'with' if llm.has_key else 'without'} a key"
    return f"{llm.name} in this app"


def tested(name: str, reply: Reply | None) -> list[Node]:
    """What a test brought."""
    words = f"{name} replies, but writes no JSON that can be used: SPARC needs that, cited answers don't."
    if reply is not None and reply.structure is not None:
        about = " about" if reply.counted_by == "estimate" else ""
        took = f"the test took{about} {reply.prompt_tokens + reply.completion_tokens:,} tokens"
        answered = f"{name} answered in {reply.milliseconds / 1000:.1f} s"
        words = f"{answered} and {_STRUCTURES[reply.structure]}; {took}."
    return notice(words, "info")
