"""A batch of commands of the JSONL store: decided one after the other, then appended to the tree files together."""

from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from sessiontree.errors import (
    CommitUnknownError,
)
from sessiontree.model import Thread
from sessiontree.stores._io import Files, syncing
from sessiontree.stores.commands import (
    Append,
    Change,
    ChangeResult,
    CreateThread,
    DeleteDocument,
    Fork,
    ImportThread,
    PurgeDocuments,
    PutBlobs,
    SetDocument,
    appended_ids,
)
from sessiontree.stores.jsonl.commit_log import CommitLog, LoggedLines
from sessiontree.stores.jsonl.layout import Layout, name_of
from sessiontree.stores.jsonl.lines import (
    FORMAT,
    EntryLine,
    LeaseLine,
    Line,
    MoveLine,
    Span,
    ThreadLine,
    TreeLine,
    decode_line,
    encode_line,
)
from sessiontree.stores.jsonl.repair import Removal, cut_torn_end, point_to, removal_of
from sessiontree.stores.jsonl.tree import Tree, TreeCache
from sessiontree.stores.protocol import Outcome
from sessiontree.stores.rules.decide import decide
from sessiontree.stores.rules.state import (
    DropBlobs,
    DropThread,
    Fact,
    PutEntry,
    PutLease,
    PutMove,
    PutThread,
    ThreadState,
)

__all__ = ["Batch", "PendingLines", "texts_of"]


class Batch:
    """Commands that are written together, under the process lock.

    Call ``execute`` for each command, then ``append``; on any failure ``undo``.
    """

    def __init__(self, trees: TreeCache, layout: Layout, log: CommitLog, files: Files, *, is_synced: bool) -> None:
        self.torn_ends = 0
        self.artifacts: set[str] = set()
        self._trees = trees
        self._layout = layout
        self._files = files
        self._is_synced = is_synced
        self._pending: dict[str, PendingLines] = {}
        self._log = log
        self._log_size: int | None = None
        """What the log had before this batch wrote to it."""
        self._opened: dict[str, tuple[int, int]] = {}
        """For each tree its open file, and the size that it had."""
        self.unsynced: list[int] = []
        """Files that the caller must sync: duplicates, because a reader may close a tree meanwhile."""
        self._commands: list[Change] = []

    @property
    def pending(self) -> Sequence[PendingLines]:
        """What the trees are about to get."""
        return list(self._pending.values())

    @property
    def has_log(self) -> bool:
        """Whether lines were written to the log, which the caller must sync then."""
        return self._log_size is not None

    @property
    def trees(self) -> Sequence[str]:
        """The names of the trees whose files were opened."""
        return list(self._opened)

    def execute(self, command: Change) -> Outcome:
        """Decide a command and keep its lines for ``append``; return its result or the refusal."""
        try:
            return self.run(command)
        except OSError:
            raise
        except Exception as refusal:  # noqa: BLE001  nothing is written yet; the other commands of the batch go on
            return refusal

    def run(self, command: Change) -> ChangeResult:
        """Decide a command and keep its lines; return its result or raise the refusal."""
        pending = self._pending_for(command)
        decision = decide(command, pending.tree.state)
        texts = texts_of(decision.facts)
        for fact, text in zip(decision.facts, texts, strict=True):
            self._apply(fact, text, pending)
        self._commands.append(command)
        return decision.result

    def append(self) -> None:
        """Write the lines of every tree.

        A tree without new lines is synced too, unless it is known to be durable: a result may depend on a line that another
        process has not synced yet.
        """
        changed = [
            pending
            for pending in self._pending.values()
            if pending.texts or not self._log.covers(pending.tree.name, pending.tree.end)
        ]
        for pending in changed:
            self._opened[pending.tree.name] = (pending.tree.open_append(self._files), pending.tree.end)
        # Before the first line is written: the next append assumes that the file name is durable.
        if self._is_synced and any(pending.tree.end == 0 for pending in changed):
            with syncing():
                self._files.sync_folder(self._layout.trees)
        records = [
            LoggedLines(pending.tree.name, pending.tree.end, b"".join(pending.texts))
            for pending in changed
            if pending.texts
        ]
        for record in records:
            self._files.append(self._opened[record.tree][0], record.text)
        if self._is_synced:
            logged = self._write_log(records)
            for pending in changed:
                self._log.note(pending.tree.name, pending.end)
                if pending.tree.name not in logged:
                    self.unsynced.append(os.dup(self._opened[pending.tree.name][0]))
        self._finish()

    def undo(self) -> None:
        """Cut the files to their former size and forget the loaded trees."""
        try:
            for file, size in self._opened.values():
                self._files.truncate(file, size)
            if self._log_size is not None:
                self._log.cut(self._log_size)
        except OSError as error:
            entry_ids = [name for command in self._commands for name in appended_ids(command)]
            raise CommitUnknownError(str(self._layout.folder), str(error), entry_ids) from error
        finally:
            for name in self._pending:
                self._trees.forget(name)
                self._log.forget(name)
            self.close()

    def close(self) -> None:
        """Close the files that were to be synced."""
        while self.unsynced:
            os.close(self.unsynced.pop())

    def _write_log(self, written: Sequence[LoggedLines]) -> frozenset[str]:
        """Write the lines of several trees to the log and return their names; a single file is as cheap to sync."""
        covered = [record for record in written if self._log.covers(record.tree, record.offset)]
        if len(covered) < 2:
            return frozenset()
        self._log_size = self._log.size
        self._log.append(covered)
        return frozenset(record.tree for record in covered)

    def _finish(self) -> None:
        """Bring the loaded trees up to date with what was written."""
        for name, pending in self._pending.items():
            if pending.end == 0:
                self._trees.forget(name)
            elif pending.texts:
                pending.tree.wrote(pending.end, pending.texts[-1], os.fstat(self._opened[name][0]))
            self._trees.unpin(name)

    def _pending_for(self, command: Change) -> PendingLines:
        tree = self._tree_for(command)
        pending = self._pending.get(tree.name)
        if pending is None:
            tree.check_writable()
            if tree.torn is not None:
                cut_torn_end(tree, self._layout, self._files)
                self.torn_ends += 1
            self._trees.pin(tree)
            pending = self._pending[tree.name] = PendingLines(tree)
        return pending

    def _tree_for(self, command: Change) -> Tree:
        match command:
            case CreateThread(thread=thread) | Append(create=Thread() as thread):
                return self._trees.find_or_new(thread.id)
            case ImportThread(thread=thread):
                name = name_of(thread.tree)
                return self._trees.get(name) or self._trees.new(name)
            case Fork(source_id=thread_id):
                return self._trees.with_thread(thread_id)
            case PutBlobs() | SetDocument() | DeleteDocument() | PurgeDocuments():
                raise AssertionError("blobs and documents are written by Writer: they belong to no tree")
            case _:
                return self._trees.with_thread(command.thread_id)

    def _apply(self, fact: Fact, text: bytes, pending: PendingLines) -> None:
        tree = pending.tree
        match fact:
            case PutThread(state=state):
                self._write_first(state, pending)
            case PutEntry(node=node, draft=draft):
                tree.drafts[node.key] = draft
                tree.spans[node.key] = Span(pending.end, len(text) - 1)
                self.artifacts.update(draft.artifacts)
            case DropThread():
                pending.remove(removal_of(fact, tree.state))
            case DropBlobs():
                pending.has_garbage = True
        tree.state.apply(fact)
        if text:
            pending.add(text)

    def _write_first(self, state: ThreadState, pending: PendingLines) -> None:
        """Write what must precede a thread's first line: the header of a new file, the pointer to a fork."""
        thread_id, tree_id = state.meta.id, state.meta.tree
        if pending.end == 0:
            pending.tree.replay.begin(tree_id)
            pending.add(encode_line(TreeLine(format=FORMAT, tree=tree_id)))
        if thread_id != tree_id and thread_id not in pending.tree.state.states:
            point_to(tree_id, thread_id, self._layout, self._files)


class PendingLines:
    """The lines that a tree file is about to get, and the threads that it is about to lose."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.texts: list[bytes] = []
        self.removals: list[Removal] = []
        self.has_garbage = False
        """Whether there are blobs that nothing needs after the commit."""
        self.end = tree.end

    def remove(self, removal: Removal) -> None:
        """Delete a thread, also from the new lines."""
        self.removals.append(removal)
        lines = [(decode_line(text.removesuffix(b"\n")), text) for text in self.texts]
        left = [text if isinstance(line, TreeLine) else removal.left_of(line, text) for line, text in lines]
        self.texts = [text for text in left if text]

    def add(self, text: bytes) -> None:
        self.texts.append(text)
        self.end += len(text)


def texts_of(facts: Sequence[Fact]) -> list[bytes]:
    """The line of each fact, empty if it needs none; the first line has the number of lines."""
    lines = [_line_of(fact) for fact in facts]
    count = len(lines) - lines.count(None)
    if count > 1:
        number, first = next((number, line) for number, line in enumerate(lines) if line is not None)
        lines[number] = replace(first, lines=count)
    return [b"" if line is None else encode_line(line) for line in lines]


def _line_of(fact: Fact) -> Line | None:
    match fact:
        case PutThread(state=state):
            base = state.base.id if state.base else None
            return ThreadLine(thread=state.meta, base=base, updated=state.updated_ns)
        case PutEntry(state=state, node=node, parent_id=parent_id, draft=draft, is_aside=is_aside):
            return EntryLine(
                n=node.key,
                id=draft.id,
                thread=state.meta.id,
                parent=parent_id,
                at=draft.created_ns,
                turn=draft.turn_id,
                messages=draft.messages,
                tokens=draft.tokens,
                is_aside=is_aside,
                payload=msgspec.Raw(draft.body),
            )
        case PutMove(move=move):
            return MoveLine(
                thread=move.thread_id,
                number=move.number,
                from_entry=move.from_entry,
                to_entry=move.to_entry,
                reason=move.reason,
                at=move.at_ns,
            )
        case PutLease(state=state, lease=lease):
            return LeaseLine(thread=state.meta.id, lease=lease)
        case _:
            return None
