"""Session keys: their text form, the threads behind them, and which key a message belongs to.

The parts of a key are escaped, so that keys and their text forms correspond one to one:

>>> text = format_key(SessionKey(agent="bot", channel="matrix", peer="@Ann:example.org"))
>>> text
'bot:matrix:@Ann%3Aexample.org'
>>> parse_key(text).peer
'@Ann:example.org'

:func:`route` decides who shares a session, and which accounts belong to the same person:

>>> route("bot", "telegram", "42", scope="main").peer
'main'
>>> links = {"ann": ("telegram:42", "discord:ann#1")}
>>> route("bot", "telegram", "42", scope="per-peer", identity_links=links).peer
'ann'
>>> route("bot", "discord", "ann", scope="per-peer", identity_links=links).channel  # not linked: only looks like her name
'direct'
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
    "IMPORTED_FORMAT",
    "PREFIX",
    "ChatKind",
    "DirectScope",
    "IdentityLinks",
    "escape",
    "format_key",
    "generation_of",
    "key_text",
    "parse_key",
    "route",
    "thread_id_of",
]


PREFIX = "session:"
IMPORTED_FORMAT = "zimaos"
"""The format whose sessions have keys, so that a manager finds them after an import."""

_UNSAFE = re.compile(r"[%:\x00-\x1f\x7f]")
_ESCAPE = re.compile(r"%([0-9A-F]{2})")


def format_key(key: SessionKey) -> str:
    """Return ``agent:channel:peer``, and ``:thread`` if the key has one. Case and white space are kept."""
    for name, part in (("agent", key.agent), ("channel", key.channel), ("peer", key.peer)):
        if not part:
            raise InvalidInputError(f"a session key needs an agent, a channel and a peer; the {name} of {key} is empty")
    return key_text(key)


def key_text(key: SessionKey) -> str:
    """Return the text of any key: those of imported sessions may have empty parts, which ``format_key`` refuses."""
    parts = (key.agent, key.channel, key.peer, *((key.thread,) if key.thread else ()))
    return ":".join(map(escape, parts))


def parse_key(text: str) -> SessionKey:
    """Return the key of a text that ``format_key`` returned; InvalidInputError for anything else."""
    parts = text.split(":")
    if len(parts) not in {3, 4} or not all(parts):
        raise InvalidInputError(f"not a session key: {text!r}; write agent:channel:peer or agent:channel:peer:thread")
    agent, channel, peer, *thread = map(_unescape, parts)
    key = SessionKey(agent=agent, channel=channel, peer=peer, thread=thread[0] if thread else "")
    if format_key(key) != text:
        raise InvalidInputError(f"non-canonical session key {text!r}; did you mean {format_key(key)!r}?")
    return key


def escape(part: str) -> str:
    """Escape the characters that separate or cannot stand in the parts of a key."""
    return _UNSAFE.sub(lambda found: f"%{ord(found[0]):02X}", part)


def thread_id_of(key: SessionKey, generation: int) -> str:
    """Return the id of the n-th conversation of a key: all processes choose the same, so only one can create it."""
    return f"{PREFIX}{format_key(key)}#{generation}"


def generation_of(thread: Thread) -> int | None:
    """Return the number of a conversation among those of its key: 0 for an imported one, then from 1.

    ``None`` if the thread is not a session: neither created by a manager nor imported from one.
    """
    if thread.origin.get("format") == IMPORTED_FORMAT:
        return 0
    if not thread.id.startswith(PREFIX) or not all((thread.key.agent, thread.key.channel, thread.key.peer)):
        return None
    name, _, number = thread.id.rpartition("#")
    is_ours = number.isascii() and number.isdigit() and name == PREFIX + format_key(thread.key)
    return int(number) if is_ours else None


def _unescape(part: str) -> str:
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)), part)


DirectScope = Literal["main", "per-peer", "per-channel-peer", "per-account-channel-peer"]
"""Who shares a session in direct messages: everyone; each person; each person and channel; and account."""

ChatKind = Literal["direct", "group", "channel"]
IdentityLinks = Mapping[str, Sequence[str]]
"""A person's name to the accounts of that person: ``channel:peer``, or a peer alone, which matches on every channel.

The part before the first colon is the channel, so a peer with a colon needs one: ``matrix:@ann:example.org``. Write
a colon in the name of a channel as ``%3A``.
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
    """Return the key for a message.

    Every group and channel has a session of its own. A direct message without a peer goes to the main session. The
    sessions of linked people are separate: a peer whose id equals a person's name does not get that person's session.
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
        raise InvalidInputError(f"agent and channel must not be empty; got {agent!r} and {channel!r}")
    if scope not in get_args(DirectScope) or kind not in get_args(ChatKind):
        raise InvalidInputError(
            f"scope must be one of {get_args(DirectScope)} and kind one of {get_args(ChatKind)};"
            f" got {scope!r} and {kind!r}"
        )
    if kind != "direct" and not peer:
        raise InvalidInputError(f"a {kind} needs a peer, its id on the channel {channel!r}; got an empty one")


def _joined(*parts: str) -> str:
    """Escape and join, so that the name of a channel cannot be mistaken for another kind of chat."""
    return ":".join(escape(part) for part in parts if part)


def _linked(links: IdentityLinks, channel: str, peer: str) -> str | None:
    """Return the person an account belongs to. A peer with a colon never matches without its channel."""
    for person, known in links.items():
        if not person or isinstance(known, str):
            raise InvalidInputError(f"identity_links must map a name to a list of accounts; got {person!r}: {known!r}")
    names = {f"{escape(channel)}:{peer}", *(() if ":" in peer else (peer,))}
    return next((person for person, known in links.items() if not names.isdisjoint(known)), None)
