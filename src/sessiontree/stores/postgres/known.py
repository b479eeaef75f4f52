"""What this process knows of the threads that it used last: enough to decide most commands without reading.

What is known may be old. It is never trusted: the server compares the version of the thread before it writes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from sessiontree.model import Lease
from sessiontree.stores.commands import Draft
from sessiontree.stores.postgres.rows import ThreadHead, key_of
from sessiontree.stores.rules.state import Fact, LoggedMove, Node, PutEntry, PutHead, PutMove, PutThread, ThreadState

__all__ = ["KnownThread", "KnownThreads", "as_read"]

_MAX_THREADS = 2_000
_MAX_FACTS = 200


class KnownThread(NamedTuple):
    """A thread at one version, with entries and moves of it, which never change."""

    head: ThreadHead
    nodes: dict[str, Node]
    moves: dict[int, LoggedMove]

    def add(self, nodes: Iterable[Node], moves: Iterable[LoggedMove]) -> None:
        """Add entries and moves that were read."""
        self.nodes.update((node.id, node) for node in nodes)
        self.moves.update((logged.move.number, logged) for logged in moves if logged.move)


class KnownThreads:
    """The threads that were used last."""

    def __init__(self) -> None:
        self._threads: OrderedDict[str, KnownThread] = OrderedDict()

    def get(self, thread_id: str) -> KnownThread | None:
        """What is known of a thread."""
        return self._threads.get(thread_id)

    def forget(self, thread_ids: Iterable[str]) -> None:
        """Drop threads that were changed in other ways."""
        for thread_id in thread_ids:
            self._threads.pop(thread_id, None)

    def clear(self) -> None:
        """Drop all: a server that takes the place of another may not have everything that was written there."""
        self._threads = OrderedDict()

    def read(self, head: ThreadHead) -> KnownThread:
        """Add a thread as it was read."""
        thread_id = head.state.meta.id
        before = self._threads.get(thread_id)
        is_same = before is not None and (before.head.tree, before.head.state.key) == (head.tree, head.state.key)
        known = KnownThread(head, before.nodes, before.moves) if before and is_same else KnownThread(head, {}, {})
        if before is None or not is_same or before.head.version <= head.version:
            self._keep(thread_id, known)
        return known  # as it was read, even if a newer version is known by now

    def appended(self, thread_id: str, drafts: Sequence[Draft], version: int) -> None:
        """Add entries that were appended under the leaf, whoever else may have written before."""
        known = self._threads.get(thread_id)
        if known is None:
            return
        head = known.head
        if head.version != version - 1:
            self.forget([thread_id])
            return
        state, leaf = head.state, head.state.leaf
        for draft in drafts:
            leaf = _child(leaf, draft, state.key)
            known.nodes[draft.id] = leaf
        grown = replace(state, leaf=leaf, updated_ns=max(state.updated_ns, drafts[-1].created_ns))
        self._keep(
            thread_id, known._replace(head=replace(head, state=grown, seq=head.seq + len(drafts), version=version))
        )

    def decided(self, known: KnownThread, facts: Sequence[Fact], version: int, stamp: int) -> None:
        """Add what was decided and written."""
        head = known.head
        state, seq = head.state, head.seq
        for fact in facts:
            match fact:
                case PutEntry(node=node, parent_id=parent_id):
                    known.nodes[node.id] = _node_as_read(node, parent_id)
                    seq += 1
                case PutMove(move=move, tops=tops):
                    known.moves[move.number] = LoggedMove(move, tops)
                case PutHead(state=after) | PutThread(state=after):
                    state = after
        written = replace(head, state=as_read(state), seq=seq, version=version, stamp=stamp)
        self._keep(state.meta.id, known._replace(head=written))

    def leased(self, thread_id: str, lease: Lease | None, version: int) -> None:
        """Set the lease of a thread; it also is the highest token given out."""
        known = self._threads.get(thread_id)
        if known is None:
            return
        if known.head.version != version - 1:
            self.forget([thread_id])
            return
        fence = max(known.head.state.fence, lease.token if lease else 0)
        state = replace(known.head.state, fence=fence)
        self._keep(thread_id, known._replace(head=replace(known.head, state=state, lease=lease, version=version)))

    def _keep(self, thread_id: str, known: KnownThread) -> None:
        for facts in (known.nodes, known.moves):
            if len(facts) > _MAX_FACTS:
                facts.clear()
        threads = self._threads
        threads[thread_id] = known
        while len(threads) > _MAX_THREADS:
            threads.popitem(last=False)


def _child(parent: Node | None, draft: Draft, owner: int) -> Node:
    above = parent.key if parent else None
    depth, messages, tokens = (parent.depth, parent.messages, parent.tokens) if parent else (0, 0, 0)
    return Node(key_of(draft.id), draft.id, owner, above, depth + 1, messages + draft.messages, tokens + draft.tokens)


def as_read(state: ThreadState) -> ThreadState:
    """A state that the rules made, as it is when it is read."""
    leaf = _node_as_read(state.leaf, None) if state.leaf else None
    base = replace(state.base, key=key_of(state.base.id)) if state.base else None
    return replace(state, leaf=leaf, base=base, newest=0)


def _node_as_read(node: Node, parent_id: str | None) -> Node:
    """A node by the key that it has when it is read; the rules number new ones."""
    above = None if parent_id is None else key_of(parent_id)
    return Node(key_of(node.id), node.id, node.owner, above, node.depth, node.messages, node.tokens)
