"""The pictures of the docs. ``PICTURES=1 make test-browser`` writes them; look at them before you commit them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from browser.conftest import Opener
from sample_store import SHOP

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
VIEWS = {
    "web-thread": (f"/t/{SHOP}", ("g", "j")),
    "web-search": ("/search?q=login", ()),
    "web-palette": (f"/t/{SHOP}", ("g", "Control+k")),
}


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize(("size", "scheme"), [("wide", "light"), ("wide", "dark"), ("phone", "light")])
def test_pictures_show_what_people_see(reading: Opener, name: str, size: str, scheme: str, tmp_path: Path) -> None:
    path, keys = VIEWS[name]
    reader = reading(size, scheme, reduced_motion="reduce")
    page = reader.open(path)
    page.wait_for_timeout(300)
    reader.keys(*keys)
    page.wait_for_timeout(400)
    kind = scheme if size == "wide" else "phone"
    target = (FOLDER if os.environ.get("PICTURES") else tmp_path) / f"{name}-{kind}.png"
    page.screenshot(path=target)
    assert target.stat().st_size > 20_000
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
