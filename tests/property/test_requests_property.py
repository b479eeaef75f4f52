"""Histories that mix four providers give valid requests for each of them, and what was sent once stays as it was."""

from __future__ import annotations

import itertools
import json
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from property.mixed_histories import SPLIT, Writer
from property_settings import examples
from sessiontree.context import build_context
from sessiontree.context.dialects import DIALECTS
from sessiontree.model import AssistantMessage, Entry, ToolCallMessage
from validation.validators import faults

Wire = dict[str, Any]


@examples(50, deep=10_000)
@given(st.integers(0, 2**48))
def test_a_history_that_mixes_providers_gives_a_valid_request_for_each(seed: int) -> None:
    context = build_context(Writer(Random(seed)).path())
    for name, dialect in DIALECTS.items():
        assert faults(name, dialect.to_request(context)) == []


@pytest.mark.parametrize("is_clean", [True, False], ids=["clean", "cut"])
@examples(60, deep=4_500)
@given(seed=st.integers(0, 2**48))
def test_a_request_that_was_sent_is_a_prefix_of_every_later_one(seed: int, is_clean: bool) -> None:
    path = Writer(Random(seed), is_clean=is_clean).path()
    sent = [
        path[:index] for index, entry in enumerate(path) if is_answer(entry) and build_context(path[:index]).messages
    ]
    for name in DIALECTS:
        requests = [blocks(name, before) for before in [*sent, path]]
        for before, after in itertools.pairwise(requests):
            assert after[: len(before)] == before, name


def is_answer(entry: Entry) -> bool:
    """Whether a request was sent before an entry."""
    return isinstance(entry.payload, AssistantMessage | ToolCallMessage) and entry.payload.metadata != SPLIT


def blocks(name: str, path: list[Entry]) -> list[bytes]:
    """The request as the provider's cache sees it: one block after the other, each with its message's role."""
    body = DIALECTS[name].to_request(build_context(path))
    found: list[Any] = []
    for message in body.get("messages") or body.get("input") or body.get("contents") or ():
        content = message.get("content") or message.get("parts")
        inner = content if name in ("anthropic", "gemini") and isinstance(content, list) else [message]
        found += [{"role": message.get("role"), "block": block} for block in inner]
    return [json.dumps(block).encode() for block in found]
