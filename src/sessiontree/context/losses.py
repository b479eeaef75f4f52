"""What a request does not hold of a context.

The dialect writes each part as it does for a request: a part of which nothing is written, or only a note, is a loss.
"""

from __future__ import annotations

from collections.abc import Iterator

from sessiontree.context.dialects import DIALECTS, Dialect
from sessiontree.context.records import Context, Loss
from sessiontree.model import FilePart, ImagePart, OpaquePart, Part, ReasoningPart, Role, TextPart, ToolResultPart

__all__ = ["losses_of"]

_SIGNATURES = ("signature", "thoughtSignature", "thought_signature")


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
    yield from _lost_signature(part, role, dialect)
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
        case OpaquePart() if _is_note(part, role, dialect):
            yield f"{_name(part)}, a note in its place"
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


def _lost_signature(part: Part, role: Role, dialect: Dialect) -> Iterator[str]:
    """A signature of the provider itself that it could not decode; the part is sent without."""
    own = part.extra.get(dialect.name, {})
    found = [own.get(name) for name in _SIGNATURES] if isinstance(own, dict) else []
    if isinstance(part, ReasoningPart) and part.provider == dialect.name:
        found.append(part.signature)
    signatures = {signature for signature in found if isinstance(signature, str) and signature}
    written = dialect.blocks_of(part, role) if signatures else ()
    kept = {value for block in written if isinstance(block, dict) for value in block.values() if isinstance(value, str)}
    if written and signatures - kept:
        yield "a signature that is not base64"


def _is_note(part: ImagePart | FilePart | OpaquePart, role: Role, dialect: Dialect) -> bool:
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
