"""A real browser and a real server over a store in a file. ``make test-browser`` runs these tests."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import sessiontree as st
from sample_store import make_sample
from web.running import serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page, Route

if not os.environ.get("SESSIONTREE_BROWSER"):
    collect_ignore_glob = ["test_*.py"]

CHROMIUM = "/usr/bin/chromium"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SECONDS = 30
"""How long a condition may take: a busy machine is slow."""
SIZES = {"wide": (1600, 1000), "phone": (390, 844)}


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright  # noqa: PLC0415  only `make test-browser` installs it

    if not Path(CHROMIUM).exists():
        pytest.fail(f"there is no browser at {CHROMIUM}; apt-get install chromium")
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield made
        made.close()


def until(page: Page, condition: str) -> None:
    """Wait until an expression is true on a loaded page. The policy of the page forbids what Playwright itself does for that."""
    deadline = time.monotonic() + SECONDS
    while not _holds(page, condition):
        assert time.monotonic() < deadline, f"not in time: {condition}"
        time.sleep(0.02)


def _holds(page: Page, condition: str) -> bool:
    from playwright.sync_api import Error  # noqa: PLC0415  only `make test-browser` installs it

    try:
        return bool(page.evaluate(f"document.readyState === 'complete' && Boolean({condition})"))
    except Error as error:
        # The page is being replaced by the next one.
        if "context was destroyed" in str(error) or "navigat" in str(error):
            return False
        raise


def at_rest(page: Page) -> None:
    """Wait until nothing of a page moves or is awaited any more, as far as a reader can see it."""
    until(page, "!document.querySelector('[aria-busy=true], [data-counting]')")
    is_moving = "one.playState === 'running' && one.effect.getTiming().iterations !== Infinity"
    until(page, f"!document.getAnimations().some((one) => {is_moving})")


def hold(page: Page, pattern: str) -> Callable[[], None]:
    """Hold requests back until the function that is returned is called."""
    held: list[Route] = []
    is_open = False

    def on_request(route: Route) -> None:
        route.continue_() if is_open else held.append(route)

    def release() -> None:
        nonlocal is_open
        deadline = time.monotonic() + SECONDS
        while not held:
            assert time.monotonic() < deadline, f"nothing asked for {pattern}"
            page.evaluate("0")
        is_open = True
        for route in held:
            route.continue_()

    page.route(pattern, on_request)
    return release


class Reader:
    """A page of a viewer, the journal of its store, and the requests and errors of the page."""

    def __init__(self, page: Page, address: str, journal: st.Journal) -> None:
        self.page, self.journal = page, journal
        self.base, _, self.token = address.partition("/?token=")
        self.errors: list[str] = []
        self.hosts: set[str] = set()
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.set_default_timeout(1000 * SECONDS)
        page.on("console", self._hear)
        page.on("request", lambda request: self.hosts.add(request.url.split("/")[2]))
        page.goto(address)

    def _hear(self, said: ConsoleMessage) -> None:
        # An answer that refuses something is logged by the browser itself.
        if said.type == "error" and "Failed to load resource" not in said.text:
            self.errors.append(said.text)

    def open(self, path: str) -> Page:
        self.page.goto(f"{self.base}{path}")
        self.page.wait_for_selector("#pages .e, .welcome, main", state="attached")
        return self.page

    def keys(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def toast(self) -> str:
        found = self.page.wait_for_selector(".toast")
        return found.inner_text() if found is not None else ""

    def wait_for_selected(self, name: str) -> None:
        until(self.page, f"document.querySelector('#pages .e.sel')?.dataset.id === {json.dumps(name)}")

    def wait_for_address(self, part: str) -> None:
        until(self.page, f"location.href.includes({json.dumps(part)})")


Opener = Callable[..., Reader]


@pytest.fixture(scope="session")
def sample_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sample") / "journal.db"
    make_sample(path)
    return path


@pytest.fixture
def reading(browser: Browser, tmp_path: Path, sample_file: Path) -> Iterator[Opener]:
    """Open pages of one viewer over a copy of the sample store."""
    shutil.copy(sample_file, tmp_path / "journal.db")
    readers: list[Reader] = []
    with (
        serving("--store", "journal.db", folder=tmp_path) as address,
        st.open(tmp_path / "journal.db") as journal,
    ):

        def opened(size: str = "wide", scheme: str = "light", **options: Any) -> Reader:
            width, height = SIZES[size]
            chosen: dict[str, Any] = {
                "viewport": {"width": width, "height": height},
                "color_scheme": scheme,
                "has_touch": size == "phone",
                "permissions": ["clipboard-read", "clipboard-write"],
            }
            context = browser.new_context(**(chosen | options))
            readers.append(Reader(context.new_page(), address, journal))
            return readers[-1]

        yield opened
        for reader in readers:
            reader.page.context.close()
    for reader in readers:
        assert reader.errors == []
        assert reader.hosts == {reader.base.split("/")[2]}
