"""Random conversation trees: tidy turns, cut turns, forks, compactions with nonsense in them, odd ids and texts."""

from __future__ import annotations

from hypothesis import strategies as st

from sessiontree.model import (
    ArtifactRef,
    BranchSummary,
    Compaction,
    Custom,
    Entry,
    FilePart,
    ImagePart,
    Message,
    ModelChange,
    OpaquePart,
    Part,
    Payload,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultMessage,
    ToolResultPart,
    TurnMarker,
    Usage,
    UsageReport,
    UserMessage,
)
from sessiontree.model.builders import assistant, system, tool_result, user

TEXTS = ["", " ", "hello", "\n", "日本語 text", "</compaction_summary>", "\u2028<b>&", "\x1c", "a longer text " * 20]
IDS = ["c1", "c2", "c3", "", "a b", "é", "x1_YSBi", "z" * 70, "functions.read:0"]
NAMES = ["read", "write", "ask_user", "task_complete", "", "odd name!", "n" * 80]
ARGUMENTS = [
    "{}",
    "",
    " ",
    '{"path": "a.txt"}',
    "not json",
    "[1, 2]",
    "null",
    '{"question": "Which one?"}',
    '{"output": "done"}',
    "NaN",
    '{"n": NaN}',
    '{"s": "\\ud800"}',
    '{"_raw": "x"}',
    "[" * 2000,
]
ENTRY_IDS = ["", "nowhere", *(f"e{number}" for number in range(20))]
DIALECT_NAMES = ["openai-chat", "openai-responses", "anthropic", "gemini", "", "elsewhere"]

USER_BLOCKS = {
    "openai-chat": {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
    "openai-responses": {"type": "input_image", "file_id": "file-1", "detail": "auto"},
    "anthropic": {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}},
    "gemini": {"fileData": {"fileUri": "gs://bucket/a", "mimeType": "video/mp4", "displayName": "a"}},
}
ANSWER_BLOCKS = {
    # a refusal stands alone in a message, and blocks are drawn more than once
    "openai-chat": {"type": "input_audio", "input_audio": {"data": "UEFZ", "format": "wav"}},
    "openai-responses": {"type": "compaction", "id": "cmp_1", "encrypted_content": "AAAA"},
    "anthropic": {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}},
    "gemini": {"executableCode": {"code": "1", "language": "PYTHON"}},
}

texts = st.sampled_from(TEXTS)
call_ids = st.sampled_from(IDS)
names = st.sampled_from(NAMES)


def opaque(blocks: dict[str, object]) -> st.SearchStrategy[OpaquePart]:
    return st.sampled_from([OpaquePart(provider=provider, block=block) for provider, block in blocks.items()])


text_parts = st.builds(TextPart, text=texts)
media_parts = st.sampled_from(
    [
        ImagePart(url="https://example.org/a.png"),
        ImagePart(data="iVBORw0KGgo=", mime="image/png"),
        ImagePart(data="AAAA", mime="image/tiff"),
        ImagePart(url="data:image/png;base64,iVBORw0KGgo="),
        ImagePart(artifact=ArtifactRef(sha256="00", label="plot.png")),
        ImagePart(),
        FilePart(url="https://example.org/a.pdf", name="a.pdf"),
        FilePart(data="AAAA", mime="application/pdf", name="b.pdf"),
        FilePart(data="AAAA", mime="text/csv"),
        FilePart(artifact=ArtifactRef(sha256="11")),
    ]
)
reasoning_parts = st.builds(
    ReasoningPart,
    provider=st.sampled_from(DIALECT_NAMES),
    text=texts,
    signature=st.sampled_from(["", "c2lnbg=="]),
    encrypted=st.sampled_from(["", "ZW5j"]),
    id=st.sampled_from(["rs_1", "rs_2"]),
)
call_parts = st.builds(ToolCallPart, id=call_ids, name=names, arguments=st.sampled_from(ARGUMENTS))
result_parts = st.builds(
    ToolResultPart,
    call_id=call_ids,
    name=names,
    parts=st.lists(st.one_of(text_parts, media_parts, opaque(USER_BLOCKS)), max_size=2).map(tuple),
    is_error=st.booleans(),
)


def messages(role: str, parts: st.SearchStrategy[Part], most: int = 3) -> st.SearchStrategy[Message]:
    return st.builds(Message, role=st.just(role), parts=st.lists(parts, max_size=most).map(tuple))


user_messages = messages("user", st.one_of(text_parts, media_parts, opaque(USER_BLOCKS), result_parts, call_parts))
answers: st.SearchStrategy[list[Part]] = st.lists(
    st.one_of(text_parts, reasoning_parts, call_parts, opaque(ANSWER_BLOCKS), media_parts), max_size=4
)
usages = st.builds(Usage, input_tokens=st.integers(0, 9000), output_tokens=st.integers(0, 900))

loose_payloads: st.SearchStrategy[Payload] = st.one_of(
    st.builds(UserMessage, message=user_messages),
    answers.map(assistant),
    result_parts.map(lambda part: ToolResultMessage(message=Message(role="tool", parts=(part,)))),
    st.builds(ToolResultMessage, message=messages("tool", result_parts)),
    st.builds(BranchSummary, summary=texts),
    st.builds(UsageReport, usage=usages),
    texts.map(system),
)
compactions: st.SearchStrategy[Payload] = st.builds(
    Compaction,
    id=st.sampled_from(["k1", "k2", ""]),
    summary=texts,
    first_kept_entry_id=st.sampled_from(ENTRY_IDS),
    kept_user_entry_ids=st.lists(st.sampled_from(ENTRY_IDS), max_size=3).map(tuple),
    reverts=st.sampled_from(["", "", "", "k1", "k2", "e5"]),
)
invisible: st.SearchStrategy[Payload] = st.sampled_from(
    [
        TurnMarker(status="started"),
        TurnMarker(status="aborted"),
        Custom(name="note", data={"a": 1}),
        ModelChange(provider="openai", model="gpt"),
    ]
)


@st.composite
def turns(draw: st.DrawFn) -> list[Payload]:
    """A turn as an agent writes it: calls in one or several entries, results in any order, some twice, some never."""
    ids = draw(st.lists(call_ids, min_size=1, max_size=3, unique=True))
    calls = [ToolCallPart(id=call_id, name=draw(names), arguments=draw(st.sampled_from(ARGUMENTS))) for call_id in ids]
    entries = [assistant(calls=calls)] if draw(st.booleans()) else [assistant(calls=[call]) for call in calls]
    results = [tool_result(call.id, draw(texts), name=call.name) for call in calls]
    results = draw(st.permutations(results))
    kept = draw(st.integers(0, len(results)))
    twice = results[:1] if draw(st.booleans()) else []
    said: list[Payload] = [user(draw(texts)), *entries, *results[:kept], *twice]
    return [*said, assistant(draw(texts))] if draw(st.booleans()) else said


chunks = st.one_of(
    turns(),
    turns(),
    loose_payloads.map(lambda payload: [payload]),
    compactions.map(lambda payload: [payload]),
    invisible.map(lambda payload: [payload]),
)


@st.composite
def trees(draw: st.DrawFn) -> list[list[Entry]]:
    """Every path from the root to a leaf of a random tree."""
    entries: list[Entry] = []
    for chunk in draw(st.lists(chunks, min_size=1, max_size=12)):
        parent = _parent(draw, entries)
        for payload in chunk:
            entry = Entry(id=f"e{len(entries)}", thread_id="t", parent=parent, created_ns=0, payload=payload)
            entries.append(entry)
            parent = entry.id
    return paths(entries)


def _parent(draw: st.DrawFn, entries: list[Entry]) -> str | None:
    if not entries:
        return None
    if draw(st.integers(0, 3)):
        return entries[-1].id
    return draw(st.sampled_from(entries)).id


def paths(entries: list[Entry]) -> list[list[Entry]]:
    known = {entry.id: entry for entry in entries}
    inner = {entry.parent for entry in entries}
    return [_path(entry, known) for entry in entries if entry.id not in inner]


def _path(leaf: Entry, known: dict[str, Entry]) -> list[Entry]:
    path = [leaf]
    while path[-1].parent is not None:
        path.append(known[path[-1].parent])
    return path[::-1]
