"""Classes for threads and for asyncio that are still written by hand on both sides have the same methods.

The other pairs are generated: see test_async_to_sync.py.
"""

import inspect
from collections.abc import Callable

import pytest

import sessiontree as st
from sessiontree.compaction.summarizers.models import (
    AnthropicSummarizer,
    AsyncAnthropicSummarizer,
    AsyncOpenAISummarizer,
    OpenAISummarizer,
)
from sessiontree.journal._background import Background
from sessiontree.journal._background_async import AsyncBackground
from sessiontree.stores.embedded import EmbeddedStore
from sessiontree.stores.embedded_async import AsyncEmbeddedStore
from sessiontree.stores.postgres.listen import AsyncListener, Listener
from sessiontree.stores.postgres.store import AsyncPostgresStore, PostgresStore
from sessiontree.stores.protocol import AsyncStore, Store

ASYNC_NAMES = {"commit": "acommit", "read": "aread", "mark": "amark", "wait": "await_change", "close": "aclose"}
RETURN_AT_ONCE = {"turn", "watch", "iter_threads"}


def _methods(kind: type) -> dict[str, Callable[..., object]]:
    return {name: value for name, value in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")}


def _parameters(function: Callable[..., object]) -> list[tuple[str, object, object]]:
    return [(one.name, one.kind, one.default) for one in inspect.signature(function).parameters.values()]


@pytest.mark.parametrize(
    ("blocking", "awaiting"),
    [
        (Background, AsyncBackground),
        (Listener, AsyncListener),
        (AnthropicSummarizer, AsyncAnthropicSummarizer),
        (OpenAISummarizer, AsyncOpenAISummarizer),
    ],
)
def test_both_have_the_same_methods_and_parameters(blocking: type, awaiting: type) -> None:
    assert _parameters(blocking) == _parameters(awaiting)
    assert set(_methods(blocking)) == set(_methods(awaiting))
    for name, method in _methods(blocking).items():
        assert _parameters(method) == _parameters(getattr(awaiting, name)), name


@pytest.mark.parametrize(
    ("blocking", "awaiting"),
    [(Store, AsyncStore), (EmbeddedStore, AsyncEmbeddedStore), (PostgresStore, AsyncPostgresStore)],
)
def test_stores_of_both_kinds_have_the_same_verbs(blocking: type, awaiting: type) -> None:
    assert _parameters(blocking) == _parameters(awaiting)
    for name, async_name in ASYNC_NAMES.items():
        assert _parameters(getattr(blocking, name)) == _parameters(getattr(awaiting, async_name)), name


@pytest.mark.parametrize("name", _methods(st.AsyncJournal))
def test_every_verb_is_awaited_but_those_that_return_at_once(name: str) -> None:
    assert inspect.iscoroutinefunction(getattr(st.AsyncJournal, name)) == (name not in RETURN_AT_ONCE)
