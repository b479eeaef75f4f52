"""``SessionTreeSaver``: LangGraph's checkpoints in a journal."""

from __future__ import annotations

import heapq
import operator
import random
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any
from uuid import uuid4

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from sessiontree.adapters._adapter import Adapter
from sessiontree.adapters._recent import Recent
from sessiontree.adapters._records import thread_id_of
from sessiontree.adapters._source import StoreOrJournal
from sessiontree.adapters.langgraph.reading import (
    CheckpointReader,
    find_record,
    latest_record,
    list_records,
    read_writes,
)
from sessiontree.adapters.langgraph.records import (
    AGENT,
    WRITES_CHANNEL,
    CheckpointRecord,
    Place,
    Write,
    WritesRecord,
    data_of,
    writes_root,
)
from sessiontree.adapters.langgraph.rewriting import rewrite, stored_writes
from sessiontree.adapters.langgraph.values import KnownCheckpoint, Serializer, plan_put
from sessiontree.errors import (
    DuplicateEntryError,
    EntryNotFoundError,
    InvalidInputError,
    InvalidParentError,
    ThreadNotFoundError,
)
from sessiontree.journal import Changes, NewEntry
from sessiontree.model import Thread, ThreadFields, ThreadQuery

__all__ = ["SessionTreeSaver"]


class SessionTreeSaver(Adapter, BaseCheckpointSaver[str]):
    """A checkpointer on a store URL or an open journal, for sync and async graphs alike.

    The thread of a graph is a thread of the journal with the same id. Values are stored when they change, and lists as what
    was added to them. Messages are entries of the journal: search, the viewer and the command line show them.
    """

    def __init__(self, store: StoreOrJournal, *, serde: SerializerProtocol | None = None) -> None:
        BaseCheckpointSaver.__init__(self, serde=serde)
        Adapter.__init__(self, store)
        self._known = Recent[KnownCheckpoint]()

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the checkpoint of a config, or the last one on the path of its thread."""
        place = Place.of(config)
        checkpoint_id = get_checkpoint_id(config)
        if checkpoint_id:
            record = find_record(self.journal, place, checkpoint_id)
        else:
            record = latest_record(self.journal, place)
        try:
            return None if record is None else self._reader(place).load(record)
        except (EntryNotFoundError, ThreadNotFoundError):
            return None  # deleted by another process meanwhile

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Return checkpoints, the newest first: of a thread and namespace, of a thread, or of all threads."""
        before_id = None if before is None else get_checkpoint_id(before)
        streams = [self._matching(place, filter or {}, before_id, config) for place in self._places(config)]
        merged = heapq.merge(*streams, key=lambda found: found[1].id, reverse=True)
        readers: dict[Place, CheckpointReader] = {}
        for place, record in islice(merged, limit):
            if place not in readers:
                readers[place] = self._reader(place)
            yield readers[place].load(record)

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint under the one that the config names, in one commit."""
        place = Place.of(config)
        parent = get_checkpoint_id(config)
        facts = dict(get_checkpoint_metadata(config, metadata))
        plan = partial(
            plan_put,
            Serializer(self.serde),
            checkpoint=checkpoint,
            new_versions=new_versions,
            parent=parent,
            metadata=facts,
        )
        planned = plan(self._checkpoint_before(place, parent))
        try:
            self._append_or_create(place.journal_thread, place.fields, planned.entries)
        except InvalidParentError:  # the checkpoint before was deleted by another process
            planned = plan(None)
            self._append_or_create(place.journal_thread, place.fields, planned.entries)
        self._known.put(place.journal_thread, planned.stored)
        return place.config(checkpoint["id"])

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store the writes of a task beside the path, under their checkpoint."""
        serializer = Serializer(self.serde)
        record = WritesRecord(
            task_id=task_id,
            task_path=task_path,
            is_replacing=all(channel in WRITES_IDX_MAP for channel, _ in writes),
            writes=tuple(
                Write(WRITES_IDX_MAP.get(channel, number), channel, serializer.dump(value))
                for number, (channel, value) in enumerate(writes)
            ),
        )
        checkpoint_id = config["configurable"]["checkpoint_id"]
        new = [writes_root(checkpoint_id), NewEntry(content=data_of(record), parent=checkpoint_id)]
        place = Place.of(config)
        self._append_or_create(place.writes_thread, place.writes_fields, new)

    def delete_thread(self, thread_id: str) -> None:
        """Delete a thread for good, with all its namespaces, in one commit."""
        while threads := [*self._threads(str(thread_id))]:
            changes = Changes()
            for thread in threads:
                changes.delete_thread(thread.id)
                self._known.forget(thread.id)
            with suppress(ThreadNotFoundError):  # deleted by another process meanwhile
                self.journal.commit(changes)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy every branch of a thread, with all namespaces. ``fork`` shares them instead."""
        for thread in self._threads(str(source_thread_id)):
            target = Place(thread_id=str(target_thread_id), namespace=thread.key.thread)
            new_id, fields = target.journal_thread, target.fields
            if thread.key.channel == WRITES_CHANNEL:
                new_id, fields = target.writes_thread, target.writes_fields
            self.journal.fork(thread.id, branches="all", new_id=new_id, **fields)

    def fork(self, thread_id: str, new_thread_id: str, *, checkpoint_id: str | None = None) -> RunnableConfig:
        """Let a new thread begin with the checkpoints of another one, up to its last one or ``checkpoint_id``.

        They are shared, not copied, so it takes the same time however many there are. The pending writes of the last one, such
        as interrupts, are taken along; checkpoints of subgraphs are not.
        """
        source, target = Place(thread_id=thread_id, namespace=""), Place(thread_id=new_thread_id, namespace="")
        record = (
            latest_record(self.journal, source)
            if checkpoint_id is None
            else find_record(self.journal, source, checkpoint_id)
        )
        if record is None:
            raise InvalidInputError(f"thread {thread_id!r} has no checkpoint {checkpoint_id or 'yet'}")
        changes = Changes().fork(source.journal_thread, at=record.id, new_id=target.journal_thread, **target.fields)
        writes = read_writes(self.journal, source, record.id)
        if writes:
            changes.create_thread(
                target.writes_thread, contents=stored_writes(record.id, writes), **target.writes_fields
            )
        self.journal.commit(changes)
        return target.config(record.id)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete checkpoints of threads for good: all of them, or all but the last one of each namespace.

        A fork keeps what it shares.
        """
        if strategy not in {"keep_latest", "delete"}:
            raise InvalidInputError(f"unknown strategy {strategy!r}; use 'keep_latest' or 'delete'")
        for thread_id in thread_ids:
            if strategy == "delete":
                self.delete_thread(thread_id)
                continue
            for place in self._places({"configurable": {"thread_id": thread_id}}):
                latest = latest_record(self.journal, place)
                self._keep(place, partial(operator.eq, latest))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints of runs for good, in every thread."""
        unwanted = set(run_ids)
        if unwanted:
            for place in self._places(None):
                self._keep(place, lambda record: record.metadata.get("run_id") not in unwanted)

    def get_next_version(self, current: str | None, channel: None) -> str:
        """Return a version in the form that LangGraph's own savers use, so that their data can be moved in."""
        number = 0 if current is None else int(str(current).split(".")[0])
        return f"{number + 1:032}.{random.random():016}"  # noqa: S311  versions only have to differ

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return a checkpoint, as ``get_tuple`` does, without blocking the event loop."""
        return await self._in_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Return checkpoints, as ``list`` does, without blocking the event loop."""
        found = self.list(config, filter=filter, before=before, limit=limit)
        while (one := await self._in_thread(next, found, None)) is not None:
            yield one

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint, as ``put`` does, without blocking the event loop."""
        return await self._in_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store writes, as ``put_writes`` does, without blocking the event loop."""
        await self._in_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete a thread, as ``delete_thread`` does, without blocking the event loop."""
        await self._in_thread(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints of runs, as ``delete_for_runs`` does, without blocking the event loop."""
        await self._in_thread(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread, as ``copy_thread`` does, without blocking the event loop."""
        await self._in_thread(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete checkpoints of threads, as ``prune`` does, without blocking the event loop."""
        await self._in_thread(self.prune, thread_ids, strategy=strategy)

    def _reader(self, place: Place) -> CheckpointReader:
        return CheckpointReader(self.journal, place, Serializer(self.serde))

    def _threads(self, thread_id: str) -> Iterator[Thread]:
        """The threads of the journal that belong to a thread of LangGraph."""
        yield from self.journal.iter_threads(ThreadQuery(agent=AGENT, is_archived=None, peer=thread_id))
        place = Place(thread_id=thread_id, namespace="")
        with suppress(ThreadNotFoundError):
            thread = self.journal.thread(place.journal_thread)
            if thread.key.agent != AGENT and any(list_records(self.journal, place, None)):
                yield thread  # made by a fork of the journal

    def _places(self, config: RunnableConfig | None) -> Sequence[Place]:
        """The places that a config of ``list`` stands for."""
        configurable = {} if config is None else config.get("configurable", {})
        if "thread_id" not in configurable:
            found = self.journal.iter_threads(ThreadQuery(agent=AGENT, is_archived=None))
        elif "checkpoint_ns" in configurable:
            return [Place.of({"configurable": configurable})]
        else:
            found = self._threads(str(configurable["thread_id"]))
        return [Place.of_thread(thread) for thread in found if thread.key.channel != WRITES_CHANNEL]

    def _matching(
        self, place: Place, filter: dict[str, Any], before: str | None, config: RunnableConfig | None
    ) -> Iterator[tuple[Place, CheckpointRecord]]:
        wanted = None if config is None else get_checkpoint_id(config)
        if wanted:
            found = find_record(self.journal, place, wanted)
            records = iter([] if found is None else [found])
        else:
            records = list_records(self.journal, place, before)
        for record in records:
            if all(record.metadata.get(name) == value for name, value in filter.items()):
                yield place, record

    def _checkpoint_before(self, place: Place, checkpoint_id: str | None) -> KnownCheckpoint | None:
        if checkpoint_id is None:
            return None
        known = self._known.get(place.journal_thread)
        if known is not None and known.record.id == checkpoint_id:
            return known
        record = find_record(self.journal, place, checkpoint_id)
        return None if record is None else self._reader(place).known(record)

    def _append_or_create(self, thread: str, fields: ThreadFields, new: Sequence[NewEntry]) -> None:
        try:
            self.journal.append_many(thread, new, on_duplicate="skip")
        except ThreadNotFoundError:
            self.journal.append_many(thread, new, on_duplicate="skip", create=True, fields=fields)

    def _keep(self, place: Place, is_kept: Callable[[CheckpointRecord], bool]) -> None:
        """Delete the other checkpoints of a place: it is deleted and written again, in one commit."""
        changes = rewrite(self.journal, place, is_kept)
        if changes is None:
            return
        try:
            self.journal.commit(changes)
        except DuplicateEntryError:
            again = rewrite(self.journal, place, is_kept, new_tree=thread_id_of(AGENT, "pruned", str(uuid4())))
            if again is not None:
                self.journal.commit(again)
