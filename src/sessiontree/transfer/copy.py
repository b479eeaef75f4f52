"""Copy a store into another one, of the same or another kind.

A copy keeps every thread with its metadata and version, every entry with its id, parent, time, turn and content, forks
as forks (shared entries stay shared), the reflog and the leaf of each thread, the inbox, the files of every checkpoint,
the artifacts that entries show, and all documents. Leases are left out: they belong to processes that work on the source.
An interrupted copy can be repeated; what the target already has is not written again.

Deleted threads need care: forks still show their entries, and a living thread may have taken the id of a deleted one.
A deleted thread is therefore created in the target, placeholder forks are made of it that keep the entries which others
inherit, and it is deleted at once, which frees its id. The placeholders are deleted at the end. As ids and fork points
followed one another in the source, there is always a thread that can be created next.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import zip_longest
from os import PathLike
from tempfile import TemporaryDirectory

from sessiontree.errors import CopyMismatchError, EntryNotFoundError, MissingBlobsError, ThreadNotFoundError
from sessiontree.journal import Draft, Journal, PositionedDraft, make_draft
from sessiontree.journal.opening import open as open_journal
from sessiontree.model import Checkpoint, Entry, Move, Record, Thread, content_hash, data_of, decode_manifest
from sessiontree.model.artifacts import artifacts_of
from sessiontree.model.blobs import batches
from sessiontree.model.documents import Document

__all__ = ["CopyReport", "copy_store"]

Place = str | PathLike[str] | Journal

_ATTEMPTS = 5
_PAGE = 500
_BATCH_STEPS = 500
_COPY_MARK = {"sessiontree": "made for a copy, to be deleted again"}
"""Origin of the threads that a copy creates only to delete them again."""


class CopyReport(Record, frozen=True, kw_only=True):
    """What the source and the target hold after a copy, compared entry by entry."""

    threads: int = 0
    entries: int = 0
    moves: int = 0
    copied: int = 0
    """Entries that this run wrote."""
    blobs: int = 0
    """Files and manifests that this run wrote."""
    documents: int = 0

    def __add__(self, other: CopyReport) -> CopyReport:
        return CopyReport(
            threads=self.threads + other.threads,
            entries=self.entries + other.entries,
            moves=self.moves + other.moves,
            copied=self.copied + other.copied,
            blobs=self.blobs + other.blobs,
            documents=self.documents + other.documents,
        )


def copy_store(source: Place, target: Place, *, progress: Callable[[CopyReport], None] | None = None) -> CopyReport:
    """Copy everything from one store into another, then compare the content hash of every entry.

    ``source`` and ``target`` are addresses or open journals. The source may be in use: it is copied as it is at one moment,
    which needs room for it in the folder of temporary files. ``progress`` is called after each tree with the report so
    far. Raises ConflictError if the target has something else under the same id, and CopyMismatchError if the copy
    differs from the source.

    >>> import sessiontree as st
    >>> with st.open("memory:") as source, st.open("memory:") as target:
    ...     thread = source.create_thread(title="demo")
    ...     _ = source.append(thread.id, st.user("hello"))
    ...     copy_store(source, target).entries
    1
    """
    with ExitStack() as stack:
        new = _opened(target, stack)
        folder = stack.enter_context(TemporaryDirectory(prefix="sessiontree-"))
        old = stack.enter_context(open_journal(_frozen(source, folder), durability="process_crash"))
        report = CopyReport()
        for threads in _groups(old):
            for part in _copy_group(old, new, threads):
                report += part
            if progress is not None:
                progress(report)
        return report + _copy_documents(old, new)


def _frozen(place: Place, folder: str) -> str:
    if isinstance(place, Journal):
        return place.freeze(folder)
    with open_journal(place) as journal:
        return journal.freeze(folder)


def _opened(place: Place, stack: ExitStack) -> Journal:
    return place if isinstance(place, Journal) else stack.enter_context(open_journal(place))


def _copy_documents(old: Journal, new: Journal) -> CopyReport:
    copied = 0
    for scope in old.documents.scopes():
        for document in _documents_of(old, scope):
            new.import_document(document)
            copied += 1
    return CopyReport(documents=copied)


def _documents_of(journal: Journal, scope: str) -> Iterator[Document]:
    after: str | None = None
    while page := journal.documents.list(scope, after=after, limit=_PAGE):
        yield from page
        after = page[-1].key


def _groups(journal: Journal) -> Iterator[list[Thread]]:
    """Threads that have to be copied together: the threads of one tree.

    Trees with deleted threads, and those with threads that took the ids of deleted ones, are one group.
    """
    trees = _by_tree(journal.iter_threads(is_archived=None, order="created", limit=_PAGE))
    forked = [threads for threads in trees if any(thread.forked_from_entry for thread in threads)]
    deleted = {threads[0].tree: _deleted_histories(journal, _living_histories(journal, threads)) for threads in forked}
    ids = {history.thread.id for histories in deleted.values() for history in histories}
    entangled: list[Thread] = []
    for threads in trees:
        if deleted.get(threads[0].tree) or any(thread.id in ids for thread in threads):
            entangled += threads
        else:
            yield threads
    if entangled:
        yield entangled


def _by_tree(threads: Iterable[Thread]) -> list[list[Thread]]:
    trees: dict[str, list[Thread]] = {}
    for thread in threads:
        trees.setdefault(thread.tree, []).append(thread)
    return list(trees.values())


def _copy_group(old: Journal, new: Journal, threads: Sequence[Thread]) -> Iterator[CopyReport]:
    histories: list[_History] = []
    for tree in _by_tree(threads):
        living = _living_histories(old, tree)
        histories += [*_deleted_histories(old, living), *living]
    finished = [one for one in histories if one.is_deleted and _is_finished(new, one, histories)]
    for step in _in_order([one for one in histories if not any(one is other for other in finished)]):
        match step:
            case _Create(history=history):
                yield _copy_thread(old, new, history)
            case _Delete(history=history):
                new.delete_thread(history.thread.id)
    for history in finished:
        yield CopyReport(entries=len(history.own))
        for placeholder in _placeholders(history, histories):
            if _has_thread(new, placeholder.thread):
                new.delete_thread(placeholder.thread.id)
    for thread in threads:
        _compare(old, new, thread.id)


def _is_finished(new: Journal, deleted: _History, histories: Sequence[_History]) -> bool:
    """Whether an earlier run already deleted the thread again: it is missing, but others show its entries."""
    if _has_thread(new, deleted.thread):
        return False
    return all(
        _shows(new, one.thread.id, one.base)
        or any(one.base in other.inherited and _shows(new, other.thread.id, one.base) for other in histories)
        for one in _placeholders(deleted, histories)
    )


def _shows(journal: Journal, thread_id: str, entry_id: str | None) -> bool:
    try:
        return entry_id is not None and journal.entry(thread_id, entry_id).id == entry_id
    except (ThreadNotFoundError, EntryNotFoundError):
        return False


def _has_thread(journal: Journal, thread: Thread) -> bool:
    try:
        return journal.thread(thread.id).without_counters() == thread.without_counters()
    except ThreadNotFoundError:
        return False


# What is read from the source


class _History(Record, frozen=True, kw_only=True):
    """A thread, the entries that were appended through it and its leaf moves; ``base`` is its fork point."""

    thread: Thread
    base: str | None
    own: tuple[Entry, ...]
    inherited: frozenset[str] = frozenset()
    moves: tuple[Move, ...] = ()
    aside: frozenset[str] = frozenset()
    """Own entries that never were the leaf, such as queued messages."""
    is_deleted: bool = False
    """Deleted in the source, where forks still show its entries."""

    @property
    def fork_point(self) -> tuple[str, str | None]:
        return self.thread.tree, self.base


def _living_histories(journal: Journal, threads: Iterable[Thread]) -> list[_History]:
    return [_living_history(journal, thread) for thread in threads]


def _living_history(journal: Journal, thread: Thread) -> _History:
    base = thread.forked_from_entry or None
    inherited = frozenset(entry.id for entry in journal.path(thread.id, base)) if base else frozenset()
    own = tuple(entry for entry in journal.entries(thread.id) if entry.id not in inherited)
    moves = tuple(journal.reflog(thread.id))
    aside = frozenset(entry.id for entry in own) - _leaves(own, base, moves, thread.leaf)
    return _History(thread=thread, base=base, own=own, inherited=inherited, moves=moves, aside=aside)


def _leaves(own: Iterable[Entry], base: str | None, moves: Sequence[Move], last: str | None) -> set[str]:
    """The entries that were the leaf: between two moves each one was appended under the one before it."""
    parents = {entry.id: entry.parent for entry in own}
    starts = [base, *(move.to_entry for move in moves)]
    ends = [*(move.from_entry for move in moves), last]
    leaves: set[str] = set()
    for start, end in zip(starts, ends, strict=True):
        above = end
        while above is not None and above != start and above in parents and above not in leaves:
            leaves.add(above)
            above = parents[above]
    return leaves


def _deleted_histories(journal: Journal, living: Sequence[_History]) -> list[_History]:
    """The deleted threads of a tree, as far as forks still show their entries."""
    known = {entry.id for history in living for entry in history.own}
    left: dict[str, dict[str, Entry]] = {}
    depths: dict[str, int] = {}
    for history in living:
        if history.inherited - known:
            for depth, entry in enumerate(journal.path(history.thread.id, history.base)):
                depths[entry.id] = depth
                if entry.id not in known:
                    left.setdefault(entry.thread_id, {})[entry.id] = entry
    tree = living[0].thread.tree
    return [
        _deleted_history(thread_id, tree, connected)
        for thread_id, own in left.items()
        for connected in _connected(sorted(own.values(), key=lambda entry: depths[entry.id]))
    ]


def _connected(own: Iterable[Entry]) -> list[list[Entry]]:
    """Entries in groups that hang together, parents first: several deleted threads may have had the same id."""
    groups: list[list[Entry]] = []
    found: dict[str, list[Entry]] = {}
    for entry in own:
        group = found.get(entry.parent or "")
        if group is None:
            group = []
            groups.append(group)
        group.append(entry)
        found[entry.id] = group
    return groups


def _deleted_history(thread_id: str, tree: str, own: Sequence[Entry]) -> _History:
    first = own[0]
    origin = {**_COPY_MARK, "first": first.id}  # differs from every living thread and from other threads of this id
    thread = Thread(id=thread_id, tree=tree, created_ns=first.created_ns, updated_ns=first.created_ns, origin=origin)
    return _History(thread=thread, base=first.parent, own=tuple(own), is_deleted=True)


# The order in which threads are created


class _Create(Record, frozen=True, kw_only=True):
    history: _History


class _Delete(Record, frozen=True, kw_only=True):
    """Delete a thread that was created only so that others could be forked from it."""

    history: _History


def _in_order(histories: Sequence[_History]) -> Iterator[_Create | _Delete]:
    """Each thread after its fork point, and after deleted threads of the same id.

    A fork point that belongs to none of the histories is in the target already, from an earlier run.
    """
    missing = {(one.thread.tree, entry.id) for one in histories for entry in one.own}
    waiting = list(histories)
    placeholders: list[_History] = []
    while waiting:
        taken_ids = {one.thread.id for one in waiting if one.is_deleted}
        left: list[_History] = []
        for history in waiting:
            if history.fork_point in missing or (history.thread.id in taken_ids and not history.is_deleted):
                left.append(history)
                continue
            yield _Create(history=history)
            missing.difference_update((history.thread.tree, entry.id) for entry in history.own)
            if history.is_deleted:
                forks = _placeholders(history, histories)
                yield from (_Create(history=fork) for fork in forks)
                yield _Delete(history=history)
                placeholders += forks
        if len(left) == len(waiting):
            raise CopyMismatchError(left[0].thread.id, left[0].base or "")
        waiting = left
    yield from (_Delete(history=one) for one in placeholders)


def _placeholders(deleted: _History, histories: Iterable[_History]) -> list[_History]:
    """The smallest set of forks of a deleted thread that keeps every fork point in it."""
    wanted = {one.base for one in histories if one.thread.tree == deleted.thread.tree}
    parents = {entry.id: entry.parent for entry in deleted.own}
    kept: set[str | None] = set()
    found: list[_History] = []
    for tip in reversed(list(parents)):
        if tip in wanted and tip not in kept:
            found.append(_placeholder(deleted.thread, tip))
            entry: str | None = tip
            while entry in parents and entry not in kept:
                kept.add(entry)
                entry = parents[entry]
    return found


def _placeholder(deleted: Thread, tip: str) -> _History:
    name = f"{deleted.id}\0{tip}\0copying"
    thread = Thread(id=name, tree=deleted.tree, created_ns=0, updated_ns=0, origin=_COPY_MARK)
    return _History(thread=thread, base=tip, own=(), is_deleted=True)


# What is written to the target


def _copy_thread(old: Journal, new: Journal, history: _History) -> CopyReport:
    thread = history.thread
    new.import_thread(thread, base=history.base)
    known = {entry.id for entry in new.entries(thread.id)}
    moved = len(new.reflog(thread.id))
    missing = [
        step for step in _steps(history) if (step.id not in known if isinstance(step, Entry) else step.number > moved)
    ]
    blobs = 0
    for start in range(0, len(missing), _BATCH_STEPS):
        blobs += _import_steps(old, new, history, missing[start : start + _BATCH_STEPS])
    return CopyReport(
        threads=int(not history.is_deleted),
        entries=len(history.own),
        moves=len(history.moves),
        copied=sum(isinstance(step, Entry) for step in missing),
        blobs=blobs,
    )


def _steps(history: _History) -> Iterator[Entry | Move]:
    """Entries and leaf moves in the order in which they happened.

    A move that starts at the current leaf comes before the next entry, because only a move leads back to that leaf.
    """
    leaf = history.base
    moves = deque(history.moves)
    for entry in history.own:
        while moves and moves[0].from_entry == leaf:
            leaf = moves[0].to_entry
            yield moves.popleft()
        yield entry
        if entry.id not in history.aside:
            leaf = entry.id
    yield from moves


Sizes = Mapping[str, int]


def _import_steps(old: Journal, new: Journal, history: _History, steps: Sequence[Entry | Move]) -> int:
    """Write a part of a thread's history in one commit, its blobs before it; returns how many blobs were written.

    A delete in the target may remove the blobs before the entries refer to them; then they are put again.
    """
    needs = [_needed_blobs(old, step) for step in steps]
    sizes = {name: size for need in needs for name, size in need.items()}
    positioned = [_positioned(step, need, history) for step, need in zip(steps, needs, strict=True)]
    for attempt in range(1, _ATTEMPTS + 1):
        copied = _copy_blobs(old, new, sizes)
        try:
            new.import_history(history.thread.id, positioned)
        except MissingBlobsError:
            if attempt == _ATTEMPTS:
                raise
        else:
            break
    return copied


def _needed_blobs(old: Journal, step: Entry | Move) -> Sizes:
    """The artifacts that an entry refers to, or a checkpoint's manifest, its base and the files it lists.

    The files of the base came with their own entry.
    """
    if isinstance(step, Move):
        return {}
    if names := artifacts_of(step.payload):
        missing = old.missing_blobs(names)
        return {name: len(old.read_blobs((name,))[0].body) for name in names if name not in missing}
    if not isinstance(step.payload, Checkpoint) or not step.payload.manifest:
        return {}
    name = step.payload.manifest
    (blob,) = old.read_blobs((name,))
    manifest = decode_manifest(data_of(blob), f"blob {name}")
    files = {item.hash: item.size for item in manifest.changed.values() if item.kind == "file"}
    return {name: blob.size, **({manifest.base: 0} if manifest.base else {}), **files}


def _positioned(step: Entry | Move, needs: Sizes, history: _History) -> PositionedDraft | Move:
    if isinstance(step, Move):
        return step
    return PositionedDraft(parent=step.parent, draft=_draft(step, tuple(needs)), is_aside=step.id in history.aside)


def _draft(entry: Entry, blobs: tuple[str, ...]) -> Draft:
    return make_draft(entry.payload, id=entry.id, created_ns=entry.created_ns, turn_id=entry.turn_id, blobs=blobs)


def _copy_blobs(old: Journal, new: Journal, sizes: Sizes) -> int:
    missing = new.missing_blobs(sizes)
    for names in batches(sorted(missing), sizes.__getitem__):
        new.put_blobs(old.read_blobs(names))
    return len(missing)


def _compare(old: Journal, new: Journal, thread_id: str) -> None:
    """Raise CopyMismatchError where a reader could see a difference between the two threads."""
    for mine, theirs in zip_longest(old.entries(thread_id), new.entries(thread_id)):
        if mine is None or theirs is None or _visible(mine) != _visible(theirs):
            raise CopyMismatchError(thread_id, (mine or theirs).id)
    ours, copied = old.thread(thread_id), new.thread(thread_id)
    is_same = ours.without_counters() == copied.without_counters() and ours.leaf == copied.leaf
    if not is_same or old.reflog(thread_id) != new.reflog(thread_id):
        raise CopyMismatchError(thread_id, "")


def _visible(entry: Entry) -> tuple[object, ...]:
    return (
        entry.id, entry.parent, entry.thread_id, entry.created_ns, entry.turn_id, content_hash(entry.payload),
    )  # fmt: skip
