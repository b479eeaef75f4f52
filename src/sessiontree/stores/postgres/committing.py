"""Which way a command takes: one statement where that is enough, a transaction otherwise."""

from __future__ import annotations

from typing import TypeVar

import psycopg
from msgspec.structs import replace

from sessiontree.commands import AcquireLease, Append, Command, ReleaseLease, RenewLease, Result
from sessiontree.errors import CommitUnknownError
from sessiontree.ids import IdSource
from sessiontree.stores.postgres import leasing
from sessiontree.stores.postgres.appending import append_at_leaf, is_plain
from sessiontree.stores.postgres.faults import may_have_happened
from sessiontree.stores.postgres.homes import Homes
from sessiontree.stores.postgres.retrying import persistently
from sessiontree.stores.postgres.steps import Steps
from sessiontree.stores.postgres.transaction import Transactions

__all__ = ["Commits"]

C = TypeVar("C", bound=Command)


class Commits:
    """The writing half of the store."""

    def __init__(self, place: str, homes: Homes, retry_seconds: float) -> None:
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

        return persistently(once, place=self._place, retry_seconds=self._retry_seconds, give_up=give_up)

    def _at_once(self, command: Append | AcquireLease | RenewLease | ReleaseLease) -> Steps[Result]:
        tree = yield from self._homes.find(command.thread_id)
        done: Result | bool
        match command:
            case Append():
                done = yield from append_at_leaf(command, tree, self._homes.namespace)
            case AcquireLease():
                done = yield from leasing.acquire(command, tree)
            case RenewLease():
                done = yield from leasing.renew(command, tree)
            case ReleaseLease():
                if (yield from leasing.release(command, tree)):
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
