"""Session states, the transitions between them, and the times at which they are due. Pure.

Only ``active``, ``idle`` and ``suspended`` are stored. ``archived`` follows from the thread's own flag and
``compacting`` from its compaction claim, so neither a crash nor another program can leave a wrong state behind.

>>> check_transition("bot:web:ann", "active", "idle")
>>> can_transition("archived", "idle")
False
>>> from datetime import UTC
>>> lifetimes = Lifetimes(daily_reset_hour=4, zone=UTC)
>>> four_o_clock = 4 * 3600 * 10**9
>>> is_past_daily_reset(four_o_clock - 1, four_o_clock, lifetimes)
True
>>> is_past_daily_reset(four_o_clock, four_o_clock + 1, lifetimes)
False
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from types import MappingProxyType
from typing import Any, Literal, cast, get_args

from sessiontree.errors import InvalidInputError, InvalidTransitionError
from sessiontree.journal.operations.memory import REFRESHED_WINDOW
from sessiontree.model import NANOSECONDS, Thread, ThreadFields, moment
from sessiontree.model._base import Record

__all__ = [
    "TRANSITIONS",
    "Lifetimes",
    "SessionState",
    "StoredState",
    "can_transition",
    "check_transition",
    "is_over",
    "is_past_daily_reset",
    "is_replaced",
    "keeping_interaction",
    "last_interaction_ns",
    "last_start_ns",
    "last_use_ns",
    "session_window",
    "state_of",
    "stored_state",
    "with_manager_data",
    "without_manager_data",
]


StoredState = Literal["active", "idle", "suspended"]
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

_HOURS = 24
_DAY = _HOURS * 3600.0
_MANAGER_DATA = "_session"
_RESERVED = frozenset({_MANAGER_DATA, REFRESHED_WINDOW})


class Lifetimes(Record, frozen=True, kw_only=True):
    """When sessions become idle, are archived, deleted and reset; ``None`` switches a rule off.

    Idle and archive count from the last use, delete from the archiving. ``daily_reset_hour`` is an hour in ``zone``.
    """

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
            raise InvalidInputError(f"daily_reset_hour must be between 0 and 23, not {self.daily_reset_hour}")


def can_transition(state: SessionState, wanted: SessionState) -> bool:
    """Whether a session may go from one state to another."""
    return wanted in TRANSITIONS[state]


def check_transition(key: str, state: SessionState, wanted: SessionState) -> None:
    """Raise InvalidTransitionError if ``can_transition`` is false."""
    if not can_transition(state, wanted):
        raise InvalidTransitionError(key, state, wanted, TRANSITIONS[state])


def state_of(thread: Thread, now_ns: int) -> SessionState:
    """The state of a session at a time."""
    if thread.is_archived:
        return "archived"
    stored = stored_state(thread)
    claim = thread.compaction_claim
    is_claimed = claim is not None and not claim.is_expired(now_ns)
    return "compacting" if is_claimed and stored != "suspended" else stored


def stored_state(thread: Thread) -> StoredState:
    """The state that a manager stored; an unknown one counts as active."""
    return cast("StoredState", thread.state) if thread.state in get_args(StoredState) else "active"


def is_over(since_ns: int, now_ns: int, seconds: float | None) -> bool:
    """Whether a lifetime that began at ``since_ns`` has passed."""
    return seconds is not None and now_ns - since_ns >= seconds * NANOSECONDS


def is_past_daily_reset(started_ns: int, now_ns: int, lifetimes: Lifetimes) -> bool:
    """Whether a session started before the last daily reset."""
    if lifetimes.daily_reset_hour is None:
        return False
    now = moment(now_ns).astimezone(lifetimes.zone)
    # An hour that occurs twice when summer time ends counts once, the first time.
    reset = now.replace(hour=lifetimes.daily_reset_hour, minute=0, second=0, microsecond=0, fold=0)
    if reset.astimezone(UTC) > moment(now_ns):
        reset = _a_day_before(reset)
    return moment(started_ns) < reset.astimezone(UTC)


def last_interaction_ns(thread: Thread) -> int:
    """The time of the last message; a compaction or a system prompt is an entry, but not an interaction."""
    data = _manager_data(thread.custom)
    is_unchanged = "interaction_ns" in data and data.get("leaf") == thread.leaf
    return int(data["interaction_ns"]) if is_unchanged else thread.updated_ns


def keeping_interaction(thread: Thread, entry_id: str) -> ThreadFields:
    """What to change in the commit of an entry that is not an interaction, such as a compaction or a prompt."""
    return {"custom": with_manager_data(thread.custom, leaf=entry_id, interaction_ns=last_interaction_ns(thread))}


def last_start_ns(thread: Thread) -> int:
    """When a session was last created, unarchived or resumed."""
    return max(thread.created_ns, thread.archive_changed_ns, int(_manager_data(thread.custom).get("resumed_ns", 0)))


def last_use_ns(thread: Thread) -> int:
    """The later of the last interaction and the last start."""
    return max(last_interaction_ns(thread), last_start_ns(thread))


def session_window(thread: Thread) -> int | None:
    """The size of the window that was set for this session."""
    found = _manager_data(thread.custom).get("window_tokens")
    return found if isinstance(found, int) else None


def is_replaced(thread: Thread) -> bool:
    """Whether a newer conversation takes the place of this one, or is about to: what it inherits is final."""
    return thread.is_archived and bool(_manager_data(thread.custom).get("is_replaced"))


def with_manager_data(custom: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Custom data of a thread with changes to the part that belongs to the manager."""
    return {**custom, _MANAGER_DATA: {**_manager_data(custom), **changes}}


def without_manager_data(custom: dict[str, Any]) -> dict[str, Any]:
    """The part of a thread's custom data that belongs to the caller."""
    return {name: value for name, value in custom.items() if name not in _RESERVED}


def _manager_data(custom: dict[str, Any]) -> dict[str, Any]:
    data = custom.get(_MANAGER_DATA)
    return data if isinstance(data, dict) else {}


def _a_day_before(reset: datetime) -> datetime:
    """The same local time a day earlier, whether or not summer time began or ended in between."""
    return (reset.replace(tzinfo=None) - timedelta(days=1)).replace(tzinfo=reset.tzinfo)
