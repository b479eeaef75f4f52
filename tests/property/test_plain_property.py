"""A payload that is told to be plain without reading it back does come back from JSON as it went in."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

import sessiontree as st
from sessiontree.model import Message, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from sessiontree.model.codec import decode_payload, encode_payload, validate_and_encode
from sessiontree.model.plain import is_plain

words = some.text(some.characters(codec="utf-8"), max_size=20)
ODD = (None, 3, 2.5, b"bytes", [], {}, (), "text", {"a": (1, 2)}, True, (1, "a"), float("nan"))


class Word(str):
    __slots__ = ()


texts = some.builds(TextPart, text=words)
parts = some.one_of(
    texts,
    some.builds(ReasoningPart, provider=words, text=words, signature=words, encrypted=words, id=words),
    some.builds(ToolCallPart, id=words, name=words, arguments=words),
    some.builds(
        ToolResultPart, call_id=words, name=words, is_error=some.booleans(), parts=some.lists(texts).map(tuple)
    ),
)
messages = some.builds(
    Message,
    role=some.sampled_from(["system", "user", "assistant", "tool"]),
    parts=some.lists(parts, max_size=4).map(tuple),
    name=words,
    kind=words,
)
payloads = some.one_of(
    *(some.builds(kind, message=messages) for kind in (st.UserMessage, st.SystemMessage, st.ToolResultMessage)),
    *(
        some.builds(kind, message=messages, provider=words, model=words, stop_reason=words)
        for kind in (st.AssistantMessage, st.ToolCallMessage)
    ),
)


@given(payloads)
def test_messages_of_words_are_plain_and_come_back(payload):
    assert is_plain(payload)
    assert decode_payload(encode_payload(payload)) == payload
    assert validate_and_encode(payload) == (payload, encode_payload(payload))


def _records(value):
    """A record and all records in it, each with the way to put another one in its place."""
    yield value, lambda changed: changed
    for name in value.__struct_fields__:
        inner = getattr(value, name)
        if isinstance(inner, msgspec.Struct):
            for record, put in _records(inner):
                yield record, lambda changed, put=put, name=name: msgspec.structs.replace(value, **{name: put(changed)})
        if isinstance(inner, tuple):
            for place, item in enumerate(inner):
                for record, put in _records(item):
                    yield (
                        record,
                        lambda changed, put=put, name=name, inner=inner, place=place: msgspec.structs.replace(
                            value, **{name: (*inner[:place], put(changed), *inner[place + 1 :])}
                        ),
                    )


WHOLE = Message(
    role="user",
    parts=(
        TextPart(text="a"),
        ReasoningPart(text="b"),
        ToolCallPart(id="c", name="d"),
        ToolResultPart(call_id="c", parts=(TextPart(text="e"),)),
    ),
)


@pytest.mark.parametrize("payload", [st.UserMessage(message=WHOLE), st.AssistantMessage(message=WHOLE)])
def test_whatever_stands_in_a_field_a_plain_payload_comes_back(payload):
    """So a field that is added to a record, and that the look forgets, is found here."""
    tried = 0
    for record, put in _records(payload):
        for field in record.__struct_fields__:
            for value in ODD:
                changed = put(msgspec.structs.replace(record, **{field: value}))
                tried += 1
                if is_plain(changed):
                    stored = decode_payload(encode_payload(changed))
                    assert stored == changed
                    assert msgspec.to_builtins(stored) == msgspec.to_builtins(changed)
    assert tried > 200


@pytest.mark.parametrize(
    "payload",
    [
        st.user("a", metadata={"by": "me"}),
        st.UserMessage(message=Message(role="user", parts=(TextPart(text=Word("a")),))),
        st.UserMessage(message=Message(role="nobody")),
        st.UserMessage(message=Message(role=["user"])),
        st.UserMessage(message=Message(role="user", parts=[TextPart(text="a")])),
        st.UserMessage(message=Message(role="user", parts=None)),
        st.UserMessage(message=None),
        st.AssistantMessage(message=Message(role="assistant"), usage=st.Usage(input_tokens=1)),
        st.Custom(name="n", data=1),
    ],
)
def test_what_needs_a_second_look_is_not_plain(payload):
    assert not is_plain(payload)
