"""The states of a session and the moves between them.

Two of them are no one's to write: a session is archived because its thread is, and compacting because somebody holds
the claim on it. So no other way of archiving and no crash can leave a session in a state that is not true.

>>> check_move("bot:web:ann", "active", "idle")
>>> can_move("archived", "idle")
False

When a session is idle, has had its day, is archived, is deleted. Pure: the time is passed in.

>>> from datetime import UTC
>>> rules = Lifetimes(daily_reset_hour=4, zone=UTC)
>>> four_o_clock = 4 * 3600 * 10**9
>>> is_past_daily_reset(four_o_clock - 1, four_o_clock, rules), is_past_daily_reset(four_o_clock, four_o_clock + 1, rules)
(True, False)
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from types import MappingProxyType
from typing import Any, Literal, cast, get_args

from sessiontree.errors import InvalidInputError, InvalidTransitionError
from sessiontree.model import NANOSECONDS, Thread, moment
from sessiontree.model._base import Record

__all__ = [
    "TRANSITIONS",
    "Lifetimes",
    "SessionState",
    "can_move",
    "check_move",
    "is_over",
    "is_past_daily_reset",
    "last_interaction_ns",
    "last_use_ns",
    "note_of",
    "state_of",
    "taken_up_ns",
    "written_state",
]


WrittenState = Literal["active", "idle", "suspended"]
SessionState = Literal["active", "idle", "compacting", "suspended", "archived"]

TRANSITIONS: Mapping[SessionState, tuple[SessionState, ...]] = MappingProxyType(
    {
        "active": ("idle", "compacting", "suspended", "archived"),
        "idle": ("active", "compacting", "suspended", "archived"),
        "compacting": ("active", "idle", "suspended", "archived"),
        "suspended": ("active", "archived"),
        "archived": ("active",),
    }
)


def can_move(state: SessionState, wanted: SessionState) -> bool:
    return wanted in TRANSITIONS[state]


def check_move(key: str, state: SessionState, wanted: SessionState) -> None:
    if not can_move(state, wanted):
        raise InvalidTransitionError(key, state, wanted, TRANSITIONS[state])


def state_of(thread: Thread, now_ns: int) -> SessionState:
    """A session's state at a moment."""
    if thread.is_archived:
        return "archived"
    written = written_state(thread)
    claim = thread.compaction_claim
    is_claimed = claim is not None and not claim.is_expired(now_ns)
    return "compacting" if is_claimed and written != "suspended" else written


def written_state(thread: Thread) -> WrittenState:
    """What a manager wrote; anything else counts as active."""
    return cast("WrittenState", thread.state) if thread.state in get_args(WrittenState) else "active"


_HOURS = 24
_DAY = _HOURS * 3600.0
_NOTE = "_session"


class Lifetimes(Record, frozen=True, kw_only=True):
    """``None`` switches a rule off. Idle and archive count from the last message, delete from the archiving."""

    idle_after_seconds: float | None = 30 * 60.0
    archive_after_seconds: float | None = 7 * _DAY
    delete_after_seconds: float | None = 30 * _DAY
    daily_reset_hour: int | None = None
    zone: tzinfo = UTC

    def __post_init__(self) -> None:
        ages = (self.idle_after_seconds, self.archive_after_seconds, self.delete_after_seconds)
        if not all(age is None or age >= 0 for age in ages):
            raise InvalidInputError(f"a lifetime is a number of seconds from 0 up, or None for never; got {self}")
        if self.daily_reset_hour is not None and not 0 <= self.daily_reset_hour < _HOURS:
            raise InvalidInputError(f"daily_reset_hour lies between 0 and 23, not {self.daily_reset_hour}")


def is_over(since_ns: int, now_ns: int, seconds: float | None) -> bool:
    return seconds is not None and now_ns - since_ns >= seconds * NANOSECONDS


def is_past_daily_reset(started_ns: int, now_ns: int, lifetimes: Lifetimes) -> bool:
    """Whether a session started before the last daily reset."""
    if lifetimes.daily_reset_hour is None:
        return False
    now = moment(now_ns).astimezone(lifetimes.zone)
    # An hour that comes twice when summer time ends counts once, the first time.
    reset = now.replace(hour=lifetimes.daily_reset_hour, minute=0, second=0, microsecond=0, fold=0)
    if reset.astimezone(UTC) > moment(now_ns):
        reset = _a_day_before(reset)
    return moment(started_ns) < reset.astimezone(UTC)


def last_interaction_ns(thread: Thread) -> int:
    """When somebody last said something: a compaction is an entry too, but no interaction."""
    note = note_of(thread)
    is_untouched = "interaction_ns" in note and note.get("leaf") == thread.leaf
    return int(note["interaction_ns"]) if is_untouched else thread.updated_ns


def taken_up_ns(thread: Thread) -> int:
    """When somebody last took a session up on purpose: began it, brought it back or resumed it."""
    return max(thread.created_ns, thread.archive_changed_ns, int(note_of(thread).get("resumed_ns", 0)))


def last_use_ns(thread: Thread) -> int:
    return max(last_interaction_ns(thread), taken_up_ns(thread))


def note_of(thread: Thread) -> dict[str, Any]:
    """What the manager itself keeps in a thread's custom data."""
    note = thread.custom.get(_NOTE)
    return note if isinstance(note, dict) else {}


def with_note(custom: dict[str, Any], **changes: Any) -> dict[str, Any]:
    note = custom.get(_NOTE)
    return {**custom, _NOTE: {**(note if isinstance(note, dict) else {}), **changes}}


def without_note(custom: dict[str, Any]) -> dict[str, Any]:
    """The custom data that belongs to the caller; names that begin with an underscore are ours."""
    return {name: value for name, value in custom.items() if not name.startswith("_")}


def _a_day_before(reset: datetime) -> datetime:
    """The same hour on the wall the day before, whatever summer time does in between."""
    return (reset.replace(tzinfo=None) - timedelta(days=1)).replace(tzinfo=reset.tzinfo)
