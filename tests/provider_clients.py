"""The official SDKs, pointed at a local server."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable
from functools import cache
from typing import Any

import anthropic
import openai
from google import genai
from google.genai import types

MODEL = "local-model"


def stream(dialect: str, url: str, request: dict[str, Any]) -> Iterable[Any]:
    """The events of a streamed answer, as the SDK of a dialect yields them."""
    match dialect:
        case "openai-chat":
            client = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
            options = {"stream_options": {"include_usage": True}}
            return client.chat.completions.create(model=MODEL, stream=True, **options, **request)  # type: ignore[call-overload,no-any-return]
        case "openai-responses":
            client = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
            return client.responses.create(model=MODEL, stream=True, **request)  # type: ignore[no-any-return]
        case "anthropic":
            messages = anthropic.Anthropic(base_url=url, api_key="none", max_retries=0).messages
            return messages.create(model=MODEL, max_tokens=100, stream=True, **request)  # type: ignore[no-any-return]
        case _:
            return _gemini(url).models.generate_content_stream(model=MODEL, contents=request["contents"])


async def stream_async(dialect: str, url: str, request: dict[str, Any]) -> AsyncIterable[Any]:
    """The same with the async clients."""
    match dialect:
        case "openai-chat":
            client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
            options = {"stream_options": {"include_usage": True}}
            return await client.chat.completions.create(model=MODEL, stream=True, **options, **request)  # type: ignore[call-overload,no-any-return]
        case "openai-responses":
            client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
            return await client.responses.create(model=MODEL, stream=True, **request)  # type: ignore[no-any-return]
        case "anthropic":
            messages = anthropic.AsyncAnthropic(base_url=url, api_key="none", max_retries=0).messages
            return await messages.create(model=MODEL, max_tokens=100, stream=True, **request)  # type: ignore[no-any-return]
        case _:
            return await _gemini(url).aio.models.generate_content_stream(model=MODEL, contents=request["contents"])


def whole(dialect: str, url: str, request: dict[str, Any]) -> Any:
    """The answer to a request without a stream."""
    match dialect:
        case "openai-chat":
            client = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
            return client.chat.completions.create(model=MODEL, **request)
        case "openai-responses":
            client = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
            return client.responses.create(model=MODEL, **request)
        case "anthropic":
            messages = anthropic.Anthropic(base_url=url, api_key="none", max_retries=0).messages
            return messages.create(model=MODEL, max_tokens=100, **request)
        case _:
            return _gemini(url).models.generate_content(model=MODEL, contents=request["contents"])


@cache  # a client that is collected closes its connections
def _gemini(url: str) -> genai.Client:
    return genai.Client(api_key="none", http_options=types.HttpOptions(base_url=url))
