"""Lists on PostgreSQL are the same as everywhere, whichever table drives them."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sessiontree as st
from postgres_server import process_database, with_options
from sessiontree.stores.postgres import listing
from sessiontree.testing import ManualClock

START = 1_700_000_000_000_000_000
MINUTE = 60_000_000_000
FILTERS: tuple[dict[str, Any], ...] = (
    {},
    {"is_archived": None},
    {"is_archived": True},
    {"is_empty": True},
    {"is_empty": False, "is_archived": None},
    {"workspace": "/often"},
    {"workspace": "/seldom"},
    {"vendor": "often", "is_empty": False},
    {"status": "seldom", "is_archived": None},
    {"tags": ("often",)},
    {"tags": ("often", "seldom")},
    {"title_contains": "often"},
    {"updated_after_ns": START + 5 * MINUTE + 1},
    {"updated_before_ns": START + 15 * MINUTE, "workspace": "/often"},
    {"created_before_ns": START + 6 * MINUTE, "is_archived": None},
    {"created_after_ns": START + 3 * MINUTE, "updated_after_ns": START + 10 * MINUTE, "is_archived": None},
    {"workspace": "/nowhere"},
)


@pytest.fixture(
    params=[(1_000, (1_000, 10_000)), (3, (5, 15)), (0, (1, 2))], ids=["sizes", "small sizes", "least sizes"]
)
def namespace(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    few, windows = request.param
    monkeypatch.setattr(listing, "_FEW", few)
    monkeypatch.setattr(listing, "_WINDOWS", windows)
    return str(tmp_path)


@pytest.fixture
def stores(namespace: str) -> Iterator[tuple[st.Journal, st.Journal]]:
    clock = ManualClock(START)
    url = with_options(process_database(), namespace=namespace)
    with st.open(url, clock=clock) as postgres, st.open("memory:", clock=clock) as memory:
        fill(clock, postgres, memory)
        yield postgres, memory


def fill(clock: ManualClock, *journals: st.Journal) -> None:
    """Write threads whose updates are not in the order of their creation, several of them in the same minute."""
    source = random.Random(5)

    def word(share: float) -> str:
        return "often" if source.random() < share else "seldom"

    names = [f"thread-{number:02}" for number in range(40)]
    for number, name in enumerate(names):
        clock.now_ns = START + number * MINUTE // 3
        fields: dict[str, Any] = {
            "title": f"{word(0.7)} {name}",
            "workspace": f"/{word(0.8)}",
            "vendor": word(0.6),
            "status": word(0.9),
            "tags": tuple({word(0.7), word(0.5)}),
            "is_archived": source.random() < 0.3,
        }
        for journal in journals:
            journal.create_thread(name, **fields)
    for number, name in enumerate(source.choices(names, k=30)):
        clock.now_ns = START + source.randrange(0, 20) * MINUTE
        for journal in journals:
            journal.append(name, st.user("hello"), id=f"entry-{number}")


def pages_of(journal: st.Journal, filters: dict[str, Any], order: st.ThreadOrder) -> list[list[st.Thread]]:
    pages: list[list[st.Thread]] = []
    cursor: str | None = None
    while True:
        page = journal.list_threads(**filters, order=order, limit=4, cursor=cursor)
        pages.append(list(page.threads))
        cursor = page.cursor
        if cursor is None:
            return pages


@pytest.mark.parametrize("order", ["updated", "created"])
def test_every_page_of_every_list_is_that_of_the_memory_store(
    stores: tuple[st.Journal, st.Journal], order: st.ThreadOrder
) -> None:
    postgres, memory = stores
    for filters in FILTERS:
        assert pages_of(postgres, filters, order) == pages_of(memory, filters, order), filters
