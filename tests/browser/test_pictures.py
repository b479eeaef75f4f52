"""The pictures of the docs. ``PICTURES=1 make test-browser`` writes them; look at them before you commit them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from browser.conftest import Opener, Reader
from sample_store import SHOP

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
VIEWS = {
    "web-thread": (f"/t/{SHOP}", ("g", "j")),
    "web-search": ("/search?q=login", ()),
    "web-palette": (f"/t/{SHOP}", ("g", "Control+k")),
}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_picture_of_the_readme_is_small_enough_to_be_read_there(
    reading: Opener, scheme: str, tmp_path: Path
) -> None:
    path, keys = VIEWS["web-thread"]
    small = {"viewport": {"width": 1280, "height": 800}, "device_scale_factor": 1.3}
    picture(reading("wide", scheme, reduced_motion="reduce", **small), path, keys, f"web-readme-{scheme}", tmp_path)


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize(("size", "scheme"), [("wide", "light"), ("wide", "dark"), ("phone", "light")])
def test_pictures_show_what_people_see(reading: Opener, name: str, size: str, scheme: str, tmp_path: Path) -> None:
    path, keys = VIEWS[name]
    kind = scheme if size == "wide" else "phone"
    picture(reading(size, scheme, reduced_motion="reduce"), path, keys, f"{name}-{kind}", tmp_path)


def picture(reader: Reader, path: str, keys: tuple[str, ...], name: str, tmp_path: Path) -> None:
    page = reader.open(path)
    page.wait_for_timeout(300)
    reader.keys(*keys)
    page.wait_for_timeout(400)
    target = (FOLDER if os.environ.get("PICTURES") else tmp_path) / f"{name}.png"
    page.screenshot(path=target)
    assert target.stat().st_size > 20_000
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
