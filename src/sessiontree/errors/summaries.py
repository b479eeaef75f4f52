"""A model or its summary does not do."""

from __future__ import annotations

from sessiontree.errors.root import SessionTreeError

__all__ = [
    "ContextOverflowError",
    "EmptySummaryError",
    "OversizedSummaryError",
    "SummaryError",
    "TruncatedSummaryError",
]


class SummaryError(SessionTreeError):
    """A summariser gave no usable answer. The conversation is as it was."""

    def __init__(self, problem: str, *, retry_after_seconds: float | None = None) -> None:
        self.problem = problem
        self.retry_after_seconds = retry_after_seconds
        wait = "" if retry_after_seconds is None else f" after {retry_after_seconds:g} seconds"
        super().__init__(
            f"no summary: {problem}; nothing was changed, try again{wait}, or use the strategy hybrid or truncate"
        )


class EmptySummaryError(SummaryError):
    def __init__(self) -> None:
        super().__init__("the answer was empty")


class OversizedSummaryError(SummaryError):
    def __init__(self, tokens: int, most_tokens: int) -> None:
        self.tokens = tokens
        self.most_tokens = most_tokens
        super().__init__(f"the answer has {tokens} tokens and at most {most_tokens} fit the window")


class TruncatedSummaryError(SummaryError):
    def __init__(self, max_tokens: int) -> None:
        self.max_tokens = max_tokens
        super().__init__(f"the answer was cut off at {max_tokens} tokens; allow more summary_tokens")


class ContextOverflowError(SessionTreeError):
    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        super().__init__(
            f"the context of thread {thread_id!r} is too long for the model, also after a compaction; "
            "use a model with a larger window, or rewind to before the entry that is too big"
        )
