"""Images and files: what a provider takes of them, and what stands in their place where it takes nothing."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable
from typing import Any

from sessiontree.model import FilePart, ImagePart, Part, TextPart

__all__ = [
    "IMAGE_TYPES",
    "data_url",
    "file_fields",
    "file_image",
    "image_url",
    "is_base64",
    "media_note",
    "media_notes",
    "media_source",
    "media_text",
    "plain_type",
    "source_of",
    "standard_alphabet",
    "type_of",
    "web_url",
]


Wire = dict[str, Any]

IMAGE_TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})

_NOTE_LIMIT = 200
_BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}")
_WEB_URL = re.compile(r"https?://\S+")
_DATA_URL = re.compile(r"data:([^;,]*)(?:;[^;,]*)*;base64,(.*)", re.DOTALL | re.IGNORECASE)
_TEXT_TYPES = re.compile(
    r"text/.+|application/(?:json|xml|csv|sql|toml|x?-?yaml|x-sh|(?:x-)?javascript|typescript|x-ndjson|.+\+(?:json|xml))"
)
_ALIASES = {"image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg"}
_SUFFIX_TYPES = {
    "pdf": "application/pdf",
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "mp3": "audio/mpeg",
    "wav": "audio/wav",
    "mp4": "video/mp4",
    "webm": "video/webm",
    "txt": "text/plain",
    "md": "text/markdown",
    "html": "text/html",
    "csv": "text/csv",
}


def data_url(mime: str, data: str) -> str:
    """Return base64 data as a data URL."""
    return f"data:{mime};base64,{data}"


def source_of(url: str) -> Wire:
    """Return the fields of an image or file part for a URL; a data URL is split into type and data.

    >>> source_of("data:image/png;base64,AAAA")
    {'mime': 'image/png', 'data': 'AAAA'}
    """
    match = _DATA_URL.fullmatch(url)
    return {"mime": match[1], "data": match[2]} if match else {"url": url}


def media_source(part: ImagePart | FilePart) -> Wire:
    """Return the source of an image or file: ``mime`` and ``data``, or ``url``; no ``data`` if it is not base64."""
    source = source_of(part.url) if part.url else {"mime": part.mime, "data": part.data}
    if "mime" in source:
        source["mime"] = plain_type(source["mime"])
    return source if is_base64(source.get("data", "")) else {**source, "data": ""}


def plain_type(mime: str) -> str:
    """Return a media type as providers compare it: in lower case, without parameters, and JPEG by its name.

    >>> plain_type("IMAGE/PNG"), plain_type("text/plain; charset=utf-8"), plain_type("image/jpg")
    ('image/png', 'text/plain', 'image/jpeg')
    """
    plain = mime.partition(";")[0].strip().lower()
    return _ALIASES.get(plain, plain)


def is_base64(data: str) -> bool:
    """Return whether a provider can decode data: in the standard alphabet, and with its padding."""
    return len(data) % 4 == 0 and _BASE64.fullmatch(data) is not None


def standard_alphabet(data: str) -> str:
    """Return base64 in the standard alphabet; Gemini reads and its SDK writes the URL alphabet too."""
    return data.replace("-", "+").replace("_", "/")


def media_note(part: ImagePart | FilePart) -> str:
    """Return the text that replaces an image or file where the dialect does not allow one."""
    kind = "image" if isinstance(part, ImagePart) else "file"
    label = part.artifact.label or part.artifact.sha256 if part.artifact else ""
    source = media_source(part)
    words = [kind, getattr(part, "name", ""), label, source.get("mime", part.mime), _address(part.url)]
    return f"[{' '.join(word[:_NOTE_LIMIT] for word in words if word)}]"


def _address(url: str) -> str:
    """A data URL is no address: nobody can read it in a note."""
    return "" if url.startswith("data:") else url


def media_notes(parts: Iterable[Part]) -> list[Part]:
    """Return parts with a note in place of every image and file."""
    return [TextPart(text=media_note(part)) if isinstance(part, ImagePart | FilePart) else part for part in parts]


def web_url(part: ImagePart | FilePart) -> str:
    """Return the address of an image or file on the web; empty if it has none."""
    return part.url if _WEB_URL.fullmatch(part.url) else ""


def image_url(part: ImagePart) -> str:
    """Return the URL of an image that OpenAI accepts: on the web, or data of a known type; empty if it has none."""
    source = media_source(part)
    if source.get("data") and source["mime"] in IMAGE_TYPES:
        return data_url(source["mime"], source["data"])
    return web_url(part)


def file_image(part: FilePart) -> str:
    """Return the data URL of a file that is an image of a known type; empty for any other file."""
    source = media_source(part)
    return data_url(source["mime"], source["data"]) if source.get("data") and source["mime"] in IMAGE_TYPES else ""


def file_fields(part: FilePart, types: re.Pattern[str]) -> Wire:
    """Return ``file_data`` and ``filename``, which OpenAI wants together; empty without data of one of the types."""
    source = media_source(part)
    if not (source.get("data") and types.fullmatch(source["mime"])):
        return {}
    name = part.name or f"file.{re.sub('[^a-z0-9]', '', source['mime'].rpartition('/')[2]) or 'bin'}"
    return {"file_data": data_url(source["mime"], source["data"]), "filename": name}


def media_text(part: ImagePart | FilePart) -> str:
    """Return a text that stands for an image or file: a note, and the content of a file that is a text."""
    source = media_source(part)
    if isinstance(part, ImagePart) or not source.get("data") or not _TEXT_TYPES.fullmatch(source["mime"]):
        return media_note(part)
    try:
        return f"{media_note(part)}\n{base64.b64decode(source['data']).decode()}"
    except (binascii.Error, UnicodeDecodeError):
        return media_note(part)


def type_of(part: ImagePart | FilePart) -> str:
    """Return the type of an image or file by address: as given, or by the end of its name; empty if it is unknown."""
    suffix = part.url.partition("?")[0].rpartition(".")[2].lower()
    return plain_type(part.mime) or _SUFFIX_TYPES.get(suffix, "")
