"""Which requests the app takes at all.

Those of its own pages, and of callers that are no browser. Any website can make a visitor's browser send
requests here, and a name that its owner points to 127.0.0.1 makes a browser take that website's pages for the
app's own. So a request which names another website as its Origin is refused, a browser which says that
another site asked is believed, and the app answers to known names only where it trusts whoever reaches it. A
caller that sends no Origin, as curl and MCP clients don't, is no browser.
"""

from __future__ import annotations

import re
from contextvars import ContextVar
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse

from app.doors import FILE
from app.services.settings import Settings, name_of

HUB = "https://huggingface.co"
"""Where a Space's page stands in a frame."""

caller: ContextVar[str] = ContextVar("caller", default="")
"""Network address of whoever sent the request; behind an unknown proxy, the proxy's."""

_NAMED_BY_CONTENT = re.compile(r"/assets/[^/]+-[\w-]{8}\.(js|css)")
"""Paths of Gradio's scripts and styles: another content has another name. A browser keeps them, some ninety
files that a second visit would ask for one by one.
"""
_SANDBOX = "sandbox; default-src 'none'"
"""Policy of files that are handed out: whatever they hold, no browser runs it in the app's name."""
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_ALLOW = "start it with --allow-host NAME"


@dataclass(frozen=True)
class Addresses:
    """How the app is addressed."""

    listens_on: str
    """Address of the server's socket, or its name."""
    named: tuple[str, ...]
    """NAME or NAME:PORT that people and proxies use, in lower case."""
    only_these: bool
    """Whether any other name is refused."""
    framed_by_hub: bool

    @classmethod
    def of(cls, settings: Settings) -> Addresses:
        """Of a public server that was given no name, any: its visitors are strangers anyway."""
        only_these = not settings.public or _is_loopback(settings.host) or bool(settings.allow_hosts)
        named = (*settings.allow_hosts, *settings.space_hosts)
        return cls(settings.host, named, only_these, framed_by_hub=bool(settings.space_hosts))

    def refusal(self, headers: Headers) -> str | None:
        """Why a request with these headers is refused; None for one that is taken."""
        host = headers.get("host", "").lower()
        if not self._answers_to(host):
            name = name_of(host)[:80]
            return f"this app does not answer to the name {name!r}; use localhost, or {_ALLOW}"
        for origin in headers.getlist("origin"):
            if not self._is_own(origin.lower(), host):
                return f"pages of {origin[:80]!r} may not use this app; if that is its own address, {_ALLOW}"
        asked_by, mode = headers.get("sec-fetch-site", "none"), headers.get("sec-fetch-mode")
        if asked_by not in ("same-origin", "none") and mode != "navigate":
            return "pages of other websites may not use this app; open it at its own address"
        return None

    def vouches_for(self, forwarded_host: str) -> bool:
        """Whether the name that a proxy says it was asked for is one of the app's own."""
        return all(name.strip().lower() in self.named for name in forwarded_host.split(","))

    def _answers_to(self, host: str) -> bool:
        if not self.only_these:
            return True
        name = name_of(host)
        if name in {"localhost", name_of(self.listens_on), *map(name_of, self.named)}:
            return True
        # A browser that was led astray sends the name it was led by: an address of its own is no such name.
        return _is_loopback(name) if _is_loopback(self.listens_on) else _is_address(name)

    def _is_own(self, origin: str, host: str) -> bool:
        parts = re.fullmatch(r"(https?)://([^/?#@]+)", origin)
        if parts is None:
            return False
        return parts[2] in {host, host.removesuffix(_DEFAULT_PORTS[parts[1]]), *self.named}


class OwnPages:
    """Middleware that refuses what `Addresses` refuses, and tells browsers what answers allow."""

    def __init__(self, app: Any, addresses: Addresses) -> None:
        self._app, self._addresses, self._rules = app, addresses, _rules(addresses)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)

        async def with_rules(message: Any) -> None:
            if message["type"] == "http.response.start":
                answer = MutableHeaders(scope=message)
                answer.update(self._rules)
                if scope["path"].startswith(FILE):
                    answer["Content-Security-Policy"] = _SANDBOX
                    shown = answer.get("Content-Disposition", "attachment")
                    answer["Content-Disposition"] = shown.replace("inline", "attachment", 1)
                if message["status"] == 200 and _NAMED_BY_CONTENT.fullmatch(scope["path"]):
                    answer["Cache-Control"] = "public, max-age=31536000, immutable"
                # in the hub's frame, a browser sends no cookie of another kind
                if not self._addresses.framed_by_hub:
                    message["headers"] = list(map(_own_cookie, answer.raw))
            await send(message)

        if refusal := self._addresses.refusal(headers):
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            else:
                await JSONResponse({"detail": refusal}, status_code=403)(scope, receive, with_rules)
            return
        # Gradio makes the addresses in its pages of these. The first is its own workers', and there are none.
        dropped = {b"x-gradio-server"}
        if not all(map(self._addresses.vouches_for, headers.getlist("x-forwarded-host"))):
            dropped.add(b"x-forwarded-host")
        scope = {**scope, "headers": [pair for pair in scope["headers"] if pair[0] not in dropped]}
        caller.set((scope.get("client") or ("",))[0])
        await self._app(scope, receive, with_rules)


def _rules(addresses: Addresses) -> dict[str, str]:
    """Headers of every answer. Gradio's pages are inline scripts, and evaluate code."""
    policy = {
        "default-src": "'self'",
        "script-src": "'self' 'unsafe-inline' 'unsafe-eval'",
        "style-src": "'self' 'unsafe-inline'",
        "img-src": "'self' data: blob:",
        "font-src": "'self' data:",
        "connect-src": "'self'",
        "worker-src": "'self' blob:",
        "object-src": "'none'",
        "base-uri": "'self'",
        "form-action": "'self'",
        "frame-ancestors": f"'self' {HUB}" if addresses.framed_by_hub else "'self'",
    }
    rules = {
        "Content-Security-Policy": "; ".join(f"{name} {sources}" for name, sources in policy.items()),
        "X-Content-Type-Options": "nosniff",
        "Cross-Origin-Resource-Policy": "same-origin",
    }
    if not addresses.framed_by_hub:
        rules["X-Frame-Options"] = "SAMEORIGIN"  # it can't name the hub
    return rules


def _own_cookie(header: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
    """Gradio's login cookie would be sent along with other websites' requests."""
    name, value = header
    return (name, value.replace(b"SameSite=none", b"SameSite=lax") if name == b"set-cookie" else value)


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _is_loopback(name: str) -> bool:
    return name == "localhost" or (_is_address(name) and ip_address(name).is_loopback)
