"""The pictures of the docs. ``PICTURES=1 make test-browser`` writes them; look at them before you commit them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from browser.conftest import Opener, Reader, at_rest
from sample_store import SHOP

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
VIEWS = {
    "web-thread": (f"/t/{SHOP}", ("g", "j"), ".e.sel"),
    "web-search": ("/search?q=login", (), "#hits mark"),
    "web-palette": (f"/t/{SHOP}", ("g", "Control+k"), ".pal >> text=Threads"),
    "web-look-back": ("/look-back?span=1y", (), "svg.chart"),
    "web-compare": (f"/compare?a={SHOP}", (), ".side"),
}
"""The address of each view, the keys that lead to it, and what is there then."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_picture_of_the_readme_is_small_enough_to_be_read_there(
    reading: Opener, scheme: str, tmp_path: Path
) -> None:
    small = {"viewport": {"width": 1280, "height": 800}, "device_scale_factor": 1.3}
    reader = reading("wide", scheme, reduced_motion="reduce", **small)
    picture(reader, "web-thread", f"web-readme-{scheme}", tmp_path)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize(("size", "scheme"), [("wide", "light"), ("wide", "dark"), ("phone", "light")])
def test_pictures_show_what_people_see(reading: Opener, view: str, size: str, scheme: str, tmp_path: Path) -> None:
    kind = scheme if size == "wide" else "phone"
    picture(reading(size, scheme, reduced_motion="reduce"), view, f"{view}-{kind}", tmp_path)


def picture(reader: Reader, view: str, name: str, tmp_path: Path) -> None:
    path, keys, shows = VIEWS[view]
    page = reader.open(path)
    reader.keys(*keys)
    page.wait_for_selector(shows, state="attached")
    at_rest(page)
    target = (FOLDER if os.environ.get("PICTURES") else tmp_path) / f"{name}.png"
    page.screenshot(path=target)
    assert target.stat().st_size > 20_000
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
