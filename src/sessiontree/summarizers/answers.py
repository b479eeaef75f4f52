"""What the summarisers that ask a model have in common: when to trust an answer, how to tell what went wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from sessiontree.errors import EmptySummaryError, SummaryError, TruncatedSummaryError

T = TypeVar("T")

__all__ = ["checked_text", "decoded", "failure"]


def decoded(answer: T | str) -> T:
    """The answer as the SDK's record: what is no JSON, a gateway's page for instance, it passes on as a text."""
    if isinstance(answer, str):
        raise SummaryError(f"the server did not speak the protocol: {answer[:200]!r}")
    return answer


def checked_text(text: str | None, *, is_cut_off: bool, max_tokens: int) -> str:
    """The answer, if it is whole: half a summary would replace the other half of the conversation by nothing."""
    if is_cut_off:
        raise TruncatedSummaryError(max_tokens)
    if text is None or not text.strip():
        raise EmptySummaryError
    return text.strip()


def failure(error: Exception) -> SummaryError:
    """The SDK's error as ours, with the time to wait if the provider named one."""
    response = getattr(error, "response", None)
    headers: Mapping[str, str] = getattr(response, "headers", None) or {}
    status = getattr(error, "status_code", None)
    problem = f"{type(error).__name__}{f' ({status})' if status else ''}: {error}"
    return SummaryError(problem, retry_after_seconds=_seconds(headers.get("retry-after")))


def _seconds(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None
