"""When to compact and how much to keep, and how to recognise a context overflow.

>>> policy = CompactionPolicy(window_tokens=100_000, reserve_tokens=10_000)
>>> policy.threshold
90000
>>> needs_compaction(89_999, policy), needs_compaction(90_000, policy)
(False, True)
>>> is_context_overflow(ValueError("This model's maximum context length is 8192 tokens"))
True
>>> is_context_overflow(ValueError("rate limit"))
False
"""

from __future__ import annotations

import re
from typing import Literal, get_args

from sessiontree.errors import InvalidInputError
from sessiontree.model._base import Record

__all__ = [
    "DEFAULT_CONTEXT_TOKENS",
    "LEGACY_CONTEXT_TOKENS",
    "CompactionPolicy",
    "Strategy",
    "is_context_overflow",
    "needs_compaction",
    "normalize_token_budget",
    "ratio_policy",
]


Strategy = Literal["summarize", "truncate", "hybrid"]
"""What replaces the head of a conversation.

``summarize``: a summary; if the summariser fails, nothing is changed. ``truncate``: a notice that says how many messages
were left out. ``hybrid``: a summary, or the notice if the summariser fails.
"""


class CompactionPolicy(Record, frozen=True, kw_only=True):
    """Sizes in tokens. Each is limited to a part of the window, so that the defaults suit small windows too.

    ``keep_recent_messages`` above zero replaces ``keep_recent_tokens``: it keeps a number of messages.
    """

    window_tokens: int = 200_000
    reserve_tokens: int = 16_384
    keep_recent_tokens: int = 20_000
    keep_recent_messages: int = 0
    keep_user_tokens: int = 15_000
    summary_tokens: int = 4_096
    threshold_ratio: float = 1.0
    soft_ratio: float = 0.6
    chunk_tokens: int = 100_000
    strategy: Strategy = "summarize"

    def __post_init__(self) -> None:
        checks = (
            self.window_tokens > 0,
            self.reserve_tokens >= 0,
            self.keep_recent_tokens >= 0,
            self.keep_recent_messages >= 0,
            self.keep_user_tokens >= 0,
            self.summary_tokens > 0,
            self.chunk_tokens > 0,
            0 < self.threshold_ratio <= 1,
            0 < self.soft_ratio <= 1,
            self.strategy in get_args(Strategy),
        )
        if not all(checks):
            raise InvalidInputError(
                "invalid policy: use sizes that are not negative, ratios above 0 and up to 1, and a strategy of "
                f"{get_args(Strategy)}; got {self}"
            )

    @property
    def threshold(self) -> int:
        """The number of tokens from which on a compaction is needed."""
        available = self.window_tokens - self._share(self.reserve_tokens)
        return max(1, min(int(self.window_tokens * self.threshold_ratio), available))

    @property
    def soft_threshold(self) -> int:
        """The number of tokens from which on memories are extracted; always below the threshold."""
        return min(int(self.window_tokens * self.soft_ratio), self.threshold * 9 // 10)

    @property
    def target(self) -> int:
        """The number of tokens that a compaction aims at: half of the threshold, so that the next one is not soon."""
        return self.target_with(0)

    def target_with(self, prompt: int) -> int:
        """Return the target beside a prompt of that many tokens.

        A small window gets up to three quarters of the threshold, so that recent messages have a place.
        """
        promised = prompt + self.max_summary_tokens + self.user_share + self.recent_share
        return max(1, self.threshold // 2, min(promised, self.threshold * 3 // 4))

    @property
    def recent_share(self) -> int:
        """The tokens of recent messages that are kept."""
        return self._share(self.keep_recent_tokens)

    @property
    def user_share(self) -> int:
        """The tokens of user messages that are quoted."""
        return min(self.keep_user_tokens, self.window_tokens // 12)

    @property
    def max_summary_tokens(self) -> int:
        """The most tokens of a summary, with the notes on a split turn and the lists of files."""
        return self.summary_share * 2

    @property
    def file_share(self) -> int:
        """The tokens for the lists of files."""
        return self.summary_share // 3

    @property
    def summary_share(self) -> int:
        """The tokens that a summariser is asked to stay below."""
        return max(1, min(self.summary_tokens, self.window_tokens // 16))

    def _share(self, tokens: int) -> int:
        return min(tokens, self.window_tokens // 4)


def needs_compaction(tokens: int, policy: CompactionPolicy) -> bool:
    """Return whether a context of this size has to be compacted."""
    return tokens >= policy.threshold


DEFAULT_CONTEXT_TOKENS = 200_000
"""The window if none is given."""

LEGACY_CONTEXT_TOKENS = 8_000
"""The default of early versions of ZimaOS-Blue, which its configuration files still have."""


def normalize_token_budget(tokens: int) -> int:
    """Return the window for a number in a configuration file of ZimaOS-Blue, where 0 and 8000 mean the default.

    >>> normalize_token_budget(0), normalize_token_budget(8_000), normalize_token_budget(32_000)
    (200000, 200000, 32000)
    """
    return DEFAULT_CONTEXT_TOKENS if tokens <= 0 or tokens == LEGACY_CONTEXT_TOKENS else tokens


def ratio_policy(
    window_tokens: int = 200_000,
    *,
    threshold_ratio: float = 0.8,
    preserve_recent: int = 5,
    summary_tokens: int = 500,
    soft_ratio: float = 0.6,
    strategy: Strategy = "summarize",
) -> CompactionPolicy:
    """Return a policy by ratios: compact at 80 % of the window and keep the last five messages.

    >>> ratio_policy(10_000).threshold
    8000
    """
    return CompactionPolicy(
        window_tokens=window_tokens,
        reserve_tokens=0,
        keep_recent_messages=preserve_recent,
        keep_user_tokens=0,
        summary_tokens=summary_tokens,
        threshold_ratio=threshold_ratio,
        soft_ratio=soft_ratio,
        strategy=strategy,
    )


_CODES = frozenset({"context_length_exceeded", "model_context_window_exceeded", "request_too_large"})
_WORDS = (
    r"(?is)context.{0,20}(length|window|size|limit)|prompt (is )?too long|input (is )?too long|too many (input )?tokens"
    r"|input token count.{0,40}exceed|exceeds? the (maximum|max|available).{0,30}(tokens?|context)"
    r"|reduce the length of the (messages|prompt)|request_too_large"
)
_LIMITS = r"(?i)rate.?limit|per (minute|day)|quota|\btpm\b"


def is_context_overflow(error: BaseException) -> bool:
    """Return whether an error says that the request was too long for the model; a rate limit does not count."""
    if getattr(error, "code", None) in _CODES or getattr(error, "status_code", None) == 413:
        return True
    text = str(error)
    return bool(re.search(_WORDS, text)) and not re.search(_LIMITS, text)
