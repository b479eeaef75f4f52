"""What a request does not hold of a context.

The dialect writes each part as it does for a request: a part of which nothing is written, or only a note, is a loss.
"""

from __future__ import annotations

from collections.abc import Iterator

from sessiontree.context.dialects import DIALECTS, Dialect
from sessiontree.context.records import Context, Loss
from sessiontree.model import FilePart, ImagePart, OpaquePart, Part, ReasoningPart, Role, TextPart, ToolResultPart

__all__ = ["losses_of"]


def losses_of(context: Context, dialect: Dialect) -> tuple[Loss, ...]:
    """Return the losses of a context in a dialect, message by message."""
    return tuple(
        Loss(message_index=index, what=what)
        for index, message in enumerate(context.messages)
        for part in message.parts
        for what in _lost(part, message.role, dialect)
    )


def _lost(part: Part, role: Role, dialect: Dialect) -> Iterator[str]:
    yield from _lost_fields(part, dialect)
    match part:
        case ToolResultPart():
            if part.is_error and not dialect.has_error_results:
                yield "the mark of an error result"
            for inner in part.parts:
                yield from _lost(inner, "tool", dialect)
        case TextPart():
            return
        case ImagePart() | FilePart():
            if _is_note(part, role, dialect):
                yield f"{'image' if isinstance(part, ImagePart) else 'file'}, a note in its place"
        case _:
            if not dialect.blocks_of(part, role):
                yield _name(part)


def _lost_fields(part: Part, dialect: Dialect) -> Iterator[str]:
    """Fields of another provider's block, such as citations or a cache mark."""
    for name, fields in part.extra.items():
        if name in DIALECTS and name != dialect.name and isinstance(fields, dict):
            kept = sorted(field for field in fields if not field.startswith("$"))
            if kept:
                yield f"fields of {name}: {', '.join(kept)}"


def _is_note(part: ImagePart | FilePart, role: Role, dialect: Dialect) -> bool:
    match dialect.blocks_of(part, role):
        case [str()] | [{"text": str()}] | [{"role": "assistant", "content": str()}]:
            return True
        case _:
            return False


def _name(part: Part) -> str:
    match part:
        case ReasoningPart(provider=provider):
            return f"reasoning of {provider or 'an unknown provider'}"
        case OpaquePart(provider=provider, block=block):
            kind = block.get("type") if isinstance(block, dict) else None
            return f"{kind or 'block'} of {provider}"
        case _:
            return str(part.__struct_config__.tag)
