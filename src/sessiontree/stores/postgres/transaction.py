"""The careful way to carry out any command: lock the thread, read what the rules ask for, decide, write, commit.

A commit whose answer was lost is settled by the stamp that it would have left in the thread's row: the same stamp
means it went through, the stamp from before means it did not.
"""

from __future__ import annotations

import secrets

import psycopg

from sessiontree.commands import (
    Append,
    Command,
    CreateThread,
    DeleteThread,
    Fork,
    ImportHistory,
    ImportThread,
    MoveLeaf,
    Placed,
    PutBlobs,
    Result,
)
from sessiontree.errors import CommitUnknownError, SessionTreeError, ThreadNotFoundError
from sessiontree.ids import IdSource
from sessiontree.model.record import Record
from sessiontree.rules.state import Decision, DropThread, PutThread
from sessiontree.stores.postgres.facts import statements_of
from sessiontree.stores.postgres.faults import may_have_happened
from sessiontree.stores.postgres.homes import Homes
from sessiontree.stores.postgres.retrying import persistently
from sessiontree.stores.postgres.rows import HEAD_FROM, STATE_COLUMNS, Head, head_of
from sessiontree.stores.postgres.steps import BEGIN, COMMIT, ROLLBACK, Statement, Steps, to_bytes
from sessiontree.stores.postgres.view import Birth, SnapshotView, decided

__all__ = ["Transactions"]

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

    def __init__(self, place: str, homes: Homes, ids: IdSource, retry_seconds: float) -> None:
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

        return persistently(once, place=self._place, retry_seconds=self._retry_seconds, give_up=give_up)

    def _unknown(self, command: Command, problem: object) -> CommitUnknownError:
        ids = [draft.id for draft in command.drafts] if isinstance(command, Append) else []
        return CommitUnknownError(self._place, str(problem).strip(), ids)


class _Attempt:
    """One command, tried until its outcome is known."""

    def __init__(self, homes: Homes, ids: IdSource, command: Command) -> None:
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

    def _take_name(self, thread_id: str) -> Steps[tuple[Birth, Head | None]]:
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

    def _read(self, thread_id: str, lock: str) -> Steps[Head | None]:
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
            return [step.draft.id for step in steps if isinstance(step, Placed)]
        case _:
            return []
