"""Serving: a socket on this machine, and the application behind it until it is stopped."""

from __future__ import annotations

import socket
from collections.abc import Callable
from ipaddress import ip_address

import uvicorn

from sessiontree.model import Record
from sessiontree.web.app import make_app
from sessiontree.web.safety import Access
from sessiontree.web.site import Site

__all__ = ["Binding", "is_loopback", "listen", "serve"]


class Binding(Record, frozen=True, kw_only=True):
    """Where to listen. ``names`` are host names under which the server may be asked, besides its addresses."""

    host: str = "127.0.0.1"
    port: int = 0
    names: tuple[str, ...] = ()


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def serve(site: Site, binding: Binding, *, on_ready: Callable[[str], None]) -> None:
    """Serve a site until the process is told to stop. ``on_ready`` gets the address with its token."""
    access = Access.random(*binding.names)
    with listen(binding) as listener:
        host, port = listener.getsockname()[:2]
        # No access log: addresses contain what people search for.
        config = uvicorn.Config(
            make_app(site, access), access_log=False, log_level="warning", lifespan="on", timeout_graceful_shutdown=1
        )
        listener.listen(config.backlog)
        on_ready(f"http://{f'[{host}]' if ':' in host else host}:{port}/?token={access.token}")
        _Server(config, site).run(sockets=[listener])


class _Server(uvicorn.Server):
    """A server that ends the streams of open pages when it is stopped, instead of waiting for them and cancelling them."""

    def __init__(self, config: uvicorn.Config, site: Site) -> None:
        super().__init__(config)
        self._site = site

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._site.followers.close()
        await super().shutdown(sockets)


def listen(binding: Binding) -> socket.socket:
    """Return a socket at an address of this machine; port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in binding.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Connections inherit it. Without it the body of an answer waits 40 ms until the client has acknowledged the headers.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        listener.bind((binding.host, binding.port))
    except OSError:
        listener.close()
        raise
    return listener
