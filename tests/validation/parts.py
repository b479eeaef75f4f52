"""Random parts of messages that a program writes itself: texts, pictures, files, blocks of a provider."""

from __future__ import annotations

import base64

import sessiontree as st
from validation.material import PAYLOAD, Draw

__all__ = ["any_part", "artifacts", "result_parts", "spoken_part"]

_OPAQUE = (
    ("anthropic", {"type": "search_result", "source": "s", "title": "t", "content": [{"type": "text", "text": "x"}]}),
    ("anthropic", {"type": "container_upload", "file_id": "file_1"}),
    ("openai-chat", {"type": "input_audio", "input_audio": {"data": PAYLOAD, "format": "mp3"}}),
    (
        "gemini",
        {
            "videoMetadata": {"startOffset": "1s"},
            "fileData": {"fileUri": "https://youtu.be/x", "mimeType": "video/mp4"},
        },
    ),
    ("elsewhere", {"type": "widget", "data": PAYLOAD}),
)


def any_part(draw: Draw) -> st.TextPart | st.ImagePart | st.FilePart | st.OpaquePart:
    """Return a part that a user or a tool may send."""
    match draw.random.randrange(9):
        case 0 | 1 | 2:
            return st.TextPart(text=draw.any_text())
        case 3:
            return st.ImagePart(data=PAYLOAD, mime=draw.image_type())
        case 4:
            return st.ImagePart(url=draw.address(), mime=draw.pick(("", draw.image_type())))
        case 5:
            name = draw.pick(("", "report.pdf", "a b/ü.txt", "n" * 300))
            return st.FilePart(data=PAYLOAD, mime=draw.file_type(), name=name)
        case 6:
            return st.FilePart(url=draw.address(), mime=draw.file_type(), name=draw.pick(("", "report.pdf")))
        case 7:
            return _by_artifact(draw)
        case _:
            provider, block = draw.pick(_OPAQUE)
            return st.OpaquePart(provider=provider, block=block)


def spoken_part(draw: Draw) -> st.TextPart | st.ImagePart | st.FilePart:
    """Return a part that a model may answer with: no block that only requests have."""
    part = any_part(draw)
    return st.TextPart(text=draw.any_text()) if isinstance(part, st.OpaquePart) else part


def result_parts(draw: Draw) -> tuple[st.TextPart | st.ImagePart | st.FilePart | st.OpaquePart, ...]:
    """Return the content of a tool result."""
    return tuple(any_part(draw) for _ in draw.many(0, 3))


def artifacts(journal: st.Journal) -> tuple[st.ArtifactRef, ...]:
    """Store artifacts of several types, and return references to them and to something outside the store."""
    content = base64.b64decode(PAYLOAD)
    mimes = ("image/png", "image/svg+xml", "application/pdf", "text/plain", "application/zip", "")
    stored = [journal.put_artifact(content + mime.encode(), mime=mime, label="kept") for mime in mimes]
    outside = (
        st.ArtifactRef(id="a1", mime="image/png", label="elsewhere", preview="a preview"),
        st.ArtifactRef(url="https://example.com/a.pdf", mime="application/pdf"),
    )
    return (*stored, *outside)


def _by_artifact(draw: Draw) -> st.ImagePart | st.FilePart:
    kept = draw.pick(draw.artifacts)
    if draw.chance(0.5):
        return st.ImagePart(mime=draw.pick(("", draw.image_type())), artifact=kept)
    return st.FilePart(name=draw.pick(("", "k")), mime=draw.pick(("", draw.file_type())), artifact=kept)
