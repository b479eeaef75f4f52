"""The ``lmstudio`` format: the conversations of LM Studio; the versions of a message are branches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sessiontree.model import (
    FilePart,
    OpaquePart,
    Part,
    Payload,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)
from sessiontree.model.builders import system
from sessiontree.transfer.formats._blocks import arguments_text, result_content
from sessiontree.transfer.formats._files import modified_ns
from sessiontree.transfer.formats._messages import by_role, split_results
from sessiontree.transfer.formats._records import ImportedRecord, ImportedSession, Tally
from sessiontree.transfer.formats._transcript import (
    FileFormat,
    Head,
    Recorder,
    kept,
    marked,
    records_in,
    stamp_of,
    whole_json,
)
from sessiontree.transfer.formats._wire import Json, array, as_text, count, first_text, mapping, objects, text, when

__all__ = ["detect", "session_files", "sessions", "size"]


def _recognises(head: Head) -> bool:
    is_named = head.path.name.endswith(".conversation.json")
    return head.is_json and head.has("messages") and (is_named or head.has("versions", "currentlySelected"))


def _read(path: Path, tally: Tally) -> Iterator[ImportedSession]:
    whole = mapping(whole_json(path, tally))
    if not whole:
        return
    created = when(whole.get("createdAt")) or modified_ns(path)
    name = path.name.removesuffix(".json").removesuffix(".conversation")
    recorder = Recorder(path, tally, id=f"lmstudio-{name}", created_ns=created, stamp=stamp_of(path))
    recorder.title = text(whole.get("name"))
    recorder.tags = ("pinned",) if whole.get("pinned") is True else ()
    recorder.origin["raw"] = {key: value for key, value in whole.items() if key != "messages"}
    recorder.model = text(mapping(whole.get("lastUsedModel")).get("identifier"))
    tips: list[str | None] = []
    yield recorder.session(_items(whole, recorder, tips), leaf=lambda: tips[-1] if tips else None)


_format = FileFormat(_recognises, _read, "*.json")
detect, size, sessions, session_files = _format.detect, _format.size, _format.sessions, _format.files


def _items(whole: Json, recorder: Recorder, tips: list[str | None]) -> Iterator[ImportedRecord]:
    """The messages; of each the versions that were not chosen stand beside the one that the rest goes on from."""
    tip: str | None = None
    prompt = _system_prompt(whole)
    if prompt:
        tip = f"{recorder.id}.system"
        yield ImportedRecord(system(prompt), tip, recorder.created_ns, None)
    for number, message in enumerate(records_in(whole.get("messages"), recorder.place, recorder.tally)):
        versions = objects(message.get("versions")) or [message]
        chosen = min(count(message.get("currentlySelected")), len(versions) - 1)
        after = tip
        for index, version in enumerate(versions):
            end = tip
            for step, payload in enumerate(_payloads(version, recorder)):
                name = marked(f"{number}.{index}.{step}", payload)
                yield ImportedRecord(kept(payload, version) if not step else payload, name, recorder.last_ns, end)
                end = name
            after = end if index == chosen else after
        tip = after
        tips.append(tip)


def _system_prompt(whole: Json) -> str:
    fields = objects(mapping(whole.get("perChatPredictionConfig")).get("fields"))
    set_here = [text(field.get("value")) for field in fields if field.get("key") == "llm.prediction.systemPrompt"]
    return text(whole.get("systemPrompt")) or next(iter(set_here), "")


def _payloads(version: Json, recorder: Recorder) -> list[Payload]:
    role = text(version.get("role")) or "user"
    if version.get("type") != "multiStep":
        return by_role(role, [_part(block) for block in objects(version.get("content"))])
    found: list[Payload] = []
    said: list[Part] = []
    spent: Usage | None = None
    for step in objects(version.get("steps")):
        if step.get("type") != "contentBlock":
            continue
        info = mapping(step.get("genInfo"))
        recorder.model = text(info.get("identifier")) or recorder.model
        spent = _usage(mapping(info.get("stats"))) or spent
        is_thought = mapping(step.get("style")).get("type") == "thinking"
        parts = [_part(block) for block in objects(step.get("content"))]
        if is_thought:
            parts = [
                ReasoningPart(provider="lmstudio", text=part.text) if isinstance(part, TextPart) else part
                for part in parts
            ]
        results, others = split_results(parts)
        said += others
        if results:
            found += [*by_role(role, said, model=recorder.model, usage=spent), *by_role("user", results)]
            said, spent = [], None
    return [*found, *by_role(role, said, model=recorder.model, usage=spent)] if said or not found else found


def _usage(stats: Json) -> Usage | None:
    prompt, predicted = count(stats.get("promptTokensCount")), count(stats.get("predictedTokensCount"))
    return Usage(input_tokens=prompt, output_tokens=predicted) if prompt or predicted else None


def _part(block: Json) -> Part:
    match block.get("type"):
        case "text":
            return TextPart(text=text(block.get("text")))
        case "file":
            return FilePart(name=first_text(block, "name", "fileIdentifier"), mime=text(block.get("fileType")))
        case "toolCallRequest":
            call = text(block.get("toolCallRequestId")) or as_text(block.get("callId"))
            name = text(block.get("name"))
            return ToolCallPart(id=call, name=name, arguments=arguments_text(block.get("parameters")))
        case "toolCallResult":
            call = text(block.get("toolCallRequestId")) or as_text(block.get("toolCallId"))
            content = block.get("content")
            said = (
                "\n".join(text(one.get("text")) for one in objects(array(content)))
                if isinstance(content, list)
                else content
            )
            return ToolResultPart(call_id=call, parts=result_content(said))
        case _:
            return OpaquePart(provider="lmstudio", block=block)
