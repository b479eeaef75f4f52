"""Original bytes that are given back as long as nothing changed, and only then.

An exporter always writes what the journal says. Where that is not byte for byte what the import read (an order of keys,
a time in local zone), the import keeps the original next to the hash of what the exporter would have written: as long
as the exporter comes to the same hash, the original is right.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Any

__all__ = ["as_kept", "from_kept", "keep_original", "original_or"]


def as_kept(body: bytes) -> dict[str, str]:
    """Bytes as part of a JSON record.

    >>> from_kept(as_kept(b"text")), from_kept(as_kept(b"\\xff"))
    (b'text', b'\\xff')
    """
    try:
        return {"text": body.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(body).decode()}


def from_kept(kept: dict[str, Any]) -> bytes:
    if "base64" in kept:
        return base64.b64decode(kept["base64"])
    return str(kept["text"]).encode()


def keep_original(original: bytes | None, computed: bytes) -> dict[str, str]:
    """What to remember so that ``original_or`` can give the original back; nothing if it is what we would write.

    ``None``: there was no such file.
    """
    if original == computed:
        return {}
    return {**(as_kept(original) if original is not None else {}), "of": _hash(computed)}


def original_or(kept: dict[str, Any] | None, computed: bytes) -> bytes | None:
    """The original while it is still true, else what was computed; ``None`` where there was no file."""
    if not kept or kept.get("of") != _hash(computed):
        return computed
    return from_kept(kept) if len(kept) > 1 else None


def _hash(body: bytes) -> str:
    return hashlib.blake2b(body, digest_size=16).hexdigest()
