"""An entry in a few words.

Small plots out of characters.

A progress bar, or a clock while nobody knows how much there is; only when the work lasts longer than a second.

Times as people write and read them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from sessiontree.cli.exit_codes import UsageError
from sessiontree.errors import InvalidInputError
from sessiontree.model import (
    BranchSummary,
    Checkpoint,
    Compaction,
    Custom,
    Entry,
    Event,
    Label,
    Memory,
    Message,
    ModelChange,
    RunFailure,
    ThreadInfo,
    ToolCallPart,
    ToolResultPart,
    TurnMarker,
    UsageReport,
)
from sessiontree.model._base import Progress as Advance
from sessiontree.model.entry import ActiveToolsChange
from sessiontree.model.sanitize import one_line

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn, TaskID

__all__ = ["ago", "bar", "bars", "clock_time", "gist", "is_bookkeeping", "nanoseconds", "role_of", "sparkline"]


def role_of(entry: Entry) -> str:
    """Who speaks, or what kind of entry it is."""
    return entry.message.role if entry.message is not None else entry.type.replace("_", " ")


def is_bookkeeping(entry: Entry) -> bool:
    """Entries that a reader of the conversation does not miss."""
    match entry.payload:
        case TurnMarker(status="failed" | "aborted"):
            return False
        case TurnMarker() | UsageReport() | Event() | Label() | ModelChange() | ActiveToolsChange():
            return True
        case _:
            return False


def gist(entry: Entry, width: int) -> str:
    """The entry as one line that is safe to print."""
    if entry.message is not None:
        return one_line(_of_message(entry.message), width)
    match entry.payload:
        case TurnMarker(status=status, reason=reason):
            text = f"turn {status}" + (f": {reason}" if reason else "")
        case Compaction(reverts=reverts) if reverts:
            text = "compaction taken back"
        case Compaction(summary=summary, tokens_before=before, tokens_after=after):
            text = f"compacted {before} → {after} tokens: {summary}"
        case RunFailure(error=text) | ThreadInfo(text=text) | Memory(text=text) | BranchSummary(summary=text):
            pass
        case Label(label=label, target=target):
            text = f"{label} → {target}" if label else f"label of {target} taken away"
        case Checkpoint(files=files, size=size, root=root):
            text = f"{files} files, {size} bytes of {root}"
        case UsageReport(usage=usage):
            text = f"{usage.input_tokens} in, {usage.output_tokens} out"
        case ModelChange(provider=provider, model=model):
            text = f"{provider} {model}"
        case ActiveToolsChange(tools=tools):
            text = ", ".join(tools)
        case Custom(name=text) | Event(name=text):
            pass
        case _:
            text = entry.type
    return one_line(text, width)


def _of_message(message: Message) -> str:
    pieces = [message.text.strip()]
    for part in message.parts:
        match part:
            case ToolCallPart(name=name, arguments=arguments):
                pieces.append(f"→ {name}({arguments})")
            case ToolResultPart(name=name, parts=parts, is_error=is_error):
                said = " ".join(getattr(inner, "text", f"[{type(inner).__name__}]") for inner in parts)
                pieces.append(f"{'✗' if is_error else '←'} {name + ': ' if name else ''}{said}")
    kinds = {type(part).__name__ for part in message.parts} & {"ImagePart", "FilePart", "OpaquePart"}
    pieces += [f"[{kind.removesuffix('Part').lower()}]" for kind in sorted(kinds)]
    return " ".join(piece for piece in pieces if piece) or ("(thinking)" if message.parts else "(empty)")


_LEVELS = "▁▂▃▄▅▆▇█"
_ASCII_LEVELS = "_.-=+*%#"


def bars(counts: Mapping[str, int], width: int, *, is_ascii: bool = False) -> Iterator[str]:
    """A bar for each name, the longest one filling the width.

    >>> list(bars({"read": 4, "write": 2}, 20))
    ['read   ██████████ 4', 'write  █████ 2']
    """
    if not counts:
        return
    names = max(map(len, counts))
    room = max(4, width - names - 4)
    most = max(*counts.values(), 1)
    for name, count in counts.items():
        bar = ("#" if is_ascii else "█") * max(1, round(room * count / most) - 1) if count else ""
        yield f"{name:<{names}}  {bar} {count}"


def sparkline(values: Sequence[int], *, is_ascii: bool = False) -> str:
    """One character a value.

    >>> sparkline([1, 4, 8])
    '▁▄█'
    """
    levels = _ASCII_LEVELS if is_ascii else _LEVELS
    most = max(*values, 1) if len(values) > 1 else max(values[0], 1)
    return "".join(levels[max(0, -(-len(levels) * value // most) - 1)] for value in values)


_PATIENCE_SECONDS = 1.0
_NARROW = 80


@contextmanager
def bar(what: str) -> Iterator[Advance]:
    lazy = _LazyBar(what)
    try:
        yield lazy.advance
    finally:
        lazy.stop()


class _LazyBar:
    """A timer brings it up, so that work which has told nothing yet is seen to be going on, too."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._started = time.monotonic()
        self._lock = threading.Lock()
        self._is_over = False
        self._told: tuple[int, int] | None = None
        self._shown: Progress | None = None
        self._task: TaskID | None = None
        self._timer = threading.Timer(_PATIENCE_SECONDS, self._begin)
        self._timer.daemon = True
        self._timer.start()

    def advance(self, done: int, total: int) -> None:
        self._told = done, total
        if self._shown is not None:
            self._show(self._shown)

    def stop(self) -> None:
        self._timer.cancel()
        with self._lock:
            self._is_over = True
            if self._shown is not None:
                self._shown.stop()

    def _begin(self) -> None:
        from rich.console import Console  # noqa: PLC0415  only what lasts long needs it
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        progress = Progress(*columns, console=Console(stderr=True), transient=True)
        with self._lock:
            if self._is_over:
                return
            self._task = progress.add_task(self._what, total=None, rate="")
            progress.start()
            self._shown = progress
        self._show(progress)

    def _show(self, progress: Progress) -> None:
        if self._told is None or self._task is None:
            return
        if not progress.tasks[0].total:
            progress.columns = _columns_of_a_bar(progress.console.width)
        done, total = self._told
        seconds = max(time.monotonic() - self._started, 0.001)
        progress.update(self._task, completed=done, total=total, rate=f"{done / seconds:,.0f}/s")


def _columns_of_a_bar(width: int) -> tuple[str | ProgressColumn, ...]:
    """On a narrow screen the figures come first, and the bar itself is left out."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    return (
        TextColumn("{task.description}"),
        *((BarColumn(),) if width >= _NARROW else ()),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )


def ago(moment: datetime, now: datetime) -> str:
    """How long ago, in the largest unit that fits.

    >>> from datetime import UTC
    >>> ago(datetime(2026, 1, 1, 10, tzinfo=UTC), datetime(2026, 1, 1, 12, 5, tzinfo=UTC))
    '2 h ago'
    """
    passed = now - moment
    for unit, length in (("d", timedelta(days=1)), ("h", timedelta(hours=1)), ("min", timedelta(minutes=1))):
        if passed >= length:
            count = passed // length
            return f"{moment.astimezone().date()}" if unit == "d" and count > 30 else f"{count} {unit} ago"
    return "just now" if passed >= timedelta(0) else f"{moment.astimezone():%Y-%m-%d %H:%M}"


def clock_time(moment: datetime) -> str:
    return f"{moment.astimezone():%Y-%m-%d %H:%M}"


def nanoseconds(option: str, text: str) -> int:
    """A time given as a date, a word or an age, as in search."""
    from sessiontree.search.query import moment_of, nanoseconds_of  # noqa: PLC0415  its patterns are slow to build

    try:
        return nanoseconds_of(moment_of(option, text, datetime.now().astimezone()))
    except InvalidInputError as error:
        raise UsageError(str(error)) from error
