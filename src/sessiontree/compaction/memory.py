r"""Memories: durable facts extracted from conversations. The rules and records, without input and output.

An extraction is cleaned to one fact a line, without duplicates and without what is soon outdated:

>>> print(normalize_memory("* User prefers tabs.\n- Working on the parser\n1. user prefers  tabs\n- log in /tmp/x"))
- User prefers tabs.
- Working on the parser
>>> normalize_memory("3.5 GB of memory are free")
'- 3.5 GB of memory are free'

It is due when the window grows past the soft threshold, once between two compactions:

>>> from sessiontree.compaction import CompactionPolicy
>>> policy = CompactionPolicy(window_tokens=1_000, reserve_tokens=0, soft_ratio=0.6)
>>> crosses_soft_threshold(500, 650, policy), crosses_soft_threshold(650, 700, policy)
(True, False)
>>> crosses_soft_threshold(900, 650, policy)
False
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Awaitable, Iterable
from typing import Literal, Protocol

from sessiontree.compaction.policy import CompactionPolicy
from sessiontree.compaction.prompts import INSTRUCTIONS
from sessiontree.errors import InvalidInputError
from sessiontree.model import SessionKey
from sessiontree.model._base import Record

__all__ = [
    "NO_MEMORY_NEEDED",
    "Bucket",
    "ExtractedMemory",
    "MemoryRefreshConfig",
    "MemoryRefresher",
    "MemoryResult",
    "MemoryStatus",
    "Recollection",
    "bucket_of",
    "crosses_soft_threshold",
    "fingerprint",
    "is_transient",
    "memory_lines",
    "normalize_memory",
    "search_terms",
]


NO_MEMORY_NEEDED = "NO_MEMORY_NEEDED"
"""The answer of a model that found no facts."""

MemoryStatus = Literal["stored", "nothing_to_remember", "already_done", "too_short"]
Bucket = Literal["preference", "project", "other"]

_BUCKETS: tuple[Bucket, ...] = ("preference", "project", "other")
# A bullet is followed by a space: "3.5 GB" and "-5 C" are not list items, and "2024. was good" begins with a year.
_BULLET = re.compile(r"^(?:[-*+•\u2013\u2014]+|\d{1,3}[.)])\s+")
_EDGES = " .,:;`\"'"
_PREFERENCE = re.compile(
    r"\b(?:preferences?|prefers?|likes?|dislikes?|loves?|hates?|enjoys?|avoids?|favou?rs?|wants?|expects?|defaults?)\b"
    r"|偏好|喜欢|讨厌|默认|好み|嫌い",
    re.IGNORECASE,
)
_PROJECT = re.compile(
    r"\b(?:projects?|repos?|repository|repositories|working on|codebases?|uses|builds)\b|项目|仓库|プロジェクト",
    re.IGNORECASE,
)
_SHORT_LIVED = re.compile(
    r"/tmp/|\.tmp/|/mnt/user-data/(?:workspace|uploads|outputs)|\b(?:workspace_root|artifact_root)\b"  # noqa: S108  a pattern, not a file
    r"|\b(?:session|conversation|trace|run) ids?\b|\b(?:temporary|temp) files?\b|\bephemeral uploads?\b"
    r"|\buploaded (?:files?|attachments?)\b|\battachment paths?\b|\bscreenshots? attached\b",
    re.IGNORECASE,
)
_INTERNALS = re.compile(
    r"\b(?:stdout|stderr|exit codes?|approval (?:requested|resolved)|pending approvals?|tool calls?|tool outputs?"
    r"|audit trails?|stack traces?|debug logs?|system prompts?|prompt injection defen[cs]e|raw tool payloads?)\b",
    re.IGNORECASE,
)
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_COMMON = frozenset(
    [
        "the",
        "and",
        "of",
        "in",
        "is",
        "are",
        "was",
        "to",
        "for",
        "with",
        "on",
        "at",
        "an",
        "or",
        "it",
        "that",
        "this",
        "what",
        "which",
        "do",
        "does",
    ]
)


class ExtractedMemory(Record, frozen=True, kw_only=True):
    """Clean facts, one a line, and the conversation they come from."""

    text: str
    thread_id: str
    window_id: str
    key: SessionKey


class MemoryRefresher(Protocol):
    """Stores memories. With an AsyncJournal, ``refresh`` may be a coroutine function."""

    def refresh(self, memory: ExtractedMemory) -> Awaitable[object] | object: ...


class MemoryRefreshConfig(Record, frozen=True, kw_only=True):
    """When memories are extracted before a compaction, what the model is told, and how long its answer may be.

    ``soft_threshold_ratio`` is a share of the window. ``system_prompt`` is added to our request if it differs from it.
    """

    is_enabled: bool = True
    soft_threshold_ratio: float = 0.6
    system_prompt: str = INSTRUCTIONS["memory"]
    max_extract_tokens: int = 500

    def __post_init__(self) -> None:
        if not 0 < self.soft_threshold_ratio <= 1 or self.max_extract_tokens < 1:
            raise InvalidInputError(
                "soft_threshold_ratio must be above 0 and up to 1, and max_extract_tokens at least 1; got "
                f"{self.soft_threshold_ratio} and {self.max_extract_tokens}"
            )


class MemoryResult(Record, frozen=True, kw_only=True):
    """What a refresh did, and the facts that it stored."""

    status: MemoryStatus
    text: str = ""


class Recollection(Record, frozen=True, kw_only=True):
    """A stored fact, the entry that holds it, and the share of the query's words that it contains."""

    text: str
    entry_id: str
    score: float


def normalize_memory(text: str) -> str:
    """Return the facts of an extraction as a list, ``NO_MEMORY_NEEDED`` if there are none, or ``""`` for no text."""
    if not text.strip():
        return ""
    lines = memory_lines(text)
    return "\n".join(f"- {line}" for line in lines) or NO_MEMORY_NEEDED


def memory_lines(text: str, known: Iterable[str] = ()) -> list[str]:
    """Return the facts of a text: preferences first, then projects, then others. ``known`` fingerprints are left out."""
    seen = set(known)
    found: dict[Bucket, list[str]] = {bucket: [] for bucket in _BUCKETS}
    for raw in text.splitlines():
        line = _normalized_line(raw)
        mark = fingerprint(line)
        if mark and mark not in seen and not _is_sentinel(mark) and not is_transient(line):
            seen.add(mark)
            found[bucket_of(line)].append(line)
    return [line for bucket in _BUCKETS for line in found[bucket]]


def fingerprint(line: str) -> str:
    """Return a key that is equal for lines that differ only in case, width, spaces, bullets or outer punctuation.

    >>> fingerprint("- Straße  in BERLIN.") == fingerprint("STRASSE in Berlin")
    True
    """
    folded = unicodedata.normalize("NFKC", _normalized_line(line)).casefold()
    return " ".join(unicodedata.normalize("NFC", folded).strip(_EDGES).split())


def is_transient(line: str) -> bool:
    """Whether a line is about temporary things such as uploaded files, or about internals such as tool calls.

    A preference about tool calls is a fact to keep.
    """
    if _SHORT_LIVED.search(line):
        return True
    return bool(_INTERNALS.search(line)) and bucket_of(line) != "preference"


def bucket_of(line: str) -> Bucket:
    """Return the kind of a fact."""
    if _PREFERENCE.search(line):
        return "preference"
    return "project" if _PROJECT.search(line) else "other"


def _is_sentinel(mark: str) -> bool:
    """Whether a model answered with the sentinel, possibly in Markdown."""
    return mark.strip("*_#>[](){}!" + _EDGES) == NO_MEMORY_NEEDED.casefold()


def _normalized_line(line: str) -> str:
    bare = _BULLET.sub("", line.strip().strip("`").strip(), count=1)
    return " ".join(bare.split())


def crosses_soft_threshold(before: int, now: int, policy: CompactionPolicy) -> bool:
    """Whether the window grew past the soft threshold. Shrinking, as after a compaction, does not count.

    Growing past the hard threshold at the same time does: memories are refreshed first, then the thread is compacted.
    """
    return before < policy.soft_threshold <= now


def search_terms(text: str) -> set[str]:
    """Return the words to search for, without case; pairs of characters where a script has no spaces between words."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    words = {word for word in re.findall(r"\w+", folded) if len(word) > 1 or word.isdigit()} - _COMMON
    pairs = {run[index : index + 2] for run in _WIDE.findall(folded) for index in range(max(1, len(run) - 1))}
    return words | pairs
