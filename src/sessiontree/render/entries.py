"""An entry in one line: who said it, and its first words."""

from __future__ import annotations

import re

from sessiontree.model import (
    ActiveToolsChange,
    AssistantMessage,
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
    OpaquePart,
    RunFailure,
    ThreadInfo,
    ToolResultPart,
    TurnMarker,
    UsageReport,
)
from sessiontree.model.sanitize import one_line
from sessiontree.render.figures import count, plural
from sessiontree.render.gists import gist_of
from sessiontree.render.outcomes import result_text

_MARKUP = re.compile(r"(?m)^#{1,6} +|\*\*(\S[^*\n]*)\*\*|`([^`\n]+)`")

_FILE_LISTS = re.compile(r"<(modified-files|read-files)>\n(.*?)\n</\1>", re.DOTALL)
_FILE_WORDS = {"modified-files": "Changed", "read-files": "Read"}

__all__ = ["compaction_words", "role_of", "summary_text", "text_of", "without_markup", "words_of"]


def role_of(entry: Entry) -> str:
    """Return the role of a message, or the type of another entry; what was shown of an interrupted answer is marked."""
    if isinstance(entry.payload, AssistantMessage) and entry.payload.is_partial:
        return "partial answer"
    return entry.message.role if entry.message is not None else entry.type.replace("_", " ")


def words_of(entry: Entry, folder: str = "", length: int = 2000) -> str:
    """Return an entry as one line that is safe to print: its text, else its tool calls, else what it is."""
    return one_line(without_markup(text_of(entry, folder)[: 4 * length + 200]), length)


def without_markup(text: str) -> str:
    """Return a text without the signs of Markdown that only disturb in one line.

    >>> without_markup("## Done\\n**users** was `None`")
    'Done\\nusers was None'
    """
    return _MARKUP.sub(lambda found: found[1] or found[2] or "", text)


def text_of(entry: Entry, folder: str = "") -> str:
    """Return the text of an entry; of a message without one, the gists of its calls or its results."""
    if entry.message is not None:
        return _message_text(entry.message, folder)
    match entry.payload:
        case TurnMarker(status=status, reason=reason):
            return f"turn {status.replace('_', ' ')}" + (f": {reason}" if reason else "")
        case Compaction():
            return compaction_words(entry.payload)
        case RunFailure(error=text) | ThreadInfo(text=text) | Memory(text=text) | BranchSummary(summary=text):
            return text
        case Label(label=label, target=target):
            return f"label {label} for {target}" if label else f"label of {target} removed"
        case Checkpoint(files=files, root=root):
            return f"checkpoint of {plural(files, 'file')} in {root or 'any folder'}"
        case UsageReport(usage=usage):
            return f"{count(usage.input_tokens)} tokens in, {count(usage.output_tokens)} out"
        case ModelChange(provider=provider, model=model):
            return " ".join(filter(None, (provider, model)))
        case ActiveToolsChange(tools=tools):
            return ", ".join(tools)
        case Custom(name=text) | Event(name=text):
            return text or entry.type
        case _:
            return entry.type


def compaction_words(compaction: Compaction) -> str:
    """Return what a compaction did, with its sizes as far as they are known."""
    if compaction.reverts:
        return "compaction reverted"
    before, after = compaction.tokens_before, compaction.tokens_after
    if before and after:
        return f"compacted, {count(before)} → {count(after)} tokens"
    if before:
        return f"compacted from {count(before)} tokens"
    return "compacted"


def summary_text(summary: str) -> str:
    """Return a summary as people read it: without the envelope that a program put around it, lists of files in a line."""
    text = summary.strip()
    first, _, rest = text.partition("\n")
    # floret names its schema in the first line.
    text = rest.strip() if rest and first.strip().startswith(("floret.compaction", "<summary")) else text
    return _FILE_LISTS.sub(lambda found: f"{_FILE_WORDS[found[1]]}: {', '.join(found[2].split())}", text)


def _message_text(message: Message, folder: str) -> str:
    text = message.text.strip()
    if text:
        return text
    calls = [gist_of(call, None, folder) for call in message.tool_calls]
    if calls:
        more = f" and {len(calls) - 1} more" if len(calls) > 1 else ""
        return f"{calls[0].name} {calls[0].object}{more}".strip()
    results = [_result_words(result) for result in message.tool_results]
    if results:
        return " ".join(results)
    blocks = [" ".join(part.words) for part in message.parts if isinstance(part, OpaquePart)]
    if any(blocks):
        return "\n".join(filter(None, blocks))
    kinds = {type(part).__name__.removesuffix("Part").lower() for part in message.parts}
    if "reasoning" in kinds and len(kinds) == 1:
        return "(thinking)"
    return ", ".join(f"[{kind}]" for kind in sorted(kinds - {"text", "reasoning"})) or "(empty)"


def _result_words(result: ToolResultPart) -> str:
    mark = "✗ " if result.is_error else ""
    return f"{mark}{result_text(result).strip()[:400] or 'no output'}"
