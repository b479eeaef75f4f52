"""Write the records of a session in batches, each in one commit; the first batch creates the thread.

Also what belongs to it: the files of imported checkpoints go in before the entries that refer to them, and the metadata
of a thread follows its source where it was not changed in the journal.
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
from sessiontree.journal import Draft, Journal
from sessiontree.model import (
    Blob,
    Checkpoint,
    Compaction,
    Entry,
    Event,
    Payload,
    SystemMessage,
    Thread,
    ThreadFields,
    UnknownPayload,
    data_of,
    reachable,
)
from sessiontree.transfer.formats._records import ExpectedArtifact, ImportedSession, NoteKind, Tally
from sessiontree.transfer.formats._resume import UNFINISHED, LooksBackError

__all__ = ["OURS", "Batches", "Start", "has_files", "is_same", "update_fields"]


OURS = "native"
"""The format whose threads keep the origin that they have."""

_MOST_DRAFTS = 2000
_MOST_BYTES = 8 * 1024 * 1024


def has_files(journal: Journal, manifest: str, coming: Iterable[Blob]) -> bool:
    """Whether a manifest and every file in it are in the store or among the blobs that are about to be stored."""
    near = {blob.hash: blob for blob in coming}

    def read(name: str) -> bytes:
        (blob,) = (near[name],) if name in near else journal.read_blobs((name,))
        return data_of(blob)

    try:
        needed = reachable([manifest], read) - near.keys()
    except (BlobNotFoundError, DamagedDataError, NewerFormatError):
        return False
    return not journal.missing_blobs(needed)


class Start(NamedTuple):
    """The thread of a session, as it was found or as it will be created with ``fields``."""

    thread: Thread
    state: Literal["found", "created", "missing"]
    fields: ThreadFields = {}


class Batches:
    """Collects drafts that follow one another and writes them together. Known records are counted, not written."""

    def __init__(
        self, journal: Journal, start: Start, place: str, tally: Tally, format_name: str, *, goes_on: bool = False
    ) -> None:
        self.before = start.thread
        self.is_new = start.state != "found"
        self.added = 0
        self.size = 0
        self.blobs: list[Blob] = []
        self._journal = journal
        self._fields = start.fields
        self._is_missing = start.state == "missing"
        self._goes_on = goes_on
        self._place = place
        self._tally = tally
        self.format_name = format_name
        self._drafts: list[Draft] = []
        self._parent: str | None = None
        tally.created += start.state == "created"

    def begin(self) -> None:
        if not self._is_missing:
            self._claim()

    def _claim(self) -> None:
        """Count the thread as one of this import; ThreadExistsError if a thread of another origin has its id."""
        if self.format_name not in (OURS, self.before.origin.get("format")):
            raise ThreadExistsError(self.before.id)
        self._tally.threads[self.before.id] = None

    @property
    def leaf_before(self) -> str | None:
        """The leaf before this import, or before an earlier one that was interrupted."""
        found: str | None = self.before.origin.get(UNFINISHED, self.before.leaf)
        return found

    def is_full(self) -> bool:
        return len(self._drafts) >= _MOST_DRAFTS or self.size >= _MOST_BYTES

    def put(self, draft: Draft, blobs: Sequence[Blob], parent: str | None) -> None:
        """Add a draft under the one before it; the first of a batch goes under ``parent``."""
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
            self._journal.put_blobs(blobs)
            try:
                self._append_or_skip(drafts, self._parent)
            except MissingBlobsError:
                # A concurrent delete removed the blobs before the entries referred to them.
                if is_last:
                    raise
            else:
                return

    def finish(self) -> None:
        self.flush()
        if self._is_missing:
            self._create_thread(())

    def stored(self, entry_id: str) -> Entry | None:
        try:
            return self._journal.entry(self.before.id, entry_id)
        except (EntryNotFoundError, ThreadNotFoundError, InvalidInputError):
            return None

    def check_place(self, entry_id: str, parent: str | None) -> None:
        """Raise LooksBackError if a session that goes on has a record that is an entry elsewhere: an id used twice."""
        stored = self.stored(entry_id) if self._goes_on else None
        if stored is not None and stored.parent != parent:
            raise LooksBackError(entry_id)

    def keep(self, entry_id: str) -> bool:
        """Whether the journal has an earlier form of a record that is invalid now; that form is kept."""
        if self.is_new or self.stored(entry_id) is None:
            return False
        self.flush()
        self._tally.known += 1
        self._note_kept(entry_id)
        return True

    def note(self, kind: NoteKind, problem: str) -> None:
        self._tally.note(kind, self._place, problem, thread_id=self.before.id)

    def expect_artifacts(self, entry_id: str, hashes: Iterable[str]) -> None:
        """Remember which artifacts an entry needs; they may stand further back, in another thread of the source."""
        for name in hashes:
            self._tally.expected.setdefault(name, ExpectedArtifact(self._place, self.before.id, entry_id))

    def _append_or_skip(self, drafts: Sequence[Draft], parent: str | None) -> None:
        try:
            self._append(drafts, parent)
        except (MissingBlobsError, ThreadExistsError):
            raise
        except ConflictError:
            self._append_new_ones(drafts, parent)

    def _append(self, drafts: Sequence[Draft], parent: str | None) -> None:
        if self._is_missing and self._create_thread(drafts):
            self._tally.added += len(drafts)
            return
        is_known = not self.is_new and self.stored(drafts[-1].id) is not None
        if not is_known:
            self._mark_unfinished()
        self._journal.append_many(self.before.id, drafts, parent=parent)
        if is_known:
            self._tally.known += len(drafts)
        else:
            self._tally.added += len(drafts)
            self.added += len(drafts)

    def _mark_unfinished(self) -> None:
        """Remember where the leaf was: an append moves it, and an interrupted import must not lose it."""
        origin = self.before.origin
        if not self.is_new and self.format_name != OURS and UNFINISHED not in origin:
            marked = {**origin, UNFINISHED: self.before.leaf}
            self.before = self._journal.update_thread(self.before.id, origin=marked)

    def _create_thread(self, drafts: Sequence[Draft]) -> bool:
        """Create the thread with its first records in one commit; False if it exists and nothing was written."""
        thread = self.before
        try:
            self._journal.create_thread(thread.id, created_ns=thread.created_ns, contents=drafts, **self._fields)
        except ThreadExistsError:
            # Another import of the same source was faster.
            self.before, self.is_new, self._is_missing = self._journal.thread(thread.id), False, False
            self._claim()
            return False
        self._is_missing = False
        self._tally.created += 1
        self._claim()
        return True

    def _append_new_ones(self, drafts: Sequence[Draft], parent: str | None) -> None:
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
            if not (is_same(stored.payload, draft.payload) or _is_same_record(stored.payload, draft.payload)):
                self._note_kept(draft.id)
        if run:
            self._append(run, parent)

    def _note_kept(self, entry_id: str) -> None:
        if self._goes_on:
            # Perhaps an id that the part which was not read again has, too.
            raise LooksBackError(entry_id)
        problem = f"record {entry_id!r} differs from the entry in the journal; the journal's entry was kept"
        self.note("conflict", problem)


def is_same(stored: Payload, new: Payload) -> bool:
    """Whether two payloads say the same; a checkpoint that was imported without its files counts as the same.

    The raw record that a payload was made of is not compared: tools add remarks to what they have written. Neither are
    the tokens that it takes from the count of the thread: the journal counts them.
    """
    if isinstance(stored, Checkpoint) and isinstance(new, Checkpoint):
        stored, new = (replace(one, manifest="", origin={}) for one in (stored, new))
    return stored == new or _without_raw(_uncounted(stored)) == _without_raw(_uncounted(new))


def _is_same_record(stored: Payload, new: Payload) -> bool:
    """Whether two payloads were made of the same raw record, which an earlier version read in another way.

    What it took for one message may be several now.
    """
    before, now = _raw(stored), _raw(new)
    return now is not None and (before == now or (isinstance(before, list) and now in before))


def _raw(payload: Payload) -> Any:
    origin: dict[str, Any] = getattr(payload, "origin", {})
    return origin.get("raw", payload.data if isinstance(payload, Event) else None)


def _uncounted(payload: Payload) -> Payload:
    match payload:
        case Compaction():
            return replace(payload, dropped_tokens=0)
        case SystemMessage():
            return replace(payload, replaced_tokens=0)
        case _:
            return payload


def _without_raw(payload: Payload) -> Payload:
    origin: dict[str, Any] = getattr(payload, "origin", {})
    if "raw" not in origin or isinstance(payload, UnknownPayload):
        return payload
    return replace(payload, origin={name: value for name, value in origin.items() if name != "raw"})


def update_fields(
    journal: Journal, loaded: Thread, leaf: str | None, session: ImportedSession, format_name: str
) -> None:
    """Write the metadata of the source after all entries; ``leaf`` is the one that this import gave the thread."""
    thread = _with_source_changes(journal, loaded, session)
    known = {**thread.origin, **session.fields.get("origin", {})}
    found: ThreadFields = session.finish(replace(thread, origin=known))
    fields: dict[str, Any] = {name: value for name, value in found.items() if not _was_changed_here(thread, name)}
    given: Any = {**session.fields, **found}
    origin = {"format": format_name, **fields.get("origin", known), "leaf": leaf}
    before = known.get("given", {}) if session.goes_on is not None else {}
    origin["given"] = {**before, **_hashes(given)}
    fields["origin"] = {name: value for name, value in origin.items() if name != UNFINISHED}
    changed = {name: value for name, value in fields.items() if getattr(thread, name) != value}
    if changed:
        journal.update_thread(thread.id, **changed)


def _was_changed_here(thread: Thread, name: str) -> bool:
    """Whether a field that an import set has another value now."""
    before: dict[str, str] = thread.origin.get("given", {})
    return name in before and name != "updated_ns" and _hashes({name: getattr(thread, name)})[name] != before[name]


def _with_source_changes(journal: Journal, thread: Thread, session: ImportedSession) -> Thread:
    """The thread with the fields that the source changed since the last import and the journal did not."""
    before: dict[str, str] = thread.origin.get("given", {})
    values: Any = session.fields
    ours = _hashes({name: getattr(thread, name) for name in before})
    unchanged = {name: values[name] for name, old in before.items() if name in values and ours[name] == old}
    changed = {name: value for name, value in unchanged.items() if getattr(thread, name) != value}
    return journal.update_thread(thread.id, **changed) if changed else thread


def _hashes(fields: Mapping[str, Any]) -> dict[str, str]:
    """A checksum of each field, to see at the next import whether it was changed."""
    bodies = {name: msgspec.json.encode(value, order="sorted") for name, value in fields.items() if name != "origin"}
    return {name: f"{zlib.crc32(body):08x}" for name, body in bodies.items()}
