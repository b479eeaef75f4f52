"""Short texts: an entry as one line, charts drawn with characters, times as people read and write them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from sessiontree.cli.exit_codes import UsageError
from sessiontree.errors import InvalidInputError
from sessiontree.model import (
    ActiveToolsChange,
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
from sessiontree.model.sanitize import one_line

__all__ = ["ago", "bars", "clock_time", "gist", "is_bookkeeping", "nanoseconds", "role_of", "sparkline"]


def role_of(entry: Entry) -> str:
    """Return the role of a message, or the type of another entry."""
    return entry.message.role if entry.message is not None else entry.type.replace("_", " ")


def is_bookkeeping(entry: Entry) -> bool:
    """Whether an entry is of no interest to a reader of the conversation."""
    match entry.payload:
        case TurnMarker(status="failed" | "aborted"):
            return False
        case TurnMarker() | UsageReport() | Event() | Label() | ModelChange() | ActiveToolsChange():
            return True
        case _:
            return False


def gist(entry: Entry, width: int) -> str:
    """Return an entry as one line that is safe to print."""
    if entry.message is not None:
        return one_line(_message_gist(entry.message), width)
    match entry.payload:
        case TurnMarker(status=status, reason=reason):
            text = f"turn {status}" + (f": {reason}" if reason else "")
        case Compaction(reverts=reverts) if reverts:
            text = "compaction reverted"
        case Compaction(summary=summary, tokens_before=before, tokens_after=after):
            text = f"compacted {before} → {after} tokens: {summary}"
        case RunFailure(error=text) | ThreadInfo(text=text) | Memory(text=text) | BranchSummary(summary=text):
            pass
        case Label(label=label, target=target):
            text = f"{label} → {target}" if label else f"label of {target} removed"
        case Checkpoint(files=files, size=size, root=root):
            text = f"{files} files, {size} bytes in {root}"
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


def _message_gist(message: Message) -> str:
    pieces = [message.text.strip()]
    for part in message.parts:
        match part:
            case ToolCallPart(name=name, arguments=arguments):
                pieces.append(f"→ {name}({arguments})")
            case ToolResultPart(name=name, parts=parts, is_error=is_error):
                result = " ".join(getattr(inner, "text", f"[{type(inner).__name__}]") for inner in parts)
                pieces.append(f"{'✗' if is_error else '←'} {name + ': ' if name else ''}{result}")
    kinds = {type(part).__name__ for part in message.parts} & {"ImagePart", "FilePart", "OpaquePart"}
    pieces += [f"[{kind.removesuffix('Part').lower()}]" for kind in sorted(kinds)]
    return " ".join(piece for piece in pieces if piece) or ("(thinking)" if message.parts else "(empty)")


_LEVELS = "▁▂▃▄▅▆▇█"
_ASCII_LEVELS = "_.-=+*%#"


def bars(counts: Mapping[str, int], width: int, *, is_ascii: bool = False) -> Iterator[str]:
    """Draw a bar for each name; the longest one fills the width.

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
    """Draw one character for each value.

    >>> sparkline([1, 4, 8])
    '▁▄█'
    """
    levels = _ASCII_LEVELS if is_ascii else _LEVELS
    most = max(*values, 1) if len(values) > 1 else max(values[0], 1)
    return "".join(levels[max(0, -(-len(levels) * value // most) - 1)] for value in values)


def ago(moment: datetime, now: datetime) -> str:
    """Return how long ago a time was, in its largest unit.

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
    """Return a time as date, hours and minutes in the local time zone."""
    return f"{moment.astimezone():%Y-%m-%d %H:%M}"


def nanoseconds(option: str, text: str) -> int:
    """Parse the value of an option: a date, a word or an age, as in search."""
    from sessiontree.search.query import moment_of, nanoseconds_of  # noqa: PLC0415  compiling its patterns is slow

    try:
        return nanoseconds_of(moment_of(option, text, datetime.now().astimezone()))
    except InvalidInputError as error:
        raise UsageError(str(error)) from error
