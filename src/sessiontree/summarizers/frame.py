"""What every summariser that asks a model over HTTP has in common; a provider says how its protocol differs.

The SDK itself repeats a request after 429, 500 and time-outs, and heeds Retry-After; ``max_retries`` says how often.
"""

from __future__ import annotations

import importlib
from typing import Any, ClassVar, Protocol

from sessiontree.compaction.request import Summary, SummaryRequest
from sessiontree.errors import MissingExtraError
from sessiontree.summarizers.answers import decoded, failure

__all__ = ["AsyncModelSummarizer", "ModelSummarizer", "Provider"]

_DEFAULT_TIMEOUT_SECONDS = 120.0
_DEFAULT_RETRIES = 2


class Provider(Protocol):
    """One protocol: the SDK that speaks it, what a request looks like, and what an answer means."""

    extra: ClassVar[str]
    """The extra, and the SDK's name."""
    what: ClassVar[str]
    client: ClassVar[str]
    """The SDK's client class; the awaiting one has ``Async`` before it."""
    error: ClassVar[str]
    """The class of all errors of the SDK."""

    def send(self, client: Any, body: dict[str, Any]) -> Any:
        """The SDK's call: an answer, or something to await."""

    def body(self, request: SummaryRequest) -> dict[str, Any]:
        """What a request holds beside model, size and options."""

    def summary(self, answer: Any, request: SummaryRequest) -> Summary:
        """What an answer says, or a SummaryError."""


class _Frame:
    """A model, and a client to ask it with: one of yours, or one that is made here."""

    provider: ClassVar[Provider]
    _prefix: ClassVar[str]

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout_seconds: float = _DEFAULT_TIMEOUT_SECONDS,
        max_retries: int = _DEFAULT_RETRIES,
        client: Any = None,
        **options: Any,
    ) -> None:
        self.model = model
        self._options = options
        self._client = client or getattr(_sdk(self.provider), self._prefix + self.provider.client)(
            base_url=base_url, api_key=api_key, timeout=timeout_seconds, max_retries=max_retries
        )

    def _body(self, request: SummaryRequest) -> dict[str, Any]:
        return {
            "model": self.model,
            "max_tokens": request.max_tokens,
            "stream": False,
            "extra_body": self._options,
            **self.provider.body(request),
        }

    def _errors(self) -> type[Exception]:
        errors: type[Exception] = getattr(_sdk(self.provider), self.provider.error)
        return errors


class ModelSummarizer(_Frame):
    """Asks a model and waits."""

    _prefix = ""

    def __call__(self, request: SummaryRequest) -> Summary:
        try:
            answer = self.provider.send(self._client, self._body(request))
        except self._errors() as error:
            raise failure(error) from error
        return self.provider.summary(decoded(answer), request)

    def close(self) -> None:
        self._client.close()


class AsyncModelSummarizer(_Frame):
    """The same for an AsyncJournal."""

    _prefix = "Async"

    async def __call__(self, request: SummaryRequest) -> Summary:
        try:
            answer = await self.provider.send(self._client, self._body(request))
        except self._errors() as error:
            raise failure(error) from error
        return self.provider.summary(decoded(answer), request)

    async def close(self) -> None:
        await self._client.close()


def _sdk(provider: Provider) -> Any:
    try:
        return importlib.import_module(provider.extra)
    except ImportError as error:
        raise MissingExtraError(provider.what, provider.extra) from error
