"""Sessions of the Claude Agent SDK in a journal: ``ClaudeAgentOptions(session_store=SessionTreeSessionStore(url))``.

A session is a thread, and so is the transcript of each subagent. A line is an entry under the one before it, and its
``uuid`` is the id of the entry.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from typing import Any, cast
from uuid import uuid4

from msgspec.structs import replace

import sessiontree as st
from sessiontree.adapters._adapter import AsyncAdapter
from sessiontree.adapters._extra import imports_of_extra
from sessiontree.adapters._records import kept, record_of, thread_id_of, with_valid_values
from sessiontree.transfer.formats.claude_code.records import (
    Response,
    is_summary,
    summary_text,
    usage_of,
    user_payloads,
)

with imports_of_extra("claude-agent-sdk"):
    from claude_agent_sdk import (
        SessionKey,
        SessionListSubkeysKey,
        SessionStore,
        SessionStoreEntry,
        SessionStoreListEntry,
        SessionSummaryEntry,
        fold_session_summary,
    )

__all__ = ["SessionTreeSessionStore"]

FRAMEWORK = "claude-agent-sdk"

Line = dict[str, Any]


class SessionTreeSessionStore(AsyncAdapter, SessionStore):
    """A session store. ``load`` returns the lines on the path: after a rewind of the thread, those up to its leaf."""

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Append lines; those whose ``uuid`` is stored already are skipped. They are durable when this returns."""
        if not entries:
            return
        journal = await self.journal()
        lines = cast("list[Line]", entries)
        drafts = _drafts(lines)
        while True:
            known = await self._thread(key)
            fields = _fields(key, lines, known)
            try:
                await journal.append_many(
                    _thread_id(key),
                    drafts,
                    fields=fields,
                    expect_version=(known.version if known else 0) if fields else None,
                    create=True,
                    on_duplicate="skip",
                )
            except st.StaleVersionError:
                continue
            except st.DuplicateEntryError:
                drafts = await self._settled(key, drafts)
                continue
            return

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """Return the lines of a session; ``None`` if there are none."""
        journal = await self.journal()
        try:
            path = await journal.path(_thread_id(key))
        except st.ThreadNotFoundError:
            return None
        return [line for entry in path if (line := _line(entry, key)) is not None] or None

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """Return the sessions of a project and the times of their last changes; archived ones are left out."""
        return [
            {"session_id": thread.key.peer, "mtime": _milliseconds(thread)}
            async for thread in self._sessions(project_key)
        ]

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        """Return the summaries of the sessions of a project, which ``append`` keeps up to date."""
        return [
            {"session_id": thread.key.peer, "mtime": _milliseconds(thread), "data": thread.custom.get(FRAMEWORK, {})}
            async for thread in self._sessions(project_key)
        ]

    async def delete(self, key: SessionKey) -> None:
        """Delete a transcript for good, and with a session those of its subagents, in one commit."""
        journal = await self.journal()
        while True:
            wanted = [thread.id async for thread in self._transcripts(key) if _is_part(thread, key)]
            changes = st.Changes()
            for thread_id in wanted:
                changes.delete_thread(thread_id)
            try:
                await journal.commit(changes)
            except st.ThreadNotFoundError:
                continue
            if not wanted:
                return

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        """Return the subpaths of a session: the transcripts of its subagents."""
        return [thread.key.thread async for thread in self._transcripts(key) if thread.key.thread]

    async def thread(self, key: SessionKey) -> st.AsyncThreadHandle:
        """Return the thread of a session: ``rewind`` to the uuid of a line, ``undo``, ``export`` and the other verbs."""
        return st.AsyncThreadHandle(await self.journal(), _thread_id(key))

    async def fork(
        self, key: SessionKey, *, up_to_message_id: str | None = None, title: str | None = None
    ) -> SessionKey:
        """Return the key of a new session that shares the lines up to a message, or all of them; nothing is copied."""
        journal = await self.journal()
        source = await journal.thread(_thread_id(key))
        forked: SessionKey = {"project_key": key["project_key"], "session_id": str(uuid4())}
        named = title or f"{source.title or 'Forked session'} (fork)"
        line = {"type": "custom-title", "customTitle": named, "sessionId": forked["session_id"], "uuid": str(uuid4())}
        known = source.custom.get(FRAMEWORK, {})
        fields: st.ThreadFields = {
            "key": _key(forked),
            "title": named,
            "custom": {FRAMEWORK: _folded(forked, [line], known)},
        }
        changes = st.Changes().fork(source.id, at=up_to_message_id, new_id=_thread_id(forked), **fields)
        await journal.commit(changes.append(_thread_id(forked), *_drafts([line])))
        return forked

    async def _thread(self, key: SessionKey) -> st.Thread | None:
        journal = await self.journal()
        try:
            return await journal.thread(_thread_id(key))
        except st.ThreadNotFoundError:
            return None

    async def _sessions(self, project_key: str) -> AsyncIterator[st.Thread]:
        journal = await self.journal()
        async for thread in journal.iter_threads(channel=FRAMEWORK, agent=project_key, key_thread="", limit=1000):
            yield thread

    async def _transcripts(self, key: SessionKey | SessionListSubkeysKey) -> AsyncIterator[st.Thread]:
        """The thread of a session and those of its subagents."""
        journal = await self.journal()
        async for thread in journal.iter_threads(
            channel=FRAMEWORK, agent=key["project_key"], peer=key["session_id"], is_archived=None, order="created"
        ):
            yield thread

    async def _settled(self, key: SessionKey, drafts: list[st.NewEntry]) -> list[st.NewEntry]:
        """Drop the drafts whose ids the session has. Ids that only forks of it have get the name of the session."""
        journal = await self.journal()
        names = [draft.id for draft in drafts if draft.id]
        seen: set[str] = set()
        with suppress(st.ThreadNotFoundError):
            seen = {entry.id for entry in await journal.find_entries(names, thread_id=_thread_id(key))}
        taken = {entry.id for entry in await journal.find_entries(names)}
        rest = [draft for draft in drafts if draft.id not in seen]
        return [replace(draft, id=f"{key['session_id']}/{draft.id}") if draft.id in taken else draft for draft in rest]


def _key(key: SessionKey) -> st.SessionKey:
    return st.SessionKey(
        channel=FRAMEWORK, agent=key["project_key"], peer=key["session_id"], thread=key.get("subpath", "")
    )


def _thread_id(key: SessionKey) -> str:
    return thread_id_of(FRAMEWORK, key["project_key"], key["session_id"], *filter(None, [key.get("subpath")]))


def _is_part(thread: st.Thread, key: SessionKey) -> bool:
    """Whether deleting a key deletes the thread: a session has all its subagents."""
    return thread.key.thread == key.get("subpath", thread.key.thread)


def _milliseconds(thread: st.Thread) -> int:
    return thread.updated_ns // 1_000_000


def _fields(key: SessionKey, lines: Iterable[Line], known: st.Thread | None) -> st.ThreadFields:
    """What lines change of their thread: its summary, with it the title, and at first its place."""
    place: st.ThreadFields = {} if known else {"key": _key(key)}
    if "subpath" in key:
        main = SessionKey(project_key=key["project_key"], session_id=key["session_id"])
        return place if known else {**place, "parent_thread": _thread_id(main)}
    before = known.custom.get(FRAMEWORK, {}) if known else {}
    data = _folded(key, lines, before)
    if data == before and known:
        return {}
    title = data.get("custom_title") or data.get("ai_title")
    named: st.ThreadFields = {"title": title} if title and known and title != known.title else {}
    if not known and data.get("cwd"):
        place["workspace"] = data["cwd"]
    return {**place, **named, "custom": {**(known.custom if known else {}), FRAMEWORK: data}}


def _folded(key: SessionKey, lines: Iterable[Line], data: dict[str, Any]) -> dict[str, Any]:
    """The summary of a session after more lines, as the SDK computes it."""
    before: SessionSummaryEntry = {"session_id": key["session_id"], "mtime": 0, "data": data}
    folded = fold_session_summary(before, key, cast("list[SessionStoreEntry]", list(lines)))
    return cast("dict[str, Any]", with_valid_values(folded["data"]))


def _drafts(lines: Iterable[Line]) -> list[st.NewEntry]:
    """An entry for each line, and a second one for words of the user beside results; a line that is repeated counts once."""
    drafts: dict[str, st.NewEntry] = {}
    for number, line in enumerate(lines):
        name = line.get("uuid")
        entry_id = name if isinstance(name, str) and name else None
        first, *more = _payloads(line)
        drafts.setdefault(entry_id or f"line {number}", st.NewEntry(content=kept(first, FRAMEWORK, line), id=entry_id))
        for payload in more:
            drafts.setdefault(f"{entry_id}+", st.NewEntry(content=payload, id=entry_id and f"{entry_id}+"))
    return list(drafts.values())


def _payloads(line: Line) -> list[st.Payload]:
    """What a line means. What a response spent counts with its last line, the one that has the reason why it stopped."""
    match line:
        case {"type": "user", "message": dict()} if is_summary(line):
            return [st.Compaction(id=str(line.get("uuid") or ""), summary=summary_text(line))]
        case {"type": "user", "message": dict()}:
            return user_payloads(line)
        case {"type": "assistant", "message": dict() as message}:
            return [Response().answer(line, usage_of(line) if message.get("stop_reason") else None)]
        case _:
            return [st.Event(name=str(line.get("type", "")))]


def _line(entry: st.Entry, key: SessionKey) -> SessionStoreEntry | None:
    """The line of an entry; one that a fork shares with its source names the fork as its session."""
    line: Line | None = record_of(entry, FRAMEWORK)
    if line is None or entry.thread_id == _thread_id(key) or "sessionId" not in line:
        return cast("SessionStoreEntry | None", line)
    return cast("SessionStoreEntry", {**line, "sessionId": key["session_id"]})
