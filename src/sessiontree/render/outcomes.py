"""What came out of a tool call: whether it failed, how much it printed, the lines that tell why it failed.

>>> from sessiontree.model import TextPart
>>> failed = ToolResultPart(call_id="c", parts=(TextPart(text="E  KeyError: 'ann'\\n1 failed in 0.41s\\nExit code 1"),))
>>> outcome = outcome_of("bash", failed)
>>> outcome.is_failed, outcome.text
(True, '1 failed in 0.41s')
>>> telling_lines(failed)
(["E  KeyError: 'ann'"], 1)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from sessiontree.model import OpaquePart, Record, TextPart, ToolResultPart
from sessiontree.model.sanitize import for_terminal, one_line
from sessiontree.model.tool_arguments import decode_arguments
from sessiontree.render.changes import Change
from sessiontree.render.figures import plural, size
from sessiontree.render.tool_kinds import ToolKind

__all__ = ["Outcome", "outcome_of", "result_text", "telling_lines"]


_SHORT_LINE = 32
_MOST_TELLING = 3
_LONGEST_READ = 400_000
_EXIT = re.compile(
    r"(?im)^\W*(?:\[?(?:the )?(?:command|process)\b.{0,40}?)?\b(?:exit(?:ed with)? code|exit status|exited with)\W*(-?\d+)\W*$"
)
_WALL_TIME = re.compile(r"(?im)^(?:wall time|duration): ([0-9.]+) ?s(?:econds?)?$")
_FRAME = re.compile(
    r"(?i)^(?:exit code|wall time|duration|output|total output lines|chunk id|process exited with code)\b[^:]{0,20}:?\s*[-0-9.]*\s*(?:seconds)?$"
)
_VERDICT = re.compile(
    r"(?i)\b(?:passed|failed|failures?|errors?|warnings?|tests?|ok|done|succe\w+|built|finished|up to date)\b"
)
_NO_HITS = re.compile(r"(?i)\A\W*(?:no (?:files|matches|results|hits)|found 0|0 (?:matches|results|files))")
_COUNTED = re.compile(r"(?i)\b(?:found|returned) (\d+) (?:\w+ )?(?:match|result|file|hit|line)")
_TELLING = re.compile(r"^(?:E  ?\S|>\s)|\b\w*(?:Error|Exception)\b|\berror(?:\[|:)|^fatal:|^FAILED\b|\bpanicked at\b")


class Outcome(Record, frozen=True):
    """The outcome of a call; ``seconds`` only if the result itself says how long it took."""

    text: str = ""
    is_failed: bool = False
    seconds: float | None = None


def result_text(result: ToolResultPart) -> str:
    """Return all words of a result, out of the JSON envelope that some agents put around it."""
    return _opened(_words(result))[0]


def outcome_of(kind: ToolKind, result: ToolResultPart, changes: Sequence[Change] = ()) -> Outcome:
    """Return the outcome of a call of this kind."""
    text, code, seconds = _opened(_words(result)[:_LONGEST_READ])
    lines = _lines(text)
    is_failed = result.is_error or (kind == "bash" and code not in (None, 0))
    if is_failed:
        last = _last_line(lines)
        return Outcome(one_line(last, 200) or (f"exit code {code}" if code else "failed"), True, seconds)
    return Outcome(_success(kind, text, lines, changes, result), False, seconds)


def telling_lines(result: ToolResultPart) -> tuple[list[str], int]:
    """Return at most three lines that tell why a call failed, and how many more there are."""
    lines = _lines(result_text(result)[:_LONGEST_READ])
    telling = [line for line in lines if _TELLING.search(line)][:_MOST_TELLING] or lines[-_MOST_TELLING:]
    return telling, max(0, len(lines) - len(telling))


def _success(kind: ToolKind, text: str, lines: Sequence[str], changes: Sequence[Change], result: ToolResultPart) -> str:
    match kind:
        case "edit" | "write" if changes:
            return _changed(kind, changes, text)
        case "bash":
            last = _last_line(lines)
            if not lines:
                return "no output"
            return (
                one_line(last, 200)
                if len(last) <= _SHORT_LINE and (len(lines) == 1 or _is_verdict(last))
                else plural(len(lines), "line")
            )
        case "grep" | "find":
            return plural(_hits(text, lines), "hit")
        case "web":
            return _found(text, lines)
        case "plan":
            return ""
        case _:
            pictures = sum(not isinstance(part, TextPart | OpaquePart) for part in result.parts)
            if not lines and pictures:
                return plural(pictures, "attachment")
            return _amount(text, lines)


def _changed(kind: ToolKind, changes: Sequence[Change], text: str) -> str:
    added, removed = sum(change.added for change in changes), sum(change.removed for change in changes)
    pieces = [f"+{added}"] if added or not removed else []
    pieces += [f"−{removed}"] if removed else []
    is_new = kind == "write" and re.search(r"(?i)\bcreated?\b|new file", text[:400]) is not None
    return " ".join(pieces) + (" new file" if is_new else "")


def _is_verdict(line: str) -> bool:
    """Whether a last line sums up what was printed before it, as the one of a test run does."""
    return bool(_VERDICT.search(line))


def _hits(text: str, lines: Sequence[str]) -> int:
    if _NO_HITS.search(text):
        return 0
    counted = _COUNTED.search(text[:2000])
    return int(counted[1][:9]) if counted else len(lines)


def _found(text: str, lines: Sequence[str]) -> str:
    counted = _COUNTED.search(text[:2000])
    if counted:
        return plural(int(counted[1][:9]), "result")
    links = len(set(re.findall(r"https?://[^\s\"'<>)\]]+", text[:_LONGEST_READ])))

    return plural(links, "result") if 1 < links <= 50 else _amount(text, lines)


def _amount(text: str, lines: Sequence[str]) -> str:
    if not lines:
        return "no output"
    if len(lines) == 1 and len(text) > _SHORT_LINE * 8:
        return size(len(text.encode()))
    return plural(len(lines), "line")


def _words(result: ToolResultPart) -> str:
    """The texts of a result, and the words of blocks that are not known."""
    found: list[str] = []
    for part in result.parts:
        match part:
            case TextPart(text=text):
                found.append(text)
            case OpaquePart():
                found += part.words
    return "\n".join(found)


def _opened(text: str) -> tuple[str, int | None, float | None]:
    """The text, the exit code and the seconds that a result names."""
    if text.startswith("{"):
        inner = _envelope(decode_arguments(text))
        if inner is not None:
            return inner
    code = _EXIT.search(text[:4000]) or _EXIT.search(text[-2000:])
    seconds = _WALL_TIME.search(text[:500])
    return text, int(code[1][:9]) if code else None, _float(seconds[1]) if seconds else None


def _envelope(value: Any) -> tuple[str, int | None, float | None] | None:
    """Codex: ``{"output": …, "metadata": {"exit_code": 0, "duration_seconds": 0.1}}``."""
    if not isinstance(value, dict) or not isinstance(value.get("output"), str):
        return None
    about = value["metadata"] if isinstance(value.get("metadata"), dict) else value
    code, seconds = about.get("exit_code"), about.get("duration_seconds")
    return (
        value["output"],
        code if isinstance(code, int) else None,
        float(seconds) if isinstance(seconds, int | float) else None,
    )


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _lines(text: str) -> list[str]:
    clean = (line.rstrip() for line in for_terminal(text).splitlines())
    return [line for line in clean if line.strip() and not _EXIT.match(line) and not _FRAME.match(line)]


def _last_line(lines: Sequence[str]) -> str:
    return lines[-1].strip(" =-\t") if lines else ""
