"""The invariants of a store, checked over its whole content by ``doctor`` and by the tests of every store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from sessiontree.errors import BlobNotFoundError, DamagedDataError
from sessiontree.model import Lease, Move, UnknownPayload
from sessiontree.model._base import Progress, counted
from sessiontree.model.blobs import Blobs, check_blob, data_of
from sessiontree.model.codec import DAMAGED, encode_payload
from sessiontree.model.manifest import reachable
from sessiontree.stores.commands import Draft
from sessiontree.stores.queries import Finding
from sessiontree.stores.rules.reflog import replay
from sessiontree.stores.rules.state import BlobRoots, Node, ThreadState

__all__ = ["Content", "blob_findings", "findings_in"]


class Content(Protocol):
    """Everything in a store, as the checks read it."""

    @property
    def states(self) -> Mapping[str, ThreadState]:
        """Threads by id."""
        ...

    @property
    def nodes(self) -> Mapping[int, Node]:
        """Entries by key."""
        ...

    @property
    def leases(self) -> Mapping[int, Lease]:
        """Leases by thread key."""
        ...

    @property
    def reflogs(self) -> Mapping[int, Sequence[Move]]:
        """Moves by thread key."""
        ...

    def draft(self, node: Node) -> Draft:
        """The content of an entry."""
        ...


def findings_in(content: Content, place: str, progress: Progress | None = None) -> list[Finding]:
    """List every broken invariant of threads, entries, leases and reflogs. ``progress`` counts entries."""
    return [
        *_entry_findings(content, place, progress),
        *_thread_findings(content, place),
        *_lease_findings(content, place),
        *_reflog_findings(content, place),
    ]


def blob_findings(roots: BlobRoots, blobs: Blobs, hashes: Iterable[str], place: str) -> list[Finding]:
    """List blobs that an entry needs and that are missing, and blobs that do not match their hash."""
    damaged = {finding.problem: finding for name in hashes for finding in _blob_findings(blobs, name, place)}
    missing: set[str] = set()
    for manifest in roots.manifests:
        try:
            missing |= blobs.missing_blobs(reachable([manifest], lambda name: data_of(blobs.blobs([name])[0])))
        except BlobNotFoundError as error:
            missing.add(error.hash)
        except DamagedDataError:
            continue
    lost = [_finding("blob", place, f"blob {name} is missing and a checkpoint needs it") for name in sorted(missing)]
    gone = sorted(blobs.missing_blobs(roots.artifacts)) if roots.artifacts else ()
    lost += [_finding("blob", place, f"artifact {name} is missing and an entry refers to it") for name in gone]
    return [*damaged.values(), *lost]


def _blob_findings(blobs: Blobs, name: str, place: str) -> Iterator[Finding]:
    try:
        check_blob(blobs.blobs([name])[0])
    except DamagedDataError as error:
        yield _finding("blob", place, f"{error.place} is damaged: {error.problem}")


def _entry_findings(content: Content, place: str, progress: Progress | None) -> Iterator[Finding]:
    for node in counted(content.nodes.values(), progress):
        yield from _position_findings(content, place, node)
        draft = content.draft(node)
        if isinstance(draft.payload, UnknownPayload) and draft.payload.type == DAMAGED:
            yield _finding("content", place, "the content cannot be read", entry=node.id)
        elif encode_payload(draft.payload) != draft.body:
            yield _finding("content", place, "the content differs from what was written", entry=node.id)


def _position_findings(content: Content, place: str, node: Node) -> Iterator[Finding]:
    parent = None if node.parent is None else content.nodes.get(node.parent)
    if node.parent is not None and parent is None:
        yield _finding("parent", place, "the parent is missing", entry=node.id)
        return
    if node.parent is not None and node.parent >= node.key:
        yield _finding("cycle", place, "the parent is not older than the entry", entry=node.id)
    draft = content.draft(node)
    before = (parent.depth, parent.messages, parent.tokens) if parent else (0, 0, 0)
    expected = (before[0] + 1, before[1] + draft.messages, before[2] + draft.tokens)
    if (node.depth, node.messages, node.tokens) != expected:
        yield _finding("counters", place, f"the counters are not {expected}", entry=node.id)


def _thread_findings(content: Content, place: str) -> Iterator[Finding]:
    for state in content.states.values():
        for name, node in (("leaf", state.leaf), ("fork point", state.base)):
            if node is not None and content.nodes.get(node.key) != node:
                yield _finding("leaf", place, f"the {name} {node.id!r} is missing", thread=state.meta.id)


def _lease_findings(content: Content, place: str) -> Iterator[Finding]:
    fences = {state.key: state for state in content.states.values()}
    for key, lease in content.leases.items():
        state = fences.get(key)
        if state is None:
            yield _finding("lease", place, "a lease has no thread", thread=lease.thread_id)
        elif lease.token > state.fence:
            yield _finding("lease", place, "the token is above the fence", thread=lease.thread_id)


def _reflog_findings(content: Content, place: str) -> Iterator[Finding]:
    by_key = {state.key: state for state in content.states.values()}
    for key, moves in content.reflogs.items():
        state = by_key.get(key)
        if state is None:
            yield _finding("reflog", place, f"{len(moves)} moves have no thread")
        elif [move.number for move in moves] != list(range(1, len(moves) + 1)) or state.moves != len(moves):
            yield _finding("reflog", place, "the moves are not numbered without gaps", thread=state.meta.id)
        else:
            yield from _replay_findings(moves, place, state)


def _replay_findings(moves: Sequence[Move], place: str, state: ThreadState) -> Iterator[Finding]:
    try:
        replay(moves)
    except IndexError:
        yield _finding("reflog", place, "an undo or redo has nothing to go back to", thread=state.meta.id)


def _finding(kind: str, place: str, problem: str, *, thread: str = "", entry: str = "") -> Finding:
    return Finding(kind=kind, place=place, problem=problem, thread_id=thread, entry_id=entry)
