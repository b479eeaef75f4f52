"""A journal on every store, with a clock that stands still; and in the deep profile, a look at what each test calls."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType

import pytest

import sessiontree as st
from known import present
from opened import open_store
from property_settings import IS_DEEP
from seed_rows import PROGRAMS, resolve, rows, symbols_of
from sessiontree.testing.clock import ManualClock

STORES = ("memory", "sqlite", "jsonl", "postgres")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=STORES)
def journal(request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock) -> Iterator[st.Journal]:
    with open_store(request.param, tmp_path, clock=clock) as opened:
        yield opened


@pytest.fixture(autouse=True)
def names_are_called(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that does not run the functions which it says it covers. Types and constants cannot be seen this way."""
    symbols = symbols_of(request.function) if IS_DEEP else ()
    if not symbols:
        yield
        return
    called: set[CodeType] = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            called.add(frame.f_code)

    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)
    seed = next(seed for seed, program in PROGRAMS.items() if request.path.name.startswith(f"test_{program}"))
    ours = {row["symbol"]: row["ours"] for row in rows() if row["seed"] == seed}
    uncalled = [symbol for symbol in symbols if (code := code_of(ours[symbol])) and code not in called]
    assert not uncalled, f"{request.node.name} never calls {uncalled}"


def code_of(name: str) -> CodeType | None:
    found = resolve(name)
    function = inspect.unwrap(present(found.fget)) if isinstance(found, property) else found
    return function.__code__ if inspect.isfunction(function) else None
