"""The locked transaction: lock the thread, read what the rules need, decide, write, commit. It serves every command.

A lost connection leaves open whether a commit took effect. A transaction writes a random stamp into the thread's row;
before it is repeated, the row shows whether it took effect (our stamp), did not (the stamp from before), or cannot be
known (another stamp).
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import NamedTuple, TypeVar
from uuid import UUID

import psycopg
from msgspec.structs import replace

from sessiontree.errors import CommitUnknownError, SessionTreeError, ThreadNotFoundError
from sessiontree.model import Thread
from sessiontree.model.documents import StoredDocument
from sessiontree.model.ids import IdSource
from sessiontree.stores.commands import (
    Append,
    Change,
    Command,
    Committed,
    CommitTogether,
    CreateThread,
    DeleteDocument,
    DeleteThread,
    EraseContents,
    Fork,
    ImportHistory,
    ImportThread,
    InstallCompaction,
    MoveLeaf,
    PositionedDraft,
    PurgeDocuments,
    PutBlobs,
    Result,
    SetDocument,
    changes_of,
)
from sessiontree.stores.postgres.documents import lock_document
from sessiontree.stores.postgres.errors import may_have_happened
from sessiontree.stores.postgres.known import as_read
from sessiontree.stores.postgres.rows import HEAD_FROM, STATE_COLUMNS, ThreadHead, head_of
from sessiontree.stores.postgres.steps import BEGIN, COMMIT, ROLLBACK, Statement, Steps, TreeLookup, to_bytes
from sessiontree.stores.postgres.view import Reservation, SnapshotView, decide_in_steps
from sessiontree.stores.postgres.writes import statements_of
from sessiontree.stores.rules.state import Decision, DropThread, PutEntry, PutHead, PutThread

__all__ = ["LockedTransaction", "needed_entries", "with_given_ids"]


C = TypeVar("C", bound=Command)

_STATE = (
    f"SELECT {STATE_COLUMNS} FROM {HEAD_FROM} WHERE h.tree = %(tree)s AND h.id = %(id)s AND h.namespace = %(namespace)s"
)
_FOR_CHANGE = " FOR NO KEY UPDATE OF h, t"
_AGAINST_DELETE = " FOR KEY SHARE OF h"
_UNLOCKED = ""
# The clock is read outside of the insert: a distributed server runs that with constants only.
_LOCK_NAME = """
WITH locked AS (
    INSERT INTO sessiontree.home (id, namespace) VALUES (%(id)s, %(namespace)s)
    ON CONFLICT (id, namespace) DO UPDATE SET id = excluded.id
    RETURNING tree, named_tree
) SELECT tree, named_tree, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM locked"""
_LOCK_HOME = "SELECT id FROM sessiontree.home WHERE id = %(id)s AND namespace = %(namespace)s FOR UPDATE"
# A transaction with a number has a commit to wait for, even if it changes nothing.
_TAKE_NUMBER = Statement("SELECT txid_current()")
_NO_TREE = UUID(int=0)
_LOCK_TREE = """
SELECT key FROM sessiontree.head WHERE tree = %(tree)s AND namespace = %(namespace)s ORDER BY id FOR UPDATE"""


def with_given_ids(command: C) -> C:
    """The command with ids that count as given: an attempt whose answer was lost may have stored the new ones."""
    match command:
        case Append(drafts=drafts):
            return replace(command, drafts=tuple(replace(draft, has_new_id=False) for draft in drafts))
        case CommitTogether(changes=changes):
            return replace(command, changes=tuple(map(with_given_ids, changes)))
        case _:
            return command


class _Written(NamedTuple):
    """A command of a transaction, what was read for it, and what was decided."""

    command: Change
    view: SnapshotView
    decision: Decision


class _Unsettled(NamedTuple):
    """A commit whose answer was lost: its result, the command that shows whether it took effect, and its thread's stamp before."""

    result: Result
    witness: Change
    decision: Decision
    stamp_before: int | None


class LockedTransaction:
    """One command, or several that are committed together, run in a transaction until its outcome is known."""

    def __init__(self, lookup: TreeLookup, ids: IdSource, command: Command) -> None:
        self._lookup = lookup
        self._ids = ids
        self._command = command
        self._stamp = secrets.randbits(62)
        self.unsettled: _Unsettled | None = None
        self.created: ThreadHead | None = None
        """The thread that the command created, as it was committed."""

    def run(self, unknown: CommitUnknownError) -> Steps[Result]:
        """Run the command once; raise ``unknown`` if an earlier run may have taken effect and cannot be settled."""
        yield BEGIN
        try:
            yield from self._lock_names()
            if self.unsettled is not None and (yield from self._took_effect(self.unsettled, unknown)):
                yield from _confirm()
                return self.unsettled.result
            self.unsettled = None
            written: list[_Written] = []
            for change in changes_of(self._command):
                written.append((yield from self._write(change)))  # noqa: PERF401  a comprehension cannot yield
        except SessionTreeError:
            yield ROLLBACK
            raise
        result = self._result_of(written)
        if any(one.decision.facts for one in written):
            yield from self._commit(written, result)
        else:
            yield from _confirm()
        return result

    @property
    def subjects(self) -> set[str]:
        """The threads that the command is about."""
        return {_subject(change) for change in changes_of(self._command)}

    def expect_stored_ids(self) -> None:
        """Look for new ids in the next run: this one may have stored them, or found one of them taken."""
        self._command = with_given_ids(self._command)

    def _write(self, change: Change) -> Steps[_Written]:
        """Lock and read what a command is about, decide it, and write the facts."""
        view = yield from self._lock_and_read(change)
        decision = yield from decide_in_steps(change, view)
        yield from statements_of(decision, view, self._lookup.namespace, self._stamp, self._lookup.channel)
        return _Written(change, view, decision)

    def _result_of(self, written: Sequence[_Written]) -> Result:
        results = tuple(one.decision.result for one in written)
        return Committed(results=results) if isinstance(self._command, CommitTogether) else results[0]

    def _commit(self, written: Sequence[_Written], result: Result) -> Steps[None]:
        try:
            yield COMMIT
        except psycopg.Error as error:
            if may_have_happened(error):
                self.unsettled = self._lost(written, result)
            raise
        for one in written:
            self._remember(one.decision, one.view)
        if len(written) == 1:
            self.created = self._created(written[0])

    def _created(self, one: _Written) -> ThreadHead | None:
        """The new thread, if there is one. A head begins with its key as its version, and each change counts it up."""
        states = [fact.state for fact in one.decision.facts if isinstance(fact, PutThread | PutHead)]
        if not states or one.view.head(states[0].meta.id) is not None:
            return None
        state = states[-1]
        return ThreadHead(
            state=as_read(state),
            tree=one.view.uuid_of(state.tree),
            seq=state.key + sum(isinstance(fact, PutEntry) for fact in one.decision.facts),
            stamp=self._stamp,
            version=state.key + len(states) - 1,
            lease=None,
        )

    def _lost(self, written: Sequence[_Written], result: Result) -> _Unsettled:
        witness = _witness(written)
        # An earlier command of the same transaction may have written our own stamp.
        name = _subject(witness.command)
        first = next(one for one in written if _subject(one.command) == name)
        head = first.view.head(name)
        return _Unsettled(result, witness.command, witness.decision, head.stamp if head else None)

    def _remember(self, decision: Decision, view: SnapshotView) -> None:
        for fact in decision.facts:
            match fact:
                case PutThread(state=state):
                    self._lookup.remember(state.meta.id, view.uuid_of(state.tree))
                case DropThread(state=state):
                    self._lookup.forget(state.meta.id)

    def _took_effect(self, before: _Unsettled, unknown: CommitUnknownError) -> Steps[bool]:
        """Whether the earlier run took effect, all of it or nothing: one of its commands shows it."""
        command = before.witness
        view = yield from self._lock_and_read(command)
        if isinstance(command, SetDocument):
            return _is_put(view.document(command.scope, command.key), before.decision, unknown)
        head = view.head(_subject(command))
        if isinstance(command, DeleteThread):
            return head is None
        if head is not None and head.stamp == self._stamp:
            return True
        if (head.stamp if head else None) == before.stamp_before:
            return False
        raise unknown

    def _lock_names(self) -> Steps[None]:
        """Lock the threads of a commit of several commands in the same order as all others do, so none deadlock."""
        if isinstance(self._command, CommitTogether):
            yield from self._lock_homes(self.subjects - {""})

    def _lock_and_read(self, command: Change) -> Steps[SnapshotView]:
        """Lock and read what a command is about. All commands lock names first, then threads, so none deadlock."""
        view = SnapshotView(self._ids, self._lookup.namespace)
        match command:
            case CreateThread(thread=thread, drafts=drafts, history=history):
                reservation, taken = yield from self._lock_name(thread.id)
                view.set_reservation(reservation)
                view.set_thread(thread.id, taken)
                names = [draft.id for draft in drafts] + [step.draft.id for step in history]
                if names and (history or reservation.named_tree is not None):
                    yield from view.prefetch_nodes(reservation.named_tree or _NO_TREE, names)
            case Append(create=Thread() as thread):
                yield from self._lock_or_reserve(view, thread.id, needed_entries(command))
            case ImportThread(thread=thread):
                reservation, taken = yield from self._lock_name(thread.id)
                if thread.tree != thread.id:
                    tree_name, _ = yield from self._lock_name(thread.tree)
                    reservation = reservation._replace(named_tree=tree_name.named_tree)
                view.set_reservation(reservation)
                view.set_thread(thread.id, taken)
            case Fork(source_id=source_id, thread=thread):
                reservation, taken = yield from self._lock_name(thread.id)
                source = yield from self._read_thread(source_id, _AGAINST_DELETE)
                view.set_reservation(reservation)
                view.set_thread(source_id, source)
                view.set_thread(thread.id, taken)
                if source is not None and (ids := needed_entries(command)):
                    yield from view.prefetch_nodes(source.tree, ids)
            case DeleteThread(thread_id=thread_id) | EraseContents(thread_id=thread_id):
                yield from self._lock_tree(thread_id)
                head = yield from self._read_thread(thread_id, _FOR_CHANGE)
                view.set_thread(thread_id, head)
                if head is not None and (ids := needed_entries(command)):
                    yield from view.prefetch_nodes(head.tree, ids)
            case PutBlobs() | PurgeDocuments():
                # No thread's row shows whether this was done; doing it again is harmless.
                view.set_thread(_subject(command), None)
            case SetDocument() | DeleteDocument():
                view.set_thread(_subject(command), None)
                view.set_document((yield from lock_document(self._lookup.namespace, command)))
            case _:
                head = yield from self._read_thread(command.thread_id, _FOR_CHANGE)
                view.set_thread(command.thread_id, head)
                if head is not None and (ids := needed_entries(command)):
                    yield from view.prefetch_nodes(head.tree, ids)
        return view

    def _lock_or_reserve(self, view: SnapshotView, thread_id: str, entry_ids: Sequence[str]) -> Steps[None]:
        """Lock a thread, or its id if there is no such thread."""
        head = yield from self._read_thread(thread_id, _FOR_CHANGE)
        if head is None:
            reservation, taken = yield from self._lock_name(thread_id)
            if taken is None:
                view.set_reservation(reservation)
            else:
                head = yield from self._read_thread(thread_id, _FOR_CHANGE)
        view.set_thread(thread_id, head)
        tree = head.tree if head else reservation.named_tree
        if tree is not None and entry_ids:
            yield from view.prefetch_nodes(tree, entry_ids)

    def _lock_name(self, thread_id: str) -> Steps[tuple[Reservation, ThreadHead | None]]:
        """Lock a thread id, taken or not; return what a new thread of this id would get, and the thread that has it."""
        values = {"id": to_bytes(thread_id), "namespace": self._lookup.namespace}
        ((tree, named_tree, now_us),) = yield Statement(_LOCK_NAME, values)
        # Keys grow with the server's clock, so a thread that reuses an id gets higher numbers.
        reservation = Reservation(key=1000 * now_us + secrets.randbelow(1000), named_tree=named_tree)
        if tree is None:
            return reservation, None
        self._lookup.remember(thread_id, tree)
        return reservation, (yield from self._read_thread(thread_id, _UNLOCKED))

    def _lock_tree(self, thread_id: str) -> Steps[None]:
        """Lock the names of a thread and its tree, and all threads of the tree."""
        head = yield from self._read_thread(thread_id, _UNLOCKED)
        if head is None:
            return
        yield from self._lock_homes({thread_id, head.state.meta.tree})
        yield Statement(_LOCK_TREE, {"tree": head.tree, "namespace": self._lookup.namespace})

    def _lock_homes(self, thread_ids: set[str]) -> Steps[None]:
        """Lock names, in the same order as all others do. One statement each: they may be on different nodes."""
        for name in sorted(map(to_bytes, thread_ids)):
            yield Statement(_LOCK_HOME, {"id": name, "namespace": self._lookup.namespace})

    def _read_thread(self, thread_id: str, lock: str) -> Steps[ThreadHead | None]:
        for find in (self._lookup.find, self._lookup.refresh):
            try:
                tree = yield from find(thread_id)
            except ThreadNotFoundError:
                return None
            values = {"tree": tree, "id": to_bytes(thread_id), "namespace": self._lookup.namespace}
            rows = yield Statement(_STATE + lock, values)
            if rows:
                return head_of(rows[0])
        return None


def _is_put(stored: StoredDocument | None, decision: Decision, unknown: CommitUnknownError) -> bool:
    """Whether a document was put; ``unknown`` if it may have been, and another writer has replaced it since."""
    put = decision.result
    assert isinstance(put, StoredDocument)
    if stored == put or stored is None or stored.version < put.version:
        return stored == put
    raise unknown


def _witness(written: Sequence[_Written]) -> _Written:
    """The command of a transaction that shows best whether it took effect.

    That is the last change of a thread, which leaves a stamp, or of a document, or else a delete.
    """
    ranks: list[tuple[int, _Written]] = []
    seen: set[tuple[str, str]] = set()
    for one in reversed(written):
        match one.command:
            case SetDocument(scope=scope, key=key) | DeleteDocument(scope=scope, key=key):
                place, rank = (scope, key), 1 if isinstance(one.command, SetDocument) else 3
            case command:
                place, rank = ("", _subject(command)), 2 if isinstance(command, DeleteThread) else 0
        if place not in seen and one.decision.facts:
            ranks.append((rank, one))
        seen.add(place)
    return min(ranks, key=lambda found: found[0])[1]


def _confirm() -> Steps[None]:
    """Commit with a transaction number, which waits for the synchronous standby: what was read may not be there yet."""
    yield _TAKE_NUMBER
    yield COMMIT


def _subject(command: Change) -> str:
    """The thread whose row shows whether a command took effect."""
    match command:
        case CreateThread(thread=thread) | Fork(thread=thread) | ImportThread(thread=thread):
            return thread.id
        case PutBlobs() | SetDocument() | DeleteDocument() | PurgeDocuments():
            return ""
        case _:
            return command.thread_id


def needed_entries(command: Change) -> list[str]:
    """Entries that the rules need in any case."""
    match command:
        case Append(drafts=drafts, parent=parent):
            parents = [parent, *(draft.parent for draft in drafts)]
            given = [draft.id for draft in drafts if not draft.has_new_id]
            return given + [name for name in parents if isinstance(name, str)]
        case MoveLeaf(to_entry=str() as entry_id):
            return [entry_id]
        case EraseContents(entries=entries):
            return list(entries)
        case Fork(entry_id=entry_id, history=history):
            named = [entry_id, *(step.parent for step in history), *(step.draft.id for step in history)]
            return list({name for name in named if name is not None})
        case InstallCompaction(draft=draft, base=base):
            return [draft.id, base]
        case ImportHistory(steps=steps):
            return [step.draft.id for step in steps if isinstance(step, PositionedDraft)]
        case _:
            return []
