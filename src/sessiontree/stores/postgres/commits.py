"""Which way a command takes: one statement where that is enough, a transaction otherwise.

The careful way to carry out any command: lock the thread, read what the rules ask for, decide, write, commit.

A commit whose answer was lost is settled by the stamp that it would have left in the thread's row: the same stamp
means it went through, the stamp from before means it did not.
"""

from __future__ import annotations

import secrets
from typing import TypeVar

import psycopg
from msgspec.structs import replace

from sessiontree.errors import CommitUnknownError, SessionTreeError, ThreadNotFoundError
from sessiontree.model._base import Record
from sessiontree.model.ids import IdSource
from sessiontree.stores.commands import (
    AcquireLease,
    Append,
    Command,
    CreateThread,
    DeleteThread,
    Fork,
    ImportHistory,
    ImportThread,
    MoveLeaf,
    PositionedDraft,
    PutBlobs,
    ReleaseLease,
    RenewLease,
    Result,
)
from sessiontree.stores.postgres import fast_path
from sessiontree.stores.postgres.errors import may_have_happened, with_retries
from sessiontree.stores.postgres.fast_path import append_at_leaf, is_plain
from sessiontree.stores.postgres.rows import HEAD_FROM, STATE_COLUMNS, ThreadHead, head_of
from sessiontree.stores.postgres.steps import BEGIN, COMMIT, ROLLBACK, Statement, Steps, TreeLookup, to_bytes
from sessiontree.stores.postgres.view import Birth, SnapshotView, decided
from sessiontree.stores.postgres.writes import statements_of
from sessiontree.stores.rules.state import Decision, DropThread, PutThread

__all__ = ["Commits", "Transactions"]


_STATE = f"SELECT {STATE_COLUMNS} FROM {HEAD_FROM} WHERE h.tree = %(tree)s AND h.id = %(id)s"
_FOR_CHANGE = " FOR NO KEY UPDATE OF h, t"
_AGAINST_DELETE = " FOR KEY SHARE OF h"
_UNLOCKED = ""
_LOCK_NAME = """
INSERT INTO sessiontree.home (id, namespace) VALUES (%(id)s, %(namespace)s)
ON CONFLICT (id, namespace) DO UPDATE SET id = excluded.id
RETURNING tree, named_tree, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"""
_LOCK_HOMES = """
SELECT id FROM sessiontree.home WHERE id = ANY(%(ids)s) AND namespace = %(namespace)s ORDER BY id FOR UPDATE"""
# A transaction with a number has a commit to wait for, though it changes nothing.
_TAKE_NUMBER = Statement("SELECT txid_current()")
_LOCK_FAMILY = "SELECT key FROM sessiontree.head WHERE tree = %(tree)s ORDER BY id FOR UPDATE"


class _Doubt(Record, frozen=True, kw_only=True):
    """A commit whose answer was lost: what had been decided, and the stamp that was in the row before."""

    decision: Decision
    stamp_before: int | None


class Transactions:
    """Carries out commands for one namespace."""

    def __init__(self, place: str, homes: TreeLookup, ids: IdSource, retry_seconds: float) -> None:
        self._place = place
        self._homes = homes
        self._ids = ids
        self._retry_seconds = retry_seconds

    def carry_out(self, command: Command) -> Steps[Result]:
        attempt = _Attempt(self._homes, self._ids, command)

        def give_up(error: psycopg.Error) -> Exception | None:
            return self._unknown(command, error) if attempt.doubt is not None else None

        def once() -> Steps[Result]:
            return attempt.run(self._unknown(command, "another writer came in between"))

        return with_retries(once, place=self._place, retry_seconds=self._retry_seconds, give_up=give_up)

    def _unknown(self, command: Command, problem: object) -> CommitUnknownError:
        ids = [draft.id for draft in command.drafts] if isinstance(command, Append) else []
        return CommitUnknownError(self._place, str(problem).strip(), ids)


class _Attempt:
    """One command, tried until its outcome is known."""

    def __init__(self, homes: TreeLookup, ids: IdSource, command: Command) -> None:
        self._homes = homes
        self._ids = ids
        self._command = command
        self._stamp = secrets.randbits(62)
        self.doubt: _Doubt | None = None

    def run(self, unknown: CommitUnknownError) -> Steps[Result]:
        yield BEGIN
        try:
            view = yield from self._look()
            if self.doubt is not None and self._went_through(view, self.doubt, unknown):
                yield from _confirm()
                return self.doubt.decision.result
            self.doubt = None
            decision = yield from decided(self._command, view)
        except SessionTreeError:
            yield ROLLBACK
            raise
        if not decision.facts:
            yield from _confirm()
            return decision.result
        yield from statements_of(decision, view, self._homes.namespace, self._stamp)
        yield from self._commit(decision, view)
        return decision.result

    def _commit(self, decision: Decision, view: SnapshotView) -> Steps[None]:
        head = view.head(_subject(self._command))
        try:
            yield COMMIT
        except psycopg.Error as error:
            if may_have_happened(error):
                self.doubt = _Doubt(decision=decision, stamp_before=head.stamp if head else None)
            raise
        self._remember(decision, view)

    def _remember(self, decision: Decision, view: SnapshotView) -> None:
        for fact in decision.facts:
            match fact:
                case PutThread(state=state):
                    self._homes.remember(state.meta.id, view.uuid_of(state.tree))
                case DropThread(state=state):
                    self._homes.forget(state.meta.id)

    def _went_through(self, view: SnapshotView, doubt: _Doubt, unknown: CommitUnknownError) -> bool:
        head = view.head(_subject(self._command))
        if isinstance(self._command, DeleteThread):
            return head is None
        if head is not None and head.stamp == self._stamp:
            return True
        if (head.stamp if head else None) == doubt.stamp_before:
            return False
        raise unknown

    def _look(self) -> Steps[SnapshotView]:
        """Lock what the command is about, in one order for everybody: names, then threads."""
        view = SnapshotView(self._ids, self._homes.namespace)
        match self._command:
            case CreateThread(thread=thread, drafts=drafts):
                birth, taken = yield from self._take_name(thread.id)
                view.know_birth(birth)
                view.know_thread(thread.id, taken)
                if drafts and birth.named_tree is not None:
                    yield from view.know_nodes(birth.named_tree, [draft.id for draft in drafts])
            case ImportThread(thread=thread):
                birth, taken = yield from self._take_name(thread.id)
                if thread.tree != thread.id:
                    birth = birth._replace(named_tree=(yield from self._take_name(thread.tree))[0].named_tree)
                view.know_birth(birth)
                view.know_thread(thread.id, taken)
            case Fork(source_id=source_id, thread=thread, entry_id=entry_id):
                birth, taken = yield from self._take_name(thread.id)
                source = yield from self._read(source_id, _AGAINST_DELETE)
                view.know_birth(birth)
                view.know_thread(source_id, source)
                view.know_thread(thread.id, taken)
                if source is not None and entry_id is not None:
                    yield from view.know_nodes(source.tree, [entry_id])
            case DeleteThread(thread_id=thread_id):
                yield from self._lock_family(thread_id)
                view.know_thread(thread_id, (yield from self._read(thread_id, _FOR_CHANGE)))
            case PutBlobs():
                # No thread tells whether blobs were put; putting them again is the same.
                view.know_thread(_subject(self._command), None)
            case command:
                head = yield from self._read(command.thread_id, _FOR_CHANGE)
                view.know_thread(command.thread_id, head)
                if head is not None and (ids := _asked_for(command)):
                    yield from view.know_nodes(head.tree, ids)
        return view

    def _take_name(self, thread_id: str) -> Steps[tuple[Birth, ThreadHead | None]]:
        values = {"id": to_bytes(thread_id), "namespace": self._homes.namespace}
        ((tree, named_tree, now_us),) = yield Statement(_LOCK_NAME, values)
        # Keys grow with the server's clock, so that numbers are not used again when a name is.
        birth = Birth(key=1000 * now_us + secrets.randbelow(1000), named_tree=named_tree)
        if tree is None:
            return birth, None
        self._homes.remember(thread_id, tree)
        return birth, (yield from self._read(thread_id, _UNLOCKED))

    def _lock_family(self, thread_id: str) -> Steps[None]:
        head = yield from self._read(thread_id, _UNLOCKED)
        if head is None:
            return
        names = [to_bytes(thread_id), to_bytes(head.state.meta.tree)]
        yield Statement(_LOCK_HOMES, {"ids": names, "namespace": self._homes.namespace})
        yield Statement(_LOCK_FAMILY, {"tree": head.tree})

    def _read(self, thread_id: str, lock: str) -> Steps[ThreadHead | None]:
        for find in (self._homes.find, self._homes.look_up):
            try:
                tree = yield from find(thread_id)
            except ThreadNotFoundError:
                return None
            rows = yield Statement(_STATE + lock, {"tree": tree, "id": to_bytes(thread_id)})
            if rows:
                return head_of(rows[0])
        return None


def _confirm() -> Steps[None]:
    """What was found done may not have reached the synchronous standby yet: a commit of our own waits until it has."""
    yield _TAKE_NUMBER
    yield COMMIT


def _subject(command: Command) -> str:
    """The thread whose row tells whether a command went through."""
    match command:
        case CreateThread(thread=thread) | Fork(thread=thread) | ImportThread(thread=thread):
            return thread.id
        case PutBlobs():
            return ""
        case _:
            return command.thread_id


def _asked_for(command: Command) -> list[str]:
    """Entries that the rules will certainly ask for."""
    match command:
        case Append(drafts=drafts, parent=parent):
            return [draft.id for draft in drafts] + ([parent] if isinstance(parent, str) else [])
        case MoveLeaf(to_entry=str() as entry_id):
            return [entry_id]
        case ImportHistory(steps=steps):
            return [step.draft.id for step in steps if isinstance(step, PositionedDraft)]
        case _:
            return []


C = TypeVar("C", bound=Command)


class Commits:
    """The writing half of the store."""

    def __init__(self, place: str, homes: TreeLookup, retry_seconds: float) -> None:
        self._place = place
        self._homes = homes
        self._retry_seconds = retry_seconds
        self._transactions = Transactions(place, homes, IdSource(), retry_seconds)

    def commit(self, command: Command) -> Steps[Result]:
        match command:
            case Append() if is_plain(command):
                return self._append(command)
            case AcquireLease() | RenewLease() | ReleaseLease():
                return self._repeatable(command)
            case _:
                return self._transactions.carry_out(_tried_before(command))

    def _append(self, command: Append) -> Steps[Result]:
        """The shortest way first; whatever happens to it, the patient one knows what to do."""
        fault: psycopg.Error | None = None
        tree = self._homes.get(command.thread_id)
        if tree is not None:
            try:
                stored = yield from append_at_leaf(command, tree, self._homes.namespace)
            except psycopg.Error as error:
                fault = error
            else:
                if stored is not None:
                    return stored
        return (yield from self._repeatable(command, fault))

    def _repeatable(
        self, command: Append | AcquireLease | RenewLease | ReleaseLease, fault: psycopg.Error | None = None
    ) -> Steps[Result]:
        """Ids and tokens make these the same however often they run: a lost answer is asked for again.

        ``fault`` is what happened to an attempt that was made already.
        """
        was_sent = False

        def once() -> Steps[Result]:
            nonlocal was_sent, fault
            try:
                if fault is not None:
                    earlier, fault = fault, None
                    raise earlier
                return (yield from self._at_once(command))
            except psycopg.Error as error:
                was_sent = was_sent or may_have_happened(error)
                raise

        def give_up(error: psycopg.Error) -> Exception | None:
            if not was_sent or not isinstance(command, Append):
                return None
            return CommitUnknownError(self._place, str(error).strip(), [draft.id for draft in command.drafts])

        return with_retries(once, place=self._place, retry_seconds=self._retry_seconds, give_up=give_up)

    def _at_once(self, command: Append | AcquireLease | RenewLease | ReleaseLease) -> Steps[Result]:
        tree = yield from self._homes.find(command.thread_id)
        done: Result | bool
        match command:
            case Append():
                done = yield from append_at_leaf(command, tree, self._homes.namespace)
            case AcquireLease():
                done = yield from fast_path.acquire(command, tree)
            case RenewLease():
                done = yield from fast_path.renew(command, tree)
            case ReleaseLease():
                if (yield from fast_path.release(command, tree)):
                    return None
                done = None
        if done is not None:
            return done
        return (yield from self._transactions.carry_out(_tried_before(command)))


def _tried_before(command: C) -> C:
    """An id that was new may have been stored by the attempt whose answer was lost."""
    if not isinstance(command, Append):
        return command
    return replace(command, drafts=tuple(replace(draft, has_new_id=False) for draft in command.drafts))
