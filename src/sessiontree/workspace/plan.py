"""Plan: what a restore would do to a folder, decided before anything is touched. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Literal

from sessiontree.manifest import Item, Tree, with_known_modes
from sessiontree.model.record import Record
from sessiontree.workspace.settings import Conflicts

__all__ = ["Conflict", "Plan", "Step", "make_plan"]

StepKind = Literal["create", "change", "delete", "mode"]


class Step(Record, frozen=True, kw_only=True):
    """One path that a restore would touch: what is there now, and what will be."""

    kind: StepKind
    path: str
    old: Item | None = None
    new: Item | None = None


class Conflict(Record, frozen=True, kw_only=True):
    """``changed``: somebody else worked on it since. ``untracked``: it is in no checkpoint and would be lost."""

    path: str
    reason: Literal["changed", "untracked"]


class Plan(Record, frozen=True, kw_only=True):
    """What a restore does, or did. ``left_alone`` are files of others that the checkpoint never knew.

    ``before`` is the checkpoint that was taken of the folder right before it was changed.
    """

    root: str
    steps: tuple[Step, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    left_alone: tuple[str, ...] = ()
    before: str = ""

    @property
    def create(self) -> tuple[str, ...]:
        return self._of("create")

    @property
    def change(self) -> tuple[str, ...]:
        return self._of("change")

    @property
    def delete(self) -> tuple[str, ...]:
        return self._of("delete")

    @property
    def mode(self) -> tuple[str, ...]:
        return self._of("mode")

    @property
    def is_empty(self) -> bool:
        return not self.steps

    def _of(self, kind: StepKind) -> tuple[str, ...]:
        return tuple(step.path for step in self.steps if step.kind == kind)


def make_plan(
    root: str,
    *,
    target: Tree,
    current: Tree,
    foreign: Collection[str],
    never_knew: Callable[[str, Item], bool],
    occupied: Callable[[Iterable[str]], Collection[str]],
    crowded: Callable[[Iterable[str]], Collection[str]],
    conflicts: Conflicts,
) -> Plan:
    """``foreign`` are paths that somebody else changed.

    ``occupied`` tells which of some paths hold something untracked, ``crowded`` which of some folders have something
    untracked in them.
    """
    steps = {step.path: step for step in _steps(with_known_modes(target, current), current)}
    left_alone = {
        step.path
        for step in steps.values()
        if step.kind == "delete" and step.old and (step.path in foreign or never_knew(step.path, step.old))
    }
    left_alone |= set(crowded(step.path for step in steps.values() if _is_folder_gone(step)))
    for path in left_alone:
        del steps[path]
    left_alone |= _folders_in_use(steps, left_alone)
    found = [
        *(Conflict(path=path, reason="changed") for path in steps if path in foreign),
        *(Conflict(path=path, reason="untracked") for path in occupied(_new_paths(steps, current))),
        *(Conflict(path=path, reason="untracked") for path in _blocked(steps, current, crowded)),
    ]
    if conflicts == "keep_mine":
        _keep(steps, {conflict.path for conflict in found})
    ordered = tuple(steps[path] for path in sorted(steps))
    return Plan(
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


def _kind_of_change(old: Item, new: Item) -> StepKind:
    is_mode = old.kind == new.kind and old.content == new.content
    return "mode" if is_mode else "change"


def _new_paths(steps: dict[str, Step], current: Tree) -> list[str]:
    """Paths that will be made, where nothing that is tracked stands now."""
    return [step.path for step in steps.values() if step.new is not None and step.path not in current]


def _is_folder_gone(step: Step) -> bool:
    return step.kind == "delete" and step.old is not None and step.old.kind == "folder"


def _blocked(steps: dict[str, Step], current: Tree, crowded: Callable[[Iterable[str]], Collection[str]]) -> set[str]:
    """Folders that are to become something else although something untracked is in them."""
    blocked: set[str] = set()
    for step in steps.values():
        if step.old and step.new and step.old.kind == "folder" != step.new.kind:
            inside = [
                path
                for path, item in current.items()
                if item.kind == "folder" and f"{path}/".startswith(step.path + "/")
            ]
            if crowded(inside):
                blocked.add(step.path)
    return blocked


def _folders_in_use(steps: dict[str, Step], kept: Collection[str]) -> set[str]:
    """Folders that were to go but hold something that stays; they are taken out of the steps."""
    in_use: set[str] = set()
    for path in kept:
        folder = path.rpartition("/")[0]
        while folder and folder in steps and steps[folder].kind == "delete":
            del steps[folder]
            in_use.add(folder)
            folder = folder.rpartition("/")[0]
    return in_use


def _keep(steps: dict[str, Step], mine: Collection[str]) -> None:
    """Leave some paths as they are, and with them what cannot be done while they stay."""
    for path in mine:
        steps.pop(path, None)
    _folders_in_use(steps, mine)
    for path in list(steps):
        parts = path.split("/")
        if any("/".join(parts[:depth]) in mine for depth in range(1, len(parts))):
            del steps[path]
