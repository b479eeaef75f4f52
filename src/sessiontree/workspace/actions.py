"""Actions: a plan as single changes to the disk, in an order in which each can be done and undone. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from sessiontree.manifest import Item, Tree
from sessiontree.model.record import Record
from sessiontree.workspace.plan import Plan, Step

__all__ = ["Action", "actions_for"]

ActionKind = Literal["chmod", "remove", "remove_folder", "make_folder", "put", "replace"]

_WRITABLE = 0o300


class Action(Record, frozen=True, kw_only=True):
    """``number`` names the staged file to put and the place where the old one is kept meanwhile.

    ``inode`` and ``mtime_ns`` are those of the staged file: whatever else is found in its place is somebody else's.
    """

    kind: ActionKind
    path: bytes
    number: int = 0
    old_mode: int = 0
    new_mode: int = 0
    inode: int = 0
    mtime_ns: int = 0


def actions_for(plan: Plan, current: Tree, root_mode: int) -> tuple[tuple[Action, ...], dict[int, Item]]:
    """The actions, and what must be staged for them under which number."""
    staged: dict[int, Item] = {}
    actions = [
        *_open_up(plan.steps, current, root_mode),
        *_removals(plan.steps),
        *_new_folders(plan.steps),
        *_contents(plan.steps, staged),
        *_modes(plan.steps, current, root_mode),
    ]
    return tuple(actions), staged


def _open_up(steps: Iterable[Step], current: Tree, root_mode: int) -> Iterator[Action]:
    """Folders that their owner may not write to, made writable while something in them changes."""
    for path, mode in _closed_parents(steps, current, root_mode):
        yield _chmod(path, mode, mode | _WRITABLE)


def _removals(steps: Iterable[Step]) -> Iterator[Action]:
    for number, step in sorted(enumerate(steps), key=lambda pair: pair[1].path, reverse=True):
        if step.old is None or (step.new is not None and not _changes_kind(step)):
            continue
        if step.old.kind == "folder":
            yield Action(kind="remove_folder", path=_raw(step.path), old_mode=step.old.mode)
        else:
            yield Action(kind="remove", path=_raw(step.path), number=number)


def _new_folders(steps: Iterable[Step]) -> Iterator[Action]:
    for step in sorted(steps, key=lambda step: step.path):
        if step.new is not None and step.new.kind == "folder" and (step.old is None or _changes_kind(step)):
            yield Action(kind="make_folder", path=_raw(step.path))


def _contents(steps: Iterable[Step], staged: dict[int, Item]) -> Iterator[Action]:
    for number, step in enumerate(steps):
        if step.new is None or step.new.kind == "folder" or step.kind == "mode":
            continue
        staged[number] = step.new
        is_there = step.old is not None and step.old.kind != "folder"
        yield Action(kind="replace" if is_there else "put", path=_raw(step.path), number=number)


def _modes(steps: Iterable[Step], current: Tree, root_mode: int) -> Iterator[Action]:
    """Deepest first, so that a folder is closed after what is in it."""
    wanted: dict[str, tuple[int, int]] = {}
    for path, mode in _closed_parents(steps, current, root_mode):
        wanted[path] = (mode | _WRITABLE, mode)
    for step in steps:
        if step.new is None or (_changes_kind(step) and step.new.kind != "folder"):
            wanted.pop(step.path, None)
        elif step.kind == "mode" and step.old is not None:
            wanted[step.path] = (wanted.get(step.path, (step.old.mode, 0))[0], step.new.mode)
        elif step.new.kind == "folder":
            wanted[step.path] = (0o700, step.new.mode)
    for path in sorted(wanted, reverse=True):
        old, new = wanted[path]
        if old != new:
            yield _chmod(path, old, new)


def _closed_parents(steps: Iterable[Step], current: Tree, root_mode: int) -> list[tuple[str, int]]:
    parents = {step.path.rpartition("/")[0] for step in steps if step.kind != "mode"}
    parents |= {step.path for step in steps if step.kind == "delete" and step.old and step.old.kind == "folder"}
    closed: list[tuple[str, int]] = []
    for path in sorted(parents):
        folder = current.get(path)
        mode = root_mode if path == "" else folder.mode if folder is not None and folder.kind == "folder" else _WRITABLE
        if mode & _WRITABLE != _WRITABLE:
            closed.append((path, mode))
    return closed


def _changes_kind(step: Step) -> bool:
    """A file may be renamed over a link and back; a folder must go first."""
    return (
        step.old is not None
        and step.new is not None
        and "folder" in {step.old.kind, step.new.kind}
        and (step.old.kind != step.new.kind)
    )


def _chmod(path: str, old: int, new: int) -> Action:
    return Action(kind="chmod", path=_raw(path), old_mode=old, new_mode=new)


def _raw(path: str) -> bytes:
    return path.encode("utf-8", "surrogateescape")
