"""Trees and contexts for the eye."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

import sessiontree as st

__all__ = ["show_context", "show_tree"]

_COLOURS = {"user": "green", "assistant": "cyan", "tool": "yellow", "system": "magenta"}
_WIDTH = 76


def show_tree(console: Console, journal: st.Journal, thread_id: str) -> None:
    """Every entry that the thread sees; filled dots are on the active path."""
    active = {entry.id for entry in journal.path(thread_id)}
    for depth, entry in _walk(journal.entries(thread_id)):
        is_active = entry.id in active
        line = Text("  " + "│ " * depth + ("● " if is_active else "○ "))
        line.append(_gist(entry), style=_style(entry) if is_active else "dim")
        line.truncate(_WIDTH + 2 * depth, overflow="ellipsis")
        console.print(line)


def show_context(console: Console, context: st.Context) -> None:
    """What the model would be sent."""
    if context.system:
        console.print(Text(f"  system     {context.system}", style="magenta"))
    for message in context.messages:
        for part in message.parts:
            line = Text(f"  {message.role:<10} {_part(part)}", style=_COLOURS[message.role])
            line.truncate(_WIDTH + 8, overflow="ellipsis")
            console.print(line)
    console.print(Text(f"  {len(context.messages)} messages, about {context.tokens} tokens", style="dim"))


def _walk(entries: Sequence[st.Entry]) -> Iterator[tuple[int, st.Entry]]:
    """Entries in tree order: a first child goes on straight, later ones step in."""
    children: dict[str | None, list[st.Entry]] = defaultdict(list)
    for entry in entries:
        children[entry.parent].append(entry)
    stack = [(number, root) for number, root in reversed(list(enumerate(children[None])))]
    while stack:
        depth, entry = stack.pop()
        yield depth, entry
        straight, aside = children[entry.id][:1], children[entry.id][1:]
        stack += [(depth, child) for child in straight]
        stack += [(depth + 1, child) for child in reversed(aside)]


def _gist(entry: st.Entry) -> str:
    match entry.payload:
        case st.TurnMarker(status=status):
            return f"turn {status.replace('_', ' ')}"
        case st.RunFailure(error=error):
            return f"failure: {error}"
        case _ if entry.message is not None:
            return f"{entry.message.role}: " + " ".join(_part(part) for part in entry.message.parts)
        case _:
            return entry.type


def _part(part: st.Part) -> str:
    match part:
        case st.TextPart() | st.ReasoningPart():
            return part.text
        case st.ToolCallPart(name=name, arguments=arguments):
            return f"→ {name} {arguments}"
        case st.ToolResultPart(call_id=call_id, parts=parts, is_error=is_error):
            return f"← {call_id}{' error' if is_error else ''}: " + " ".join(_part(inner) for inner in parts)
        case _:
            return f"[{type(part).__name__}]"


def _style(entry: st.Entry) -> str:
    if isinstance(entry.payload, st.RunFailure):
        return "red"
    return _COLOURS[entry.message.role] if entry.message is not None else "blue"
