"""Verbs about threads; for asyncio."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Unpack

from sessiontree.async_journal.base import AsyncVerbs
from sessiontree.commands import Deleted
from sessiontree.model import Page, Thread, ThreadFields, ThreadFilters, ThreadQuery
from sessiontree.operations import exports, threads, titling
from sessiontree.operations.entries import Content
from sessiontree.titles import Titler

__all__ = ["AsyncThreadVerbs"]


class AsyncThreadVerbs(AsyncVerbs):
    async def create_thread(
        self,
        id: str | None = None,
        *,
        created_ns: int | None = None,
        updated_ns: int | None = None,
        contents: Iterable[Content] = (),
        **fields: Unpack[ThreadFields],
    ) -> Thread:
        """Start a conversation, with its first entries in the same commit; an id that is taken is ThreadExistsError."""
        return await self._run(
            threads.create_thread(self._sources, id, created_ns, fields, updated_ns=updated_ns, contents=contents)
        )

    async def thread(self, thread_id: str) -> Thread:
        """A thread's metadata and counters."""
        return await self._run(threads.thread(thread_id))

    async def update_thread(
        self, thread_id: str, *, expect_version: int | None = None, **fields: Unpack[ThreadFields]
    ) -> Thread:
        """Change metadata; with ``expect_version`` only if nobody else did meanwhile (StaleVersionError)."""
        return await self._run(threads.update_thread(self._sources, thread_id, expect_version, fields))

    async def delete_thread(self, thread_id: str, *, expect_version: int | None = None) -> Deleted:
        """Delete a thread for good; entries that a fork still shows stay.

        With ``expect_version`` only if nobody changed its metadata meanwhile (StaleVersionError).
        """
        return await self._run(threads.delete_thread(thread_id, expect_version))

    async def list_threads(self, query: ThreadQuery | None = None, **filters: Unpack[ThreadFilters]) -> Page:
        """A page of threads, newest first; archived ones only with ``is_archived=True``, or ``None`` for all."""
        return await self._run(threads.list_threads(query, filters))

    async def fork(
        self,
        thread_id: str,
        *,
        at: str | None = None,
        before: str | None = None,
        new_id: str | None = None,
        created_ns: int | None = None,
        **fields: Unpack[ThreadFields],
    ) -> Thread:
        """A new thread that shares everything up to ``at``, or up to the parent of ``before``, or up to the leaf."""
        operation = threads.fork(
            self._sources, thread_id, at=at, before=before, new_id=new_id, created_ns=created_ns, fields=fields
        )
        return await self._run(operation)

    async def suggest_title(self, thread_id: str, titler: Titler | None = None, *, limit: int = 60) -> Thread:
        """Give a thread without a title one: by the titler, or the user's first words."""
        return await self._run(titling.suggest_title(self._sources, thread_id, titler, limit))

    async def delete_older_than(
        self, updated_before_ns: int, *, is_archived: bool | None = None, is_dry_run: bool = False
    ) -> list[Thread]:
        """Delete the threads that were last changed before a time, and say which; a dry run only says."""
        return await self._run(exports.delete_older_than(updated_before_ns, is_archived, is_dry_run=is_dry_run))
