"""Copy a whole store into another one, of whatever kind.

What is carried: every thread with all its metadata and its version, every entry with its id, parent, time, turn and
content, forks as forks (shared entries stay shared), the reflog and the leaf of each thread, and the files of every
checkpoint. Leases are not: they belong to processes that run on the source. A copy can be interrupted and repeated;
what is there already is not written again.

Copy entries together with the blobs that their checkpoints need: first the blobs, then who refers to them.

What a copy carries together: a thread with what was appended through it, living or deleted.

In which order the threads of a copy are made, and those that were deleted in the source are deleted again.

A fork needs its fork point, which may be an entry of a deleted thread; a thread that bears the name of a deleted one needs
that name. So a deleted thread is made, stand-ins are forked from it that keep what others inherit, and it is deleted at
once, which sets its name free. The stand-ins go when all is made. As names and fork points came one after the other in the
source, there is always a family that can be made next.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import zip_longest
from os import PathLike

from msgspec.structs import replace

from sessiontree.errors import CopyMismatchError, EntryNotFoundError, MissingBlobsError, ThreadNotFoundError
from sessiontree.journal import Journal
from sessiontree.journal.opening import open as open_journal
from sessiontree.journal.operations.entries import weight_of
from sessiontree.model import Checkpoint, Entry, Move, Thread
from sessiontree.model._base import Record
from sessiontree.model.blobs import Blob, data_of
from sessiontree.model.codec import content_hash, validate_and_encode
from sessiontree.model.manifest import decode_manifest
from sessiontree.stores.commands import DeleteThread, Draft, ImportHistory, ImportThread, PositionedDraft, PutBlobs
from sessiontree.stores.queries import FindMissingBlobs, ReadBlobs
from sessiontree.stores.rules.threads import plain

__all__ = [
    "MADE_FOR_A_COPY",
    "CopyReport",
    "End",
    "Make",
    "ThreadHistory",
    "copy_store",
    "gone_of",
    "import_steps",
    "in_order",
    "living_of",
    "stand_ins",
]


_ATTEMPTS = 5
_BATCH_BYTES = 16 << 20
_BATCH_BLOBS = 500

Sizes = Mapping[str, int]


def import_steps(old: Journal, new: Journal, thread_id: str, steps: Sequence[PositionedDraft | Move]) -> int:
    """Write a part of a thread's history; how many blobs that took.

    A delete in the target may collect the blobs before the entries are there; then they are put again.
    """
    needs = [_needs(old, step) for step in steps]
    sizes = {name: size for need in needs for name, size in need.items()}
    command = ImportHistory(thread_id=thread_id, steps=tuple(map(_relying, steps, needs)))
    for attempt in range(_ATTEMPTS):
        copied = _copy_blobs(old, new, sizes)
        try:
            new.store.commit(command)
        except MissingBlobsError:
            if attempt == _ATTEMPTS - 1:
                raise
            continue
        break
    return copied


def _needs(old: Journal, step: PositionedDraft | Move) -> Sizes:
    """The manifest of a checkpoint, its base and the files it lists; what the base lists came with its own entry."""
    if not isinstance(step, PositionedDraft) or not isinstance(step.draft.payload, Checkpoint):
        return {}
    name = step.draft.payload.manifest
    if not name:
        return {}
    (blob,) = _read(old, [name])
    manifest = decode_manifest(data_of(blob), f"blob {name}")
    files = {item.hash: item.size for item in manifest.changed.values() if item.kind == "file"}
    return {name: blob.size, **({manifest.base: 0} if manifest.base else {}), **files}


def _relying(step: PositionedDraft | Move, needs: Sizes) -> PositionedDraft | Move:
    if isinstance(step, Move) or not needs:
        return step
    return replace(step, draft=replace(step.draft, blobs=tuple(needs)))


def _copy_blobs(old: Journal, new: Journal, sizes: Sizes) -> int:
    if not sizes:
        return 0
    missing = new.store.read(FindMissingBlobs(hashes=tuple(sizes)))
    for batch in _batches(sorted(missing), sizes):
        blobs = _read(old, batch)
        for blob in blobs:
            data_of(blob)  # damage must not travel
        new.store.commit(PutBlobs(blobs=tuple(blobs)))
    return len(missing)


def _read(journal: Journal, names: Sequence[str]) -> list[Blob]:
    return journal.store.read(ReadBlobs(hashes=tuple(names)))


def _batches(names: Iterable[str], sizes: Sizes) -> Iterator[list[str]]:
    batch: list[str] = []
    weight = 0
    for name in names:
        if batch and (weight + sizes[name] > _BATCH_BYTES or len(batch) == _BATCH_BLOBS):
            yield batch
            batch, weight = [], 0
        batch.append(name)
        weight += sizes[name]
    if batch:
        yield batch


MADE_FOR_A_COPY = {"sessiontree": "made for a copy, to be deleted again"}


class ThreadHistory(Record, frozen=True, kw_only=True):
    """A thread and what was appended through it. ``is_gone``: it was deleted, but forks still show its entries."""

    thread: Thread
    base: str | None
    own: tuple[Entry, ...]
    inherited: frozenset[str] = frozenset()
    moves: tuple[Move, ...] = ()
    is_gone: bool = False


def living_of(journal: Journal, threads: Sequence[Thread]) -> list[ThreadHistory]:
    return [_family(journal, thread) for thread in threads]


def _family(journal: Journal, thread: Thread) -> ThreadHistory:
    base = thread.forked_from_entry or None
    inherited = frozenset(entry.id for entry in journal.path(thread.id, base)) if base else frozenset()
    own = tuple(entry for entry in journal.entries(thread.id) if entry.id not in inherited)
    moves = tuple(journal.reflog(thread.id))
    return ThreadHistory(thread=thread, base=base, own=own, inherited=inherited, moves=moves)


def gone_of(journal: Journal, living: Sequence[ThreadHistory]) -> list[ThreadHistory]:
    """Threads that were deleted, as far as forks still show them."""
    known = {entry.id for family in living for entry in family.own}
    left: dict[str, dict[str, Entry]] = {}
    depths: dict[str, int] = {}
    for family in living:
        if family.inherited - known:
            for depth, entry in enumerate(journal.path(family.thread.id, family.base)):
                depths[entry.id] = depth
                if entry.id not in known:
                    left.setdefault(entry.thread_id, {})[entry.id] = entry
    tree = living[0].thread.tree
    return [
        _gone_family(name, tree, life)
        for name, own in left.items()
        for life in _lives(sorted(own.values(), key=lambda entry: depths[entry.id]))
    ]


def _lives(own: Sequence[Entry]) -> list[list[Entry]]:
    """Entries that hang together, parents first: a name may have been deleted more than once."""
    lives: list[list[Entry]] = []
    found: dict[str, list[Entry]] = {}
    for entry in own:
        life = found.get(entry.parent or "")
        if life is None:
            life = []
            lives.append(life)
        life.append(entry)
        found[entry.id] = life
    return lives


def _gone_family(name: str, tree: str, life: Sequence[Entry]) -> ThreadHistory:
    first = life[0]
    origin = {**MADE_FOR_A_COPY, "first": first.id}  # so that no living thread, and no other life, looks the same
    thread = Thread(id=name, tree=tree, created_ns=first.created_ns, updated_ns=first.created_ns, origin=origin)
    return ThreadHistory(thread=thread, base=first.parent, own=tuple(life), is_gone=True)


_Place = tuple[str, str | None]


class Make(Record, frozen=True, kw_only=True):
    family: ThreadHistory


class End(Record, frozen=True, kw_only=True):
    """Delete a thread that was made for its heirs only."""

    family: ThreadHistory


def in_order(families: Sequence[ThreadHistory]) -> Iterator[Make | End]:
    """A fork point that is of none of the families is in the target already, from an earlier run."""
    missing = {(family.thread.tree, entry.id) for family in families for entry in family.own}
    waiting = list(families)
    standing: list[ThreadHistory] = []
    while waiting:
        names = {family.thread.id for family in waiting if family.is_gone}
        left: list[ThreadHistory] = []
        for family in waiting:
            if _base(family) in missing or (family.thread.id in names and not family.is_gone):
                left.append(family)
                continue
            yield Make(family=family)
            missing.difference_update((family.thread.tree, entry.id) for entry in family.own)
            if family.is_gone:
                keepers = stand_ins(family, families)
                yield from (Make(family=keeper) for keeper in keepers)
                yield End(family=family)
                standing += keepers
        if len(left) == len(waiting):
            raise CopyMismatchError(left[0].thread.id, left[0].base or "")
        waiting = left
    yield from (End(family=family) for family in standing)


def stand_ins(gone: ThreadHistory, families: Sequence[ThreadHistory]) -> list[ThreadHistory]:
    """Forks of a deleted thread that keep every fork point in it, as few as will do."""
    wanted = {family.base for family in families if family.thread.tree == gone.thread.tree}
    parents = {entry.id: entry.parent for entry in gone.own}
    kept: set[str | None] = set()
    found: list[ThreadHistory] = []
    for tip in reversed(list(parents)):
        if tip in wanted and tip not in kept:
            found.append(_stand_in(gone.thread, tip))
            entry: str | None = tip
            while entry in parents and entry not in kept:
                kept.add(entry)
                entry = parents[entry]
    return found


def _stand_in(gone: Thread, tip: str) -> ThreadHistory:
    name = f"{gone.id}\0{tip}\0copying"
    thread = Thread(id=name, tree=gone.tree, created_ns=0, updated_ns=0, origin=MADE_FOR_A_COPY)
    return ThreadHistory(thread=thread, base=tip, own=(), is_gone=True)


def _base(family: ThreadHistory) -> _Place:
    return family.thread.tree, family.base


_CHUNK = 500
_PAGE = 500

Place = str | PathLike[str] | Journal


class CopyReport(Record, frozen=True, kw_only=True):
    """What the source holds and the target holds now, checked entry by entry."""

    threads: int = 0
    entries: int = 0
    moves: int = 0
    copied: int = 0
    """Entries that this run had to write."""
    blobs: int = 0
    """Files and file lists that this run had to write."""


def copy_store(source: Place, target: Place, *, progress: Callable[[CopyReport], None] | None = None) -> CopyReport:
    """Copy everything from one store into another, and compare every content hash afterwards.

    Both are addresses or open journals; nobody should write to the source meanwhile. ``progress`` is called with
    what was done so far, after each tree. A target that holds something else under the same id, also that
    of a deleted thread that forks still show, is refused (ConflictError), and what came out different is
    CopyMismatchError.

    >>> import sessiontree as st
    >>> with st.open("memory:") as source, st.open("memory:") as target:
    ...     thread = source.create_thread(title="demo")
    ...     _ = source.append(thread.id, st.user("hello"))
    ...     copy_store(source, target).entries
    1
    """
    with ExitStack() as stack:
        old, new = (_opened(place, stack) for place in (source, target))
        report = CopyReport()
        for threads in _together(old):
            for part in _copy(old, new, threads):
                report = _added(report, part)
            if progress is not None:
                progress(report)
        return report


def _opened(place: Place, stack: ExitStack) -> Journal:
    return place if isinstance(place, Journal) else stack.enter_context(open_journal(place))


def _trees(journal: Journal) -> Iterator[list[Thread]]:
    """All threads, tree by tree."""
    trees: dict[str, list[Thread]] = {}
    cursor: str | None = None
    while True:
        page = journal.list_threads(is_archived=None, order="created", limit=_PAGE, cursor=cursor)
        for thread in page:
            trees.setdefault(thread.tree, []).append(thread)
        cursor = page.cursor
        if cursor is None:
            break
    yield from trees.values()


def _together(journal: Journal) -> Iterator[list[Thread]]:
    """Tree by tree; trees with deleted threads, and with threads that bear the names of those, in one go."""
    trees = list(_trees(journal))
    forked = [threads for threads in trees if any(thread.forked_from_entry for thread in threads)]
    gone = {threads[0].tree: gone_of(journal, living_of(journal, threads)) for threads in forked}
    names = {family.thread.id for families in gone.values() for family in families}
    tangled: list[Thread] = []
    for threads in trees:
        if gone.get(threads[0].tree) or any(thread.id in names for thread in threads):
            tangled += threads
        else:
            yield threads
    if tangled:
        yield tangled


def _copy(old: Journal, new: Journal, threads: Sequence[Thread]) -> Iterator[CopyReport]:
    """Deleted threads are made, forked from and deleted again, so that what they left behind is theirs here too."""
    families = _families(old, threads)
    finished = [family for family in families if family.is_gone and _was_finished(new, family, families)]
    for step in in_order([family for family in families if not any(family is one for one in finished)]):
        match step:
            case Make(family=family):
                yield _copy_thread(old, new, family)
            case End(family=family):
                new.store.commit(DeleteThread(thread_id=family.thread.id))
    for family in finished:
        yield CopyReport(entries=len(family.own))
        for keeper in stand_ins(family, families):
            if _holds(new, keeper.thread):
                new.store.commit(DeleteThread(thread_id=keeper.thread.id))
    for thread in threads:
        _compare(old, new, thread.id)


def _families(old: Journal, threads: Sequence[Thread]) -> list[ThreadHistory]:
    families: list[ThreadHistory] = []
    trees: dict[str, list[Thread]] = {}
    for thread in threads:
        trees.setdefault(thread.tree, []).append(thread)
    for tree in trees.values():
        living = living_of(old, tree)
        families += [*gone_of(old, living), *living]
    return families


def _was_finished(new: Journal, gone: ThreadHistory, families: Sequence[ThreadHistory]) -> bool:
    """Whether an earlier run came as far as deleting it: others show what it left behind, and it is not there."""
    if _holds(new, gone.thread):
        return False
    return all(
        _shows(new, keeper.thread.id, keeper.base)
        or any(keeper.base in family.inherited and _shows(new, family.thread.id, keeper.base) for family in families)
        for keeper in stand_ins(gone, families)
    )


def _shows(journal: Journal, thread_id: str, entry_id: str | None) -> bool:
    try:
        return entry_id is not None and journal.entry(thread_id, entry_id).id == entry_id
    except (ThreadNotFoundError, EntryNotFoundError):
        return False


def _holds(journal: Journal, thread: Thread) -> bool:
    try:
        return plain(journal.thread(thread.id)) == plain(thread)
    except ThreadNotFoundError:
        return False


def _copy_thread(old: Journal, new: Journal, family: ThreadHistory) -> CopyReport:
    thread = family.thread
    new.store.commit(ImportThread(thread=thread, base=family.base))
    known = {entry.id for entry in new.entries(thread.id)}
    moved = len(new.reflog(thread.id))
    missing = [
        step
        for step in _history(family)
        if (step.draft.id not in known if isinstance(step, PositionedDraft) else step.number > moved)
    ]
    blobs = sum(
        import_steps(old, new, thread.id, missing[start : start + _CHUNK]) for start in range(0, len(missing), _CHUNK)
    )
    copied = sum(isinstance(step, PositionedDraft) for step in missing)
    return CopyReport(
        threads=int(not family.is_gone),
        entries=len(family.own),
        moves=len(family.moves),
        copied=copied,
        blobs=blobs,
    )


def _history(family: ThreadHistory) -> Iterator[PositionedDraft | Move]:
    """Entries and moves, woven as they happened: a move that starts at the present leaf comes before the next entry,
    because that leaf would not come back without one."""
    leaf = family.base
    moves = deque(family.moves)
    for entry in family.own:
        while moves and moves[0].from_entry == leaf:
            leaf = moves[0].to_entry
            yield moves.popleft()
        yield PositionedDraft(parent=entry.parent, draft=_draft(entry))
        leaf = entry.id
    yield from moves


def _draft(entry: Entry) -> Draft:
    payload, body = validate_and_encode(entry.payload)
    messages, tokens = weight_of(payload)
    return Draft(
        id=entry.id,
        payload=payload,
        body=body,
        created_ns=entry.created_ns,
        turn_id=entry.turn_id,
        messages=messages,
        tokens=tokens,
    )


def _compare(old: Journal, new: Journal, thread_id: str) -> None:
    """Everything that a reader could see of a thread, on both sides."""
    for mine, theirs in zip_longest(old.entries(thread_id), new.entries(thread_id)):
        if mine is None or theirs is None or _mark(mine) != _mark(theirs):
            raise CopyMismatchError(thread_id, (mine or theirs).id)
    is_same = plain(old.thread(thread_id)) == plain(new.thread(thread_id))
    if not is_same or old.thread(thread_id).leaf != new.thread(thread_id).leaf:
        raise CopyMismatchError(thread_id, "")
    if old.reflog(thread_id) != new.reflog(thread_id):
        raise CopyMismatchError(thread_id, "")


def _mark(entry: Entry) -> tuple[object, ...]:
    return (
        entry.id, entry.parent, entry.thread_id, entry.created_ns, entry.turn_id, content_hash(entry.payload),
    )  # fmt: skip


def _added(one: CopyReport, other: CopyReport) -> CopyReport:
    return CopyReport(
        threads=one.threads + other.threads,
        entries=one.entries + other.entries,
        moves=one.moves + other.moves,
        copied=one.copied + other.copied,
        blobs=one.blobs + other.blobs,
    )
