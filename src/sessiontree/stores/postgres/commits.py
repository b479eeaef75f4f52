"""How a command is committed. There are two ways:

- The *fast path* (``fast_path.py``): one statement that checks and writes. It serves plain appends and leases. A statement
  that writes nothing gives no reason, so the locked transaction runs next and either succeeds or raises the reason.
- The *locked transaction*: lock the thread, read what the rules need, decide, write, commit. It serves every command.

A lost connection leaves open whether a commit took effect. Commands of the fast path are repeated, because ids and tokens
make a repetition harmless. A transaction writes a random stamp into the thread's row; before it is repeated, the row shows
whether it took effect (our stamp), did not (the stamp from before), or cannot be known (another stamp).
"""

from __future__ import annotations

import secrets
from typing import TypeVar
from uuid import UUID

import psycopg
from msgspec.structs import replace

from sessiontree.errors import CommitUnknownError, SessionTreeError, ThreadNotFoundError
from sessiontree.model import Thread
from sessiontree.model._base import Record
from sessiontree.model.documents import StoredDocument
from sessiontree.model.ids import IdSource
from sessiontree.stores.commands import (
    AcquireLease,
    Append,
    Command,
    CreateThread,
    DeleteDocument,
    DeleteThread,
    EraseContents,
    Fork,
    ImportHistory,
    ImportThread,
    MoveLeaf,
    PositionedDraft,
    PurgeDocuments,
    PutBlobs,
    ReleaseLease,
    RenewLease,
    Result,
    SetDocument,
)
from sessiontree.stores.postgres.documents import lock_document
from sessiontree.stores.postgres.errors import may_have_happened, with_retries
from sessiontree.stores.postgres.fast_path import acquire, append_at_leaf, is_plain, release, renew
from sessiontree.stores.postgres.rows import HEAD_FROM, STATE_COLUMNS, ThreadHead, head_of
from sessiontree.stores.postgres.steps import BEGIN, COMMIT, ROLLBACK, Statement, Steps, TreeLookup, to_bytes
from sessiontree.stores.postgres.view import Reservation, SnapshotView, decide_in_steps
from sessiontree.stores.postgres.writes import statements_of
from sessiontree.stores.rules.state import Decision, DropThread, PutThread

__all__ = ["Commits"]


C = TypeVar("C", bound=Command)

FastCommand = Append | AcquireLease | RenewLease | ReleaseLease

_STATE = f"SELECT {STATE_COLUMNS} FROM {HEAD_FROM} WHERE h.tree = %(tree)s AND h.id = %(id)s"
_FOR_CHANGE = " FOR NO KEY UPDATE OF h, t"
_AGAINST_DELETE = " FOR KEY SHARE OF h"
_UNLOCKED = ""
_LOCK_NAME = """
INSERT INTO sessiontree.home (id, namespace) VALUES (%(id)s, %(namespace)s)
ON CONFLICT (id, namespace) DO UPDATE SET id = excluded.id
RETURNING tree, named_tree, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"""
_LOCK_NAMES = """
SELECT id FROM sessiontree.home WHERE id = ANY(%(ids)s) AND namespace = %(namespace)s ORDER BY id FOR UPDATE"""
# A transaction with a number has a commit to wait for, even if it changes nothing.
_TAKE_NUMBER = Statement("SELECT txid_current()")
_NO_TREE = UUID(int=0)
_LOCK_TREE = "SELECT key FROM sessiontree.head WHERE tree = %(tree)s ORDER BY id FOR UPDATE"


class Commits:
    """The writes of the store, for one namespace."""

    def __init__(self, place: str, lookup: TreeLookup, retry_seconds: float) -> None:
        self._place = place
        self._lookup = lookup
        self._retry_seconds = retry_seconds
        self._ids = IdSource()

    def commit(self, command: Command) -> Steps[Result]:
        """Run a command, on the fast path if it has one."""
        match command:
            case Append() if is_plain(command):
                return self._append(command)
            case AcquireLease() | RenewLease() | ReleaseLease():
                return self._fast_with_retries(command)
            case _:
                return self._locked(command)

    def _append(self, command: Append) -> Steps[Result]:
        """Try the fast path once, without the cost of retries; anything but success is left to ``_fast_with_retries``."""
        error: psycopg.Error | None = None
        tree = self._lookup.cached(command.thread_id)
        if tree is not None:
            try:
                stored = yield from append_at_leaf(command, tree, self._lookup.namespace)
            except psycopg.Error as raised:
                error = raised
            else:
                if stored is not None:
                    return stored
        return (yield from self._fast_with_retries(command, error))

    def _fast_with_retries(self, command: FastCommand, first_error: psycopg.Error | None = None) -> Steps[Result]:
        """Repeat the fast path until it is answered. ``first_error`` is that of an attempt already made."""
        may_be_stored = False

        def attempt() -> Steps[Result]:
            nonlocal may_be_stored, first_error
            try:
                if first_error is not None:
                    earlier, first_error = first_error, None
                    raise earlier
                return (yield from self._fast(command))
            except psycopg.Error as error:
                may_be_stored = may_be_stored or may_have_happened(error)
                raise

        def give_up(error: psycopg.Error) -> Exception | None:
            return self._unknown(command, error) if may_be_stored and isinstance(command, Append) else None

        return with_retries(attempt, place=self._place, retry_seconds=self._retry_seconds, give_up=give_up)

    def _fast(self, command: FastCommand) -> Steps[Result]:
        tree = yield from self._lookup.find(command.thread_id)
        done: Result
        match command:
            case Append():
                done = yield from append_at_leaf(command, tree, self._lookup.namespace)
            case AcquireLease():
                done = yield from acquire(command, tree)
            case RenewLease():
                done = yield from renew(command, tree)
            case ReleaseLease():
                if (yield from release(command, tree)):
                    return None
                done = None
        if done is not None:
            return done
        return (yield from self._locked(command))

    def _locked(self, command: Command) -> Steps[Result]:
        transaction = _LockedTransaction(self._lookup, self._ids, _with_given_ids(command))

        def attempt() -> Steps[Result]:
            return transaction.run(self._unknown(command, "another writer changed the thread since"))

        def give_up(error: psycopg.Error) -> Exception | None:
            return self._unknown(command, error) if transaction.unsettled is not None else None

        return with_retries(attempt, place=self._place, retry_seconds=self._retry_seconds, give_up=give_up)

    def _unknown(self, command: Command, problem: object) -> CommitUnknownError:
        ids = [draft.id for draft in command.drafts] if isinstance(command, Append) else []
        return CommitUnknownError(self._place, str(problem).strip(), ids)


def _with_given_ids(command: C) -> C:
    """The command with ids that count as given: an attempt whose answer was lost may have stored the new ones."""
    if not isinstance(command, Append):
        return command
    return replace(command, drafts=tuple(replace(draft, has_new_id=False) for draft in command.drafts))


class _Unsettled(Record, frozen=True, kw_only=True):
    """A commit whose answer was lost: its decision, and the stamp of the thread's row before it."""

    decision: Decision
    stamp_before: int | None


class _LockedTransaction:
    """One command, run in a transaction until its outcome is known."""

    def __init__(self, lookup: TreeLookup, ids: IdSource, command: Command) -> None:
        self._lookup = lookup
        self._ids = ids
        self._command = command
        self._stamp = secrets.randbits(62)
        self.unsettled: _Unsettled | None = None

    def run(self, unknown: CommitUnknownError) -> Steps[Result]:
        """Run the command once; raise ``unknown`` if an earlier run may have taken effect and cannot be settled."""
        yield BEGIN
        try:
            view = yield from self._lock_and_read()
            if self.unsettled is not None and self._took_effect(view, self.unsettled, unknown):
                yield from _confirm()
                return self.unsettled.decision.result
            self.unsettled = None
            decision = yield from decide_in_steps(self._command, view)
        except SessionTreeError:
            yield ROLLBACK
            raise
        if not decision.facts:
            yield from _confirm()
            return decision.result
        yield from statements_of(decision, view, self._lookup.namespace, self._stamp)
        yield from self._commit(decision, view)
        return decision.result

    def _commit(self, decision: Decision, view: SnapshotView) -> Steps[None]:
        head = view.head(_subject(self._command))
        try:
            yield COMMIT
        except psycopg.Error as error:
            if may_have_happened(error):
                self.unsettled = _Unsettled(decision=decision, stamp_before=head.stamp if head else None)
            raise
        self._remember(decision, view)

    def _remember(self, decision: Decision, view: SnapshotView) -> None:
        for fact in decision.facts:
            match fact:
                case PutThread(state=state):
                    self._lookup.remember(state.meta.id, view.uuid_of(state.tree))
                case DropThread(state=state):
                    self._lookup.forget(state.meta.id)

    def _took_effect(self, view: SnapshotView, before: _Unsettled, unknown: CommitUnknownError) -> bool:
        if isinstance(self._command, SetDocument):
            return _is_put(view.document(self._command.scope, self._command.key), before.decision, unknown)
        head = view.head(_subject(self._command))
        if isinstance(self._command, DeleteThread):
            return head is None
        if head is not None and head.stamp == self._stamp:
            return True
        if (head.stamp if head else None) == before.stamp_before:
            return False
        raise unknown

    def _lock_and_read(self) -> Steps[SnapshotView]:
        """Lock and read what the command is about. All commands lock names first, then threads, so none deadlock."""
        view = SnapshotView(self._ids, self._lookup.namespace)
        match self._command:
            case CreateThread(thread=thread, drafts=drafts, history=history):
                reservation, taken = yield from self._lock_name(thread.id)
                view.set_reservation(reservation)
                view.set_thread(thread.id, taken)
                names = [draft.id for draft in drafts] + [step.draft.id for step in history]
                if names and (history or reservation.named_tree is not None):
                    yield from view.prefetch_nodes(reservation.named_tree or _NO_TREE, names)
            case Append(create=Thread() as thread):
                yield from self._lock_or_reserve(view, thread.id)
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
                if source is not None and (ids := _needed_entries(self._command)):
                    yield from view.prefetch_nodes(source.tree, ids)
            case DeleteThread(thread_id=thread_id) | EraseContents(thread_id=thread_id):
                yield from self._lock_tree(thread_id)
                head = yield from self._read_thread(thread_id, _FOR_CHANGE)
                view.set_thread(thread_id, head)
                if head is not None and (ids := _needed_entries(self._command)):
                    yield from view.prefetch_nodes(head.tree, ids)
            case PutBlobs() | PurgeDocuments():
                # No thread's row shows whether this was done; doing it again is harmless.
                view.set_thread(_subject(self._command), None)
            case SetDocument() | DeleteDocument() as command:
                view.set_thread(_subject(command), None)
                view.set_document((yield from lock_document(self._lookup.namespace, command)))
            case command:
                head = yield from self._read_thread(command.thread_id, _FOR_CHANGE)
                view.set_thread(command.thread_id, head)
                if head is not None and (ids := _needed_entries(command)):
                    yield from view.prefetch_nodes(head.tree, ids)
        return view

    def _lock_or_reserve(self, view: SnapshotView, thread_id: str) -> Steps[None]:
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
        if tree is not None and (ids := _needed_entries(self._command)):
            yield from view.prefetch_nodes(tree, ids)

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
        names = [to_bytes(thread_id), to_bytes(head.state.meta.tree)]
        yield Statement(_LOCK_NAMES, {"ids": names, "namespace": self._lookup.namespace})
        yield Statement(_LOCK_TREE, {"tree": head.tree})

    def _read_thread(self, thread_id: str, lock: str) -> Steps[ThreadHead | None]:
        for find in (self._lookup.find, self._lookup.refresh):
            try:
                tree = yield from find(thread_id)
            except ThreadNotFoundError:
                return None
            rows = yield Statement(_STATE + lock, {"tree": tree, "id": to_bytes(thread_id)})
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


def _confirm() -> Steps[None]:
    """Commit with a transaction number, which waits for the synchronous standby: what was read may not be there yet."""
    yield _TAKE_NUMBER
    yield COMMIT


def _subject(command: Command) -> str:
    """The thread whose row shows whether a command took effect."""
    match command:
        case CreateThread(thread=thread) | Fork(thread=thread) | ImportThread(thread=thread):
            return thread.id
        case PutBlobs() | SetDocument() | DeleteDocument() | PurgeDocuments():
            return ""
        case _:
            return command.thread_id


def _needed_entries(command: Command) -> list[str]:
    """Entries that the rules need in any case."""
    match command:
        case Append(drafts=drafts, parent=parent):
            parents = [parent, *(draft.parent for draft in drafts)]
            return [draft.id for draft in drafts] + [name for name in parents if isinstance(name, str)]
        case MoveLeaf(to_entry=str() as entry_id):
            return [entry_id]
        case EraseContents(entries=entries):
            return list(entries)
        case Fork(entry_id=entry_id, history=history):
            named = [entry_id, *(step.parent for step in history), *(step.draft.id for step in history)]
            return list({name for name in named if name is not None})
        case ImportHistory(steps=steps):
            return [step.draft.id for step in steps if isinstance(step, PositionedDraft)]
        case _:
            return []
