"""Records on their way into the store: each batch is one commit, and the first one makes the thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from msgspec.structs import replace

from sessiontree.blobs import Blob
from sessiontree.commands import Append, CreateThread, Draft
from sessiontree.errors import (
    ConflictError,
    DuplicateEntryError,
    EntryNotFoundError,
    MissingBlobsError,
    ThreadExistsError,
    ThreadNotFoundError,
)
from sessiontree.formats.contents import put_blobs
from sessiontree.formats.report import NoteKind, Tally
from sessiontree.journal import Journal
from sessiontree.model import Checkpoint, Entry, Payload, Thread

__all__ = ["OURS", "Batches", "Start", "is_same"]

OURS = "native"
"""The format in which a thread keeps the origin that it has."""

_MOST_DRAFTS = 2000
_MOST_BYTES = 8 * 1024 * 1024


class Start(NamedTuple):
    """The thread of a session as it was found, or as it shall be made."""

    thread: Thread
    state: Literal["found", "made", "to be made"]


class Batches:
    """What is put in a row goes in together. Records that the journal has are counted, and never written again."""

    def __init__(self, journal: Journal, start: Start, place: str, tally: Tally, format_name: str) -> None:
        self.before = start.thread
        self.is_new = start.state != "found"
        self.added = 0
        self.size = 0
        self.blobs: list[Blob] = []
        self._journal = journal
        self._to_be_made = start.state == "to be made"
        self._place = place
        self._tally = tally
        self._format_name = format_name
        self._drafts: list[Draft] = []
        self._parent: str | None = None
        self._names: dict[str | None, str] = {}
        tally.created += start.state == "made"

    def refuse_another(self) -> None:
        """A thread of this name that came from elsewhere is somebody else's."""
        if self._format_name not in (OURS, self.before.origin.get("format")):
            raise ThreadExistsError(self.before.id)

    def is_full(self) -> bool:
        return len(self._drafts) >= _MOST_DRAFTS or self.size >= _MOST_BYTES

    def put(self, draft: Draft, blobs: Sequence[Blob], parent: str | None) -> None:
        """One more under the last one; the first of a batch goes under ``parent``."""
        if not self._drafts:
            self._parent = parent
        self._drafts.append(draft)
        self.blobs += blobs

    def flush(self) -> None:
        drafts, self._drafts, self.size = self._drafts, [], 0
        blobs, self.blobs = self.blobs, []
        if not drafts:
            return
        for is_last in (False, True):
            put_blobs(self._journal, blobs)
            try:
                self._append_or_skip(drafts, self.name_of(self._parent))
            except MissingBlobsError:
                # Somebody's delete collected them before the entries were there.
                if is_last:
                    raise
            else:
                return

    def finish(self) -> None:
        self.flush()
        if self._to_be_made:
            self._make_thread(())

    def stored(self, entry_id: str) -> Entry | None:
        try:
            return self._journal.entry(self.before.id, entry_id)
        except (EntryNotFoundError, ThreadNotFoundError):
            return None

    def name_of(self, entry_id: str | None) -> str | None:
        """The id that a record got where its own was taken."""
        return self._names.get(entry_id, entry_id)

    def note(self, kind: NoteKind, problem: str) -> None:
        self._tally.note(kind, self._place, problem, thread_id=self.before.id)

    def _append_or_skip(self, drafts: Sequence[Draft], parent: str | None) -> None:
        try:
            self._append(drafts, parent)
        except (MissingBlobsError, ThreadExistsError):
            raise
        except ConflictError:
            self._append_what_is_new(drafts, parent)

    def _append(self, drafts: Sequence[Draft], parent: str | None) -> None:
        if self._to_be_made and self._make_thread(drafts):
            self._tally.added += len(drafts)
            return
        is_known = not self.is_new and self.stored(drafts[-1].id) is not None
        self._journal.store.commit(Append(thread_id=self.before.id, drafts=tuple(drafts), parent=parent))
        if is_known:
            self._tally.known += len(drafts)
        else:
            self._tally.added += len(drafts)
            self.added += len(drafts)

    def _make_thread(self, drafts: Sequence[Draft]) -> bool:
        """Make the thread together with its first records, in one commit; whether those are in."""
        try:
            self._journal.store.commit(CreateThread(thread=self.before, drafts=tuple(drafts)))
        except DuplicateEntryError:
            # Forks kept entries of a thread of this name that is gone; an append knows what to do with them.
            self._make_thread(())
            return False
        except ThreadExistsError:
            # Another import of the same source was faster.
            self.before, self.is_new, self._to_be_made = self._journal.thread(self.before.id), False, False
            self.refuse_another()
            return False
        self._to_be_made = False
        self._tally.created += 1
        return bool(drafts)

    def _append_what_is_new(self, drafts: Sequence[Draft], parent: str | None) -> None:
        run: list[Draft] = []
        for draft in drafts:
            stored = self.stored(draft.id)
            if stored is None:
                run.append(draft)
                continue
            self._append_run(run, parent)
            run, parent = [], draft.id
            self._tally.known += 1
            if not is_same(stored.payload, draft.payload):
                problem = f"record {draft.id!r} has other content than the entry in the journal, which was kept"
                self.note("conflict", problem)
        self._append_run(run, parent)

    def _append_run(self, run: Sequence[Draft], parent: str | None) -> None:
        try:
            if run:
                self._append(run, parent)
        except DuplicateEntryError:
            for draft in run:
                parent = self._append_under_a_free_id(draft, parent)

    def _append_under_a_free_id(self, draft: Draft, parent: str | None) -> str:
        """The tree has such an id where this thread does not see it, as after the delete of a thread with forks."""
        name, number = draft.id, 1
        while True:
            try:
                self._append([replace(draft, id=name)], parent)
            except DuplicateEntryError:
                number += 1
                name = f"{draft.id}~{number}"
            else:
                break
        if name != draft.id:
            self._names[draft.id] = name
            self.note("repair", f"another thread of the tree has a record {draft.id!r}; here it is {name!r}")
        return name


def is_same(stored: Payload, new: Payload) -> bool:
    """A checkpoint that came without its files is the same one."""
    if isinstance(stored, Checkpoint) and isinstance(new, Checkpoint):
        stored, new = (replace(one, manifest="", origin={}) for one in (stored, new))
    return stored == new
