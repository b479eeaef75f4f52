"""Build the context of a path: paired messages, the entry each one comes from, and token counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sessiontree.context.control import answer_signals
from sessiontree.context.pairing import PairedMessage, call_keys, pair
from sessiontree.context.projection import project_window, window_of
from sessiontree.context.records import Context, Projected, Purpose, Segment, joined_text
from sessiontree.model import (
    ActiveToolsChange,
    ArtifactRef,
    AssistantMessage,
    Compaction,
    Entry,
    Message,
    ModelChange,
    SystemMessage,
    ToolCallMessage,
    ToolCallPart,
    ToolResultPart,
    Usage,
    UsageReport,
)
from sessiontree.model.tokens import (
    TokenCounter,
    Tools,
    estimate_messages,
    estimate_prompt,
    estimate_text,
    estimate_tools,
)

__all__ = ["build_context", "is_developer", "names_model", "prompt_text", "said_tokens", "segments_of"]


_PREVIEW_BYTES = 240


def build_context(
    path: Sequence[Entry],
    purpose: Purpose = "provider_request",
    count: TokenCounter = estimate_text,
    tools: Tools = (),
) -> Context:
    """Return what the model sees at the end of a path. ``tools`` are sent with it and count.

    >>> from sessiontree.model.builders import assistant, user
    >>> payloads = [user("hello"), assistant("hi")]
    >>> path = [Entry(id=str(n), thread_id="t", parent=None, created_ns=0, payload=p) for n, p in enumerate(payloads)]
    >>> [message.text for message in build_context(path).messages]
    ['hello', 'hi']
    """
    window = window_of(path)
    view = answer_signals(project_window(window))
    paired = pair([item.message for item in view], call_keys(_assistant_messages(window.head)))
    segments = _paired_segments(paired, view, purpose, count)
    prompt_at, prompt = _prompt(path)
    prompt_tokens = estimate_prompt(prompt, count)
    messages = tuple(item.message for item in paired)
    estimate = prompt_tokens + estimate_tools(tools, count) + said_tokens(segments)
    tokens = estimate
    sources = [view[item.source].entry for item in paired]
    anchor, usage = _last_usage(path, window.boundary)
    if usage is not None:
        reported = usage.context_tokens + _pending(path, anchor, segments, sources)
        reported += prompt_tokens if prompt_at > anchor else 0
        tokens = _plausible(reported, estimate, messages, count)
    provider, model = _model(path)
    return Context(
        system=prompt,
        messages=messages,
        segments=segments,
        tokens=tokens,
        estimate=estimate,
        request_tokens=tokens + _unreported(path, anchor, segments, sources),
        provider=provider,
        model=model,
        active_tools=_active_tools(path),
    )


def segments_of(
    view: Sequence[Projected], purpose: Purpose = "provider_request", count: TokenCounter = estimate_text
) -> tuple[Segment, ...]:
    """Return one segment for each message of a projection."""
    tokens = estimate_messages((item.message for item in view), count)
    return tuple(_segment(item, index, purpose, tokens[index]) for index, item in enumerate(view))


def said_tokens(segments: Iterable[Segment]) -> int:
    """Return the tokens of what was said, as the thread counts them: without results that were made up."""
    return sum(segment.token_estimate for segment in segments if segment.entry_id)


def _paired_segments(
    paired: Sequence[PairedMessage], view: Sequence[Projected], purpose: Purpose, count: TokenCounter
) -> tuple[Segment, ...]:
    tokens = estimate_messages([item.message for item in paired], count)
    return tuple(
        _synthetic_segment(item.message, view[item.source].entry, index, tokens[index])
        if item.is_synthetic
        else _segment(Projected(entry=view[item.source].entry, message=item.message), index, purpose, tokens[index])
        for index, item in enumerate(paired)
    )


def _segment(item: Projected, index: int, purpose: Purpose, tokens: int) -> Segment:
    message, entry = item.message, item.entry
    compaction = entry.payload if isinstance(entry.payload, Compaction) else Compaction()
    call_id, tool_name = _tool(message)
    is_ui = purpose == "test_ui"
    return Segment(
        entry_id=entry.id,
        parent_entry_id=entry.parent or "",
        entry_type=entry.type,
        message_index=index,
        role=message.role,
        kind=message.kind,
        tool_call_id=call_id,
        tool_name=tool_name,
        token_estimate=tokens,
        compaction_id=compaction.id,
        compaction_generation=compaction.generation,
        compaction_window_id=compaction.window_id,
        artifact_refs=_artifacts(message) if is_ui else (),
        ui_preview=_preview(_visible_text(message)) if is_ui else "",
    )


def _synthetic_segment(message: Message, call_entry: Entry, index: int, tokens: int) -> Segment:
    call_id, tool_name = _tool(message)
    return Segment(
        entry_id="",
        parent_entry_id=call_entry.id,
        entry_type="tool_result",
        message_index=index,
        role=message.role,
        kind=message.kind,
        tool_call_id=call_id,
        tool_name=tool_name,
        token_estimate=tokens,
    )


def _tool(message: Message) -> tuple[str, str]:
    """Return the id and name of the first call of a message, or else of its first result."""
    found = "", ""
    for part in message.parts:
        match part:
            case ToolCallPart():
                return part.id, part.name
            case ToolResultPart() if found == ("", ""):
                found = part.call_id, part.name
    return found


def _artifacts(message: Message) -> tuple[ArtifactRef, ...]:
    views = (result.view for result in message.tool_results)
    return tuple(view.full_output for view in views if view and view.full_output)


def _visible_text(message: Message) -> str:
    return message.text + "".join(joined_text(result.parts) for result in message.tool_results)


def _preview(text: str) -> str:
    """Return the first 240 bytes; each byte of a character that is cut in two becomes U+FFFD."""
    body = text.encode()
    if len(body) <= _PREVIEW_BYTES:
        return text
    whole = body[:_PREVIEW_BYTES].decode(errors="ignore")
    cut = _PREVIEW_BYTES - len(whole.encode())
    return whole + "\ufffd" * cut + "..."


def _pending(path: Sequence[Entry], anchor: int, segments: Sequence[Segment], sources: Sequence[Entry]) -> int:
    """Return the estimate of the messages that came after the provider's last report."""
    later = {id(entry) for entry in path[anchor + 1 :]}
    return said_tokens(segment for segment, source in zip(segments, sources, strict=True) if id(source) in later)


def _unreported(path: Sequence[Entry], anchor: int, segments: Sequence[Segment], sources: Sequence[Entry]) -> int:
    """Return the estimate of the made-up results that are not in the provider's last report.

    They come after the answer that has the calls, so a report counts them only from the next answer on.
    """
    answers = (at for at in range(anchor, -1, -1) if isinstance(path[at].payload, AssistantMessage | ToolCallMessage))
    later = {id(entry) for entry in path[next(answers, 0) :]}
    return sum(
        segment.token_estimate
        for segment, source in zip(segments, sources, strict=True)
        if not segment.entry_id and id(source) in later
    )


def _plausible(reported: int, estimate: int, messages: Sequence[Message], count: TokenCounter) -> int:
    """Return what the provider reported, or half of our own count of the texts if that is more.

    An aborted request reports almost nothing; an estimate of plain text is at most twice too high.
    """
    if reported >= estimate // 2:
        return reported
    return max(reported, sum(_text_tokens(message, count) for message in messages) // 2)


def _text_tokens(message: Message, count: TokenCounter) -> int:
    """Return the tokens of a message without images and files, whose cost only the provider knows."""
    calls = sum(count(call.arguments) for call in message.tool_calls)
    return count(message.text) + calls + sum(count(joined_text(result.parts)) for result in message.tool_results)


def _last_usage(path: Sequence[Entry], boundary: Entry | None) -> tuple[int, Usage | None]:
    """Return the last report of a provider about the context in force, and where it is on the path.

    What was reported between a compaction and the entry that reverts it is about another context.
    """
    reverted = ""
    for index in range(len(path) - 1, -1, -1):
        entry = path[index]
        if entry is boundary:
            break
        match entry.payload:
            case Compaction(id=id, reverts=reverts):
                reverted = "" if reverted and reverted in (entry.id, id) else reverted or reverts
            case _ if reverted:
                continue
            case AssistantMessage(usage=usage) | ToolCallMessage(usage=usage) if usage and usage.context_tokens:
                return index, usage
            case UsageReport(usage=usage) if usage.context_tokens:
                return index, usage
    return -1, None


def _assistant_messages(entries: Iterable[Entry]) -> list[Message]:
    return [e.payload.message for e in entries if isinstance(e.payload, AssistantMessage | ToolCallMessage)]


def _prompt(path: Sequence[Entry]) -> tuple[int, str]:
    """Return the last system prompt, with the developer messages after it, which add to it, and where the last one is."""
    found = [(at, entry.payload.message) for at, entry in enumerate(path) if isinstance(entry.payload, SystemMessage)]
    return found[-1][0] if found else -1, prompt_text([message for _, message in found])


def prompt_text(messages: Sequence[Message]) -> str:
    """Return the last of these system prompts, with the developer messages after it, which add to it."""
    texts: list[str] = []
    for message in reversed(messages):
        texts.append(message.text)
        if not is_developer(message):
            break
    return "\n\n".join(text for text in reversed(texts) if text)


def is_developer(message: Message) -> bool:
    """Return whether a system prompt is a developer message, which adds to the prompt before it."""
    return any(isinstance(own, dict) and own.get("role") == "developer" for own in message.extra.values())


def _model(path: Sequence[Entry]) -> tuple[str, str]:
    named = next((entry.payload for entry in reversed(path) if names_model(entry)), None)
    assert named is None or isinstance(named, _NAMES_MODEL)
    return (named.provider, named.model) if named else ("", "")


_NAMES_MODEL = (ModelChange, AssistantMessage, ToolCallMessage)


def names_model(entry: Entry) -> bool:
    """Return whether an entry says which model answers."""
    payload = entry.payload
    return isinstance(payload, _NAMES_MODEL) and bool(payload.provider or payload.model)


def _active_tools(path: Sequence[Entry]) -> tuple[str, ...]:
    for entry in reversed(path):
        if isinstance(entry.payload, ActiveToolsChange):
            return entry.payload.tools
    return ()
