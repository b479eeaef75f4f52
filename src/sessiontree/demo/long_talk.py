"""A conversation that outgrows a small window, and what a compaction saves."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

import sessiontree as st
from sessiontree.demo.show import show_context

__all__ = ["show_compaction"]

_POLICY = st.CompactionPolicy(window_tokens=8_000, keep_recent_tokens=300, keep_user_tokens=200, summary_tokens=300)
_ROUNDS = 24


def show_compaction(console: Console, journal: st.Journal) -> None:
    """Talk until the window is full, compact offline, show what it saved, take it back."""
    thread = journal.create_thread(title="A long talk")
    journal.append(thread.id, st.system("You are a careful engineer."))
    journal.append(thread.id, st.user("Port the parser in src/parser.py to the new grammar, file by file."))
    for number in range(_ROUNDS):
        journal.append_many(thread.id, _round(number))
    result = journal.compact(thread.id, policy=_POLICY)
    _figures(console, result)
    show_context(console, journal.context(thread.id))
    journal.uncompact(thread.id)
    whole = journal.context(thread.id)
    console.print(Text(f"  uncompact() gives all {len(whole.messages)} messages back", style="dim"))


def _round(number: int) -> list[st.Payload]:
    path = f"src/rule{number}.py"
    return [
        st.assistant("I read the next rule.", calls=[st.call(f"read{number}", "read_file", f'{{"path": "{path}"}}')]),
        st.tool_result(f"read{number}", f"def rule{number}(tokens): ...; " * 30, name="read_file"),
        st.assistant(f"We decided to keep rule {number} as it is. Still to do: its tests."),
    ]


def _figures(console: Console, result: st.CompactionResult) -> None:
    share = 100 * result.tokens_saved // max(1, result.tokens_before)
    lines = (
        f"messages   {result.removed_messages} summarised, {result.kept_messages} kept word for word",
        f"tokens     {result.tokens_before} before, {result.tokens_after} after: {result.tokens_saved} saved ({share} %)",
        f"files      {len(result.files.read)} read so far, remembered with the summary",
    )
    for line in lines:
        console.print(Text(f"  {line}", style="green"))
