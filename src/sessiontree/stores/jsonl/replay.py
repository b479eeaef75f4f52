"""Rebuild the state of a tree from the lines of its file.

A line that contradicts the lines before it (a second entry with the same id, a missing parent, a move without a thread)
does not stop the replay: it is skipped, or shown without its parent, and reported as a ``Problem``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from msgspec.structs import replace

from sessiontree.model import Checkpoint, Move, Thread
from sessiontree.model.artifacts import MAY_HAVE_ARTIFACTS, artifacts_of
from sessiontree.model.codec import decode_stored_payload, stored_type
from sessiontree.stores._tree_state import TreeState
from sessiontree.stores.commands import Draft
from sessiontree.stores.jsonl.lines import (
    FORMAT,
    EntryLine,
    LeaseLine,
    Located,
    MoveLine,
    Span,
    ThreadLine,
    TreeLine,
    UnknownLine,
)
from sessiontree.stores.rules.reflog import replay
from sessiontree.stores.rules.state import ERASED_BODY, Node, PutHead, PutLease, PutMove, PutThread, ThreadState

__all__ = ["TREE", "FileState", "Problem", "Replay"]


TREE = 0
"""The key of the only tree in a file."""

_CHECKPOINT = b'{"type":"checkpoint"'

ProblemKind = Literal["duplicate", "parent", "thread", "reflog", "format"]


class Problem(NamedTuple):
    """A line that contradicts the lines before it. ``is_useless`` lines are skipped, and removed by a repair."""

    kind: ProblemKind
    offset: int
    length: int
    text: str
    thread_id: str = ""
    entry_id: str = ""
    parent_id: str = ""
    is_useless: bool = False


class FileState(TreeState):
    """The state of one file. ``find_elsewhere`` looks a thread up in the other files."""

    def __init__(self, draft_of: Callable[[Node], Draft]) -> None:
        super().__init__(draft_of)
        self.find_elsewhere: Callable[[str], ThreadState | None] = lambda _: None
        self.erased: set[int] = set()
        """Keys of the entries whose content was erased."""

    def thread(self, thread_id: str) -> ThreadState | None:
        return self.states.get(thread_id) or self.find_elsewhere(thread_id)

    def tree_of(self, thread_id: str) -> int:
        return TREE

    @property
    def last_entry_key(self) -> int:
        """The highest entry number ever given."""
        return self._last_entry_key

    def reserve(self, key: int) -> None:
        """Give only entry numbers higher than this one from now on."""
        self._last_entry_key = max(self._last_entry_key, key)


class Replay:
    """Applies lines to a state, command by command, and records where each entry is in the file."""

    def __init__(self, state: FileState, spans: dict[int, Span]) -> None:
        self.tree_id: str | None = None
        self.has_header = False
        self.newer_format = 0
        self.problems: list[Problem] = []
        self.recovered: dict[str, Thread] = {}
        """Threads whose own line is missing, known from their entries."""
        self._state = state
        self._spans = spans
        self._deleted_owners: dict[str, int] = {}

    def begin(self, tree_id: str) -> None:
        """Note the header of a file that is about to be created."""
        self.has_header = True
        self.tree_id = tree_id

    def apply(self, group: Sequence[Located]) -> None:
        """Apply the lines of one command."""
        entries = [item for item in group if isinstance(item.line, EntryLine)]
        last = entries[-1] if entries else None
        for item in group:
            match item.line:
                case TreeLine() as line:
                    self._header(item, line)
                case ThreadLine() as line:
                    self._thread(line)
                case EntryLine() as line:
                    self._entry(item, line, is_last=item is last)
                case MoveLine() as line:
                    self._move(item, line)
                case LeaseLine() as line:
                    self._lease(item, line)
                case UnknownLine():
                    pass

    def _header(self, item: Located, line: TreeLine) -> None:
        if self.has_header:
            self._note(item, "duplicate", "a second header", is_useless=True)
            return
        self.has_header = True
        self.tree_id = line.tree
        self._state.reserve(line.last)
        if line.format > FORMAT:
            self.newer_format = line.format
            self._note(item, "format", f"format {line.format} is newer than {FORMAT}")

    def _thread(self, line: ThreadLine) -> None:
        self.tree_id = self.tree_id or line.thread.tree
        state = self._state.states.get(line.thread.id)
        if state is not None:
            updated = state.updated_ns if line.updated is None else line.updated
            self._state.apply(PutThread(replace(state, meta=line.thread, updated_ns=updated)))
            return
        base = None if line.base is None else self._state.find(TREE, line.base)
        self._begin(line.thread, base)

    def _begin(self, meta: Thread, base: Node | None) -> ThreadState:
        key = self._state.next_thread_key()
        state = ThreadState(key=key, tree=TREE, meta=meta, leaf=base, base=base, updated_ns=meta.updated_ns)
        self._state.apply(PutThread(state))
        return state

    def _entry(self, item: Located, line: EntryLine, *, is_last: bool) -> None:
        if self._state.find(TREE, line.id) is not None:
            text = "an earlier line has an entry with this id; the first one counts"
            self._note(item, "duplicate", text, thread=line.thread, entry=line.id, is_useless=True)
            return
        parent = None if line.parent is None else self._state.find(TREE, line.parent)
        if line.parent is not None and parent is None:
            text = f"no earlier line has its parent {line.parent!r}; it is shown as a root"
            self._note(item, "parent", text, thread=line.thread, entry=line.id, parent=line.parent)
        state = self._state.states.get(line.thread)
        if state is None and not line.is_kept:
            state = self._recover(item, line, parent)
        owner = self._deleted_owner(line.thread) if state is None or line.is_kept else state.key
        node = self._node(line, owner, parent)
        self._spans[node.key] = Span(item.offset, item.length)
        body = bytes(line.payload)
        self._state.add_node(TREE, node, stored_type(body))
        if body == ERASED_BODY:
            self._state.erased.add(node.key)
        if body.startswith(_CHECKPOINT) and isinstance(payload := decode_stored_payload(body), Checkpoint):
            self._state.checkpoints[node.key] = payload.manifest
        if MAY_HAVE_ARTIFACTS in body and (names := artifacts_of(decode_stored_payload(body))):
            self._state.artifacts[node.key] = names
        if state is not None and not line.is_kept:
            updated = max(state.updated_ns, line.at) if is_last else state.updated_ns
            leaf = state.leaf if line.is_aside else node
            self._state.apply(PutHead(replace(state, leaf=leaf, updated_ns=updated)))

    def _node(self, line: EntryLine, owner: int, parent: Node | None) -> Node:
        highest = next(reversed(self._state.nodes), 0)
        key = max(line.n, highest + 1)
        if parent is None:
            return Node(key, line.id, owner, None, 1, line.messages, line.tokens)
        messages, tokens = parent.messages + line.messages, parent.tokens + line.tokens
        return Node(key, line.id, owner, parent.key, parent.depth + 1, messages, tokens)

    def _recover(self, item: Located, line: EntryLine, parent: Node | None) -> ThreadState:
        meta = Thread(id=line.thread, tree=self.tree_id or line.thread, created_ns=line.at, updated_ns=line.at)
        text = "the line of the thread is missing; it is shown without its metadata"
        self._note(item, "thread", text, thread=line.thread)
        self.recovered[line.thread] = meta
        return self._begin(meta, parent)

    def _deleted_owner(self, thread_id: str) -> int:
        """A key for a deleted thread whose entries a fork still sees."""
        if thread_id not in self._deleted_owners:
            key = self._state.next_thread_key()
            self._state.owner_ids[key] = thread_id
            self._deleted_owners[thread_id] = key
        return self._deleted_owners[thread_id]

    def _move(self, item: Located, line: MoveLine) -> None:
        state = self._state.states.get(line.thread)
        if state is None or line.number <= state.moves:
            text = "a move of a missing thread" if state is None else f"an earlier line has move {line.number}"
            self._note(item, "reflog", text, thread=line.thread, is_useless=True)
            return
        leaf = None if line.to_entry is None else self._state.find(TREE, line.to_entry)
        if line.to_entry is not None and leaf is None:
            self._note(item, "reflog", f"the leaf moved to {line.to_entry!r}, which is missing", thread=line.thread)
            leaf = state.leaf
        move = self._move_of(item, line, state)
        updated = state.updated_ns if line.reason == "branch" else max(state.updated_ns, line.at)
        moved = replace(state, leaf=leaf, moves=move.number, updated_ns=updated)
        self._state.apply(PutMove(moved, move))
        self._state.apply(PutHead(moved))

    def _move_of(self, item: Located, line: MoveLine, state: ThreadState) -> Move:
        """The move of a line, renumbered after a gap; an undo or redo that cannot be replayed becomes a plain move."""
        move = Move(
            number=line.number,
            thread_id=line.thread,
            from_entry=line.from_entry,
            to_entry=line.to_entry,
            reason=line.reason,
            at_ns=line.at,
        )
        has_gap = self._has_gap(line.thread)
        if line.number == state.moves + 1 and not has_gap:
            return move
        if not has_gap:
            self._note(item, "reflog", f"moves before number {line.number} are missing", thread=line.thread)
        move = replace(move, number=state.moves + 1)
        try:
            replay([*self._state.moves(state), move])
        except IndexError:
            return replace(move, reason="move")
        return move

    def _has_gap(self, thread_id: str) -> bool:
        return any(problem.kind == "reflog" and problem.thread_id == thread_id for problem in self.problems)

    def _lease(self, item: Located, line: LeaseLine) -> None:
        state = self._state.states.get(line.thread)
        if state is None:
            self._note(item, "thread", "a lease of a missing thread", thread=line.thread, is_useless=True)
            return
        if line.lease is not None and line.lease.token > state.fence:
            state = replace(state, fence=line.lease.token)
            self._state.apply(PutHead(state))
        self._state.apply(PutLease(state, line.lease))

    def _note(
        self,
        item: Located,
        kind: ProblemKind,
        text: str,
        *,
        thread: str = "",
        entry: str = "",
        parent: str = "",
        is_useless: bool = False,
    ) -> None:
        length = item.length + 1
        self.problems.append(Problem(kind, item.offset, length, text, thread, entry, parent, is_useless))
