"""The sample transcripts of other tools: where they are, and what stands in them, read without our readers."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

DATA = Path(__file__).parent.parent / "data"


class Sample(NamedTuple):
    format: str
    path: Path

    @property
    def name(self) -> str:
        return str(self.path.relative_to(DATA)).removeprefix("transcripts/")


_FOLDERS = {
    "claude-code": ("claude-code/synthetic", "claude-code/*.json*", "others/iflow"),
    "codex": ("codex/synthetic", "codex/*.jsonl"),
    "gemini": ("gemini/synthetic", "gemini/*.json"),
    "opencode": ("opencode/synthetic",),
    "goose": ("goose/synthetic",),
    "crush": ("crush/synthetic",),
    "cline": ("cline/synthetic", "roo/synthetic"),
    "aider": ("aider/*.md",),
    "openhands": ("openhands/tests/sdk", "openhands/tests/fixtures"),
    "copilot": ("copilot/synthetic",),
    "lmstudio": ("lmstudio/synthetic",),
    "openwebui": ("openwebui/synthetic",),
    "chatgpt": ("chatgpt/synthetic", "chatgpt/*.json"),
    "claude-ai": ("claude-ai/synthetic",),
    "llm": ("llm/synthetic",),
    "chat-log": ("others/gptme", "others/vibe"),
    "dataset": ("datasets/synthetic",),
}


def samples() -> list[Sample]:
    """All samples, in the order of their tools."""
    found = [
        Sample(name, path)
        for name, patterns in _FOLDERS.items()
        for pattern in patterns
        for path in sorted((DATA / "transcripts").glob(pattern))
    ]
    return [*found, *(Sample("pi", path) for path in sorted((DATA / "pi").glob("*.jsonl")))]


_SAID = frozenset({"text", "thinking", "content", "description", "summary_text", "task", "parts"})
_GIVEN = frozenset({"input", "arguments", "args"})


def texts_in(path: Path) -> set[str]:
    """Every text, argument and result that stands in the files of a sample."""
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    return {
        words.strip() for file in files for value in _values(file) for words in _texts(value, "") if _is_said(words)
    }


def _is_said(words: str) -> bool:
    return any(character.isalnum() for character in words)


def _values(file: Path) -> Iterator[Any]:
    if file.suffix == ".db":
        yield from _rows(file)
    elif file.suffix == ".md":
        lines = file.read_text().splitlines()
        yield [{"text": line.lstrip("#> ")} for line in lines if not line.startswith("# aider chat")]
    elif file.suffix in (".json", ".jsonl"):
        body = file.read_text(encoding="utf-8")
        for part in [body] if file.suffix == ".json" else body.splitlines():
            try:
                yield json.loads(part)
            except ValueError:
                continue


def _rows(file: Path) -> Iterator[Any]:
    connection = sqlite3.connect(f"file:{file}?immutable=1", uri=True)
    for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        cursor = connection.execute(f"SELECT * FROM {table}")
        names = [name for name, *_ in cursor.description]
        for row in cursor:
            for name, value in zip(names, row, strict=True):
                if isinstance(value, str) and value.startswith(("[", "{")):
                    yield json.loads(value)
                elif name in ("prompt", "response", "output"):
                    yield {"text": value}
    connection.close()


def _texts(value: Any, key: str) -> Iterator[str]:
    match value:
        case str() if key in _SAID and not isinstance(_parsed(value), dict):
            yield value
        case str() if key in _GIVEN:
            yield from _leaves(_parsed(value))
        case dict() if key in _GIVEN:
            yield from _leaves(value)
        case {"subtype": "compact_boundary"}:
            return
        case {"from": str(), "value": str(words)}:
            yield words
        case dict():
            for name, item in value.items():
                yield from _texts(item, name)
        case list():
            for item in value:
                yield from _texts(item, key)


def _parsed(value: str) -> Any:
    try:
        return json.loads(value)
    except ValueError:
        return value


def _leaves(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for item in value.values():
                yield from _leaves(item)
        case list():
            for item in value:
                yield from _leaves(item)
