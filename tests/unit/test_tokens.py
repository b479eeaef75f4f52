"""Counting tokens."""

from __future__ import annotations

import json
import sys

import pytest

from sample_texts import sample_texts
from sessiontree.errors import MissingExtraError, SessionTreeError
from sessiontree.model import FilePart, ImagePart, Message, OpaquePart, ReasoningPart, TextPart
from sessiontree.model.builders import assistant, call, tool_result, user
from sessiontree.model.tokens import (
    PAIRS,
    RUNS,
    Encoding,
    _exact_counter,
    classes_of,
    estimate_message,
    estimate_text,
    estimate_tools,
    exact_counter,
    pattern_of,
)

SAMPLES = sample_texts()


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("   ", 0), ("a", 1), ("\x1c", 1), ("\u3000x\u3000", 1), ("\ud800", 1)]
)
def test_a_few_blanks_at_the_ends_do_not_count_and_anything_else_does(text: str, tokens: int) -> None:
    assert estimate_text(text) == tokens


@pytest.mark.parametrize("kind", SAMPLES)
def test_the_estimate_is_near_the_real_count_for_every_kind_of_text(kind: str) -> None:
    text = SAMPLES[kind]
    for piece in (text, text[:3_000]):
        assert 0.8 <= estimate_text(piece) / exact_counter("o200k_base")(piece) <= 1.5


@pytest.mark.parametrize("blank", [" ", "\t", "\n", "\r\n", f"{' ' * 79}\n", "\u00a0", "\u200b", "\u200d"])
def test_long_white_space_counts_alone_and_inside_of_a_text(blank: str) -> None:
    for text in (blank * 10_000, f"a{blank * 10_000}b", f"{blank * 400}a"):
        assert 0.4 <= estimate_text(text) / exact_counter("o200k_base")(text) <= 2.5


@pytest.mark.parametrize(
    "text", ["aB" * 200, "1a" * 200, "1B" * 200, "1." * 200, "a  b" * 100, "12 34", "a\n\n\n\n\n\n\n\nb"]
)
def test_every_pair_of_classes_counts_wherever_it_stands(text: str) -> None:
    classes = classes_of(text)
    thousandths = sum(byte.bit_count() for byte in classes) * 125
    thousandths += sum(classes.count(pattern_of(names)) * weight for names, weight in {**PAIRS, **RUNS}.items())
    assert estimate_text(text) == -(-thousandths // 1_000)


def test_the_estimate_of_a_long_text_sees_all_of_it() -> None:
    mixed = SAMPLES["English"] + SAMPLES["base64"] + SAMPLES["Chinese"] * 3 + SAMPLES["hexdump"]
    assert 0.9 <= estimate_text(mixed) / exact_counter("o200k_base")(mixed) <= 1.3


def test_a_message_counts_its_overhead_its_kind_and_its_parts() -> None:
    assert estimate_message(user("abc").message) == 9
    assert estimate_message(Message(role="user", kind="abc", parts=(TextPart(text="abc"),))) == 10


def test_calls_and_results_count_id_name_and_content() -> None:
    parts = estimate_text("c") + estimate_text("read")
    assert estimate_message(assistant(calls=[call("c", "read", "{}")]).message) == 8 + parts + estimate_text("{}")
    assert estimate_message(tool_result("c", "abc", name="read").message) == 8 + parts + estimate_text("abc")


def test_reasoning_counts_by_its_text_or_by_what_is_hidden() -> None:
    thought = ReasoningPart(text="a long thought")
    hidden = ReasoningPart(text="short", encrypted="A" * 6_000)
    assert [estimate_message(Message(role="assistant", parts=(part,))) for part in (thought, hidden)] == [
        8 + estimate_text("a long thought"),
        8 + 1_000,
    ]


def test_tool_definitions_count_as_json() -> None:
    tools = [{"name": "ls", "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}}] * 3
    real = sum(exact_counter("o200k_base")(json.dumps(tool)) for tool in tools)
    assert 0.8 * real <= estimate_tools(tools) <= 1.5 * real
    assert estimate_tools([object()]) > 0


def test_images_files_and_unknown_blocks_count() -> None:
    image = Message(role="user", parts=(ImagePart(url="https://a.b/c.png"),))
    file = Message(role="user", parts=(FilePart(name="abc", data="A" * 30),))
    block = Message(role="user", parts=(OpaquePart(provider="p", block={"a": 1}),))
    assert [estimate_message(message) > 8 for message in (image, file, block)] == [True, True, True]


def test_a_counter_is_any_callable() -> None:
    assert estimate_message(user("one two three").message, lambda text: len(text.split())) == 11


@pytest.mark.parametrize("encoding", ["o200k_base", "cl100k_base"])
def test_exact_counters_agree_with_known_values(encoding: Encoding) -> None:
    count = exact_counter(encoding)
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
