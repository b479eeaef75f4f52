"""Records on their way into the store: each batch is one commit, and the first one makes the thread.

Contents that imported checkpoints refer to: into the store before them, and all of them or none.

Metadata of imported threads: what the source changed comes in, what was changed here stays.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from sessiontree.errors import (
    BlobNotFoundError,
    ConflictError,
    DamagedDataError,
    EntryNotFoundError,
    InvalidInputError,
    MissingBlobsError,
    NewerFormatError,
    ThreadExistsError,
    ThreadNotFoundError,
)
from sessiontree.journal import Journal
from sessiontree.model import Checkpoint, Entry, Payload, Thread, ThreadFields
from sessiontree.model.blobs import Blob, data_of
from sessiontree.model.manifest import reachable
from sessiontree.stores.commands import Append, CreateThread, Draft, PutBlobs
from sessiontree.stores.queries import FindMissingBlobs, ReadBlobs
from sessiontree.transfer.formats._records import ImportedSession, NoteKind, Tally

__all__ = ["OURS", "UNFINISHED", "Batches", "Start", "has_files", "is_same", "put_blobs", "settle_fields"]


def put_blobs(journal: Journal, blobs: Iterable[Blob]) -> None:
    """Put what the store does not have."""
    new = {blob.hash: blob for blob in blobs}
    if new:
        missing = journal.store.read(FindMissingBlobs(hashes=tuple(new)))
        if missing:
            journal.store.commit(PutBlobs(blobs=tuple(new[name] for name in sorted(missing))))


def has_files(journal: Journal, manifest: str, coming: Iterable[Blob]) -> bool:
    """Whether a manifest and every file in it are on their way or in the store."""
    near = {blob.hash: blob for blob in coming}

    def read(name: str) -> bytes:
        (blob,) = (near[name],) if name in near else journal.store.read(ReadBlobs(hashes=(name,)))
        return data_of(blob)

    try:
        needed = reachable([manifest], read) - near.keys()
    except (BlobNotFoundError, DamagedDataError, NewerFormatError):
        return False
    return not needed or not journal.store.read(FindMissingBlobs(hashes=tuple(needed)))


OURS = "native"
"""The format in which a thread keeps the origin that it has."""

UNFINISHED = "unfinished"
"""In the origin of a thread while records come in: the tip that it had before. An import that breaks off leaves it."""

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
        self.format_name = format_name
        self._drafts: list[Draft] = []
        self._parent: str | None = None
        tally.created += start.state == "made"

    def begin(self) -> None:
        if not self._to_be_made:
            self._claim()

    def _claim(self) -> None:
        """Count the thread as one of this import; one of its name that came from elsewhere is somebody else's."""
        if self.format_name not in (OURS, self.before.origin.get("format")):
            raise ThreadExistsError(self.before.id)
        self._tally.threads[self.before.id] = None

    @property
    def tip_before(self) -> str | None:
        """The tip before this import, or before an earlier one that broke off and moved it."""
        found: str | None = self.before.origin.get(UNFINISHED, self.before.leaf)
        return found

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
                self._append_or_skip(drafts, self._parent)
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
        except (EntryNotFoundError, ThreadNotFoundError, InvalidInputError):
            return None

    def keep(self, entry_id: str) -> bool:
        """Whether the journal has an earlier form of a record that cannot be stored as it is now; then that stays."""
        if self.is_new or self.stored(entry_id) is None:
            return False
        self.flush()
        self._tally.known += 1
        self._tell_what_was_kept(entry_id)
        return True

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
        if not is_known:
            self._mark_unfinished()
        self._journal.store.commit(Append(thread_id=self.before.id, drafts=tuple(drafts), parent=parent))
        if is_known:
            self._tally.known += len(drafts)
        else:
            self._tally.added += len(drafts)
            self.added += len(drafts)

    def _mark_unfinished(self) -> None:
        """Appending moves the leaf: should this import break off, the next one has to know where it was."""
        origin = self.before.origin
        if not self.is_new and self.format_name != OURS and UNFINISHED not in origin:
            marked = {**origin, UNFINISHED: self.before.leaf}
            self.before = self._journal.update_thread(self.before.id, origin=marked)

    def _make_thread(self, drafts: Sequence[Draft]) -> bool:
        """Make the thread together with its first records, in one commit; whether those are in."""
        try:
            self._journal.store.commit(CreateThread(thread=self.before, drafts=tuple(drafts)))
        except ThreadExistsError:
            # Another import of the same source was faster.
            self.before, self.is_new, self._to_be_made = self._journal.thread(self.before.id), False, False
            self._claim()
            return False
        self._to_be_made = False
        self._tally.created += 1
        self._claim()
        return True

    def _append_what_is_new(self, drafts: Sequence[Draft], parent: str | None) -> None:
        run: list[Draft] = []
        for draft in drafts:
            stored = self.stored(draft.id)
            if stored is None:
                run.append(draft)
                continue
            if run:
                self._append(run, parent)
            run, parent = [], draft.id
            self._tally.known += 1
            if not is_same(stored.payload, draft.payload):
                self._tell_what_was_kept(draft.id)
        if run:
            self._append(run, parent)

    def _tell_what_was_kept(self, entry_id: str) -> None:
        self.note("conflict", f"record {entry_id!r} has other content than the entry in the journal, which was kept")


def is_same(stored: Payload, new: Payload) -> bool:
    """A checkpoint that came without its files is the same one."""
    if isinstance(stored, Checkpoint) and isinstance(new, Checkpoint):
        stored, new = (replace(one, manifest="", origin={}) for one in (stored, new))
    return stored == new


def settle_fields(
    journal: Journal, loaded: Thread, left: str | None, session: ImportedSession, format_name: str
) -> None:
    """Write what the source says now, after all entries are in; ``left`` is the tip that imports gave the thread."""
    thread = _with_news(journal, loaded, session)
    known = {**thread.origin, **session.fields.get("origin", {})}
    fields: ThreadFields = {**session.finish(replace(thread, origin=known))}
    origin = {"format": format_name, **fields.get("origin", known), "leaf": left, "given": _hashes(session.fields)}
    fields["origin"] = {name: value for name, value in origin.items() if name != UNFINISHED}
    changed: dict[str, Any] = {name: value for name, value in fields.items() if getattr(thread, name) != value}
    if changed:
        journal.update_thread(thread.id, **changed)


def _with_news(journal: Journal, thread: Thread, session: ImportedSession) -> Thread:
    """The thread with the fields that the source changed since the last import and nobody changed here."""
    before: dict[str, str] = thread.origin.get("given", {})
    values: Any = session.fields
    ours = _hashes({name: getattr(thread, name) for name in before})
    news = {name: values[name] for name, old in before.items() if name in values and ours[name] == old}
    changed = {name: value for name, value in news.items() if getattr(thread, name) != value}
    return journal.update_thread(thread.id, **changed) if changed else thread


def _hashes(fields: Mapping[str, Any]) -> dict[str, str]:
    """Each field in short, to see later whether it is still the same."""
    bodies = {name: msgspec.json.encode(value, order="sorted") for name, value in fields.items() if name != "origin"}
    return {name: f"{zlib.crc32(body):08x}" for name, body in bodies.items()}
