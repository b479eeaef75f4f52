"""The ``aider`` format: aider's chat history, a Markdown file with many runs in it."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from sessiontree.model import NANOSECONDS, Custom, FilePart, Message, Part, Payload, TextPart
from sessiontree.model.builders import assistant, user
from sessiontree.transfer.formats._files import whole_of
from sessiontree.transfer.formats._records import ImportedRecord, ImportedSession, Tally, chain_id
from sessiontree.transfer.formats._transcript import FileFormat, Head, Recorder, kept, stamp_of

__all__ = ["detect", "session_files", "sessions", "size"]


_START = re.compile(r"^# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*$", re.MULTILINE)
_EDITED = re.compile(r"^(?:Applied edit to|Creating empty file|Commit \w+ .*? to) (.+?)\s*$", re.MULTILINE)
_MODEL = re.compile(r"^(?:Main model|Model): (\S+)", re.MULTILINE)


def _recognises(head: Head) -> bool:
    return b"# aider chat started at " in head.data


def _read(path: Path, tally: Tally) -> Iterator[ImportedSession]:
    body = whole_of(path, tally) or b""
    tally.advance(len(body))
    written = body.decode("utf-8-sig", "replace")
    starts = list(_START.finditer(written))
    place = f"{zlib.crc32(str(path.absolute()).encode()):08x}"
    for number, start in enumerate(starts):
        end = starts[number + 1].start() if number + 1 < len(starts) else len(written)
        run = written[start.end() : end]
        name = f"aider-{place}-{start[1].replace(' ', 'T').replace(':', '-')}"
        is_last = number + 1 == len(starts)
        recorder = Recorder(path, tally, id=name, created_ns=_time(start[1]), stamp=stamp_of(path) if is_last else None)
        recorder.workspace = str(path.parent.absolute())
        found = _MODEL.search(run)
        recorder.model = found[1] if found else ""
        yield recorder.session(_items(run, recorder))


_format = FileFormat(_recognises, _read, "*.md")
detect, size, sessions, session_files = _format.detect, _format.size, _format.sessions, _format.files


def _time(written: str) -> int:
    """The time in the zone of this machine, which aider writes without one; 0 if there is no such time."""
    try:
        return int(datetime.fromisoformat(written).astimezone().timestamp()) * NANOSECONDS
    except (ValueError, OverflowError, OSError):
        return 0


class _Block(NamedTuple):
    """Lines of one speaker."""

    speaker: str
    lines: list[str]


def _items(run: str, recorder: Recorder) -> Iterator[ImportedRecord]:
    previous = recorder.id
    for speaker, lines in _blocks(run):
        words = "\n".join(lines).strip("\n")
        if not words.strip():
            continue
        previous = chain_id(previous, f"{speaker} {words}".encode())
        yield ImportedRecord(kept(_payload(speaker, words, recorder), words), previous, recorder.created_ns)


def _blocks(run: str) -> Iterator[_Block]:
    """The run by speakers. aider ends what a user typed with two spaces; a heading in an answer has none."""
    marks = [line for line in run.splitlines() if line.startswith("#### ")]
    is_strict = any(line.endswith("  ") for line in marks)
    block = _Block("", [])
    for line in run.splitlines():
        speaker = "assistant"
        if line.startswith("#### ") and (line.endswith("  ") or not is_strict):
            speaker, line = "user", line.removeprefix("#### ").rstrip()  # noqa: PLW2901
        elif line.startswith("> ") or line.rstrip() == ">":
            speaker, line = "console", line.removeprefix(">").removeprefix(" ").rstrip()  # noqa: PLW2901
        elif not line.strip():
            speaker = block.speaker
        if speaker != block.speaker:
            yield block
            block = _Block(speaker, [])
        block.lines.append(line)
    yield block


def _payload(speaker: str, words: str, recorder: Recorder) -> Payload:
    match speaker:
        case "user":
            return user(words)
        case "console":
            files = dict.fromkeys(_EDITED.findall(words))
            parts: tuple[Part, ...] = (TextPart(text=words), *(FilePart(name=name) for name in files))
            return Custom(name="console", message=Message(role="tool", parts=parts))
        case _:
            return assistant(words, model=recorder.model)
