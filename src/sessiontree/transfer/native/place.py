"""Put a native session where its tool looks for it: never over an existing file, whole or not at all, and checked."""

from __future__ import annotations

import os
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from sessiontree.context import Context, pair
from sessiontree.errors import DamagedDataError, InvalidInputError
from sessiontree.journal import Journal
from sessiontree.journal.opening import open as open_journal
from sessiontree.model import Message
from sessiontree.model.ids import IdSource
from sessiontree.render.figures import plural
from sessiontree.transfer.formats import import_sessions
from sessiontree.transfer.native import claude_code, codex, gemini, goose, opencode, pi
from sessiontree.transfer.native.conversation import Conversation, NativeSession, conversation_of, result_text, texts_of
from sessiontree.transfer.native.losses import beside_words, losses_of
from sessiontree.transfer.subagents import subagents_left_out

__all__ = ["TOOLS", "continue_in", "native_session"]


class _Tool(NamedTuple):
    make: Callable[[Conversation], NativeSession]
    home: Callable[[Mapping[str, str], Path], Path]


def _data(environment: Mapping[str, str], home: Path) -> Path:
    return Path(environment.get("XDG_DATA_HOME") or home / ".local" / "share")


_TOOLS = {
    "claude-code": _Tool(claude_code.make, lambda env, home: Path(env.get("CLAUDE_CONFIG_DIR") or home / ".claude")),
    "codex": _Tool(codex.make, lambda env, home: Path(env.get("CODEX_HOME") or home / ".codex")),
    "gemini": _Tool(gemini.make, lambda _env, home: home / ".gemini"),
    "opencode": _Tool(opencode.make, lambda env, home: _data(env, home) / "sessiontree" / "for-opencode"),
    "pi": _Tool(pi.make, lambda _env, home: home / ".pi"),
    "goose": _Tool(goose.make, lambda env, home: _data(env, home) / "sessiontree" / "for-goose"),
}

TOOLS = tuple(_TOOLS)
"""The tools that a conversation can go on in."""


def native_session(
    journal: Journal, thread_id: str, tool: str, *, session_id: str = "", at: str | None = None, now_ns: int = 0
) -> NativeSession:
    """What the model sees of a thread, as a new session of another tool. Nothing is written."""
    if tool not in _TOOLS:
        raise InvalidInputError(f"a conversation cannot go on in {tool!r}; use one of {', '.join(TOOLS)}")
    new_id = session_id or (IdSource().new() if tool == "codex" else str(uuid.uuid4()))
    conversation = conversation_of(journal, thread_id, session_id=new_id, now_ns=now_ns or time.time_ns(), at=at)
    if not conversation.said:
        raise InvalidInputError(f"thread {thread_id!r} has no messages to go on from")
    return _TOOLS[tool].make(conversation)


def continue_in(
    journal: Journal,
    thread_id: str,
    tool: str,
    *,
    environment: Mapping[str, str],
    home: Path,
    at: str | None = None,
) -> NativeSession:
    """Write a thread as a new session of another tool into that tool's folder, and read it back.

    The command of the answer goes on with it. Raises DamagedDataError, and leaves no file, if what was written does not
    come back as it was.
    """
    session = native_session(journal, thread_id, tool, at=at)
    folder = _TOOLS[tool].home(environment, home)
    written: list[Path] = []
    try:
        for name, body in session.files.items():
            path = folder / name
            _write(path, body)
            written.append(path)
        losses = _read_back(journal, thread_id, session, written, at)
    except BaseException:
        for path in written:
            path.unlink(missing_ok=True)
        raise
    command = tuple(word.replace("{folder}", str(folder)) for word in session.command)
    files = {str(path): body for path, body in zip(written, session.files.values(), strict=True)}
    return NativeSession(
        tool=tool, id=session.id, files=files, command=command, workspace=session.workspace, losses=losses
    )


def _write(path: Path, body: bytes) -> None:
    """Write a new file: a temporary one beside it, flushed, then linked to its name, which must be free."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        os.link(name, path)
    except FileExistsError:
        raise InvalidInputError(f"{path} already exists; nothing was written") from None
    finally:
        Path(name).unlink(missing_ok=True)


def _read_back(
    journal: Journal, thread_id: str, session: NativeSession, paths: Iterable[Path], at: str | None
) -> tuple[str, ...]:
    """Import what was written, compare it with what should be there, and return what the tool's format left out."""
    wanted = journal.context(thread_id, leaf=at or journal.thread(thread_id).leaf)
    with open_journal("memory:") as other:
        for path in paths:
            (found_id,) = import_sessions(other, path, format=session.tool).threads
        found = other.context(found_id)
    sides = ([item.message for item in pair(context.messages)] for context in (wanted, found))
    before, after = (list(_contents(messages)) for messages in sides)
    if before != after:
        pairs = enumerate(zip(before, after, strict=False))
        place = next((index for index, pair in pairs if pair[0] != pair[1]), len(after))
        raise DamagedDataError(
            str(session.id), place, f"{session.tool} session differs from the thread when it is read back"
        )
    thread = journal.thread(thread_id)
    losses = [*_left_out(wanted, found), *losses_of(journal, thread, at), *subagents_left_out(journal, thread_id)]
    return tuple(dict.fromkeys(losses))


def _left_out(wanted: Context, found: Context) -> Iterator[str]:
    if wanted.system and wanted.system != found.system:
        yield "the system prompt"
    there, here = (Counter(beside_words(context.messages)) for context in (wanted, found))
    for kind, number in (there - here).items():
        yield plural(number, *kind)


def _contents(messages: Iterable[Message]) -> Iterable[tuple[str, ...]]:
    """The words, calls and results of messages, in order and without their framing."""
    for message in messages:
        words = " ".join(" ".join(texts_of(message)).split())
        if words:
            yield ("text", message.role, words)
        yield from (("call", call.id, call.name) for call in message.tool_calls)
        yield from (("result", one.call_id, " ".join(result_text(one).split())) for one in message.tool_results)
