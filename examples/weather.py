"""The tool of the example agents, and how each provider wants it described."""

import json
from typing import Any

_CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
_ABOUT = {"name": "weather", "description": "The weather in a city."}

OPENAI_TOOLS: list[Any] = [{"type": "function", **_ABOUT, "parameters": _CITY}]
ANTHROPIC_TOOLS: list[Any] = [{**_ABOUT, "input_schema": _CITY}]
GEMINI_TOOLS: list[Any] = [{"function_declarations": [{**_ABOUT, "parameters": _CITY}]}]


def weather(arguments: str) -> str:
    """Run the tool with the arguments of a call; what goes wrong is an answer for the model, too."""
    try:
        return f"18 °C and sunny in {json.loads(arguments)['city']}"
    except (ValueError, KeyError, TypeError) as error:
        return f"error: {error!r}"
