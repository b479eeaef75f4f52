"""Dialects: a context as a provider's request, and a provider's requests and responses as messages.

>>> from sessiontree.context import Context
>>> from sessiontree.model.builders import user
>>> context = Context(messages=(user("hello").message,))
>>> DIALECTS["anthropic"].to_request(context)
{'messages': [{'role': 'user', 'content': 'hello'}]}
"""

from collections.abc import Mapping
from types import MappingProxyType

from sessiontree.context.dialects import anthropic, gemini, openai_chat, openai_responses
from sessiontree.context.dialects._shared import CONTINUE, OPENING, Answer, Dialect

__all__ = ["CONTINUE", "DIALECTS", "OPENING", "Answer", "Dialect"]


_ALL = (openai_chat.DIALECT, openai_responses.DIALECT, anthropic.DIALECT, gemini.DIALECT)

DIALECTS: Mapping[str, Dialect] = MappingProxyType({dialect.name: dialect for dialect in _ALL})
