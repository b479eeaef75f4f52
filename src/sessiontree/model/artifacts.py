"""Artifacts: images, files and long outputs that messages show by reference, stored once under their content hash.

>>> from sessiontree.model.builders import user
>>> ref = ArtifactRef(sha256="ab" * 32, size=3, mime="image/png")
>>> shown = user([ImagePart(artifact=ref)])
>>> artifacts_of(shown) == (ref.sha256,)
True
>>> with_data(shown.message, {ref.sha256: b"png"}).parts[0].data
'cG5n'

A reference with an ``id`` or a ``url`` of its own is to something outside the store, such as another program's file:

>>> artifacts_of(user([ImagePart(artifact=ArtifactRef(sha256=ref.sha256, url="https://example.com/a.png"))]))
()
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from sessiontree.model.entry import Compaction, Payload
from sessiontree.model.message import ArtifactRef, FilePart, ImagePart, Message, Part, TextPart, ToolResultPart

__all__ = ["MAY_HAVE_ARTIFACTS", "artifacts_of", "is_hash", "named_artifacts", "shown_artifacts", "with_data"]

_HASH_LENGTH = 64
_HASH_LETTERS = frozenset("0123456789abcdef")


MAY_HAVE_ARTIFACTS = b'"sha256":"'
"""What every encoded payload with a reference contains, so that most of them need not be decoded."""


def named_artifacts(payload: Payload) -> tuple[str, ...]:
    """Return the hashes of the stored artifacts that a payload names, each once, valid or not."""
    if isinstance(payload, Compaction):
        return tuple(dict.fromkeys(cut.full_output.sha256 for cut in payload.cut_results))
    message = getattr(payload, "message", None)
    if message is None or not _may_refer(message.parts):
        return ()
    return tuple(dict.fromkeys(ref.sha256 for ref in _references(message.parts) if _is_stored(ref)))


def artifacts_of(payload: Payload) -> tuple[str, ...]:
    """Return the hashes of the stored artifacts that a payload refers to, each once."""
    names = named_artifacts(payload)
    return tuple(filter(is_hash, names)) if names else ()


def is_hash(text: str) -> bool:
    """Return whether a text is a SHA-256 in lower-case hexadecimal digits."""
    return isinstance(text, str) and len(text) == _HASH_LENGTH and _HASH_LETTERS.issuperset(text)


def shown_artifacts(messages: Iterable[Message]) -> tuple[str, ...]:
    """Return the hashes of the stored images and files that a model would see, each once."""
    found = (
        part.artifact.sha256
        for message in messages
        for part in _media(message.parts)
        if part.artifact is not None and _is_stored(part.artifact) and is_hash(part.artifact.sha256) and not part.data
    )
    return tuple(dict.fromkeys(found))


def with_data(message: Message, contents: Mapping[str, bytes]) -> Message:
    """Return a message in which images and files have their data, for a request; ``contents`` is by hash."""
    if not any(part.artifact and part.artifact.sha256 in contents for part in _media(message.parts)):
        return message
    return replace(message, parts=tuple(_filled(part, contents) for part in message.parts))


def _filled(part: Part, contents: Mapping[str, bytes]) -> Part:
    match part:
        case ImagePart(artifact=ArtifactRef() as ref, data="") | FilePart(artifact=ArtifactRef() as ref, data=""):
            if ref.sha256 not in contents:
                return part
            return replace(part, data=b64encode(contents[ref.sha256]).decode(), mime=part.mime or ref.mime)
        case ToolResultPart():
            return replace(part, parts=tuple(_filled(item, contents) for item in part.parts))
        case _:
            return part


def _may_refer(parts: tuple[Part, ...]) -> bool:
    # A plain loop: this is on the path of every append, and most messages are one text.
    for part in parts:  # noqa: SIM110
        if type(part) is not TextPart:
            return True
    return False


def _references(parts: Iterable[Part]) -> Iterator[ArtifactRef]:
    for part in parts:
        match part:
            case ImagePart(artifact=ArtifactRef() as ref) | FilePart(artifact=ArtifactRef() as ref):
                yield ref
            case ToolResultPart(parts=inner, view=view):
                yield from _references(inner)
                if view is not None and view.full_output is not None:
                    yield view.full_output


def _media(parts: Iterable[Part]) -> Iterator[ImagePart | FilePart]:
    for part in parts:
        match part:
            case ImagePart() | FilePart():
                yield part
            case ToolResultPart(parts=inner):
                yield from _media(inner)


def _is_stored(ref: ArtifactRef) -> bool:
    return bool(ref.sha256) and not ref.url and not ref.id
