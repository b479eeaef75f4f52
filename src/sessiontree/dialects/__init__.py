"""Dialects: a context as the request of a provider, and a provider's messages as ours.

>>> from sessiontree.context import Context
>>> from sessiontree.messages import user
>>> context = Context(messages=(user("hello").message,))
>>> DIALECTS["anthropic"].to_request(context)
{'messages': [{'role': 'user', 'content': 'hello'}]}
"""

from collections.abc import Mapping
from types import MappingProxyType

from sessiontree.dialects import anthropic, gemini, openai_chat, openai_responses
from sessiontree.dialects.base import Answer, Dialect
from sessiontree.dialects.wire import CONTINUE, OPENING

__all__ = ["CONTINUE", "DIALECTS", "OPENING", "Answer", "Dialect"]

_ALL = (openai_chat.DIALECT, openai_responses.DIALECT, anthropic.DIALECT, gemini.DIALECT)

DIALECTS: Mapping[str, Dialect] = MappingProxyType({dialect.name: dialect for dialect in _ALL})
