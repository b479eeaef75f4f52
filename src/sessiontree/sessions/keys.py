"""Session keys as text: four parts, escaped so that every key has one text and every text one key.

>>> text = format_key(SessionKey(agent="bot", channel="matrix", peer="@Ann:example.org"))
>>> text
'bot:matrix:@Ann%3Aexample.org'
>>> parse_key(text).peer
'@Ann:example.org'

Which session a message belongs to: who shares one, and who is the same person on several channels.

>>> route("bot", "telegram", "42", scope="main").peer
'main'
>>> links = {"ann": ("telegram:42", "discord:ann#1")}
>>> route("bot", "telegram", "42", scope="per-peer", identity_links=links).peer
'ann'
>>> route("bot", "discord", "ann", scope="per-peer", identity_links=links).channel  # an id that looks like her name
'direct'
>>> from sessiontree.sessions.keys import format_key
>>> format_key(route("bot", "telegram", "42"))
'bot:telegram%3Adirect:42'
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from sessiontree.errors import InvalidInputError
from sessiontree.model import SessionKey, Thread

__all__ = [
    "PREFIX",
    "ChatKind",
    "DirectScope",
    "IdentityLinks",
    "escape",
    "format_key",
    "generation_of",
    "parse_key",
    "route",
    "thread_id_of",
]


PREFIX = "session:"
_UNSAFE = re.compile(r"[%:\x00-\x1f\x7f]")
_ESCAPE = re.compile(r"%([0-9A-F]{2})")


def format_key(key: SessionKey) -> str:
    """``agent:channel:peer`` and, if there is one, ``:thread``. Case is kept; nothing is trimmed."""
    for name, part in (("agent", key.agent), ("channel", key.channel), ("peer", key.peer)):
        if not part:
            raise InvalidInputError(f"a session key needs an {name}; got {key}")
    parts = (key.agent, key.channel, key.peer, *((key.thread,) if key.thread else ()))
    return ":".join(map(escape, parts))


def parse_key(text: str) -> SessionKey:
    """The key of a text that ``format_key`` made; anything else is InvalidInputError, not a guess."""
    parts = text.split(":")
    if len(parts) not in {3, 4} or not all(parts):
        raise InvalidInputError(f"{text!r} is no session key; write agent:channel:peer or agent:channel:peer:thread")
    agent, channel, peer, *thread = map(_unescape, parts)
    key = SessionKey(agent=agent, channel=channel, peer=peer, thread=thread[0] if thread else "")
    if format_key(key) != text:
        raise InvalidInputError(f"{text!r} is no session key as it is written here; {format_key(key)!r} would be one")
    return key


def escape(part: str) -> str:
    return _UNSAFE.sub(lambda found: f"%{ord(found[0]):02X}", part)


def thread_id_of(key: SessionKey, generation: int) -> str:
    """The thread of the n-th conversation under a key: the same in every process, so a race has one winner."""
    return f"{PREFIX}{format_key(key)}#{generation}"


def generation_of(thread: Thread) -> int | None:
    """Which conversation under its key a thread is; ``None`` if no manager made it."""
    if not thread.id.startswith(PREFIX) or not all((thread.key.agent, thread.key.channel, thread.key.peer)):
        return None
    name, _, number = thread.id.rpartition("#")
    is_ours = number.isascii() and number.isdigit() and name == PREFIX + format_key(thread.key)
    return int(number) if is_ours else None


def _unescape(part: str) -> str:
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)), part)


DirectScope = Literal["main", "per-peer", "per-channel-peer", "per-account-channel-peer"]
"""Who shares a session in direct messages: all, a person everywhere, a person on a channel, and on one account."""

ChatKind = Literal["direct", "group", "channel"]
IdentityLinks = Mapping[str, Sequence[str]]
"""A person's one name to the names on channels: ``channel:peer``, or a bare peer, which counts on every channel.

What stands before the first colon is the channel, so a peer with a colon needs one: ``matrix:@ann:example.org``. A
colon in the channel's own name is written ``%3A``.
"""

_MAIN = "main"
_PERSON = "person"


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
    """The key for a message. Groups and channels always have their own; a direct message without a peer is main's.

    A linked person is a kind of chat of their own: nobody gets into it by an id that reads like the person's name.
    """
    _check_origin(agent, channel, peer, scope, kind)
    if kind != "direct":
        return SessionKey(agent=agent, channel=_joined(channel, account, kind), peer=peer, thread=thread)
    if scope == "main" or not peer:
        return SessionKey(agent=agent, channel=_MAIN, peer=_MAIN, thread=thread)
    person = _linked(identity_links or {}, channel, peer)
    last = kind if person is None else _PERSON
    places = {
        "per-peer": _joined(last),
        "per-channel-peer": _joined(channel, last),
        "per-account-channel-peer": _joined(channel, account or "default", last),
    }
    return SessionKey(agent=agent, channel=places[scope], peer=person or peer, thread=thread)


def _check_origin(agent: str, channel: str, peer: str, scope: str, kind: str) -> None:
    if not agent or not channel:
        raise InvalidInputError(f"a message comes from an agent and a channel; got {agent!r} and {channel!r}")
    if scope not in get_args(DirectScope) or kind not in get_args(ChatKind):
        raise InvalidInputError(
            f"scopes are {get_args(DirectScope)} and kinds of chats {get_args(ChatKind)}; got {scope!r} and {kind!r}"
        )
    if kind != "direct" and not peer:
        raise InvalidInputError(f"a {kind} has an id; got none on channel {channel!r}")


def _joined(*parts: str) -> str:
    """Escaped once more, so that a channel's name cannot pass for another kind of chat."""
    return ":".join(escape(part) for part in parts if part)


def _linked(links: IdentityLinks, channel: str, peer: str) -> str | None:
    """Whose name this is. With a colon in it a bare peer could be read as somebody else's name on a channel."""
    for person, known in links.items():
        if not person or isinstance(known, str):
            raise InvalidInputError(f"a link goes from a person's name to a list of names; got {person!r}: {known!r}")
    names = {f"{escape(channel)}:{peer}", *(() if ":" in peer else (peer,))}
    return next((person for person, known in links.items() if not names.isdisjoint(known)), None)
