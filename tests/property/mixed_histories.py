"""Random histories as agents write them: answers of four providers, in every dump, with cut turns and odd content."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from msgspec.structs import replace

from known import present
from sessiontree.context.dialects import DIALECTS
from sessiontree.model import (
    ArtifactRef,
    Entry,
    FilePart,
    ImagePart,
    Message,
    OpaquePart,
    Part,
    Payload,
    ReasoningPart,
    TextPart,
    ToolResultMessage,
    ToolResultPart,
    UserMessage,
    payload_of,
)
from sessiontree.model.builders import call, message_of, system

Wire = dict[str, Any]

TEXTS = ["hello", "日本語", "a longer text " * 9, " ", "", "\n", "[image", "data:image/png;base64,AAAA"]
NAMES = ["read", "write", "3d_render", "fs.read file", "", "n" * 80, "default_api:Bash"]
IDS = ["c{}", "call_{}", "functions.read:{}", "a b {}", "{}" + "z" * 70, ""]
ARGUMENTS = ["{}", "", '{"path": "a"}', "not json", "[1]", "null", '{"n": NaN}', '{"a":  1.50', '{"s": "\\ud800"}']
SVG = "PHN2Zz48L3N2Zz4=" * 90
MEDIA: list[ImagePart | FilePart] = [
    ImagePart(url="https://example.org/a.png"),
    ImagePart(url="gs://bucket/a.png"),
    ImagePart(url=f"data:image/svg+xml;base64,{SVG}"),
    ImagePart(url="data:image/png;base64,iVBORw0KGgo="),
    ImagePart(data="iVBORw0KGgo=", mime="image/png"),
    ImagePart(data=SVG, mime="image/svg+xml"),
    ImagePart(data="R0lGODlh", mime="image/gif"),
    ImagePart(data="AAAA"),
    ImagePart(data="<not base64>", mime="image/png"),
    ImagePart(artifact=ArtifactRef(sha256="00", label="plot.png")),
    FilePart(url="https://example.org/a.pdf", name="a.pdf"),
    FilePart(url="file:///a.pdf", name="a.pdf"),
    FilePart(data="AAAA", mime="application/pdf"),
    FilePart(data="AAAA", mime="text/csv", name="b.csv"),
    FilePart(data="AAAA", name="unknown"),
]


SPLIT = {"split": True}
"""The metadata of the further entries of one answer: nothing was sent before them."""


def split(answer: Payload) -> list[Payload]:
    """Return an answer as programs write it that have one entry for each call."""
    message = present(message_of(answer))
    first, *others = message.tool_calls or (None,)
    rest = tuple(part for part in message.parts if part not in others)
    entries = [payload_of(replace(message, parts=rest if one is first else (one,))) for one in (first, *others)]
    return [entries[0], *(replace(entry, metadata=SPLIT) for entry in entries[1:])]


class Writer:
    """Writes one random history; ``is_clean`` leaves out cut turns."""

    def __init__(self, random: Random, is_clean: bool = False) -> None:
        self.random = random
        self.is_clean = is_clean
        self.payloads: list[Payload] = []
        self.calls = 0
        self.items = 0

    def path(self) -> list[Entry]:
        if self.random.random() < 0.3:
            self.payloads.append(system(self.text()))
        for _ in range(self.random.randint(1, 6)):
            self.turn()
        return [
            Entry(id=f"e{index}", thread_id="t", parent=None, created_ns=0, payload=payload)
            for index, payload in enumerate(self.payloads)
        ]

    def text(self) -> str:
        return self.random.choice(TEXTS)

    def maybe(self, chance: float = 0.3) -> bool:
        return self.random.random() < chance

    def turn(self) -> None:
        if self.is_clean or self.maybe(0.85):
            self.payloads.append(self.user())
        for _ in range(self.random.randint(0, 3)):
            self.step()
        if not self.is_clean and self.maybe(0.1):
            self.payloads += self.pause()
        if self.is_clean or self.maybe(0.7):
            self.payloads.append(self.answer(0))

    def step(self) -> None:
        """One answer with calls, and their results: in any order, some of them never or late."""
        asked = self.answer(self.random.randint(1, 3))
        message = present(message_of(asked))
        self.payloads += split(asked) if self.maybe(0.2) else [asked]
        results = [self.result(part.id, part.name) for part in message.tool_calls]
        self.random.shuffle(results)
        lost = 0 if self.is_clean else self.random.choice([0, 0, 1, len(results)])
        self.payloads += results[lost:]
        if lost and self.maybe():
            self.payloads += [self.user() if self.maybe() else self.answer(0), *results[:lost]]

    def user(self) -> Payload:
        parts: list[Part] = [TextPart(text=self.random.choice(TEXTS[:3]))]
        if self.maybe():
            parts += [self.random.choice(MEDIA), TextPart(text=self.text())]
        name = self.random.choice(["", "", "John Doe", "ann"])
        return UserMessage(message=Message(role="user", parts=tuple(parts), name=name))

    def result(self, call_id: str, name: str) -> Payload:
        parts: list[Any] = [TextPart(text=self.text())]
        if self.maybe():
            parts.append(self.random.choice(MEDIA))
        if self.maybe(0.1):
            parts.append(
                OpaquePart(
                    provider="anthropic", block={"type": "search_result", "source": "s", "title": "t", "content": []}
                )
            )
        result = ToolResultPart(call_id=call_id, name=name, parts=tuple(parts), is_error=self.maybe())
        return ToolResultMessage(message=Message(role="tool", parts=(result,)))

    def new_id(self) -> str:
        self.calls += 1
        return self.random.choice(IDS).format(self.calls)

    def item_id(self, kind: str) -> str:
        """An id of an output item: the provider gives each one once."""
        self.items += 1
        return f"{kind}_{self.items}"

    def answer(self, calls: int) -> Payload:
        writer = self.random.choice([self.chat, self.responses, self.anthropic, self.gemini, self.plain])
        return writer(calls)

    def plain(self, calls: int) -> Payload:
        """An answer that was built by hand or imported."""
        thought = ReasoningPart(
            provider=self.random.choice(["", "pi", *DIALECTS]), text="hm", signature="c2ln", id=self.item_id("rs")
        )
        asked = [call(self.new_id(), self.random.choice(NAMES), self.random.choice(ARGUMENTS)) for _ in range(calls)]
        media = [self.random.choice(MEDIA)] if self.maybe(0.1) else []
        text = TextPart(text=self.text() if calls else "so")
        return payload_of(Message(role="assistant", parts=(thought, text, *media, *asked)))

    def read(self, name: str, body: Wire) -> Payload:
        return DIALECTS[name].from_response(json.loads(json.dumps(body)))

    def chat(self, calls: int) -> Payload:
        asked: list[Wire] = [
            {
                "id": self.new_id() or f"c{self.calls}",
                "type": "function",
                "function": {
                    "name": self.random.choice(NAMES) or "x",
                    "arguments": self.random.choice(ARGUMENTS),
                    "parsed_arguments": None,
                },
            }
            for _ in range(calls)
        ]
        no_calls: list[list[Wire] | None] = [None, []]
        message = {
            "role": "assistant",
            "content": self.random.choice([None, "", "so"]) if calls else "so",
            "refusal": self.random.choice([None, None, "I cannot."]),
            "annotations": [],
            "audio": None,
            "function_call": None,
            "parsed": None,
            "tool_calls": asked if calls else self.random.choice(no_calls),
        }
        return self.read("openai-chat", {"choices": [{"message": message, "finish_reason": "stop"}]})

    def responses(self, calls: int) -> Payload:
        output: list[Wire] = []
        if self.maybe(0.5):
            output.append(
                {
                    "type": "reasoning",
                    "id": self.item_id("rs"),
                    "summary": [],
                    "encrypted_content": "AA",
                    "status": None,
                    "content": None,
                }
            )
        if not calls or self.maybe(0.5):
            text: Wire = {"type": "output_text", "text": "so", "annotations": [], "logprobs": None, "parsed": None}
            output.append(
                {
                    "type": "message",
                    "id": self.item_id("msg"),
                    "role": "assistant",
                    "status": "completed",
                    "content": [text],
                }
            )
        if self.maybe(0.1):
            operation = {"type": "delete_file", "path": "a"}
            output.append(
                {
                    "type": "apply_patch_call",
                    "id": self.item_id("apc"),
                    "call_id": "ap_1",
                    "status": "completed",
                    "operation": operation,
                }
            )
        output += [
            {
                "type": "function_call",
                "call_id": self.new_id() or f"c{self.calls}",
                "name": self.random.choice(NAMES) or "x",
                "arguments": self.random.choice(ARGUMENTS),
                "id": self.random.choice([None, self.item_id("fc")]),
                "async_": None,
                "namespace": None,
                "status": None,
                "caller": None,
            }
            for _ in range(calls)
        ]
        return self.read("openai-responses", {"output": output, "status": "completed"})

    def anthropic(self, calls: int) -> Payload:
        content: list[Wire] = []
        if self.maybe(0.5):
            signature = self.random.choice(["c2ln", ""])
            content.append({"type": "thinking", "thinking": "hm", "signature": signature})
        if self.maybe(0.2):
            content += [self.search(), self.found()][: 1 if self.maybe() else 2]
        if not calls or self.maybe(0.5):
            content.append({"type": "text", "text": "so", "citations": None})
        content += [
            {
                "type": "tool_use",
                "id": self.new_id() or f"c{self.calls}",
                "name": self.random.choice(NAMES) or "x",
                "input": self.random.choice([{}, {"path": "a"}, '{"path": "a"}']),
                "caller": None,
            }
            for _ in range(calls)
        ]
        return self.read("anthropic", {"content": content, "stop_reason": "end_turn"})

    def search(self) -> Wire:
        self.calls += 1
        search = {"type": "server_tool_use", "id": f"srvtoolu_{self.calls}", "name": "web_search", "input": {}}
        return {**search, "caller": None}

    def found(self) -> Wire:
        return {
            "type": "web_search_tool_result",
            "tool_use_id": f"srvtoolu_{self.calls}",
            "content": [],
            "caller": None,
        }

    def pause(self) -> list[Payload]:
        """A turn that a provider paused: it goes on with the result, or the user speaks."""
        paused = {"content": [{"type": "text", "text": "so"}, self.search()], "stop_reason": "pause_turn"}
        more = {"content": [self.found(), {"type": "text", "text": "so"}]}
        return [self.read("anthropic", paused), self.user() if self.maybe() else self.read("anthropic", more)]

    def gemini(self, calls: int) -> Payload:
        parts: list[Wire] = [{"text": "hm", "thought": True}] if self.maybe() else []
        if not calls or self.maybe():
            parts += [{"text": "so", "thought": None, "inline_data": None}, {"text": ""}]
        for index in range(calls):
            asked = {
                "id": self.random.choice([self.new_id(), None]),
                "name": self.random.choice(NAMES[:2]),
                "args": {"a_b": None},
            }
            parts.append({"function_call": asked, **({} if index else {"thought_signature": "c2ln"})})
        return self.read(
            "gemini", {"candidates": [{"content": {"role": "model", "parts": parts}, "finish_reason": "STOP"}]}
        )
