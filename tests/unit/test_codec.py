"""Bytes and back."""

import hashlib
from typing import Any

import msgspec
import pytest

import sessiontree as st
from sessiontree.model import codec
from sessiontree.model.entry import KnownPayload


def test_the_wire_form_is_compact_and_leaves_defaults_out() -> None:
    body = codec.encode_payload(st.assistant("hi", model="m"))
    assert body == (
        b'{"type":"assistant_message","message":{"role":"assistant","parts":[{"type":"text","text":"hi"}]},"model":"m"}'
    )


def test_the_hash_is_the_sha256_of_the_wire_form() -> None:
    payload = st.user("hi")
    assert st.content_hash(payload) == hashlib.sha256(codec.encode_payload(payload)).hexdigest()
    assert st.content_hash(payload) != st.content_hash(st.user("hi "))


def test_the_hash_of_a_text_is_the_sha256_of_that_text() -> None:
    for text in ("", "hi", "\x1c grüße \U0001f600 ", "null"):
        assert st.content_hash(text) == hashlib.sha256(text.encode()).hexdigest()
    with pytest.raises(st.InvalidInputError, match="U\\+D800"):
        st.content_hash("\ud800")
    for wrong in (b"hi", None, 7, st.user("hi").message):
        with pytest.raises(st.InvalidInputError, match="a payload or a text"):
            st.content_hash(wrong)  # type: ignore[arg-type]


def test_an_entry_carries_its_canonical_text_and_hash() -> None:
    with st.open("memory:") as journal:
        journal.create_thread("t")
        journal.create_thread("other")
        first = journal.append("t", st.assistant("hi", model="m"))
        second = journal.append("other", st.assistant("hi", model="m"), turn_id="turn")
    assert first.raw == second.raw == codec.encode_payload(first.payload).decode()
    assert first.raw_hash == second.raw_hash == st.content_hash(first.raw) == st.content_hash(first.payload)


def test_every_entry_type_of_the_seed_keeps_its_wire_name() -> None:
    names = {str(kind.__struct_config__.tag) for kind in KnownPayload.__args__}
    assert names >= {
        "thread_info",
        "turn_marker",
        "user_message",
        "assistant_message",
        "tool_call",
        "tool_result",
        "model_change",
        "active_tools_change",
        "compaction",
        "branch_summary",
        "run_failure",
        "custom",
        "label",
        "usage",
        "event",
        "checkpoint",
        "memory",
    }


def test_an_unknown_type_is_kept_byte_for_byte() -> None:
    body = b'{"type":"hologram", "x":1.0}'
    payload = codec.decode_payload(body)
    assert payload == st.UnknownPayload(type="hologram", body=body)
    assert codec.encode_payload(payload) == body


def test_a_known_type_with_wrong_fields_is_an_error() -> None:
    with pytest.raises(msgspec.ValidationError):
        codec.decode_payload(b'{"type":"user_message"}')


def test_an_older_format_goes_through_every_upgrade(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = {
        -1: lambda value: {**value, "text": value["text"] + " one"},
        0: lambda value: {**value, "text": value["text"] + " two"},
    }
    monkeypatch.setattr(codec, "UPGRADES", steps)
    assert codec.decode_payload(b'{"type":"thread_info","text":"zero"}', version=-1) == st.ThreadInfo(
        text="zero one two"
    )


def test_sealing_gives_what_a_reader_will_see() -> None:
    sealed, body = codec.validate_and_encode(st.Custom(data={1: (2, {3})}))
    assert sealed == codec.decode_payload(body) == st.Custom(data={"1": [2, [3]]})


def test_the_error_for_half_a_character_names_it_and_says_what_to_do() -> None:
    with pytest.raises(st.InvalidInputError, match=r"U\+D83D.*replace"):
        codec.validate_and_encode(st.user("\ud83d"))


def test_a_bottomless_value_is_refused() -> None:
    data: list[Any] = []
    data.append(data)
    with pytest.raises(st.InvalidInputError):
        codec.validate_and_encode(st.Custom(data=data))


@pytest.mark.parametrize("value", [-(2**63), 0, 2**63 - 1])
def test_numbers_of_64_bits_are_fine(value: int) -> None:
    codec.check_number(value)


@pytest.mark.parametrize("value", [-(2**63) - 1, 2**63])
def test_numbers_beyond_64_bits_are_refused(value: int) -> None:
    with pytest.raises(st.InvalidInputError, match="64 bits"):
        codec.check_number(value)
