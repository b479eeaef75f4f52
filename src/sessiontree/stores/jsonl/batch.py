"""A group of commands: decided one after the other, written to each tree file with one call."""

from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from sessiontree._engine.fs import Files
from sessiontree.commands import Append, Command, CreateThread, Fork, ImportThread, PutBlobs
from sessiontree.errors import CommitUnknownError
from sessiontree.rules import decide
from sessiontree.rules.state import Fact, PutEntry, PutLease, PutMove, PutThread, ThreadState
from sessiontree.store import Outcome
from sessiontree.stores.jsonl.layout import Layout, name_of
from sessiontree.stores.jsonl.lines import (
    FORMAT,
    EntryLine,
    LeaseLine,
    Line,
    MoveLine,
    ThreadLine,
    TreeLine,
    encode_line,
)
from sessiontree.stores.jsonl.mending import cut_torn_end, point_to, syncing
from sessiontree.stores.jsonl.shelf import Shelf
from sessiontree.stores.jsonl.tree import Tree

__all__ = ["Batch"]


class _Pending:
    """What a tree file is to get."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.texts: list[bytes] = []
        self.end = tree.end

    def add(self, text: bytes) -> None:
        self.texts.append(text)
        self.end += len(text)


class Batch:
    """Call with the gate held: ``carry_out`` each command, then ``append``; on any failure ``undo``."""

    def __init__(self, shelf: Shelf, layout: Layout, files: Files, *, is_synced: bool) -> None:
        self.torn_ends = 0
        self._shelf = shelf
        self._layout = layout
        self._files = files
        self._is_synced = is_synced
        self._pending: dict[str, _Pending] = {}
        self._opened: list[tuple[int, int]] = []
        self._entry_ids: list[str] = []

    def carry_out(self, command: Command) -> Outcome:
        try:
            pending = self._pending_for(command)
            tree = pending.tree
            decision = decide(command, tree.state)
            texts = _texts_of(decision.facts)
        except OSError:
            raise
        except Exception as refusal:  # noqa: BLE001  nothing is written yet, so the neighbours are not concerned
            return refusal
        for fact, text in zip(decision.facts, texts, strict=True):
            self._apply(fact, text, pending)
        if isinstance(command, Append):
            self._entry_ids += [draft.id for draft in command.drafts]
        return decision.result

    def append(self) -> list[int]:
        """Write every tree's lines and return the open files, for the caller to sync and close.

        A tree without new lines is synced too: the answer may rest on a line that another process has not synced yet.
        """
        for pending in self._pending.values():
            if pending.texts or pending.tree.end:
                self._write(pending)
        for name, pending in self._pending.items():
            self._shelf.unpin(name)
            if pending.tree.end == 0:
                self._shelf.forget(name)
            elif pending.texts:
                pending.tree.drafts.clear()
                pending.tree.grown_to(pending.end, pending.texts[-1])
        return [file for file, _ in self._opened]

    def undo(self) -> None:
        """Make the files what they were, and forget what was decided."""
        for name in self._pending:
            self._shelf.forget(name)
        try:
            for file, size in self._opened:
                self._files.truncate(file, size)
        except OSError as error:
            raise CommitUnknownError(str(self._layout.folder), str(error), self._entry_ids) from error
        finally:
            for file, _ in self._opened:
                os.close(file)
            self._opened.clear()

    def _write(self, pending: _Pending) -> None:
        tree = pending.tree
        file = self._files.open_append(tree.path)
        self._opened.append((file, tree.end))
        # Before the first line goes in: whoever appends next relies on the name being durable.
        if tree.end == 0 and self._is_synced:
            with syncing():
                self._files.sync_folder(tree.path.parent)
        if pending.texts:
            self._files.append(file, b"".join(pending.texts))

    def _pending_for(self, command: Command) -> _Pending:
        tree = self._tree_for(command)
        pending = self._pending.get(tree.name)
        if pending is None:
            tree.check_writable()
            if tree.torn is not None:
                cut_torn_end(tree, self._layout, self._files)
                self.torn_ends += 1
            self._shelf.pin(tree)
            pending = self._pending[tree.name] = _Pending(tree)
        return pending

    def _tree_for(self, command: Command) -> Tree:
        match command:
            case CreateThread(thread=thread):
                name = name_of(thread.id)
                found = self._shelf.find(thread.id) or self._shelf.get(name)
                return found or Tree(name, self._layout.tree(name))
            case ImportThread(thread=thread):
                name = name_of(thread.tree)
                return self._shelf.get(name) or Tree(name, self._layout.tree(name))
            case Fork(source_id=thread_id):
                return self._shelf.holding(thread_id)
            case PutBlobs():
                raise AssertionError("blobs are put by the writer: they belong to no tree")
            case _:
                return self._shelf.holding(command.thread_id)

    def _apply(self, fact: Fact, text: bytes, pending: _Pending) -> None:
        tree = pending.tree
        match fact:
            case PutThread(state=state):
                self._place(state, pending)
            case PutEntry(node=node, draft=draft):
                tree.drafts[node.key] = draft
                tree.spans[node.key] = (pending.end, len(text) - 1)
        tree.state.apply(fact)
        if text:
            pending.add(text)

    def _place(self, state: ThreadState, pending: _Pending) -> None:
        """What must stand before the first line of a thread: the header of a new file, the pointer to a fork."""
        thread_id, tree_id = state.meta.id, state.meta.tree
        if pending.end == 0:
            pending.add(encode_line(TreeLine(format=FORMAT, tree=tree_id)))
        if thread_id != tree_id and thread_id not in pending.tree.state.states:
            point_to(tree_id, thread_id, self._layout, self._files)


def _texts_of(facts: Sequence[Fact]) -> list[bytes]:
    """The line of each fact, empty where it needs none; the first line says how many there are."""
    lines = [_line_of(fact) for fact in facts]
    count = sum(line is not None for line in lines)
    texts: list[bytes] = []
    for line in lines:
        is_first = line is not None and not any(texts)
        texts.append(b"" if line is None else encode_line(replace(line, lines=count) if is_first else line))
    return texts


def _line_of(fact: Fact) -> Line | None:
    match fact:
        case PutThread(state=state):
            return ThreadLine(thread=state.meta, base=state.base.id if state.base else None)
        case PutEntry(state=state, node=node, parent_id=parent_id, draft=draft):
            return EntryLine(
                n=node.key,
                id=draft.id,
                thread=state.meta.id,
                parent=parent_id,
                at=draft.created_ns,
                turn=draft.turn_id,
                messages=draft.messages,
                tokens=draft.tokens,
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
