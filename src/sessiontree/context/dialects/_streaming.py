"""Streams: events of a provider's SDK, put together to the response that it would have sent at once.

Each dialect has a module for its events, with a subclass of ``AnswerBuilder``. What it builds is read by the dialect's
``from_response``, so a streamed answer is stored like any other.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sessiontree.context.answers import NOTHING, Delta
from sessiontree.context.dialects._plain import a_text, an_object, plain
from sessiontree.errors import InvalidInputError

__all__ = ["NOTHING", "AnswerBuilder", "Delta", "Wire"]

Wire = dict[str, Any]


class AnswerBuilder:
    """Collects the events of one answer.

    ``is_finished`` tells whether the provider has said that the answer is complete, ``error`` what it said went wrong.
    """

    dialect: ClassVar[str]

    def __init__(self) -> None:
        self.model = ""
        self.error = ""
        self.is_finished = False

    def feed(self, event: Any) -> Delta:
        """Add an event: the SDK's object, or a dump of it. Events that are not known are ignored.

        Raises InvalidInputError for one that has something else where the dialect has an object, a list or a text.
        """
        read = plain(event)
        try:
            delta = self._add(an_object(read, "an event", may_miss=False))
            a_text(delta.text, "the text of an event")
            a_text(delta.reasoning, "the reasoning of an event")
        except (TypeError, AttributeError, LookupError, ValueError) as error:
            raise InvalidInputError(
                f"this is not an event of a stream of {self.dialect}: {read!r:.200} ({error})"
            ) from error
        return delta

    def response(self) -> Wire:
        """Return the complete answer as a response, for ``from_response``."""
        raise NotImplementedError

    def _add(self, event: Wire) -> Delta:
        raise NotImplementedError
