"""Changes of several threads and documents in one commit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any, Self, Unpack

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from sessiontree.errors import InvalidInputError
from sessiontree.journal.operations import documents, leaf, threads
from sessiontree.journal.operations.entries import Content
from sessiontree.journal.operations.requests import Operation, Runtime
from sessiontree.journal.thread_ids import ThreadLike, id_of
from sessiontree.model import Entry, Lease, Record, Thread, ThreadFields
from sessiontree.model.documents import Document
from sessiontree.stores.commands import (
    JOINABLE,
    Append,
    Committed,
    CommitTogether,
    CreateThread,
    Deleted,
    Draft,
    Joinable,
    MoveLeaf,
    OnDuplicate,
)
from sessiontree.stores.queries import ReadPath

__all__ = ["ChangeAnswer", "Changes", "commit"]


ChangeAnswer = list[Entry] | Thread | Deleted | Document | bool
"""What the verb of one change returns."""

Verb = Callable[[Runtime], Operation[Any]]


class Changes:
    """Changes that ``journal.commit`` makes together: all of them, or none if one is refused.

    The methods have the names and arguments of the journal's verbs. They only note the change, and return the object.
    Changes are made in this order, and each one sees those before it; a system prompt cannot follow the fork of its thread.

    >>> import sessiontree as st
    >>> with st.open("memory:") as journal:
    ...     changes = st.Changes().append("chat", st.user("hello"), create=True)
    ...     (entry,), document = journal.commit(changes.put_document("app", "chats", 1, expect_version=0))
    >>> entry.message.text, document.value
    ('hello', 1)
    """

    def __init__(self) -> None:
        self._verbs: list[Verb] = []

    @property
    def verbs(self) -> tuple[Verb, ...]:
        """The operations of the changes, in order."""
        return tuple(self._verbs)

    def create_thread(
        self, id: str | None = None, *, contents: Iterable[Content] = (), **fields: Unpack[ThreadFields]
    ) -> Self:
        """Create a thread, with its first entries."""
        given = list(contents)
        return self._add(lambda runtime: threads.create_thread(runtime, id, None, fields, contents=given))

    def update_thread(
        self, thread_id: ThreadLike, *, expect_version: int | None = None, **fields: Unpack[ThreadFields]
    ) -> Self:
        """Change the metadata of a thread."""
        return self._add(lambda runtime: threads.update_thread(runtime, id_of(thread_id), expect_version, fields))

    def delete_thread(
        self,
        thread_id: ThreadLike,
        *,
        expect_version: int | None = None,
        expect_leaf: str | UnsetType | None = UNSET,
    ) -> Self:
        """Delete a thread for good."""
        return self._add(
            lambda _: threads.delete_thread(id_of(thread_id), expect_version=expect_version, expect_leaf=expect_leaf)
        )

    def fork(
        self,
        thread_id: ThreadLike,
        *,
        at: str | None = None,
        before: str | None = None,
        new_id: str | None = None,
        **fields: Unpack[ThreadFields],
    ) -> Self:
        """Create a thread that shares the beginning of another one."""
        return self._add(
            lambda runtime: threads.fork(
                runtime, id_of(thread_id), at=at, before=before, new_id=new_id, created_ns=None, fields=fields
            )
        )

    def append(
        self,
        thread_id: ThreadLike,
        *contents: Content,
        parent: str | UnsetType | None = UNSET,
        expect_leaf: str | UnsetType | None = UNSET,
        lease: Lease | None = None,
        expect_live: bool = False,
        fields: ThreadFields | None = None,
        expect_version: int | None = None,
        create: bool = False,
        on_duplicate: OnDuplicate = "fail",
        moves_leaf: bool = True,
    ) -> Self:
        """Append one or several entries, with the arguments of ``append_many``."""
        return self._add(
            lambda runtime: threads.append_and_update(
                runtime,
                id_of(thread_id),
                contents,
                fields=fields or {},
                expect_version=expect_version,
                create=create,
                parent=parent,
                expect_leaf=expect_leaf,
                lease=lease,
                expect_live=expect_live,
                on_duplicate=on_duplicate,
                moves_leaf=moves_leaf,
            )
        )

    def move_leaf(
        self,
        thread_id: ThreadLike,
        entry_id: str | None,
        *,
        expect_leaf: str | UnsetType | None = UNSET,
        lease: Lease | None = None,
    ) -> Self:
        """Move the leaf to an entry, or with ``None`` before the first one."""
        return self._add(
            lambda runtime: leaf.move_leaf(
                runtime, id_of(thread_id), entry_id, "move", expect_leaf=expect_leaf, lease=lease
            )
        )

    def put_document(
        self, scope: str, key: str, value: Any, *, expect_version: int | None = None, ttl_seconds: float | None = None
    ) -> Self:
        """Store a document."""
        return self._add(
            lambda runtime: documents.put(
                runtime, scope, key, value, expect_version=expect_version, ttl_seconds=ttl_seconds
            )
        )

    def delete_document(self, scope: str, key: str, *, expect_version: int | None = None) -> Self:
        """Delete a document."""
        return self._add(lambda runtime: documents.delete(runtime, scope, key, expect_version))

    def _add(self, verb: Verb) -> Self:
        self._verbs.append(verb)
        return self


def commit(runtime: Runtime, changes: Changes) -> Operation[list[ChangeAnswer]]:
    """Make changes in one commit, and return what each of their verbs returns."""
    if not isinstance(changes, Changes):
        raise InvalidInputError(f"commit() takes Changes, not {changes!r}")
    if not changes.verbs:
        return []
    operations = [verb(runtime) for verb in changes.verbs]
    commands: list[Joinable] = []
    tips: dict[str, _Tip] = {}
    for operation in operations:
        command = yield from _command_of(operation, tips)
        _move_tip(tips, command)
        commands.append(command)
    done: Committed = yield CommitTogether(changes=tuple(commands))
    return [_answer_of(operation, result) for operation, result in zip(operations, done.results, strict=True)]


class _Tip(Record, frozen=True, kw_only=True):
    """Where the changes before leave a thread: at a stored leaf, or after what they append to it."""

    leaf: str | UnsetType | None = UNSET
    added: tuple[Draft, ...] = ()

    def at(self, entry_id: str | None) -> _Tip:
        """The tip after a move."""
        ids = [draft.id for draft in self.added]
        if entry_id in ids:
            return _Tip(leaf=self.leaf, added=self.added[: ids.index(entry_id) + 1])
        return _Tip(leaf=entry_id)

    def after(self, draft: Draft) -> _Tip:
        """The tip after an append."""
        start = self if isinstance(draft.parent, UnsetType) else self.at(draft.parent)
        return _Tip(leaf=start.leaf, added=(*start.added, draft))


def _move_tip(tips: dict[str, _Tip], command: Joinable) -> None:
    match command:
        case CreateThread(thread=thread, drafts=drafts):
            tips[thread.id] = reduce(_Tip.after, drafts, _Tip(leaf=None))
        case MoveLeaf(thread_id=thread_id, to_entry=entry_id):
            tips[thread_id] = tips.get(thread_id, _Tip()).at(entry_id)
        case Append(thread_id=thread_id, parent=parent, drafts=drafts, moves_leaf=True):
            tip = tips.get(thread_id, _Tip())
            tips[thread_id] = reduce(_Tip.after, drafts, tip if isinstance(parent, UnsetType) else tip.at(parent))


def _path_to(tip: _Tip, query: ReadPath) -> Operation[list[Entry]]:
    """Read a path as the changes before leave it."""
    end = tip if isinstance(query.leaf, UnsetType) else tip.at(query.leaf)
    path: list[Entry] = [] if end.leaf is None else (yield replace(query, leaf=end.leaf))
    for draft in end.added:
        parent = path[-1].id if path else None
        path.append(
            Entry(
                id=draft.id,
                thread_id=query.thread_id,
                parent=parent,
                created_ns=draft.created_ns,
                payload=draft.payload,
            )
        )
    return query.select(reversed(path))


def _command_of(operation: Operation[Any], tips: dict[str, _Tip]) -> Operation[Joinable]:
    """Run the operation of a verb up to its command. A path that it reads is the one that the changes before leave."""
    request = next(operation)
    while not isinstance(request, JOINABLE):
        try:
            if isinstance(request, ReadPath) and request.thread_id in tips:
                reply: Any = yield from _path_to(tips[request.thread_id], request)
            else:
                reply = yield request
        except BaseException as error:  # noqa: BLE001  the operation decides what an error or interrupt means
            request = operation.throw(error)
        else:
            request = operation.send(reply)
    command: Joinable = request
    return command


def _answer_of(operation: Operation[Any], result: object) -> ChangeAnswer:
    """Run the operation of a verb to its end, with the result of its command."""
    try:
        operation.send(result)
    except StopIteration as finished:
        answer: ChangeAnswer = finished.value
        return answer
    raise AssertionError("a verb that can be committed together has one command")
