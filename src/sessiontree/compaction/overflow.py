"""Telling from an error that a request was too long for the model.

>>> is_context_overflow(ValueError("This model's maximum context length is 8192 tokens"))
True
>>> is_context_overflow(ValueError("rate limit"))
False
"""

from __future__ import annotations

import re

__all__ = ["is_context_overflow"]

_CODES = frozenset({"context_length_exceeded", "model_context_window_exceeded", "request_too_large"})
_WORDS = (
    r"(?is)context.{0,20}(length|window|size|limit)|prompt (is )?too long|input (is )?too long|too many (input )?tokens"
    r"|input token count.{0,40}exceed|exceeds? the (maximum|max|available).{0,30}(tokens?|context)"
    r"|reduce the length of the (messages|prompt)|request_too_large"
)
_LIMITS = r"(?i)rate.?limit|per (minute|day)|quota|\btpm\b"


def is_context_overflow(error: BaseException) -> bool:
    """By the code that providers give, or by what they say; a rate limit in tokens is none."""
    if getattr(error, "code", None) in _CODES or getattr(error, "status_code", None) == 413:
        return True
    text = str(error)
    return bool(re.search(_WORDS, text)) and not re.search(_LIMITS, text)
