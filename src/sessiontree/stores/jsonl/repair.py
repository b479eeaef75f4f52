"""Findings in tree files, and every change of a file other than an append: torn ends, deletes, repairs, fork pointers.

A file is rewritten beside itself and renamed into place; a reader of the old file sees that its inode changed.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from sessiontree.model._base import Progress
from sessiontree.stores._io import Files, syncing
from sessiontree.stores._tree_state import TreeState
from sessiontree.stores.check import findings_in
from sessiontree.stores.jsonl.layout import TREE_SUFFIX, Layout, name_of
from sessiontree.stores.jsonl.lines import (
    FORMAT,
    EntryLine,
    LeaseLine,
    Line,
    Located,
    MoveLine,
    ThreadLine,
    TreeLine,
    UnknownLine,
    changed_line,
    encode_line,
)
from sessiontree.stores.jsonl.replay import TREE, Problem
from sessiontree.stores.jsonl.tree import Tree
from sessiontree.stores.queries import Finding
from sessiontree.stores.rules.state import ERASED_BODY, DropThread, PutErased

__all__ = [
    "Removal",
    "cut_torn_end",
    "erase_entries",
    "findings_of",
    "lines_without",
    "new_path",
    "point_to",
    "removal_of",
    "remove_thread",
    "repair_tree",
    "stage",
]


_CHUNK = 1 << 20


def findings_of(tree: Tree, layout: Layout, progress: Progress | None = None) -> list[Finding]:
    """List what is wrong with a tree file and its content."""
    return [*_file_findings(tree), *_name_findings(tree, layout), *findings_in(tree.state, tree.place, progress)]


def repair_tree(tree: Tree, layout: Layout, files: Files) -> list[Finding]:
    """Repair what can be repaired and return it. Bytes that are cut out are kept in ``torn/``."""
    found = [finding for finding in findings_of(tree, layout) if finding.is_repairable]
    if tree.replay.newer_format or not found:
        return []
    for finding in found:
        if finding.kind == "pointer":
            point_to(tree.tree_id or "", finding.thread_id, layout, files)
    if tree.torn is not None:
        cut_torn_end(tree, layout, files)
    kinds = {finding.kind for finding in found}
    if kinds - {"torn", "pointer", "name"}:
        _rewrite_repaired(tree, layout, files)
    if "name" in kinds:
        files.replace(tree.path, layout.tree(name_of(tree.tree_id or "")))
    return found


def cut_torn_end(tree: Tree, layout: Layout, files: Files) -> None:
    """Cut a file after its last complete command; the torn bytes are kept in ``torn/``."""
    assert tree.torn is not None
    _set_aside(tree, tree.torn.offset, tree.torn.length, layout, files)
    file = files.open_append(tree.path)
    try:
        files.truncate(file, tree.torn.offset)
        with syncing():
            files.sync(file)
    finally:
        os.close(file)
    tree.torn = None


def remove_thread(tree: Tree, removal: Removal, layout: Layout, files: Files) -> None:
    """Rewrite a file without a thread and the removed entries; remove it with its last thread."""
    for path in layout.leftovers(tree.name):
        files.remove(path)
    if set(tree.state.states) == {removal.thread_id}:
        new_path(tree.path).unlink(missing_ok=True)
        files.remove(tree.path)
    else:
        _rewrite(tree, lines_without(tree, [removal]), files)


def removal_of(drop: DropThread, state: TreeState) -> Removal:
    """What a delete removes from the file."""
    return Removal(drop.state.meta.id, frozenset(state.nodes[key].id for key in drop.entries))


def erase_entries(tree: Tree, erased: PutErased, new: Sequence[bytes], files: Files) -> None:
    """Rewrite a file without the contents of entries, and with new lines at its end."""
    _rewrite(tree, chain(_with_erased(tree, erased), new), files)


def point_to(tree_id: str, thread_id: str, layout: Layout, files: Files) -> None:
    """Write the pointer from a fork to its tree; an older, dangling pointer is overwritten."""
    files.put(layout.pointer(thread_id), msgspec.json.encode(tree_id) + b"\n")


def _file_findings(tree: Tree) -> Iterator[Finding]:
    if tree.torn is not None:
        yield _finding(tree, "torn", f"{tree.torn.problem}: {tree.torn.length} bytes", tree.torn.offset)
    for damage in tree.damage:
        yield _finding(tree, "damage", damage.problem, damage.offset)
    if tree.end > 0 and not tree.replay.has_header:
        yield _finding(tree, "header", "the first line is missing", 0)
    for problem in tree.problems:
        yield _line_finding(tree, problem)


def _line_finding(tree: Tree, problem: Problem) -> Finding:
    is_cycle = problem.kind == "parent" and tree.state.find(TREE, problem.parent_id) is not None
    return Finding(
        kind="cycle" if is_cycle else problem.kind,
        place=tree.place,
        problem=problem.text,
        offset=problem.offset,
        thread_id=problem.thread_id,
        entry_id=problem.entry_id,
        is_repairable=problem.is_useless or problem.thread_id in tree.replay.recovered,
    )


def _name_findings(tree: Tree, layout: Layout) -> Iterator[Finding]:
    if tree.tree_id is not None and tree.name != name_of(tree.tree_id):
        problem = f"the file contains tree {tree.tree_id!r} and should be named {name_of(tree.tree_id) + TREE_SUFFIX!r}"
        is_free = not layout.tree(name_of(tree.tree_id)).exists()
        yield Finding(kind="name", place=tree.place, problem=problem, is_repairable=is_free)
        return
    for thread_id in tree.state.states:
        if thread_id != tree.tree_id and layout.tree_of_fork(thread_id) != tree.tree_id:
            yield Finding(
                kind="pointer",
                place=str(layout.pointer(thread_id)),
                problem="the fork has no pointer to its tree",
                thread_id=thread_id,
                is_repairable=True,
            )


def _finding(tree: Tree, kind: str, problem: str, offset: int) -> Finding:
    return Finding(kind=kind, place=tree.place, problem=problem, offset=offset, is_repairable=True)


def _rewrite_repaired(tree: Tree, layout: Layout, files: Files) -> None:
    """Rewrite a file without its damaged and useless lines, which are kept in ``torn/``, and with its missing lines."""
    useless = [(problem.offset, problem.length) for problem in tree.problems if problem.is_useless]
    for offset, length in [(bad.offset, bad.length) for bad in tree.damage] + useless:
        _set_aside(tree, offset, length, layout, files)
    _rewrite(tree, _repaired_lines(tree, {offset for offset, _ in useless}), files)


def _set_aside(tree: Tree, offset: int, length: int, layout: Layout, files: Files) -> None:
    taken = {path.name for path in layout.leftovers(tree.name)}
    number = 1
    name = f"{tree.name}{TREE_SUFFIX}.{offset}.torn"
    while name in taken:
        number += 1
        name = f"{tree.name}{TREE_SUFFIX}.{offset}.{number}.torn"
    files.put(layout.torn / name, tree.text(offset, length))


def _header(tree: Tree) -> Iterator[bytes]:
    if tree.tree_id is not None:
        yield encode_line(TreeLine(format=FORMAT, tree=tree.tree_id, last=tree.state.last_entry_key))


class Removal(NamedTuple):
    """A deleted thread, and the ids of the entries that are deleted with it."""

    thread_id: str
    entries: frozenset[str]

    def left_of(self, line: Line, text: bytes) -> bytes:
        """What is left of a line: nothing, or the line, which for an entry that a fork still sees is changed."""
        if _is_removed(line, self.thread_id, self.entries):
            return b""
        if isinstance(line, EntryLine) and line.thread == self.thread_id:
            return changed_line(text.removesuffix(b"\n"), 1, is_kept=True)
        return text


def lines_without(tree: Tree, removals: Sequence[Removal]) -> Iterator[bytes]:
    """The lines of a file without deleted threads."""
    yield from _header(tree)
    for group in tree.groups():
        for item in group:
            text = tree.text(item.offset, item.length) + b"\n"
            for removal in removals:
                text = text and removal.left_of(item.line, text)
            if text:
                yield text


def _with_erased(tree: Tree, erased: PutErased) -> Iterator[bytes]:
    entry_ids = {node.id for node in erased.nodes}
    for group in tree.groups():
        for item in group:
            text = tree.text(item.offset, item.length)
            if isinstance(item.line, EntryLine) and item.line.id in entry_ids:
                yield changed_line(text, item.line.lines, payload=ERASED_BODY)
            elif isinstance(item.line, ThreadLine) and item.line.thread.title in erased.titles:
                yield changed_line(text, item.line.lines, thread=replace(item.line.thread, title=""))
            else:
                yield text + b"\n"


def _is_removed(line: Line, thread_id: str, removed: Collection[str]) -> bool:
    match line:
        case TreeLine():
            return True
        case ThreadLine(thread=thread):
            return thread.id == thread_id
        case EntryLine(id=entry_id):
            return entry_id in removed
        case MoveLine(thread=owner) | LeaseLine(thread=owner) | UnknownLine(thread=owner):
            return bool(owner == thread_id)


def _repaired_lines(tree: Tree, useless: Collection[int]) -> Iterator[bytes]:
    yield from _header(tree)
    recovered = dict(tree.replay.recovered)
    for group in tree.groups():
        kept = [item for item in group if not isinstance(item.line, TreeLine) and item.offset not in useless]
        for item in kept[:1]:
            if isinstance(item.line, EntryLine) and (meta := recovered.pop(item.line.thread, None)) is not None:
                yield encode_line(ThreadLine(thread=meta, base=_base_id(tree, meta.id)))
        yield from _regrouped(tree, kept)


def _base_id(tree: Tree, thread_id: str) -> str | None:
    base = tree.state.states[thread_id].base
    return base.id if base else None


def _regrouped(tree: Tree, kept: Sequence[Located]) -> Iterator[bytes]:
    """The lines of one command; the first has the number of those that are left."""
    for number, item in enumerate(kept):
        text = tree.text(item.offset, item.length)
        lines = len(kept) if number == 0 else 1
        yield text + b"\n" if item.line.lines == lines else changed_line(text, lines)


def new_path(path: Path) -> Path:
    """Where the new content of a file is before it replaces the file."""
    return path.with_name(path.name + ".new")


def _rewrite(tree: Tree, texts: Iterable[bytes], files: Files) -> None:
    stage(tree.path, texts, files)
    try:
        files.replace(new_path(tree.path), tree.path)
    except BaseException:
        with contextlib.suppress(OSError):
            new_path(tree.path).unlink(missing_ok=True)
        raise


def stage(path: Path, texts: Iterable[bytes], files: Files) -> None:
    """Write the new content of a file durably beside it."""
    new = new_path(path)
    new.unlink(missing_ok=True)
    file = files.open_append(new)
    try:
        for block in _blocks(texts):
            files.append(file, block)
        files.sync(file)
    except BaseException:
        with contextlib.suppress(OSError):
            new.unlink(missing_ok=True)
        raise
    finally:
        os.close(file)


def _blocks(texts: Iterable[bytes]) -> Iterator[bytes]:
    block: list[bytes] = []
    size = 0
    for text in texts:
        block.append(text)
        size += len(text)
        if size >= _CHUNK:
            yield b"".join(block)
            block.clear()
            size = 0
    if block:
        yield b"".join(block)
