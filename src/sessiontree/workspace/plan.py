"""The plan of a restore: which paths it changes, its conflicts, and the actions in an order that can be undone. Pure."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

from msgspec.structs import replace

from sessiontree.errors import InvalidInputError
from sessiontree.model._base import Record
from sessiontree.model.manifest import ManifestItem, Tree, with_known_modes
from sessiontree.workspace.ignore import Conflicts, Rules, ignored_by

__all__ = ["Action", "Conflict", "RestorePlan", "RestoreTarget", "Step", "actions_for", "make_plan", "with_stats"]


StepKind = Literal["create", "change", "delete", "mode"]


class Step(Record, frozen=True, kw_only=True):
    """One path that a restore changes: what is there now, and what will be."""

    kind: StepKind
    path: str
    old: ManifestItem | None = None
    new: ManifestItem | None = None


class Conflict(Record, frozen=True, kw_only=True):
    """A path that a restore would overwrite: ``changed`` outside a turn, or ``untracked`` by any checkpoint."""

    path: str
    reason: Literal["changed", "untracked"]


class RestorePlan(Record, frozen=True, kw_only=True):
    """What a restore does, or did.

    ``left_alone`` are foreign files that stay, because the checkpoint never held them. ``before`` is the id of the
    checkpoint that was taken before the files were changed.
    """

    root: str
    steps: tuple[Step, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    left_alone: tuple[str, ...] = ()
    before: str = ""

    @property
    def create(self) -> tuple[str, ...]:
        """Paths to create."""
        return self._of("create")

    @property
    def change(self) -> tuple[str, ...]:
        """Paths whose content changes."""
        return self._of("change")

    @property
    def delete(self) -> tuple[str, ...]:
        """Paths to delete."""
        return self._of("delete")

    @property
    def mode(self) -> tuple[str, ...]:
        """Paths whose permissions change."""
        return self._of("mode")

    @property
    def is_empty(self) -> bool:
        """Whether the folder is already as it should be."""
        return not self.steps

    def _of(self, kind: StepKind) -> tuple[str, ...]:
        return tuple(step.path for step in self.steps if step.kind == kind)


class RestoreTarget(NamedTuple):
    """The files to restore, the paths that the checkpoint left out, and the ignore files of that time by folder.

    ``chosen`` are the files and folders to restore alone; ``None`` is all of them.
    """

    tree: Tree
    left_out: frozenset[str]
    ignore_texts: dict[str, list[bytes]]
    chosen: frozenset[str] | None = None

    def never_knew(self, path: str, item: ManifestItem, rules: Rules) -> bool:
        """Return whether the checkpoint would not hold a path: it was left out, or is ignored."""
        parts = path.split("/")
        if any("/".join(parts[:depth]) in self.left_out for depth in range(len(parts) + 1)):
            return True
        return ignored_by(rules, path, is_folder=item.kind == "folder", texts=self.ignore_texts)


Lookup = Callable[[Iterable[str], Tree], Collection[str]]
"""Which of some paths have something untracked at or in them, given the tracked tree."""


def make_plan(
    root: str,
    target: RestoreTarget,
    current: Tree,
    *,
    foreign: Collection[str],
    rules: Rules,
    occupied: Lookup,
    crowded: Lookup,
    conflicts: Conflicts,
) -> RestorePlan:
    """Return what a restore would do to a folder that holds ``current``.

    ``foreign`` are paths that changed outside the thread's turns. ``occupied`` returns the paths that hold something
    untracked, ``crowded`` the folders with something untracked in them.
    """
    steps = {step.path: step for step in _steps(with_known_modes(target.tree, current), current)}
    if target.chosen is not None:
        _check_known(target.chosen, target.tree, current)
        steps = _steps_for(target.chosen, steps)
    left_alone = {
        step.path
        for step in steps.values()
        if step.kind == "delete"
        and step.old
        and (step.path in foreign or target.never_knew(step.path, step.old, rules))
    }
    left_alone |= set(crowded((step.path for step in steps.values() if _is_folder_gone(step)), current))
    for path in left_alone:
        del steps[path]
    left_alone |= _folders_in_use(steps, left_alone)
    found = [
        *(Conflict(path=path, reason="changed") for path in steps if path in foreign),
        *(Conflict(path=path, reason="untracked") for path in occupied(_new_paths(steps, current), current)),
        *(Conflict(path=path, reason="untracked") for path in _blocked(steps, current, crowded)),
    ]
    if conflicts == "keep_mine":
        _keep(steps, {conflict.path for conflict in found})
    ordered = tuple(steps[path] for path in sorted(steps))
    return RestorePlan(
        root=root,
        steps=ordered,
        conflicts=tuple(sorted(found, key=lambda conflict: conflict.path)),
        left_alone=tuple(sorted(left_alone)),
    )


def _steps(target: Tree, current: Tree) -> Iterator[Step]:
    for path, new in target.items():
        old = current.get(path)
        if old is None:
            yield Step(kind="create", path=path, new=new)
        elif old != new:
            yield Step(kind=_kind_of_change(old, new), path=path, old=old, new=new)
    for path, old in current.items():
        if path not in target:
            yield Step(kind="delete", path=path, old=old)


def _check_known(chosen: Collection[str], target: Tree, current: Tree) -> None:
    """Raise for a path that neither the checkpoint nor the folder has: it is misspelled."""
    for path in sorted(chosen):
        if path not in target and path not in current:
            problem = f"there is nothing to restore at {path!r}: neither the checkpoint nor the folder has it"
            raise InvalidInputError(f"{problem}; paths are relative to the folder")


def _steps_for(chosen: frozenset[str], steps: dict[str, Step]) -> dict[str, Step]:
    """Return the steps at and below some paths, and those that make the folders which these need."""
    kept = {path: step for path, step in steps.items() if not chosen.isdisjoint([path, *_parents(path)])}
    for path in [path for path, step in kept.items() if step.new is not None]:
        kept |= {parent: steps[parent] for parent in _parents(path) if parent in steps}
    return kept


def _parents(path: str) -> list[str]:
    """Return the folders that a path is in, the outermost first."""
    parts = path.split("/")
    return ["/".join(parts[:depth]) for depth in range(1, len(parts))]


def _kind_of_change(old: ManifestItem, new: ManifestItem) -> StepKind:
    is_mode = old.kind == new.kind and old.content == new.content
    return "mode" if is_mode else "change"


def _new_paths(steps: dict[str, Step], current: Tree) -> list[str]:
    """Return the paths to create at which nothing is tracked now."""
    return [step.path for step in steps.values() if step.new is not None and step.path not in current]


def _is_folder_gone(step: Step) -> bool:
    return step.kind == "delete" and step.old is not None and step.old.kind == "folder"


def _blocked(steps: dict[str, Step], current: Tree, crowded: Lookup) -> set[str]:
    """Return the folders that would become something else although they hold something untracked."""
    blocked: set[str] = set()
    for step in steps.values():
        if step.old and step.new and step.old.kind == "folder" != step.new.kind:
            inside = [
                path
                for path, item in current.items()
                if item.kind == "folder" and f"{path}/".startswith(step.path + "/")
            ]
            if crowded(inside, current):
                blocked.add(step.path)
    return blocked


def _folders_in_use(steps: dict[str, Step], kept: Collection[str]) -> set[str]:
    """Remove from the steps, and return, the folders that were to be deleted but hold something that stays."""
    in_use: set[str] = set()
    for path in kept:
        folder = path.rpartition("/")[0]
        while folder and folder in steps and steps[folder].kind == "delete":
            del steps[folder]
            in_use.add(folder)
            folder = folder.rpartition("/")[0]
    return in_use


def _keep(steps: dict[str, Step], mine: Collection[str]) -> None:
    """Drop the steps for some paths, and those that are impossible while these paths stay."""
    for path in mine:
        steps.pop(path, None)
    _folders_in_use(steps, mine)
    for path in list(steps):
        if any(parent in mine for parent in _parents(path)):
            del steps[path]


ActionKind = Literal["chmod", "remove", "remove_folder", "make_folder", "put", "replace"]

_WRITABLE = 0o300


class Action(Record, frozen=True, kw_only=True):
    """One change to the disk. ``number`` names the staged file and the place where the old one is kept.

    ``inode`` and ``mtime_ns`` are those of the staged file, to tell it from a file that was put in its place later.
    """

    kind: ActionKind
    path: bytes
    number: int = 0
    old_mode: int = 0
    new_mode: int = 0
    inode: int = 0
    mtime_ns: int = 0


def actions_for(plan: RestorePlan, current: Tree, root_mode: int) -> tuple[tuple[Action, ...], dict[int, ManifestItem]]:
    """Return the actions, and the items to stage for them by number."""
    staged: dict[int, ManifestItem] = {}
    actions = [
        *_open_up(plan.steps, current, root_mode),
        *_removals(plan.steps),
        *_new_folders(plan.steps),
        *_contents(plan.steps, staged),
        *_modes(plan.steps, current, root_mode),
    ]
    return tuple(actions), staged


def with_stats(actions: Iterable[Action], stats: Mapping[int, os.stat_result]) -> tuple[Action, ...]:
    """Return the actions with the inode and time of the files that were staged for them."""
    return tuple(
        replace(action, inode=stats[action.number].st_ino, mtime_ns=stats[action.number].st_mtime_ns)
        if action.kind in {"put", "replace"}
        else action
        for action in actions
    )


def _open_up(steps: Iterable[Step], current: Tree, root_mode: int) -> Iterator[Action]:
    """Make folders writable that the owner may not write to, while something in them changes."""
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


def _contents(steps: Iterable[Step], staged: dict[int, ManifestItem]) -> Iterator[Action]:
    for number, step in enumerate(steps):
        if step.new is None or step.new.kind == "folder" or step.kind == "mode":
            continue
        staged[number] = step.new
        is_there = step.old is not None and step.old.kind != "folder"
        yield Action(kind="replace" if is_there else "put", path=_raw(step.path), number=number)


def _modes(steps: Iterable[Step], current: Tree, root_mode: int) -> Iterator[Action]:
    """Set final modes, deepest path first, so that a folder is made read-only after its content."""
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
    """Whether a folder becomes something else or the reverse; a file can be renamed over a link, but not over a folder."""
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
