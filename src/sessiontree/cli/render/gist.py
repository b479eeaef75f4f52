"""An entry in a few words."""

from __future__ import annotations

from sessiontree.harmless import one_line
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
from sessiontree.model.entry import ActiveToolsChange

__all__ = ["gist", "is_bookkeeping", "role_of"]


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
