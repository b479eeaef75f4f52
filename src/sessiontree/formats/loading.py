"""Pouring the records of a session into a journal: in batches, repeatable, and past everything that is broken."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import UNSET
from msgspec.structs import replace

from sessiontree.blobs import Blob
from sessiontree.commands import Append, Draft
from sessiontree.errors import (
    ConflictError,
    EntryNotFoundError,
    InvalidInputError,
    MissingBlobsError,
    ThreadExistsError,
    ThreadNotFoundError,
)
from sessiontree.formats.contents import has_files, put_blobs
from sessiontree.formats.fields import settle_fields
from sessiontree.formats.report import Tally
from sessiontree.formats.session import Item, Session, with_origin
from sessiontree.journal import Journal
from sessiontree.model import Checkpoint, Entry, Payload, Thread, ThreadFields
from sessiontree.operations.entries import draft_as_given

__all__ = ["load"]

OURS = "native"
"""The format in which a thread keeps the origin that it has."""

_TIMES = 1 << 63
_BATCH_ITEMS = 2000
_BATCH_BYTES = 8 * 1024 * 1024
_MOST_WAITING = 10_000


def load(journal: Journal, session: Session, tally: Tally, *, format_name: str, prefix: str) -> None:
    """Bring one session up to date with its source; nothing that the journal holds is changed."""
    thread_id = prefix + session.id
    if session.fork is not None:
        session = session._replace(fork=(prefix + session.fork[0], session.fork[1]))
    try:
        thread, is_new = _open_or_find(journal, session, thread_id, format_name)
    except (InvalidInputError, EntryNotFoundError, ThreadNotFoundError) as error:
        tally.note("damage", session.place, f"the session cannot be created: {error}", thread_id=thread_id)
        return
    if format_name != OURS and thread.origin.get("format") != format_name:
        problem = f"the journal has another thread {thread_id!r}; import with a prefix to keep both"
        tally.note("conflict", session.place, problem, thread_id=thread_id)
        return
    tally.threads[thread_id] = None
    tally.created += is_new
    stream = _Stream(journal, thread_id, session.place, tally, is_new=is_new)
    if session.fork is not None:
        stream.inherit(entry.id for entry in journal.path(thread_id, thread.forked_from_entry or None))
    last_size = tally.bytes_read
    for item in session.items:
        stream.read(item, tally.bytes_read - last_size)
        last_size = tally.bytes_read
    stream.finish()
    _settle_leaf(journal, thread, stream, session)
    if format_name != OURS:
        settle_fields(journal, thread_id, session, format_name)


def _open_or_find(journal: Journal, session: Session, thread_id: str, format_name: str) -> tuple[Thread, bool]:
    try:
        return _open(journal, session, thread_id, format_name)
    except ThreadExistsError:
        # Another import of the same source was faster.
        return journal.thread(thread_id), False


def _open(journal: Journal, session: Session, thread_id: str, format_name: str) -> tuple[Thread, bool]:
    try:
        return journal.thread(thread_id), False
    except ThreadNotFoundError:
        fields: ThreadFields = {**session.fields}
        if format_name != OURS:
            fields["origin"] = {"format": format_name, **fields.get("origin", {})}
        if session.fork is not None:
            source, at = session.fork
            return journal.fork(source, at=at, new_id=thread_id, created_ns=_time(session.created_ns), **fields), True
        created, updated = _time(session.created_ns), _time(session.updated_ns)
        return journal.create_thread(thread_id, created_ns=created, updated_ns=updated, **fields), True


def _time(time_ns: int) -> int:
    """A time that a store can hold; one that is none of this world counts as none."""
    return time_ns if -_TIMES <= time_ns < _TIMES else 0


def _draft_of(item: Item) -> Draft:
    payload, entry_id, created_ns, _, turn_id, blobs = item
    hashes = tuple([blob.hash for blob in blobs]) if blobs else ()
    return draft_as_given(entry_id, payload, _time(created_ns), turn_id, hashes)


def _is_same(stored: Payload, new: Payload) -> bool:
    """A checkpoint that came without its files is the same one."""
    if isinstance(stored, Checkpoint) and isinstance(new, Checkpoint):
        stored, new = (replace(one, manifest="", origin={}) for one in (stored, new))
    return stored == new


def _settle_leaf(journal: Journal, before: Thread, stream: _Stream, session: Session) -> None:
    """Set the tip that the source has; where somebody went on in the journal, their tip stays."""
    wanted = session.leaf()
    target = stream.tip if wanted is UNSET else stream.found(wanted) if isinstance(wanted, str) else None
    if not stream.is_new and _was_moved_here(journal, before, stream):
        target = before.leaf
        stream.explain_branch()
    if journal.thread(before.id).leaf != target:
        journal.move_leaf(before.id, target, at_ns=_time(session.updated_ns))


def _was_moved_here(journal: Journal, before: Thread, stream: _Stream) -> bool:
    """Whether somebody appended or moved the leaf since the last import; an import that broke off did not."""
    left_by_import = before.origin.get("leaf", before.leaf)
    if before.leaf == left_by_import:
        return False
    if before.leaf is None or not stream.has_read(before.leaf):
        return True
    return before.leaf in {entry.id for entry in journal.path(before.id, left_by_import)}


class _Stream:
    """The records of one session in the order of the source, made fit for the journal's rules.

    A record whose parent was not read yet waits for it. Where the parent never comes, the record hangs from the one
    that was stored before it, so that a hole in a file does not cut a conversation in two.
    """

    def __init__(self, journal: Journal, thread_id: str, place: str, tally: Tally, *, is_new: bool) -> None:
        self.tip: str | None = None
        self._added = 0
        self._journal = journal
        self._thread_id = thread_id
        self._place = place
        self._tally = tally
        self.is_new = is_new
        self._batch: list[Draft] = []
        self._batch_parent: str | None = None
        self._batch_bytes = 0
        self._blobs: list[Blob] = []
        self._seen: set[str] = set()
        self._names: dict[str, str] = {}
        self._dropped: dict[str | None, str | None] = {}
        self._waiting: dict[str, list[tuple[Item, str | None]]] = {}
        self._waits: set[str] = set()

    def inherit(self, entry_ids: Iterable[str]) -> None:
        """Entries of another thread that this one sees."""
        for entry_id in entry_ids:
            self._seen.add(entry_id)
            self.tip = entry_id

    def read(self, item: Item, size: int = 0) -> None:
        self._batch_bytes += size
        if isinstance(item.payload, Checkpoint):
            item = self._with_files_or_without(item, item.payload)
        parent = item.parent
        if parent is UNSET:
            self._place_item(item, self.tip)
        elif parent is None or parent in self._seen:
            self._place_item(item, self.named(parent) if parent else None)
        else:
            assert isinstance(parent, str)
            self._waiting.setdefault(parent, []).append((item, self.tip))
            self._waits.add(item.id)
            if len(self._waits) > _MOST_WAITING:
                self._adopt_oldest()

    def _with_files_or_without(self, item: Item, checkpoint: Checkpoint) -> Item:
        """A checkpoint whose files are neither in the source nor in the store is kept without them, and named."""
        name = checkpoint.manifest
        if not name or has_files(self._journal, name, (*item.blobs, *self._blobs)):
            return item
        problem = f"the files of checkpoint {item.id!r} are not in the source; it cannot be restored here"
        self._tally.note("damage", self._place, problem, thread_id=self._thread_id)
        kept = replace(checkpoint, manifest="", origin={**checkpoint.origin, "manifest": name})
        return item._replace(payload=kept, blobs=())

    def finish(self) -> None:
        while self._waiting:
            self._adopt_oldest()
        self._flush()

    def explain_branch(self) -> None:
        if self._added:
            problem = f"{self._added} new records are on a branch of their own: the thread was continued here"
            self._tally.note("hint", self._place, problem, thread_id=self._thread_id)

    def found(self, entry_id: str) -> str | None:
        """The tip that the source names, or the last record where that one is lost."""
        if entry_id in self._seen:
            return self.named(entry_id)
        if self.tip is None:
            return None
        problem = f"the tip {entry_id!r} is missing; the thread ends at {self.tip!r}"
        self._tally.note("repair", self._place, problem, thread_id=self._thread_id)
        return self.tip

    def has_read(self, entry_id: str) -> bool:
        return entry_id in self._seen

    def named(self, entry_id: str) -> str | None:
        """The id under which a record of the source is in the journal."""
        found: str | None = self._names.get(entry_id, entry_id)
        while found in self._dropped:
            found = self._dropped[found]
        return found

    def _adopt_oldest(self) -> None:
        missing = self._first_missing()
        for item, before in self._take(missing):
            adopted = item._replace(payload=with_origin(item.payload, parent=missing))
            problem = f"the parent {missing!r} of record {item.id!r} is missing; it follows {before!r} now"
            self._tally.note("repair", self._place, problem, thread_id=self._thread_id)
            self._place_item(adopted, before)

    def _first_missing(self) -> str:
        """The oldest parent that is waited for and does not wait itself; in a ring the oldest of all."""
        roots = (parent for parent in self._waiting if parent not in self._waits)
        return next(roots, next(iter(self._waiting)))

    def _take(self, parent: str) -> list[tuple[Item, str | None]]:
        group = self._waiting.pop(parent, [])
        self._waits.difference_update(item.id for item, _ in group)
        return group

    def _place_item(self, item: Item, parent: str | None) -> None:
        if not self._waiting:
            self._put(item, parent)
            return
        todo = [(item, parent)]
        while todo:
            one, under = todo.pop()
            self._put(one, under)
            todo += [(child, self.named(one.id)) for child, _ in reversed(self._take(one.id))]

    def _put(self, item: Item, parent: str | None) -> None:
        if item.id in self._seen:
            self._put_again(item, parent)
            return
        if parent != self.tip or len(self._batch) >= _BATCH_ITEMS or self._batch_bytes >= _BATCH_BYTES:
            self._flush()
        self._seen.add(item.id)
        try:
            draft = _draft_of(item)
        except InvalidInputError as error:
            self._drop(item, parent, error)
            return
        if not self._batch:
            self._batch_parent = parent
        self._batch.append(draft)
        self._blobs += item.blobs
        self.tip = item.id

    def _drop(self, item: Item, parent: str | None, error: InvalidInputError) -> None:
        """No store can hold it: what comes after it hangs from the record before it."""
        self._dropped[item.id] = parent
        self.tip = parent
        self._tally.note("damage", self._place, f"record {item.id!r}: {error}", thread_id=self._thread_id)

    def _put_again(self, item: Item, parent: str | None) -> None:
        """An id that occurs twice: the same record is left out, another one gets a name of its own."""
        self._flush()
        stored = self._stored(self.named(item.id) or item.id)
        if stored and stored.parent == parent and _is_same(stored.payload, item.payload):
            self._tally.note("repair", self._place, f"record {item.id!r} stands there twice", thread_id=self._thread_id)
            return
        number = 2
        while (name := f"{item.id}~{number}") in self._seen:
            number += 1
        problem = f"two records have the id {item.id!r}; the later one is {name!r} now"
        self._tally.note("repair", self._place, problem, thread_id=self._thread_id)
        self._names[item.id] = name
        self._put(item._replace(id=name, payload=with_origin(item.payload, id=item.id)), parent)

    def _flush(self) -> None:
        batch, self._batch, self._batch_bytes = self._batch, [], 0
        blobs, self._blobs = self._blobs, []
        if not batch:
            return
        for is_last in (False, True):
            put_blobs(self._journal, blobs)
            try:
                self._append_batch(batch, self._batch_parent)
            except MissingBlobsError:
                # Somebody's delete collected them before the entries were there.
                if is_last:
                    raise
            else:
                return

    def _append_batch(self, batch: Sequence[Draft], parent: str | None) -> None:
        try:
            self._append(batch, parent)
        except MissingBlobsError:
            raise
        except ConflictError:
            self._append_what_is_new(batch, parent)

    def _append(self, batch: Sequence[Draft], parent: str | None) -> None:
        is_known = not self.is_new and self._stored(batch[-1].id) is not None
        self._journal.store.commit(Append(thread_id=self._thread_id, drafts=tuple(batch), parent=parent))
        if is_known:
            self._tally.known += len(batch)
        else:
            self._tally.added += len(batch)
            self._added += len(batch)

    def _append_what_is_new(self, batch: Sequence[Draft], parent: str | None) -> None:
        run: list[Draft] = []
        for draft in batch:
            stored = self._stored(draft.id)
            if stored is None:
                run.append(draft)
                continue
            if run:
                self._append(run, parent)
            run, parent = [], draft.id
            self._tally.known += 1
            if not _is_same(stored.payload, draft.payload):
                problem = f"record {draft.id!r} has other content than the entry in the journal, which was kept"
                self._tally.note("conflict", self._place, problem, thread_id=self._thread_id)
        if run:
            self._append(run, parent)

    def _stored(self, entry_id: str) -> Entry | None:
        try:
            return self._journal.entry(self._thread_id, entry_id)
        except EntryNotFoundError:
            return None
