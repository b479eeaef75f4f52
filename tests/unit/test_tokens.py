"""Counting tokens."""

from __future__ import annotations

import sys

import pytest

from sessiontree.errors import MissingExtraError, SessionTreeError
from sessiontree.model import FilePart, ImagePart, Message, OpaquePart, TextPart
from sessiontree.model.builders import assistant, call, tool_result, user
from sessiontree.model.tokens import _exact_counter, estimate_message, estimate_text, exact_counter


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("   ", 0),
        ("a", 1),
        ("abc", 1),
        ("abcd", 2),
        ("你好", 2),
        ("ab你", 2),
        ("\x1c", 1),
        ("\u3000x\u3000", 1),
    ],
)
def test_the_estimate_counts_a_third_of_ascii_and_every_other_character(text: str, tokens: int) -> None:
    assert estimate_text(text) == tokens


def test_a_message_counts_its_overhead_its_kind_and_its_parts() -> None:
    assert estimate_message(user("abc").message) == 9
    assert estimate_message(Message(role="user", kind="abc", parts=(TextPart(text="abc"),))) == 10


def test_calls_and_results_count_id_name_and_content() -> None:
    assert estimate_message(assistant(calls=[call("c", "read", "{}")]).message) == 8 + 1 + 2 + 1
    assert estimate_message(tool_result("c", "abc", name="read").message) == 8 + 1 + 2 + 1


def test_reasoning_does_not_count() -> None:
    assert estimate_message(assistant("abc", reasoning="a long thought").message) == 9


def test_images_files_and_unknown_blocks_count() -> None:
    image = Message(role="user", parts=(ImagePart(url="https://a.b/c.png"),))
    file = Message(role="user", parts=(FilePart(name="abc", data="A" * 30),))
    block = Message(role="user", parts=(OpaquePart(provider="p", block={"a": 1}),))
    assert [estimate_message(message) > 8 for message in (image, file, block)] == [True, True, True]


def test_a_counter_is_any_callable() -> None:
    assert estimate_message(user("one two three").message, lambda text: len(text.split())) == 11


@pytest.mark.parametrize("encoding", ["o200k_base", "cl100k_base"])
def test_exact_counters_agree_with_known_values(encoding: str) -> None:
    count = exact_counter(encoding)  # type: ignore[arg-type]
    assert [count(text) for text in ("", "hello world", "hello world, how are you?")] == [0, 2, 7]


def test_exact_counters_take_special_tokens_as_plain_text() -> None:
    assert exact_counter("o200k_base")("<|endoftext|>") > 1


def test_a_missing_package_is_an_error_that_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    _exact_counter.cache_clear()
    monkeypatch.setitem(sys.modules, "splintr", None)
    with pytest.raises(MissingExtraError, match=r"sessiontree\[tokens\]") as caught:
        exact_counter("cl100k_base")
    assert isinstance(caught.value, SessionTreeError)
    assert isinstance(caught.value, ImportError)
    _exact_counter.cache_clear()
