"""Which session a message belongs to: who shares one, and who is the same person on several channels.

>>> route("bot", "telegram", "42", scope="main").peer
'main'
>>> links = {"ann": ("telegram:42", "discord:ann#1")}
>>> route("bot", "telegram", "42", scope="per-peer", identity_links=links).peer
'ann'
>>> from sessiontree.manager.keys import format_key
>>> format_key(route("bot", "telegram", "42"))
'bot:telegram%3Adirect:42'
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from sessiontree.manager.keys import escape
from sessiontree.model import SessionKey

__all__ = ["ChatKind", "DirectScope", "IdentityLinks", "route"]

DirectScope = Literal["main", "per-peer", "per-channel-peer", "per-account-channel-peer"]
"""Who shares a session in direct messages: all, a person everywhere, a person on a channel, and on one account."""

ChatKind = Literal["direct", "group", "channel"]
IdentityLinks = Mapping[str, Sequence[str]]
"""A person's one name to the names on channels, each ``channel:peer`` or a bare peer."""

_MAIN = "main"


def route(
    agent: str,
    channel: str,
    peer: str,
    *,
    scope: DirectScope = "per-channel-peer",
    kind: ChatKind = "direct",
    account: str = "",
    thread: str = "",
    identity_links: IdentityLinks | None = None,
) -> SessionKey:
    """The key for a message. Groups and channels always have their own; a direct message without a peer is main's."""
    if kind != "direct":
        return SessionKey(agent=agent, channel=_joined(channel, account, kind), peer=peer, thread=thread)
    if scope == "main" or not peer:
        return SessionKey(agent=agent, channel=_MAIN, peer=_MAIN, thread=thread)
    person = _linked(identity_links or {}, channel, peer)
    places = {
        "per-peer": _joined(kind),
        "per-channel-peer": _joined(channel, kind),
        "per-account-channel-peer": _joined(channel, account or "default", kind),
    }
    return SessionKey(agent=agent, channel=places[scope], peer=person, thread=thread)


def _joined(*parts: str) -> str:
    """Escaped once more, so that a channel's name cannot pass for another kind of chat."""
    return ":".join(escape(part) for part in parts if part)


def _linked(links: IdentityLinks, channel: str, peer: str) -> str:
    names = (f"{channel}:{peer}", peer)
    return next((person for person, known in links.items() if any(name in known for name in names)), peer)
