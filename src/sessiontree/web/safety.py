"""Who may ask, and what a browser may do with the answer: token, cookie, Host, Origin, policy.

Another page in the same browser can send requests to this server, and a name that it owns can be made to resolve to
this machine. So a request needs the cookie that the first address was exchanged for, or the token as a bearer; its
Host must be an address of this machine or a name that was allowed; and a write must come from our own pages.
"""

from __future__ import annotations

import hmac
import logging
import re
import secrets
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sessiontree.model import Record

__all__ = ["HEADERS", "OPEN_PATHS", "Access", "Guard"]


OPEN_PATHS = frozenset({"/healthz", "/readyz"})
"""What needs no token: both answer with one word about the process, and nothing about its content."""

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
_HOST = re.compile(r"(?:\[(?P<address>[0-9A-Fa-f:.]+)\]|(?P<name>[^\[\]:]+))(?::[0-9]{1,5})?")
_READS = frozenset({"GET", "HEAD", "OPTIONS"})
_LOG = logging.getLogger(__name__)


class Access(Record, frozen=True, kw_only=True):
    """The secrets of one run, and the names under which it may be asked. ``names`` are in addition to IP addresses."""

    token: str
    cookie: str
    names: frozenset[str] = frozenset({"localhost"})

    @classmethod
    def random(cls, *names: str) -> Access:
        """Return access with new secrets."""
        return cls(
            token=secrets.token_urlsafe(24),
            cookie=secrets.token_urlsafe(24),
            names=frozenset({"localhost", *names}),
        )

    def knows(self, host: str) -> bool:
        """Return whether a Host header names this server; a foreign name could be one that was rebound to us.

        >>> access = Access(token="t", cookie="c")
        >>> [access.knows(host) for host in ("127.0.0.1:8000", "[::1]:80", "localhost", "evil.example", "127.0.0.1.evil")]
        [True, True, True, False, False]
        """
        name = _name_in(host)
        if name in self.names:
            return True
        try:
            ip_address(name)
        except ValueError:
            return False
        return True

    def is_bearer(self, authorization: str) -> bool:
        """Return whether a program shows the token."""
        kind, _, token = authorization.partition(" ")
        return kind.lower() == "bearer" and _equal(token.strip(), self.token)


class Guard:
    """The middleware that lets a request through, or answers it itself."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(raw=message["headers"])
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("cache-control", "no-store")
            await send(message)

        try:
            answer = self._refusal(scope)
            await (answer or self._app)(scope, receive, send_with_headers)
        except Exception as error:
            # An error may quote a conversation: only its type is logged.
            _LOG.error("%s %s failed: %s", scope["method"], _route_of(scope), type(error).__name__)
            if started:
                raise
            failed = PlainTextResponse("The server failed. The store is unchanged by this request.", 500)
            await failed(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        """The answer to a request that is not let through; None for one that is."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not self._access.knows(host):
            return PlainTextResponse("This server does not answer under that name.", 421)
        if scope["path"] in OPEN_PATHS:
            return None
        if self._access.is_bearer(headers.get("authorization", "")):
            return None
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        token = next((value for name, value in query if name == "token"), None)
        if token is not None and scope["method"] == "GET" and _equal(token, self._access.token):
            rest = urlencode([(name, value) for name, value in query if name != "token"])
            return self._welcome(scope, f"?{rest}" if rest else "", headers)
        if not _equal(_cookie_in(headers.get("cookie", ""), _cookie_name(host)), self._access.cookie):
            return PlainTextResponse("This page needs the address that `sessiontree web` printed, with its token.", 401)
        if scope["method"] not in _READS and not _is_own_page(headers, host):
            return PlainTextResponse("Writes are only taken from pages of this server.", 403)
        return None

    def _welcome(self, scope: Scope, rest: str, headers: Headers) -> Response:
        """Exchange the token for a cookie, so that it does not stay in the address and in the history."""
        path = "/" + scope["path"].lstrip("/\\")
        response = RedirectResponse(path + rest, 303)
        name = _cookie_name(headers.get("host", ""))
        response.set_cookie(name, self._access.cookie, httponly=True, samesite="lax", path="/")
        return response


def _is_own_page(headers: Headers, host: str) -> bool:
    """Browsers name the page that a write comes from; a request without a name is refused."""
    if headers.get("sec-fetch-site", "same-origin") != "same-origin":
        return False
    return headers.get("origin") in {f"http://{host}", f"https://{host}"}


def _name_in(host: str) -> str:
    """The name or the address in a Host header; "" if it is anything else than that and a port."""
    found = _HOST.fullmatch(host)
    return (found["address"] or found["name"]).lower() if found is not None else ""


def _cookie_name(host: str) -> str:
    """Cookies do not know ports, and several viewers may run on one machine."""
    port = host.rpartition(":")[2]
    return f"sessiontree-{port if port.isdigit() else 80}"


def _cookie_in(header: str, name: str) -> str:
    try:
        found = SimpleCookie(header).get(name)
    except CookieError:
        return ""
    return found.value if found is not None else ""


def _equal(given: str, secret: str) -> bool:
    return hmac.compare_digest(given.encode(), secret.encode())


def _route_of(scope: Scope) -> str:
    route = scope.get("route")
    return getattr(route, "path", "")
