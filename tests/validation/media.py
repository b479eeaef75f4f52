"""Rules about base64, data URLs and web addresses that all four providers share."""

from __future__ import annotations

import base64
import binascii
import re

__all__ = ["base64_problem", "data_url_mime", "data_url_problem", "web_url_problem"]

_DATA_URL = re.compile(r"data:(?P<mime>[^;,]*)(?:;[^;,]+)*;base64,(?P<data>.*)", re.DOTALL)


def base64_problem(text: str) -> str:
    """Return why a text is no base64 with content (RFC 4648, section 4); empty if it is."""
    if not text:
        return "empty base64"
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        return f"not base64: {error}"
    return ""


def data_url_mime(url: str) -> str | None:
    """Return the media type of a base64 data URL; ``None`` if the text is none (RFC 2397)."""
    matched = _DATA_URL.fullmatch(url)
    return matched["mime"].lower() if matched else None


def data_url_problem(url: str, mimes: frozenset[str] | None = None) -> str:
    """Return why a text is no base64 data URL of one of the media types; ``None`` allows every named one."""
    matched = _DATA_URL.fullmatch(url)
    if not matched:
        return f"not a base64 data URL: {url[:40]!r}"
    mime = matched["mime"].lower()
    if not mime or (mimes is not None and mime not in mimes):
        return f"media type {mime!r} is not supported"
    return base64_problem(matched["data"])


def web_url_problem(url: str, schemes: tuple[str, ...] = ("https", "http")) -> str:
    """Return why a text is no absolute address with one of the schemes."""
    scheme, separator, rest = url.partition("://")
    if not separator or scheme.lower() not in schemes or not rest or any(letter.isspace() for letter in url):
        return f"not an address with {' or '.join(schemes)}: {url[:60]!r}"
    return ""
