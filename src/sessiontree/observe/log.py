"""What a journal does, in the standard library's logging.

One logger for each part: ``sessiontree.journal``, ``.commits``, ``.groups``, ``.reads``, ``.search``, ``.compaction``,
``.leases``. The fields of an event are attributes of the log record (``extra``), so that a JSON formatter shows them.
"""

from __future__ import annotations

import logging

from sessiontree.model.observed import CommitDone, GroupWritten, Observed, Observer, OperationDone, ReadDone

__all__ = ["LEASE_CONFLICTS", "log_observer", "part_of"]


LEASE_CONFLICTS = frozenset({"ActiveTurnError", "FencedError", "CompactionClaimedError", "ClaimLostError"})
"""Errors that mean that another worker holds, or took, what was asked for."""


def log_observer(*, slow_seconds: float | None = 1.0) -> Observer:
    """Return an observer that logs everything at the level DEBUG, and what is slow as a WARNING.

    Lease conflicts are logged as INFO. With ``slow_seconds=None`` nothing is slow.

    >>> import sessiontree as st
    >>> with st.open("memory:", observer=log_observer(slow_seconds=0.5)) as journal:
    ...     thread = journal.create_thread()
    """
    loggers = {name: logging.getLogger(f"sessiontree.{name}") for name in _PARTS}

    def observe(event: Observed) -> None:
        part = part_of(event)
        is_slow = slow_seconds is not None and event.seconds >= slow_seconds
        level = logging.WARNING if is_slow else logging.INFO if part == "leases" else logging.DEBUG
        logger = loggers[part]
        if logger.isEnabledFor(level):
            what = "slow: " if is_slow else ""
            ending = f", {event.error}" if event.error else ""
            text = f"{what}{_name(event)} took {event.seconds * 1000:.1f} ms{ending}"
            logger.log(level, "%s", text, extra=_fields(event))

    return observe


_PARTS = ("journal", "commits", "groups", "reads", "search", "compaction", "leases")


def part_of(event: Observed) -> str:
    """Return which part of the library an event belongs to: the last word of its logger's name."""
    match event:
        case CommitDone(error=error) if error in LEASE_CONFLICTS:
            return "leases"
        case OperationDone(name=name):
            return "compaction" if "compact" in name else "journal"
        case CommitDone():
            return "commits"
        case ReadDone(name=name):
            return "search" if name == "Search" else "reads"
        case GroupWritten():
            return "groups"


def _name(event: Observed) -> str:
    return f"a group of {event.size}" if isinstance(event, GroupWritten) else event.name


def _fields(event: Observed) -> dict[str, object]:
    """The fields of an event under names that a log record does not have itself."""
    names = {"name": "operation", "place": "store"}
    return {names.get(field, field): getattr(event, field) for field in event.__struct_fields__}
