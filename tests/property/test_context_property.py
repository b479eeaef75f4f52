"""Whatever a tree holds, every leaf gives a request that providers take, and what was sent once stays as it was."""

from __future__ import annotations

import msgspec
from hypothesis import given

from property.strategies import trees
from property_settings import examples
from sessiontree.context import SUMMARY_KIND, Context, build_context, pair
from sessiontree.context.dialects import DIALECTS
from sessiontree.model import Compaction, Entry, Message, ToolCallMessage, ToolResultMessage, UserMessage
from validation.validators import faults


@examples(200, deep=5_000)
@given(trees())
def test_every_leaf_gives_a_valid_request_in_every_dialect(paths: list[list[Entry]]) -> None:
    for path in paths:
        context = build_context(path)
        for name, dialect in DIALECTS.items():
            assert faults(name, dialect.to_request(context)) == []


@examples(200, deep=5_000)
@given(trees())
def test_every_call_is_answered_once_and_every_result_has_its_call(paths: list[list[Entry]]) -> None:
    for path in paths:
        context = build_context(path)
        check_pairs(context.messages)
        assert [segment.message_index for segment in context.segments] == list(range(len(context.messages)))
        assert tuple(item.message for item in pair(context.messages)) == context.messages, (
            "pairing twice changes nothing"
        )


@examples(200, deep=5_000)
@given(trees())
def test_between_compactions_a_context_only_grows_at_its_end(paths: list[list[Entry]]) -> None:
    for path in paths:
        contexts = [build_context(path[: end + 1]) for end in range(len(path))]
        for index in range(1, len(path)):
            if keeps_prefix(contexts[index - 1], path[index]):
                before, after = encoded(contexts[index - 1]), encoded(contexts[index])
                assert after[: len(before)] == before


@examples(200, deep=5_000)
@given(trees())
def test_the_same_path_gives_the_same_bytes(paths: list[list[Entry]]) -> None:
    for path in paths:
        assert msgspec.json.encode(build_context(path)) == msgspec.json.encode(build_context(list(path)))


@examples(200, deep=5_000)
@given(trees())
def test_a_request_that_is_read_back_is_written_the_same(paths: list[list[Entry]]) -> None:
    for path in paths:
        for name, dialect in DIALECTS.items():
            body = dialect.to_request(build_context(path))
            system, messages = dialect.from_request(body)
            again = dialect.to_request(Context(system=system, messages=tuple(messages)))
            assert again == body, name


def check_pairs(messages: tuple[Message, ...]) -> None:
    """Each batch is followed by its results, in order, before anything else."""
    asked: list[tuple[str, str]] = []
    is_answering = False
    for message in messages:
        if message.role == "tool":
            (result,) = message.tool_results
            call_id, name = asked.pop(0)
            assert result.call_id == call_id or (not result.call_id and result.name == name)
            is_answering = True
            continue
        assert not message.tool_results
        assert not message.tool_calls or message.role == "assistant"
        assert not asked or (message.tool_calls and not is_answering), (
            "something stands between a batch and its results"
        )
        is_answering = False
        asked.extend((call.id, call.name) for call in message.tool_calls)
    assert not asked


def keeps_prefix(before: Context, added: Entry) -> bool:
    """Not when the context is cut anew, while a call is open that the new entry may answer or join, or when nothing
    but a checkpoint was there, whose words change with the first message after it."""
    if isinstance(added.payload, Compaction):
        return False
    if [message.kind for message in before.messages] == [SUMMARY_KIND]:
        return False
    has_open_call = any(not segment.entry_id for segment in before.segments)
    is_tool_traffic = isinstance(added.payload, ToolCallMessage | ToolResultMessage | UserMessage)
    return not (has_open_call and is_tool_traffic)


def encoded(context: Context) -> list[bytes]:
    return [msgspec.json.encode(message) for message in context.messages]
