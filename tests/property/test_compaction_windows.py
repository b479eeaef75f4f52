"""Conversations that fill windows of 8,000 to 200,000 tokens, counted with a real tokenizer.

Every request fits into the window and shows every result that the model has not read, whole or as a view whose artifact
holds the rest. Taking a compaction back restores the context with its token counts.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from functools import cache

import msgspec
import pytest

import sessiontree as st
from sample_texts import sample_texts
from sessiontree.context.result_views import result_text
from sessiontree.model import Message, TextPart, ToolCallPart, ToolResultPart
from sessiontree.model.tokens import MESSAGE_OVERHEAD, Tools, exact_counter
from sessiontree.testing.clock import ManualClock, seeded_random

WINDOWS = {8_000: 30, 16_000: 24, 32_000: 22, 64_000: 12, 128_000: 8, 200_000: 4}
SAMPLES = sample_texts()
KINDS = list(SAMPLES)
DEEP_CONVERSATIONS = int(os.environ.get("SESSIONTREE_CONVERSATIONS", "5000"))


@cache
def real_tokens(text: str) -> int:
    return exact_counter("o200k_base")(text)


@cache
def piece(kind: str, size: int, offset: int) -> str:
    """Return about ``size`` tokens of a kind of text; few different ones, so that they are counted once."""
    text = SAMPLES[kind]
    length = max(1, size * len(text) // real_tokens(text))
    start = offset * 997 % len(text)
    return (text[start:] + "\n" + text * (1 + length // len(text)))[:length]


class Conversation:
    """A random conversation in a window of its own, with an agent that compacts before each request."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.window = self.random.choices(list(WINDOWS), weights=list(WINDOWS.values()))[0]
        self.policy = st.CompactionPolicy(window_tokens=self.window)
        self.kinds = self.random.choice([KINDS, KINDS, ["base64", "hex", "CSV, 6 digits", "UUIDs", "hexdump"]])
        self.reports_usage = self.random.random() < 0.3
        self.tools: Tools = [{"name": "read", "description": self.text(self.random.randrange(self.window // 10))}]
        self.seen: Counter[str] = Counter()
        self.calls = 0
        self.clock = ManualClock()

    def text(self, size: int, kind: str = "English") -> str:
        steps = max(1, self.window // 400)
        return piece(kind, max(3, size // steps * steps), self.random.randrange(6))

    def small(self) -> int:
        return int(self.window * self.random.betavariate(1, 30))

    def large(self) -> int:
        if self.random.random() < 0.02:
            return int(self.window * self.random.uniform(0.3, 2.5))
        return int(self.window * self.random.betavariate(1, 12))

    def run(self) -> Counter[str]:
        with st.open("memory:", clock=self.clock, random=seeded_random(1)) as journal:
            journal.create_thread("t")
            journal.append("t", st.system(self.text(self.random.randrange(self.window // 8))))
            appended = 0
            while appended < self.window * (2 if self.window <= 32_000 else 1.4):
                for message in self.turn(journal):
                    appended += tokens_of(message)
        return self.seen

    def turn(self, journal: st.Journal) -> Iterator[Message]:
        """Append a user's message, rounds of tools, and an answer, and yield them."""
        unread = [st.user(self.text(self.small())).message for _ in range(self.random.choice([1, 1, 1, 2]))]
        for _ in range(self.random.choice([0, 1, 2, 4, 7])):
            yield from self.append(journal, unread)
            calls = [self.call() for _ in range(self.random.choice([1, 1, 2, 3]))]
            self.answer(journal, unread, st.assistant(self.text(self.small() // 4), calls=calls))
            results = [st.tool_result(one.id, self.text(self.large(), self.random.choice(self.kinds))) for one in calls]
            unread = [result.message for result in results]
            if self.random.random() < 0.1:
                unread.append(st.user("Go on.").message)
        yield from self.append(journal, unread)
        self.answer(journal, unread, st.assistant(self.text(self.small())))

    def call(self) -> ToolCallPart:
        self.calls += 1
        return st.call(f"c{self.calls}", "read", f'{{"path": "src/file{self.calls}.py"}}')

    def append(self, journal: st.Journal, messages: list[Message]) -> Iterator[Message]:
        journal.append_many("t", messages)
        yield from messages

    def answer(
        self, journal: st.Journal, unread: list[Message], answer: st.AssistantMessage | st.ToolCallMessage
    ) -> None:
        """Send a request as an agent does, check it, and append the answer."""
        self.clock.advance(60)  # the model took its time; after a compaction that helped too little there is a pause
        before = journal.context("t", tools=self.tools)
        result = journal.compact_if_needed("t", policy=self.policy, tools=self.tools)
        if result is not None and result.is_installed:
            self.seen["compactions"] += 1
            self.seen["cut results"] += result.cut_results
            if self.random.random() < 0.3:
                journal.uncompact("t")
                self.seen["taken back"] += 1
                self.seen["taken back with a difference"] += journal.context("t", tools=self.tools) != before
                journal.compact("t", policy=self.policy, tools=self.tools)
        context = journal.context("t", tools=self.tools)
        size = real_tokens(context.system) + tools_tokens(self.tools) + sum(map(tokens_of, context.messages))
        self.seen["requests"] += 1
        self.seen["requests above the window"] += size > self.window
        self.seen["requests above the threshold"] += size >= self.policy.threshold
        for message in unread:
            for unread_result in message.tool_results:
                self.seen["unread results"] += 1
                self.seen["unread results lost"] += not is_shown(journal, context, unread_result)
        usage = st.Usage(total_tokens=size + tokens_of(answer.message)) if self.reports_usage else None
        journal.append("t", msgspec.structs.replace(answer, usage=usage))


def is_shown(journal: st.Journal, context: st.Context, unread: ToolResultPart) -> bool:
    """Whether a context shows a result, whole or in part with an artifact that has all of it."""
    whole = result_text(Message(role="tool", parts=(unread,)), unread.call_id)
    shown = [r for message in context.messages for r in message.tool_results if r.call_id == unread.call_id]
    for result in shown:
        if result.parts == unread.parts:
            return True
        if result.view is not None and result.view.full_output is not None:
            return journal.read_artifact(result.view.full_output).decode() == whole
    return False


def tools_tokens(tools: Tools) -> int:
    return sum(real_tokens(msgspec.json.encode(tool).decode()) for tool in tools)


def tokens_of(message: Message) -> int:
    """Return the tokens of the texts of a message, with the overhead that our estimate gives a message."""
    return MESSAGE_OVERHEAD + sum(_part_tokens(part) for part in message.parts)


def _part_tokens(part: object) -> int:
    match part:
        case TextPart(text=text):
            return real_tokens(text)
        case ToolCallPart(id=id, name=name, arguments=arguments):
            return sum(map(real_tokens, (id, name, arguments)))
        case ToolResultPart(call_id=id, name=name, parts=parts):
            return real_tokens(id) + real_tokens(name) + sum(map(_part_tokens, parts))
    raise AssertionError(part)


def check(seen: Counter[str]) -> None:
    assert seen["compactions"] > 0
    assert seen["taken back"] > 0
    assert seen["cut results"] > 0
    assert seen["unread results lost"] == 0
    assert seen["taken back with a difference"] == 0
    assert seen["requests above the window"] <= seen["requests"] // 1_000


def test_a_few_conversations_in_small_windows_stay_within_their_budget() -> None:
    seen: Counter[str] = Counter()
    for seed in range(20):
        conversation = Conversation(seed)
        if conversation.window == 8_000:
            seen += conversation.run()
    check(seen)


@pytest.mark.deep
@pytest.mark.parametrize("part", range(10))
def test_thousands_of_conversations_in_all_windows_stay_within_their_budget(part: int) -> None:
    each = DEEP_CONVERSATIONS // 10
    seeds = range(1_000_000 + part * each, 1_000_000 + (part + 1) * each)
    print("seeds", seeds)
    seen: Counter[str] = Counter()
    for seed in seeds:
        seen += Conversation(seed).run()
    print(dict(seen))
    check(seen)
