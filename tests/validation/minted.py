"""Signatures that tell who made them, and of what.

Providers sign reasoning and refuse a signature that is not theirs, or whose content was changed. The random histories
mint theirs here, so that a validator can tell both; a signature that was not minted here passes.
"""

from __future__ import annotations

import base64
import hashlib
import json
from typing import NamedTuple

__all__ = ["Mint", "mint", "minted", "signature_problem"]

_MARK = "minted"
_FROM_URL = str.maketrans("-_", "+/")


class Mint(NamedTuple):
    """Who signed, and the digest of what was signed."""

    provider: str
    digest: str


def mint(provider: str, content: str, salt: str = "") -> str:
    """Return a base64 signature of a provider for a content."""
    text = json.dumps([_MARK, provider, _digest(content), salt])
    return base64.b64encode(text.encode()).decode()


def minted(signature: str) -> Mint | None:
    """Return who minted a signature; ``None`` if it does not come from here."""
    try:
        values = json.loads(base64.b64decode(signature.translate(_FROM_URL), validate=True))
    except (ValueError, UnicodeDecodeError):
        return None
    match values:
        case [str(mark), str(provider), str(digest), str()] if mark == _MARK:
            return Mint(provider, digest)
        case _:
            return None


def signature_problem(signature: str, provider: str, content: str | None = None) -> str:
    """Return why a provider refuses a signature: another one minted it, or the content is not what it signed."""
    origin = minted(signature)
    if origin is None:
        return ""
    if origin.provider != provider:
        return f"signature of {origin.provider}"
    if content is not None and origin.digest != _digest(content):
        return "signature of another content"
    return ""


def _digest(content: str) -> str:
    return hashlib.sha256(content.encode(errors="surrogatepass")).hexdigest()[:12]
