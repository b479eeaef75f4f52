"""How a command is committed. There are two ways:

- A *single call* (``single_call.py``, ``leases.py``) for commands about one thread: one round trip as a rule.
- A *locked transaction* (``locked.py``) for commands about several threads, names or blobs, and for a thread that others
  change all the time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeGuard, get_args

import psycopg

from sessiontree.errors import CommitUnknownError, ThreadNotFoundError
from sessiontree.model.ids import IdSource
from sessiontree.stores.commands import (
    AcquireLease,
    Append,
    ClearLease,
    Command,
    InstallCompaction,
    ReleaseLease,
    RenewLease,
    Result,
    appended_ids,
)
from sessiontree.stores.postgres.errors import has_lost_server, may_have_happened, with_retries
from sessiontree.stores.postgres.known import KnownThreads
from sessiontree.stores.postgres.leases import LeaseCommand, Leased, by_server_clock, change_lease
from sessiontree.stores.postgres.locked import LockedTransaction
from sessiontree.stores.postgres.single_call import Done, SingleCall, ThreadCommand, is_undecided_append
from sessiontree.stores.postgres.steps import Steps, TreeLookup
from sessiontree.stores.postgres.thread_writes import Refused, needs_blobs
from sessiontree.stores.postgres.view import SnapshotView, decide_in_steps

__all__ = ["Commits"]


class Commits:
    """The writes of the store, for one namespace."""

    def __init__(self, place: str, lookup: TreeLookup, known: KnownThreads, retry_seconds: float) -> None:
        self._place = place
        self._lookup = lookup
        self._known = known
        self._retry_seconds = retry_seconds
        self._ids = IdSource()

    def commit(self, command: Command) -> Steps[Result]:
        """Run a command, by a single call if that is possible."""
        if isinstance(command, AcquireLease | RenewLease | ReleaseLease):
            return self._change_lease(command)
        if isinstance(command, ClearLease):
            return self._clear_lease(command)
        return self._write_thread(command) if _is_about_one_thread(command) else self._locked(command)

    def _write_thread(self, command: ThreadCommand) -> Steps[Result]:
        call = SingleCall(command, self._lookup, self._known, self._ids)
        refused: Refused | None = None
        first_error: psycopg.Error | None = None
        if is_undecided_append(command, self._known.get(command.thread_id)) and self._lookup.cached(command.thread_id):
            # The most frequent command is tried once without the cost of retries.
            try:
                outcome = yield from call.append()
            except psycopg.Error as error:
                first_error = error
            else:
                if isinstance(outcome, Done):
                    return outcome.result
                refused = outcome

        def attempt() -> Steps[Result]:
            nonlocal refused, first_error
            earlier, first_error = first_error, None
            answer, refused = refused, None
            try:
                if earlier is not None:
                    raise earlier
                done = yield from call.run(self._unknown(command, "another writer changed the thread since"), answer)
            except ThreadNotFoundError:
                if not (isinstance(command, Append) and command.create):
                    raise
                done = None
            except psycopg.Error as error:
                call.expect_stored(error)
                raise
            return done.result if done else (yield from self._locked(call.command))

        def give_up(error: psycopg.Error) -> Exception | None:
            return self._unknown(command, error) if call.may_be_stored else None

        return (yield from self._with_retries(attempt, give_up))

    def _change_lease(self, command: LeaseCommand) -> Steps[Result]:
        is_lost = False

        def attempt() -> Steps[Result]:
            nonlocal is_lost
            try:
                return (yield from self._change_lease_once(command))
            except psycopg.Error as error:
                is_lost = is_lost or may_have_happened(error)
                self._known.forget([command.thread_id])
                raise

        def give_up(error: psycopg.Error) -> Exception | None:
            return self._unknown(command, error) if is_lost else None

        return self._with_retries(attempt, give_up)

    def _change_lease_once(self, command: LeaseCommand) -> Steps[Result]:
        """Repeating a step of a lease is harmless: its owner and turn, or its token, say which lease it is about."""
        tree = yield from self._lookup.find(command.thread_id)
        outcome = yield from change_lease(command, tree, self._lookup.namespace)
        if isinstance(outcome, Leased):
            self._known.leased(command.thread_id, outcome.lease, outcome.version)
            return outcome.lease
        if outcome is not None:
            view = SnapshotView(self._ids, self._lookup.namespace)
            view.set_thread(command.thread_id, outcome)
            command = yield from by_server_clock(command)
            decision = yield from decide_in_steps(command, view)
            if not decision.facts and isinstance(command, ReleaseLease):
                return None
        # The thread has changed meanwhile, or the lease was given to the same owner and turn before.
        return (yield from self._locked(command))

    def _clear_lease(self, command: ClearLease) -> Steps[Result]:
        by_server = yield from with_retries(
            lambda: by_server_clock(command), place=self._place, retry_seconds=self._retry_seconds
        )
        return (yield from self._locked(by_server))

    def _locked(self, command: Command) -> Steps[Result]:
        transaction = LockedTransaction(self._lookup, self._ids, command)

        def attempt() -> Steps[Result]:
            try:
                result = yield from transaction.run(self._unknown(command, "another writer changed the thread since"))
            except psycopg.Error:
                transaction.expect_stored_ids()
                raise
            finally:
                self._known.forget(transaction.subjects)
            if transaction.created is not None:
                self._known.read(transaction.created)
            return result

        def give_up(error: psycopg.Error) -> Exception | None:
            return self._unknown(command, error) if transaction.unsettled is not None else None

        return self._with_retries(attempt, give_up)

    def _with_retries(
        self,
        attempt: Callable[[], Steps[Result]],
        give_up: Callable[[psycopg.Error], Exception | None] | None = None,
    ) -> Steps[Result]:
        def watched() -> Steps[Result]:
            try:
                return (yield from attempt())
            except psycopg.Error as error:
                if has_lost_server(error):
                    self._known.clear()
                raise

        return with_retries(watched, place=self._place, retry_seconds=self._retry_seconds, give_up=give_up)

    def _unknown(self, command: Command, problem: object) -> CommitUnknownError:
        return CommitUnknownError(self._place, str(problem).strip(), appended_ids(command))


def _is_about_one_thread(command: Command) -> TypeGuard[ThreadCommand]:
    match command:
        case Append(drafts=drafts):
            return not needs_blobs(drafts)
        case InstallCompaction(draft=draft):
            return not needs_blobs([draft])
        case _:
            return isinstance(command, get_args(ThreadCommand))
