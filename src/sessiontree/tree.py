"""Pure questions about paths: which turns are open, how the last one ended, where a retry starts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from sessiontree.model import TERMINAL_STATUSES, Entry, RunFailure, TurnMarker, UserMessage
from sessiontree.model.entry import Label

__all__ = ["Lifecycle", "labels_of", "lifecycle", "open_turns", "retry_target"]

Lifecycle = Literal["idle", "running", "interrupted", "completed", "waiting", "failed", "cancelled"]


def open_turns(path: Iterable[Entry], entries: Iterable[Entry]) -> list[str]:
    """Ids of turns that started on the path and ended nowhere, oldest first.

    ``entries`` are all that the thread sees: a turn that was retried has its end on another branch.
    """
    ended = {entry.turn_id for entry in entries if _is_end(entry)}
    started = dict.fromkeys(
        entry.turn_id
        for entry in path
        if isinstance(entry.payload, TurnMarker) and entry.payload.status == "started" and entry.turn_id not in ended
    )
    return list(started)


def _is_end(entry: Entry) -> bool:
    return isinstance(entry.payload, TurnMarker) and entry.payload.status in TERMINAL_STATUSES


def lifecycle(path: Sequence[Entry], *, has_active_lease: bool) -> Lifecycle:
    """What the last turn marker says about the conversation; a turn without an end runs, or was interrupted."""
    for entry in reversed(path):
        match entry.payload:
            case TurnMarker(status="completed"):
                return "completed"
            case TurnMarker(status="waiting"):
                return "waiting"
            case TurnMarker(status="failed"):
                return "failed"
            case TurnMarker(status="aborted", is_recoverable=is_recoverable):
                return "interrupted" if is_recoverable else "cancelled"
            case TurnMarker(status="started" | "save_point"):
                return "running" if has_active_lease else "interrupted"
    return "idle"


def retry_target(path: Sequence[Entry]) -> str | None:
    """Where to go on after a failure: the entry before the failed turn's last save point, or the last user message."""
    failed_turn = next((entry.turn_id for entry in reversed(path) if isinstance(entry.payload, RunFailure)), None)
    for entry in reversed(path):
        match entry.payload:
            case TurnMarker(status="save_point") if failed_turn and entry.turn_id == failed_turn:
                return entry.parent
            case TurnMarker(status="started") if entry.turn_id == failed_turn:
                break
    return next((entry.id for entry in reversed(path) if isinstance(entry.payload, UserMessage)), None)


def labels_of(entries: Iterable[Entry]) -> dict[str, str]:
    """Label to entry id. An entry has one label, a label names one entry, and the newest word counts."""
    named: dict[str, str] = {}
    for entry in entries:
        match entry.payload:
            case Label(target=target, label=label):
                named = {name: place for name, place in named.items() if place != target}
                if label:
                    named[label] = target
    return named
