"""What is wrong with the files of a store, and how it is mended."""

from __future__ import annotations

from collections.abc import Iterator

from sessiontree._engine.fs import Files
from sessiontree.check import findings_in
from sessiontree.progress import Progress
from sessiontree.queries import Finding
from sessiontree.stores.jsonl.layout import Layout, name_of
from sessiontree.stores.jsonl.mending import cut_torn_end, point_to, restore
from sessiontree.stores.jsonl.replay import TREE, Problem
from sessiontree.stores.jsonl.tree import Tree

__all__ = ["findings_of", "mend"]


def findings_of(tree: Tree, layout: Layout, progress: Progress | None = None) -> list[Finding]:
    return [*_in_file(tree), *_in_names(tree, layout), *findings_in(tree.state, tree.place, progress)]


def mend(tree: Tree, layout: Layout, files: Files) -> list[Finding]:
    """Mend what can be mended and say what it was. The bytes that are cut out are kept."""
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
        restore(tree, layout, files)
    if "name" in kinds:
        files.replace(tree.path, layout.tree(name_of(tree.tree_id or "")))
    return found


def _in_file(tree: Tree) -> Iterator[Finding]:
    if tree.torn is not None:
        yield _finding(tree, "torn", f"{tree.torn.problem}: {tree.torn.length} bytes", tree.torn.offset)
    for damage in tree.damage:
        yield _finding(tree, "damage", damage.problem, damage.offset)
    if tree.end > 0 and not tree.replay.has_header:
        yield _finding(tree, "header", "the first line is lost", 0)
    for problem in tree.problems:
        yield _in_line(tree, problem)


def _in_line(tree: Tree, problem: Problem) -> Finding:
    is_cycle = problem.kind == "parent" and tree.state.find(TREE, problem.parent_id) is not None
    return Finding(
        kind="cycle" if is_cycle else problem.kind,
        place=tree.place,
        problem=problem.text,
        offset=problem.offset,
        thread_id=problem.thread_id,
        entry_id=problem.entry_id,
        is_repairable=problem.is_useless or problem.thread_id in tree.replay.invented,
    )


def _in_names(tree: Tree, layout: Layout) -> Iterator[Finding]:
    if tree.tree_id is not None and tree.name != name_of(tree.tree_id):
        problem = f"the file holds tree {tree.tree_id!r}, whose name is {name_of(tree.tree_id)!r}"
        is_free = not layout.tree(name_of(tree.tree_id)).exists()
        yield Finding(kind="name", place=tree.place, problem=problem, is_repairable=is_free)
        return
    for thread_id in tree.state.states:
        if thread_id != tree.tree_id and layout.home_of_fork(thread_id) != tree.tree_id:
            yield Finding(
                kind="pointer",
                place=str(layout.pointer(thread_id)),
                problem="nothing leads to this fork",
                thread_id=thread_id,
                is_repairable=True,
            )


def _finding(tree: Tree, kind: str, problem: str, offset: int) -> Finding:
    return Finding(kind=kind, place=tree.place, problem=problem, offset=offset, is_repairable=True)
