"""Session keys as text: four parts, escaped so that every key has one text and every text one key.

>>> text = format_key(SessionKey(agent="bot", channel="matrix", peer="@Ann:example.org"))
>>> text
'bot:matrix:@Ann%3Aexample.org'
>>> parse_key(text).peer
'@Ann:example.org'
"""

from __future__ import annotations

import re

from sessiontree.errors import InvalidInputError
from sessiontree.model import SessionKey, Thread

__all__ = ["PREFIX", "escape", "format_key", "generation_of", "parse_key", "thread_id_of"]

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
