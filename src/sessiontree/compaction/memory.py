r"""Clean memories: one fact a line, no duplicates, nothing that is gone tomorrow. Pure.

>>> print(normalize_memory("* User prefers tabs.\n- Working on the parser\n1. user prefers  tabs\n- log in /tmp/x"))
- User prefers tabs.
- Working on the parser
>>> normalize_memory("3.5 GB of memory are free")
'- 3.5 GB of memory are free'

When to draw memories out: on the way up over the soft threshold, once between two compactions.

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
from collections.abc import Iterable
from typing import Literal

from sessiontree.compaction import CompactionPolicy

__all__ = [
    "NO_MEMORY_NEEDED",
    "Bucket",
    "bucket_of",
    "crosses_soft_threshold",
    "fingerprint",
    "is_transient",
    "memory_lines",
    "normalize_memory",
]


NO_MEMORY_NEEDED = "NO_MEMORY_NEEDED"

Bucket = Literal["preference", "project", "other"]

_BUCKETS: tuple[Bucket, ...] = ("preference", "project", "other")
# A bullet needs a blank behind it: "3.5 GB" and "-5 C" are no list items. "2024. was good" begins with a year.
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
_GONE_TOMORROW = re.compile(
    r"/tmp/|\.tmp/|/mnt/user-data/(?:workspace|uploads|outputs)|\b(?:workspace_root|artifact_root)\b"  # noqa: S108  a pattern, not a file
    r"|\b(?:session|conversation|trace|run) ids?\b|\b(?:temporary|temp) files?\b|\bephemeral uploads?\b"
    r"|\buploaded (?:files?|attachments?)\b|\battachment paths?\b|\bscreenshots? attached\b",
    re.IGNORECASE,
)
_MACHINERY = re.compile(
    r"\b(?:stdout|stderr|exit codes?|approval (?:requested|resolved)|pending approvals?|tool calls?|tool outputs?"
    r"|audit trails?|stack traces?|debug logs?|system prompts?|prompt injection defen[cs]e|raw tool payloads?)\b",
    re.IGNORECASE,
)


def normalize_memory(text: str) -> str:
    """What is worth storing of an extraction, or ``NO_MEMORY_NEEDED``; nothing stays nothing."""
    if not text.strip():
        return ""
    lines = memory_lines(text)
    return "\n".join(f"- {line}" for line in lines) or NO_MEMORY_NEEDED


def memory_lines(text: str, known: Iterable[str] = ()) -> list[str]:
    """The facts of a text, preferences first, then facts about projects; ``known`` are fingerprints to leave out."""
    seen = set(known)
    found: dict[Bucket, list[str]] = {bucket: [] for bucket in _BUCKETS}
    for raw in text.splitlines():
        line = _normalized_line(raw)
        mark = fingerprint(line)
        if mark and mark not in seen and not _says_nothing(mark) and not is_transient(line):
            seen.add(mark)
            found[bucket_of(line)].append(line)
    return [line for bucket in _BUCKETS for line in found[bucket]]


def fingerprint(line: str) -> str:
    """The same for two lines that say the same: case, width, accents' spelling, blanks and edge marks do not count.

    >>> fingerprint("- Straße  in BERLIN.") == fingerprint("STRASSE in Berlin")
    True
    """
    folded = unicodedata.normalize("NFKC", _normalized_line(line)).casefold()
    return " ".join(unicodedata.normalize("NFC", folded).strip(_EDGES).split())


def is_transient(line: str) -> bool:
    """Whether a line is about something that will be gone, or about the machinery.

    What somebody prefers about tool calls is a preference, not machinery.
    """
    if _GONE_TOMORROW.search(line):
        return True
    return bool(_MACHINERY.search(line)) and bucket_of(line) != "preference"


def bucket_of(line: str) -> Bucket:
    if _PREFERENCE.search(line):
        return "preference"
    return "project" if _PROJECT.search(line) else "other"


def _says_nothing(mark: str) -> bool:
    """The sentinel, also where a model dressed it up."""
    return mark.strip("*_#>[](){}!" + _EDGES) == NO_MEMORY_NEEDED.casefold()


def _normalized_line(line: str) -> str:
    bare = _BULLET.sub("", line.strip().strip("`").strip(), count=1)
    return " ".join(bare.split())


def crosses_soft_threshold(before: int, now: int, policy: CompactionPolicy) -> bool:
    """Only upwards: falling back below the hard threshold, as after a compaction, is no crossing.

    A jump over both thresholds at once counts: memories go first, then the compaction.
    """
    return before < policy.soft_threshold <= now
