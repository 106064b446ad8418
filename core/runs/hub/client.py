"""The hub's client, with one sentence for whatever goes wrong.

It names the status, the hub's own words in one short line with every secret blotted out, and the remedy. The
client's exceptions are not chained, since their texts are whatever the server said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from core.base.errors import BadRequest, UserError, quoted


class HubError(UserError):
    """The hub refused, or can't be reached."""


class HubMissing(HubError):
    """No repository of that name that this token may see."""


@dataclass(frozen=True)
class Hub:
    """A client of the hub under one token."""

    api: Any
    """`huggingface_hub.HfApi`."""
    secrets: tuple[str, ...]
    """What no sentence may contain: the token, and the values of secrets that are about to be set."""

    @contextmanager
    def asked_to(self, do: str) -> Iterator[None]:
        """Around calls of `api` alone: whatever they raise becomes a HubError that says what was wanted."""
        try:
            yield
        except UserError:
            raise
        except Exception as error:  # the client also stumbles over answers that it does not expect
            raise self._explained(error, do) from None

    def _explained(self, error: Exception, do: str) -> HubError:
        from huggingface_hub import errors

        if isinstance(error, errors.OfflineModeIsEnabled):
            return HubError(f"could not {do}: HF_HUB_OFFLINE is set, so nobody asks the hub; unset it")
        if isinstance(error, errors.RepositoryNotFoundError):
            return HubMissing(
                f"could not {do}: the hub has nothing of that name that this token may see; check the name"
                " and the token's permissions"
            )
        if isinstance(error, errors.HfHubHTTPError):
            status, words = error.response.status_code, quoted(error.server_message or "", self.secrets)
            usual = "try again later" if status >= 500 else "see what it says, and try again"
            remedy = _REMEDIES.get(status, usual)
            return HubError(f"could not {do}: the hub answered {status}{words}; {remedy}")
        unreached = (errors.HTTPError, errors.LocalEntryNotFoundError, TimeoutError, ConnectionError)
        if isinstance(error, unreached):
            host = urlsplit(self.api.endpoint).hostname
            return HubError(
                f"could not {do}: {host} can't be reached ({type(error).__name__}); check the network, and"
                " HF_ENDPOINT if it is set"
            )
        return HubError(
            f"could not {do}: {type(error).__name__}{quoted(str(error), self.secrets)}; try again, and check"
            " HF_ENDPOINT if it is set"
        )


def connect(secrets: tuple[str, ...] = ()) -> Hub:
    """The hub at $HF_ENDPOINT or huggingface.co, under $HF_TOKEN or `hf auth login`. Raises HubError."""
    from huggingface_hub import HfApi, get_token
    from huggingface_hub.utils import disable_progress_bars, logging

    # they would run through the app's log, and through the one line that a command may print
    disable_progress_bars()
    # its warnings tell of every retry; with HF_DEBUG it would write out requests with values of secrets
    logging.set_verbosity_error()
    try:
        token = get_token()
    except Exception as error:  # a login that has expired, or an exchange with a build server that failed
        raise HubError(
            f"the hub's token could not be had ({type(error).__name__}); set HF_TOKEN, or log in with `hf"
            " auth login`"
        ) from None
    if token is None:
        raise HubError(
            "there is no token for the hub; set HF_TOKEN to one with write access, or log in with `hf auth"
            " login`"
        )
    return Hub(HfApi(token=token), (token, *filter(None, secrets)))


def check_repository(name: str) -> str:
    """The name, if it is OWNER/NAME. Raises BadRequest."""
    if not re.fullmatch(r"[\w.-]{1,96}/[\w.-]{1,96}", name, re.ASCII) or ".." in name or "--" in name:
        raise BadRequest(
            f"repository {name[:100]!r} must be OWNER/NAME, of letters, digits, '-', '_' and '.'"
        )
    return name


_CHANGED = "somebody else changed it at the same moment, try again"
_REMEDIES = {
    401: "set HF_TOKEN to a valid token, or log in again with `hf auth login`",
    402: "choose other hardware with --hardware, or see the billing page of the account",
    403: "use a token with write access to it",
    409: _CHANGED,
    412: _CHANGED,
    429: "wait some minutes and try again",
}
