"""Whatever stands in an entry of pi's file, pi gets it back."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as some

from property_settings import examples
from sessiontree.model.codec import validate_and_encode
from sessiontree.transfer.formats.pi.records import fields_of, payload_of

FRAME = ("id", "parentId", "timestamp")
WORDS = ("message", "text", "thinking", "toolCall", "image", "custom", "user", "assistant", "toolResult", "label")

values = some.recursive(
    some.none()
    | some.booleans()
    | some.integers(-(2**70), 2**70)
    | some.floats(allow_nan=False, allow_infinity=False)
    | some.text(max_size=5)
    | some.sampled_from(WORDS),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def objects(*names: str, **known: some.SearchStrategy[Any]) -> some.SearchStrategy[dict[str, Any]]:
    """Objects with some of the fields that pi knows, often of a wrong type, and now and then one it does not know."""
    likely = {name: some.text(max_size=5) | values for name in names}
    return some.fixed_dictionaries({}, optional={**likely, **known, "odd": values})


blocks = objects(
    "text", "thinking", "thinkingSignature", "id", "name", "data", "mimeType",
    type=some.sampled_from(WORDS) | values, arguments=values,
)  # fmt: skip
messages = objects(
    "toolCallId", "toolName", "provider", "model", "stopReason", "command", "output", "type",
    role=some.sampled_from((*WORDS, "bashExecution", "hookMessage", "system")) | values,
    content=some.text(max_size=5) | some.lists(blocks | values, max_size=3) | values,
    usage=objects("input", "output", "cost"), isError=some.booleans(), excludeFromContext=some.booleans(),
)  # fmt: skip
entries = objects(
    "id", "parentId", "timestamp", "customType", "provider", "modelId", "summary", "firstKeptEntryId", "fromId",
    "targetId", "label", "name", "data", "details", "display", "fromHook", "tokensBefore", "content",
    type=some.sampled_from(
        ("message", "custom_message", "model_change", "compaction", "branch_summary", "custom", "label", "session_info")
    )
    | values,
    message=messages | values,
)  # fmt: skip


@examples(100, deep=5_000)
@given(entries)
def test_pi_gets_every_entry_back_as_it_was(wire: dict[str, Any]) -> None:
    payload = payload_of(dict(wire))
    body = canonical({name: value for name, value in wire.items() if name not in FRAME})
    assert canonical(fields_of(payload)) == body
    assert canonical(fields_of(validate_and_encode(payload)[0])) == body


def canonical(value: Any) -> bytes:
    """JSON, because in Python ``False == 0 == 0.0``."""
    return msgspec.json.encode(value, order="sorted")
