"""What a message cannot be made from is refused, with what can be used instead."""

from __future__ import annotations

from typing import Any

import pytest

import sessiontree as st

WRONG: list[Any] = [None, 5, {"text": "x"}, {"x"}, ["text"], [None], (st.TextPart(text="x"), 5)]


@pytest.mark.parametrize("content", WRONG, ids=repr)
def test_a_message_is_made_from_text_or_parts(content: Any) -> None:
    for build in (st.user, st.assistant, lambda wrong: st.tool_result("c1", wrong)):
        with pytest.raises(st.InvalidInputError, match=r"text or a list of parts \(TextPart, "):
            build(content)


@pytest.mark.parametrize("content", [b"\x89PNG", [b"\x89PNG"], [st.TextPart(text="x"), bytearray(b"x")]], ids=repr)
def test_bytes_are_stored_as_an_artifact(content: Any) -> None:
    with pytest.raises(st.InvalidInputError, match="store bytes with put_artifact"):
        st.user(content)


@pytest.mark.parametrize("text", [None, b"x", 5, [st.TextPart(text="x")]], ids=repr)
def test_a_system_prompt_is_a_text(text: Any) -> None:
    with pytest.raises(st.InvalidInputError, match="a system prompt is a text"):
        st.system(text)


def test_only_entries_of_messages_have_a_message() -> None:
    with st.open("memory:") as journal:
        chat = journal.open_thread()
        assert chat.append(st.user("hello")).message.text == "hello"
        assert chat.append(st.Message(role="user")).message == st.Message(role="user")
        assert chat.append(st.Custom(name="note")).message is None
        assert chat.append(st.Label(target=chat.path()[0].id, label="first")).message is None
