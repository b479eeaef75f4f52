"""The ``dataset`` format: rows for training, one conversation to a row.

Rows in the shapes of OpenAI's chat and responses, Anthropic's messages, ShareGPT, Alpaca, and preference pairs (DPO), whose
two answers become two branches.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sessiontree.model import Payload, TextPart
from sessiontree.model.builders import system
from sessiontree.transfer.formats._chat import chat_payloads
from sessiontree.transfer.formats._files import modified_ns
from sessiontree.transfer.formats._messages import by_role
from sessiontree.transfer.formats._records import ImportedRecord, ImportedSession, Tally, chain_id
from sessiontree.transfer.formats._transcript import (
    FileFormat,
    Head,
    Recorder,
    json_records,
    kept,
    records_in,
    whole_json,
)
from sessiontree.transfer.formats._wire import Json, as_text, decoded, mapping, objects, text
from sessiontree.transfer.formats.codex.records import answer_of, answer_parts, message_payload, result_payload

__all__ = ["detect", "session_files", "sessions", "size"]


_SHAREGPT = {
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "assistant": "assistant",
    "model": "assistant",
    "bing": "assistant",
    "system": "system",
}


def _recognises(head: Head) -> bool:
    if head.path.suffix == ".jsonl":
        return bool(head.records) and 2 * sum(bool(_shape(record)) for record in head.records) >= len(head.records)
    names = (
        ("conversations", "from", "value"),
        ("chosen", "rejected"),
        ("instruction", "output"),
        ("messages", "role", "content"),
    )
    return head.data.lstrip()[:1] == b"[" and any(head.has(*name) for name in names) and not head.has("versions")


def _shape(row: Json) -> str:
    """The shape of a row; empty if it is none of those that are known."""
    turns = objects(row.get("conversations")) or objects(row.get("conversation"))
    if "chosen" in row and "rejected" in row:
        return "preference"
    if turns and ("from" in turns[0] or "role" in turns[0]):
        return "sharegpt"
    if objects(row.get("messages")) and "role" in objects(row["messages"])[0]:
        return "chat"
    if isinstance(row.get("output"), list) and "input" in row:
        return "responses"
    if isinstance(row.get("instruction"), str) and "output" in row:
        return "alpaca"
    if isinstance(row.get("prompt"), str) and isinstance(row.get("completion"), str):
        return "completion"
    return ""


def _read(path: Path, tally: Tally) -> Iterator[ImportedSession]:
    created = modified_ns(path)
    if path.suffix != ".jsonl":
        for row in records_in(whole_json(path, tally), path, tally):
            if _shape(row):
                yield _session(path, row, created, tally)
            else:
                tally.note(
                    "damage", str(path), f"the shape of the row {as_text(row)[:80]!r} is not known; it was left out"
                )
        return
    notes = Recorder(path, tally, id=path.stem, created_ns=created)
    for found, line, problem in json_records(path, notes):
        if found is not None and _shape(found):
            yield _session(path, found, created, tally)
        else:
            why = problem or "the shape of the row is not known"
            tally.note("damage", str(path), f"{why}; it was left out", offset=line.offset, size=len(line.body))


_format = FileFormat(_recognises, _read, "*.jsonl", "*.json")
detect, size, sessions, session_files = _format.detect, _format.size, _format.sessions, _format.files


def _session(path: Path, row: Json, created: int, tally: Tally) -> ImportedSession:
    body = as_text(row).encode()
    recorder = Recorder(path, tally, id=f"row-{hashlib.sha256(body).hexdigest()[:16]}", created_ns=created)
    recorder.custom |= {"row": row["id"]} if isinstance(row.get("id"), str | int) else {}
    recorder.model = text(row.get("model"))
    rest = (
        "messages",
        "conversations",
        "conversation",
        "prompt",
        "chosen",
        "rejected",
        "input",
        "output",
        "instruction",
    )
    recorder.origin["raw"] = {name: value for name, value in row.items() if name not in rest}
    writer = _Writer(recorder)
    if _shape(row) == "preference":
        return recorder.session(writer.preference(row), leaf=lambda: writer.chosen)
    return recorder.session(writer.line(_payloads(row, recorder.model), None))


class _Writer:
    """Puts payloads in line, with ids from their contents."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._tip: str | None = None
        self.chosen: str | None = None

    def line(self, payloads: list[tuple[Payload, Any]], parent: str | None) -> Iterator[ImportedRecord]:
        self._tip = parent
        for number, (payload, raw) in enumerate(payloads):
            entry_id = chain_id(self._tip or self._recorder.id, f"{number}{as_text(raw)}".encode())
            yield ImportedRecord(kept(payload, raw), entry_id, self._recorder.created_ns, self._tip)
            self._tip = entry_id

    def preference(self, row: Json) -> Iterator[ImportedRecord]:
        """The prompt, then the two answers side by side; the thread goes on from the one that was chosen."""
        prompt, chosen, rejected = (_turns(row.get(name), role) for name, role in _PREFERENCE.items())
        while chosen and rejected and as_text(chosen[0]) == as_text(rejected[0]):
            prompt, chosen, rejected = [*prompt, chosen[0]], chosen[1:], rejected[1:]
        above = [(payload, turn) for turn in prompt for payload in chat_payloads(turn)]
        if isinstance(row.get("system"), str) and row["system"]:
            above.insert(0, (system(row["system"]), {"system": row["system"]}))
        yield from self.line(above, None)
        end = self._tip
        for name, turns in (("rejected", rejected), ("chosen", chosen)):
            answers = [(payload, turn) for turn in turns for payload in chat_payloads(turn)]
            yield from self.line(answers, end)
            self.chosen = self._tip if name == "chosen" else None


_PREFERENCE = {"prompt": "user", "chosen": "assistant", "rejected": "assistant"}


def _turns(value: Any, role: str) -> list[Json]:
    if isinstance(value, str):
        return [{"role": role, "content": value}]
    turns = objects(value) or ([value] if isinstance(value, dict) else [])
    return [_sharegpt(turn) if "from" in turn else turn for turn in turns]


def _payloads(row: Json, model: str) -> list[tuple[Payload, Any]]:
    match _shape(row):
        case "chat":
            turns = objects(row["messages"])
        case "sharegpt":
            turns = _turns(row.get("conversations") or row.get("conversation"), "user")
        case "responses":
            return _responses(row, model)
        case "alpaca":
            asked = "\n\n".join(filter(None, (text(row.get("instruction")), text(row.get("input")))))
            turns = [{"role": "user", "content": asked}, {"role": "assistant", "content": as_text(row.get("output"))}]
        case _:
            turns = [
                {"role": "user", "content": row.get("prompt")},
                {"role": "assistant", "content": row.get("completion")},
            ]
    found = [(payload, turn) for turn in turns for payload in chat_payloads(turn, model)]
    prompt = row.get("system")
    words = prompt if isinstance(prompt, str) else "\n".join(text(block.get("text")) for block in objects(prompt))
    return [(system(words), {"system": prompt}), *found] if words else found


def _sharegpt(turn: Json) -> Json:
    role, value = text(turn.get("from")), turn.get("value")
    if role in ("function_call", "tool_call"):
        call = {"id": "call", "function": _function(value)}
        return {"role": "assistant", "content": None, "tool_calls": [call]}
    if role in ("observation", "tool", "function_response"):
        return {"role": "tool", "tool_call_id": "call", "content": value}
    return {"role": _SHAREGPT.get(role, role or "user"), "content": value}


def _function(value: Any) -> Json:
    found = mapping(decoded(value) if isinstance(value, str) else value)
    return {"name": text(found.get("name")), "arguments": found.get("arguments", value)}


def _responses(row: Json, model: str) -> list[tuple[Payload, Any]]:
    """The items of a request and of its response."""
    asked = row.get("input")
    items = [
        *([{"role": "user", "content": asked}] if isinstance(asked, str) else objects(asked)),
        *objects(row["output"]),
    ]
    found: list[tuple[Payload, Any]] = []
    open_items: list[Json] = []

    def close() -> None:
        parts = tuple(part for item in open_items for part in answer_parts(item) or ())
        if open_items:
            found.append((answer_of(parts, "openai", model), list(open_items)))
            open_items.clear()

    for item in items:
        if answer_parts(item) is not None:
            open_items.append(item)
            continue
        close()
        is_result = text(item.get("type")).endswith("_output")
        found.append((result_payload(item) if is_result else message_payload(item), item))
    close()
    prompt = text(row.get("instructions"))
    return [(by_role("system", [TextPart(text=prompt)])[0], prompt), *found] if prompt else found
