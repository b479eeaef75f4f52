"""A command about one thread, written by a single call.

The rules decide it from what this process knows of the thread. The call writes only if the thread still is at that
version; otherwise it returns the thread as it is, and the rules decide again. So a refusal and an answer without a write
are always decided from what the server just returned.
"""

from __future__ import annotations

import secrets
from typing import NamedTuple

import psycopg

from sessiontree.errors import CommitUnknownError, SessionTreeError
from sessiontree.model.ids import IdSource
from sessiontree.stores.commands import (
    Append,
    ClaimCompaction,
    InstallCompaction,
    MoveLeaf,
    Redo,
    ReleaseClaim,
    Result,
    Undo,
    UpdateThread,
)
from sessiontree.stores.postgres.errors import may_have_happened
from sessiontree.stores.postgres.known import KnownThread, KnownThreads
from sessiontree.stores.postgres.locked import needed_entries, with_given_ids
from sessiontree.stores.postgres.steps import Steps, TreeLookup
from sessiontree.stores.postgres.thread_writes import (
    Place,
    Refused,
    Written,
    append_at_leaf,
    entries_below,
    is_plain,
    may_be_title,
    read_now,
    write_decided,
)
from sessiontree.stores.postgres.view import SnapshotView, decide_in_steps
from sessiontree.stores.rules.append import needs_title
from sessiontree.stores.rules.state import Decision

__all__ = ["Done", "SingleCall", "ThreadCommand", "is_undecided_append"]

ThreadCommand = Append | UpdateThread | MoveLeaf | Undo | Redo | ClaimCompaction | ReleaseClaim | InstallCompaction
"""The commands that change one thread and nothing else."""

_MAX_GUESSES = 4


class Done(NamedTuple):
    """A command that took effect, or had nothing to do."""

    result: Result


class _Unsettled(NamedTuple):
    """A call whose answer was lost: the result if it took effect, and the version of the thread before."""

    result: Result
    version: int


class SingleCall:
    """One command, repeated until its outcome is known."""

    def __init__(self, command: ThreadCommand, lookup: TreeLookup, known: KnownThreads, ids: IdSource) -> None:
        self.command = command
        self._lookup = lookup
        self._known = known
        self._ids = ids
        self._stamp = secrets.randbits(62)
        self._unsettled: _Unsettled | None = None
        self.may_be_stored = False

    def append(self) -> Steps[Done | Refused]:
        """Append under the leaf, which needs nothing of the thread to be known."""
        command = self.command
        assert isinstance(command, Append), "only appends do not depend on the thread"
        outcome = yield from append_at_leaf(command, (yield from self._place()))
        if isinstance(outcome, Refused):
            return outcome
        self._known.appended(command.thread_id, command.drafts, outcome.version)
        return Done(entries_below(command, outcome.previous_leaf))

    def run(self, unknown: CommitUnknownError, refused: Refused | None = None) -> Steps[Done | None]:
        """Run the command; None if other writers were faster each time, or the thread is missing.

        ``refused`` is the answer to a call that was already made; ``unknown`` is raised if an earlier call may have taken
        effect and this cannot be settled.
        """
        thread_id = self.command.thread_id
        outcome: Done | Refused | None = refused
        if self._unsettled is not None:
            outcome = yield from self._settle(self._unsettled, unknown)
        for _ in range(_MAX_GUESSES):
            match outcome:
                case Done():
                    return outcome
                case Refused(head=None):
                    self._known.forget([thread_id])
                    yield from self._lookup.refresh(thread_id)
                    outcome = yield from self._guess(None)
                case Refused(head=head) if head is not None:
                    outcome = yield from self._guess(self._known.read(head), outcome)
                case _:
                    outcome = yield from self._guess(self._known.get(thread_id))
        return outcome if isinstance(outcome, Done) else None

    def expect_stored(self, error: psycopg.Error) -> None:
        """Look for new ids in the next run: this one may have stored them, or found one of them taken."""
        self.may_be_stored = self.may_be_stored or may_have_happened(error)
        self.command = with_given_ids(self.command)
        self._known.forget([self.command.thread_id])

    def _guess(self, known: KnownThread | None, refused: Refused | None = None) -> Steps[Done | Refused]:
        """Decide from what is known and write it. ``refused`` is what the server just returned, if it did."""
        command = self.command
        if refused is None and is_undecided_append(command, known):
            return (yield from self.append())
        if known is None:
            return (yield from self._read())
        view = SnapshotView(self._ids, self._lookup.namespace)
        view.set_known(known)
        if refused is None:
            view.add_nodes(_expected_new(command), [])
        else:
            view.add_nodes(refused.given, refused.entries)
        try:
            decision = yield from decide_in_steps(command, view)
        except SessionTreeError:
            if refused is not None:
                raise
            return (yield from self._read())
        if decision.facts:
            return (yield from self._write(known, decision))
        return Done(decision.result) if refused is not None else (yield from self._read())

    def _write(self, known: KnownThread, decision: Decision) -> Steps[Done | Refused]:
        place, new = (yield from self._place()), _expected_new(self.command)
        try:
            outcome = yield from write_decided(known, decision.facts, place, given=new, stamp=self._stamp)
        except psycopg.Error as error:
            if may_have_happened(error):
                self._unsettled = _Unsettled(decision.result, known.head.version)
            raise
        if isinstance(outcome, Written):
            self._known.decided(known, decision.facts, outcome.version, self._stamp)
            return Done(decision.result)
        return outcome

    def _read(self) -> Steps[Refused]:
        # An append that is stored already is answered from this read, so it must be as durable as the append.
        return (
            yield from read_now(
                (yield from self._place()),
                needed_entries(self.command),
                is_locked=bool(_expected_new(self.command)),
            )
        )

    def _settle(self, before: _Unsettled, unknown: CommitUnknownError) -> Steps[Done | Refused]:
        """Whether an earlier call took effect: it left its stamp. The ids of an append show it in any case."""
        self._unsettled = None
        found = yield from read_now((yield from self._place()), needed_entries(self.command), is_locked=True)
        head = found.head
        if head is not None and head.stamp == self._stamp:
            return Done(before.result)
        if isinstance(self.command, Append) or (head is not None and head.version == before.version):
            return found
        raise unknown

    def _place(self) -> Steps[Place]:
        thread_id = self.command.thread_id
        tree = yield from self._lookup.find(thread_id)
        return Place(tree, self._lookup.namespace, thread_id, self._lookup.channel)


def is_undecided_append(command: ThreadCommand, known: KnownThread | None) -> bool:
    """Whether the server can append without a decision: the entries come under the leaf and make no title."""
    if not isinstance(command, Append) or not is_plain(command):
        return False
    return known is None or not (may_be_title(command) and needs_title(known.head.state.meta))


def _expected_new(command: ThreadCommand) -> list[str]:
    """Entries that a command appends and that an earlier attempt may have stored; the call looks for them."""
    match command:
        case Append(drafts=drafts):
            return [draft.id for draft in drafts if not draft.has_new_id]
        case InstallCompaction(draft=draft):
            return [draft.id]
        case _:
            return []
