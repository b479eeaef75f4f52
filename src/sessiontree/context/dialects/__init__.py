"""Dialects: a context as a provider's request, and a provider's requests and responses as messages.

>>> from sessiontree.context import Context
>>> from sessiontree.model.builders import user
>>> context = Context(messages=(user("hello").message,))
>>> DIALECTS["anthropic"].to_request(context)
{'messages': [{'role': 'user', 'content': [{'type': 'text', 'text': 'hello'}]}]}
"""

from collections.abc import Mapping
from types import MappingProxyType

from sessiontree.context.dialects import anthropic, gemini, openai_chat, openai_responses
from sessiontree.context.dialects._shared import CONTINUE, OPENING, Answer, Dialect, Placeholders
from sessiontree.errors import InvalidInputError

__all__ = ["CONTINUE", "DIALECTS", "OPENING", "Answer", "Dialect", "Placeholders", "UnknownDialectError"]


class UnknownDialectError(InvalidInputError, KeyError):
    """No dialect has this name."""

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        self.name = name
        self.known = known
        super().__init__(f"no dialect is named {name!r}; use one of {', '.join(known)}")

    def __str__(self) -> str:
        return str(self.args[0])


class _Dialects(dict[str, Dialect]):
    def __missing__(self, name: str) -> Dialect:
        raise UnknownDialectError(name, tuple(self))


_ALL = (openai_chat.DIALECT, openai_responses.DIALECT, anthropic.DIALECT, gemini.DIALECT)

DIALECTS: Mapping[str, Dialect] = MappingProxyType(_Dialects({dialect.name: dialect for dialect in _ALL}))
