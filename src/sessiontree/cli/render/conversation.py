"""A conversation for reading: Markdown rendered, tool calls folded, diffs coloured, control characters removed."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.markdown import Markdown
from rich.padding import Padding
from rich.text import Text

from sessiontree.cli.addresses import short
from sessiontree.cli.output import Output
from sessiontree.cli.render.text import clock_time, gist, role_of
from sessiontree.context import Context
from sessiontree.model import (
    Compaction,
    Entry,
    FilePart,
    ImagePart,
    Message,
    OpaquePart,
    Part,
    ReasoningPart,
    TextPart,
    Thread,
    ToolCallPart,
    ToolResultPart,
)
from sessiontree.model.sanitize import for_terminal, one_line

__all__ = ["Conversation"]


_STYLES = {"user": "bold cyan", "assistant": "bold green", "tool": "magenta", "system": "blue"}
_LONGEST_TEXT = 20_000
_LONGEST_LINE = 2_000


class _Console(Console):
    """Raises on a broken pipe, where Rich would exit with 1: leaving a pager early is not an error."""

    def on_broken_pipe(self) -> None:
        raise  # noqa: PLE0704  Rich calls this where it caught the broken pipe


class Conversation:
    """Writes entries or a context to stdout with Rich."""

    def __init__(self, out: Output, *, is_full: bool, is_raw: bool) -> None:
        self._out = out
        self._is_full = is_full
        self._is_raw = is_raw

    def write(self, thread: Thread, entries: Sequence[Entry]) -> None:
        """Write entries of a thread under its title."""
        console = self._console()
        console.print(Text(one_line(thread.title or "(no title)", 200), style="bold"), Text(short(thread.id), "yellow"))
        for entry in entries:
            self._heading(console, role_of(entry), f"{short(entry.id)}  {clock_time(entry.created_at)}")
            if entry.message is not None:
                self._message(console, entry.message)
            else:
                self._other(console, entry)

    def write_context(self, context: Context) -> None:
        """Write what a model receives."""
        console = self._console()
        if context.system:
            self._heading(console, "system", "")
            self._text(console, context.system)
        for message in context.messages:
            self._heading(console, message.role, "")
            self._message(console, message)

    def _console(self) -> Console:
        """A console on the current stdout, which may be connected to a pager."""
        return _Console(
            file=sys.stdout,
            force_terminal=self._out.has_colour,
            no_color=not self._out.has_colour,
            color_system="auto" if self._out.has_colour else None,
            width=self._out.width if self._out.is_terminal else 100,
            highlight=False,
            emoji=False,
            markup=False,
            soft_wrap=False,
        )

    def _heading(self, console: Console, role: str, about: str) -> None:
        console.print()
        console.print(Text(role, style=_STYLES.get(role, "yellow")), Text(about, style="dim"))

    def _message(self, console: Console, message: Message) -> None:
        for part in message.parts:
            self._part(console, part)

    def _part(self, console: Console, part: Part) -> None:
        match part:
            case TextPart(text=text):
                self._text(console, text)
            case ReasoningPart(text=text):
                self._folded(console, "thinking", text)
            case ToolCallPart(name=name, arguments=arguments):
                self._folded(console, f"→ {one_line(name, 60)}", arguments)
            case ToolResultPart(name=name, parts=parts, is_error=is_error):
                mark = "✗" if is_error else "←"
                self._folded(console, f"{mark} {one_line(name, 60)}".rstrip(), "\n".join(_texts(parts)))
            case ImagePart(mime=mime) | FilePart(mime=mime):
                console.print(Text(f"[{part.__struct_config__.tag} {one_line(mime, 40)}]", style="dim"))
            case OpaquePart(provider=provider):
                console.print(Text(f"[{one_line(provider, 40)} block]", style="dim"))

    def _text(self, console: Console, text: str) -> None:
        clean, note = _cut(for_terminal(text), is_full=self._is_full)
        if len(clean) > _LONGEST_TEXT:
            self._unformatted(clean, 2, is_diff=False)
        elif self._is_raw or any(len(line) > _LONGEST_LINE for line in clean.splitlines()):
            console.print(Padding(Text(clean), (0, 0, 0, 2)))
        else:
            console.print(Padding(Markdown(clean, hyperlinks=False), (0, 0, 0, 2)))
        if note:
            console.print(Text(note, style="dim"))

    def _folded(self, console: Console, heading: str, body: str) -> None:
        """Write one line, or with --full everything, with diffs coloured."""
        if not self._is_full:
            room = max(10, console.width - len(heading) - 6)
            console.print(Text(f"  {heading}  ", style="magenta"), Text(one_line(body, room), style="dim"), sep="")
            return
        console.print(Text(f"  {heading}", style="magenta"))
        clean = for_terminal(body)
        is_diff = _is_diff(clean)
        if len(clean) > _LONGEST_TEXT:
            self._unformatted(clean, 4, is_diff=is_diff)
            return
        for line in clean.splitlines():
            console.print(Padding(Text(line, style=_diff_style(line) if is_diff else "dim"), (0, 0, 0, 4)))

    def _unformatted(self, text: str, indent: int, *, is_diff: bool) -> None:
        """Write the lines as they are: laying out megabytes with Rich takes minutes."""
        for line in text.splitlines():
            self._out.line(" " * indent + self._out.styled(line, _diff_style(line) if is_diff else ""))

    def _other(self, console: Console, entry: Entry) -> None:
        match entry.payload:
            case Compaction(summary=summary) if summary and self._is_full:
                self._text(console, summary)
            case _:
                console.print(Text("  " + gist(entry, max(20, console.width - 4)), style="dim"))


def _texts(parts: Iterable[object]) -> list[str]:
    return [part.text if isinstance(part, TextPart) else f"[{type(part).__name__}]" for part in parts]


def _cut(text: str, *, is_full: bool) -> tuple[str, str]:
    if is_full or len(text) <= _LONGEST_TEXT:
        return text, ""
    return text[:_LONGEST_TEXT], f"  … {len(text) - _LONGEST_TEXT:,} more characters; --full shows them"


def _is_diff(text: str) -> bool:
    return "\n@@ " in "\n" + text[:5000] or text.startswith("diff --git")


def _diff_style(line: str) -> str:
    if line.startswith(("+++", "---", "diff ")):
        return "bold"
    return {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "dim")
