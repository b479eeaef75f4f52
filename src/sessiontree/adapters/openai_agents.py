"""Sessions of the OpenAI Agents SDK in a journal: ``Runner.run(agent, "hello", session=SessionTreeSession(url, "user-1"))``.

An item is an entry, and a session is the thread with its id, so conversations of other programs can be continued too.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import sessiontree as st
from sessiontree.adapters._adapter import AsyncAdapter
from sessiontree.adapters._extra import imports_of_extra
from sessiontree.adapters._records import kept, record_of, records_of
from sessiontree.adapters._source import JournalSource, StoreOrJournal
from sessiontree.model.builders import payload_of

if TYPE_CHECKING:
    from agents.items import TResponseInputItem

with imports_of_extra("openai-agents"):
    from agents.memory import SessionABC, SessionSettings
    from agents.memory.session_settings import coerce_session_settings

__all__ = ["SessionTreeSession", "import_sqlite_sessions"]

FRAMEWORK = "openai-agents"

Item = dict[str, Any]

_DIALECT = st.DIALECTS["openai-responses"]
_MESSAGES = ("user_message", "assistant_message", "tool_call", "tool_result", "system_message")
_VISIBLE = (*_MESSAGES, "compaction", "branch_summary")


class SessionTreeSession(AsyncAdapter, SessionABC):
    """One conversation. ``pop_item`` and ``clear_session`` delete nothing: ``undo`` of its thread takes them back."""

    def __init__(
        self,
        store: StoreOrJournal,
        session_id: str,
        *,
        session_settings: SessionSettings | dict[str, Any] | None = None,
    ) -> None:
        super().__init__(store)
        self.session_id = session_id
        self.session_settings = coerce_session_settings(session_settings or SessionSettings())

    async def thread(self) -> st.AsyncThreadHandle:
        """Return the thread of the conversation: ``undo``, ``rewind``, ``compact``, ``export`` and the other verbs."""
        return st.AsyncThreadHandle(await self.journal(), self.session_id)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the items that the model should see, oldest first, or the last ``limit`` of them.

        Without a limit, that of the settings counts. After a compaction the items begin with the summary.
        """
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        if limit == 0:
            return []
        last = limit if limit is not None and limit > 0 else None
        thread = await self.thread()
        try:
            items = records_of(await thread.path_bodies(limit=last, types=_VISIBLE), FRAMEWORK)
            if None in items:
                items = items_of(await thread.path())[-last if last else None :]
        except st.ThreadNotFoundError:
            return []
        return cast("list[TResponseInputItem]", items)

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append items, all or none; they are durable when this returns."""
        thread = await self.thread()
        payloads = [payload_of_item(cast("Item", item)) for item in items]
        if not payloads:
            return
        try:
            await thread.append_many(payloads)
        except st.ThreadNotFoundError:
            await thread.append_many(payloads, create=True)

    async def pop_item(self) -> TResponseInputItem | None:
        """Move the leaf to before the last item, and return the item; ``None`` if there is none."""
        thread = await self.thread()
        while True:
            try:
                leaf = (await thread.thread()).leaf
                found = await thread.path(leaf, limit=1, types=_MESSAGES)
            except st.ThreadNotFoundError:
                return None
            if not found:
                return None
            last = found[0]
            item = record_of(last, FRAMEWORK) or items_of(await thread.path(last.id))[-1]
            try:
                await thread.move_leaf(last.parent, expect_leaf=leaf)
            except st.StaleLeafError:
                continue
            return cast("TResponseInputItem", item)

    async def clear_session(self) -> None:
        """Start again without items. ``delete`` of the thread deletes the conversation for good."""
        with suppress(st.ThreadNotFoundError):
            await (await self.thread()).reset()

    async def fork(
        self, session_id: str | None = None, *, at: str | None = None, before: str | None = None
    ) -> SessionTreeSession:
        """Return a new session that shares the entries up to ``at``, up to the parent of ``before``, or all of them.

        Nothing is copied. ``path(types=["user_message"])`` of the thread returns the entries that begin turns.
        """
        thread = await self.thread()
        forked = await thread.fork(at=at, before=before, new_id=session_id)
        return SessionTreeSession(thread.journal, forked.id, session_settings=self.session_settings)


def payload_of_item(item: Item) -> st.MessagePayload:
    """Return what an item means, with the item in its origin."""
    try:
        _, messages = _DIALECT.from_request({"input": [item]})
    except st.InvalidInputError:
        messages = []
    opaque = st.OpaquePart(provider=_DIALECT.name, block=item)
    message = messages[0] if messages else st.Message(role="user", parts=(opaque,))
    return kept(cast("st.MessagePayload", payload_of(message)), FRAMEWORK, item)


def items_of(path: Sequence[st.Entry]) -> list[Item]:
    """Return what the model sees at the end of any path as items."""
    request = _DIALECT.to_request(st.build_context(path), placeholders="never")
    prompt = [{"role": "system", "content": request["instructions"]}] if "instructions" in request else []
    return [*prompt, *request["input"]]


async def import_sqlite_sessions(
    store: StoreOrJournal,
    path: str | os.PathLike[str],
    *,
    sessions_table: str = "agent_sessions",
    messages_table: str = "agent_messages",
) -> int:
    """Copy the sessions of a file that ``SQLiteSession`` wrote, with the times of their items, and return their number.

    It can be repeated: items that were copied before are skipped. Items of another file with the same session are added.
    """
    rows = await asyncio.to_thread(_rows, Path(path), sessions_table, messages_table)
    source = JournalSource(store)
    try:
        journal = await source.asynchronous()
        sessions = [(name, list(items)) for name, items in groupby(rows, key=lambda row: row[0])]
        for name, items in sessions:
            await journal.append_many(name, _copies(items), create=True, on_duplicate="skip")
        return len(sessions)
    finally:
        await source.aclose()


Row = tuple[str, int, str, str]


def _rows(path: Path, sessions_table: str, messages_table: str) -> list[Row]:
    names = [name.replace('"', '""') for name in (messages_table, sessions_table)]
    query = 'SELECT session_id, id, m.created_at, message_data FROM "{}" m JOIN "{}" s USING (session_id) ORDER BY 1, 2'
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        return connection.execute(query.format(*names)).fetchall()


def _copies(rows: Iterable[Row]) -> Iterable[st.NewEntry]:
    for _, number, created, data in rows:
        with suppress(json.JSONDecodeError):  # SQLiteSession leaves such rows out too
            when = datetime.fromisoformat(created).replace(tzinfo=UTC)
            content = payload_of_item(json.loads(data))
            name = f"{FRAMEWORK}-{number}-{st.content_hash(data)[:16]}"
            yield st.NewEntry(content=content, id=name, created_ns=int(when.timestamp()) * 10**9)
