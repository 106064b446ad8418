"""Which language model answers for whom.

What a visitor gives, else the one that whoever runs the app gives everyone, else none. On a public server it
must be at a host that QRAG_LLM_ALLOW lists, none runs in the server's own memory, and what the model for
everyone takes is counted for each visitor. A visitor's model and key are found by a token that only their
session holds; they lie in memory alone, and go with the session, on Forget, or when MAX_GIVEN others came
after. A key goes to the host that it was given for and to no other. Callers without a page name a model by
that token, so that no key and no address ever travels in a call.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, SecretStr

from app.services.recent import Recent
from app.services.session import Session
from app.services.settings import Settings
from app.services.visitors import LLM_TOKENS_PER_HOUR, LlmAllowance
from core.base.errors import BadRequest
from core.llm.address import ANYWHERE, Reach, reach_of_strangers, read_address
from core.llm.client import estimated_tokens
from core.llm.draft import Draft
from core.llm.endpoint import EndpointLlm, connect
from core.llm.protocol import Llm, LlmError, Message, Reply, Sampling, never

MAX_GIVEN = 500
"""Visitors whose language model is kept."""
NO_MODEL = "none"
"""What callers without a page name when no language model is to be asked."""


def new_token() -> str:
    """A name for a visitor's language model that nobody guesses."""
    return secrets.token_hex(16)


@dataclass(frozen=True)
class Given:
    """What a visitor gave."""

    llm: Llm
    key: SecretStr | None = None
    """Kept so that another model of the same host can be asked without giving it again."""
    owner: str | None = None
    """The visitor."""


class Metered:
    """The model for everyone, asked for one visitor of a public server. Satisfies `core.llm.protocol.Llm`."""

    def __init__(self, llm: Llm, owner: str | None, allowance: LlmAllowance) -> None:
        self.name, self.reply_tokens = llm.name, llm.reply_tokens
        self._llm, self._owner, self._allowance = llm, owner, allowance

    def chat(
        self,
        messages: Sequence[Message],
        sampling: Sampling = Sampling(),  # noqa: B008 - frozen
        *,
        schema: type[BaseModel] | None = None,
        draft: Draft | None = None,
        cancelled: Callable[[], bool] = never,
    ) -> Reply:
        """See `Llm`. A cancelled call counts as reserved: nobody knows how much was written by then."""
        most = estimated_tokens(*(message.content for message in messages)) + sampling.max_tokens
        hour = self._allowance.reserve(self._owner, most)
        spent = most
        try:
            reply = self._llm.chat(messages, sampling, schema=schema, draft=draft, cancelled=cancelled)
            spent = reply.prompt_tokens + reply.completion_tokens
        except LlmError as error:
            spent = error.spent.prompt_tokens + error.spent.completion_tokens
            raise
        finally:
            self._allowance.settle(self._owner, hour, most, spent)
        return reply


class LanguageModels:
    """One per process."""

    def __init__(self, settings: Settings, most: int = MAX_GIVEN) -> None:
        """most: models of visitors that are kept. Raises BadRequest for settings that name no model."""
        self._public = settings.public
        self._reach: Reach = reach_of_strangers(settings.llm_allow) if settings.public else ANYWHERE
        self._connections: Recent[Given] = Recent(most, lambda _: 1)
        self._loading = threading.Lock()
        self._loaded: tuple[tuple[str, int | None], Llm] | None = None
        if (settings.llm_url is None) != (settings.llm_model is None):
            raise BadRequest("QRAG_LLM_URL and QRAG_LLM_MODEL belong together; set both, or neither")
        self.default: Llm | None = None
        """For everyone who gives none."""
        self.allowance = LlmAllowance()
        if settings.llm_url is not None and settings.llm_model is not None:
            address, most_tokens = settings.llm_url, settings.llm_reply_tokens
            self.default = connect(address, settings.llm_model, settings.llm_key, reply_tokens=most_tokens)

    @property
    def may_give(self) -> bool:
        """Whether visitors may give models of their own."""
        return not self._public or bool(self._reach.listed)

    @property
    def listed(self) -> tuple[str, ...]:
        """The addresses that visitors may choose among; empty where any will do, or none."""
        return tuple(map(str, self._reach.listed or ()))

    @property
    def tokens_per_hour(self) -> int | None:
        """What a visitor has of the model for everyone; None where nobody counts."""
        return LLM_TOKENS_PER_HOUR if self._public else None

    def get(self, session: Session) -> Llm | None:
        """The language model for a visitor."""
        return self.own(session) or self._for_everyone(session.owner)

    def own(self, session: Session) -> Llm | None:
        """The one that they gave themselves."""
        kept = self._connections.get(session.llm)
        return None if kept is None or kept.owner != session.owner else kept.llm

    def named(self, name: str, owner: str | None) -> Llm | None:
        """The one that a caller means: empty the one for everyone, NO_MODEL none, else by its token.

        Raises BadRequest, without the name: people paste keys into the wrong field.
        """
        if name in ("", NO_MODEL):
            return None if name else self._for_everyone(owner)
        own = self.own(Session(owner=owner, llm=name))
        if own is None:
            raise BadRequest(
                "llm names no language model that is there now; open the app's page, save one under Language"
                f" model, keep the page open and copy its name, or give {NO_MODEL!r}, or leave llm out"
            )
        return own

    def _for_everyone(self, owner: str | None) -> Llm | None:
        if self._public and self.default is not None:
            return Metered(self.default, owner, self.allowance)
        return self.default

    def give(
        self, session: Session, address: str, model: str, key: SecretStr, reply_tokens: int | None = None
    ) -> None:
        """Takes a model at an endpoint; no key: the host's last one. Asks nothing. Raises BadRequest."""
        self._check(session)
        before = self._connections.get(session.llm)
        if not key.get_secret_value().strip() and before is not None and isinstance(before.llm, EndpointLlm):
            same_host = before.llm.address.origin == read_address(address).origin
            key = before.key if same_host and before.key is not None else key
        llm = connect(address, model, key, reply_tokens=reply_tokens, reach=self._reach)
        self._connections.put(session.llm, Given(llm, key, session.owner))

    def give_local(self, session: Session, source: str, reply_tokens: int | None = None) -> None:
        """Loads a causal language model unless it was the last one. Raises BadRequest, BadCheckpoint."""
        self._check(session)
        if self._public:
            raise BadRequest("this server loads no models of its visitors; give the address of an endpoint")
        if not source.strip():
            raise BadRequest("the model has no name; give a folder on this machine, or an id of the hub")
        source = source.strip()
        asked = source, reply_tokens
        with self._loading:
            if self._loaded is None or self._loaded[0] != asked:
                from core.llm.local import LocalLlm  # takes seconds

                self._loaded = None  # its memory may be needed
                self._loaded = (asked, LocalLlm(source, reply_tokens=reply_tokens))
            self._connections.put(session.llm, Given(self._loaded[1], owner=session.owner))

    def forget(self, session: Session) -> None:
        """Model and key, as if they had never been given."""
        self._connections.drop(session.llm)

    def release(self, tokens: Collection[str]) -> None:
        """Forgets the models of sessions that are over."""
        for token in tokens:
            self._connections.drop(token)

    def _check(self, session: Session) -> None:
        if not self.may_give:
            raise BadRequest(
                "this server takes no language models from its visitors; whoever runs it can list hosts in"
                " QRAG_LLM_ALLOW"
            )
        if not session.llm:
            raise BadRequest("this page was away for too long; reload it")
