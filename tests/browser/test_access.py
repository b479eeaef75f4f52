"""What everybody can use: axe-core finds nothing serious, in both themes, with every overlay open; and print."""

from __future__ import annotations

import pytest

from browser.conftest import Opener
from sample_store import SHOP

STATES = {
    "home": ("/", ()),
    "thread": (f"/t/{SHOP}", ()),
    "entry": (f"/t/{SHOP}", ("g", "j")),
    "palette": (f"/t/{SHOP}", ("Control+k",)),
    "help": (f"/t/{SHOP}", ("?",)),
    "rename": (f"/t/{SHOP}", ("R",)),
    "search": ("/search?q=login", ()),
    "context": (f"/t/{SHOP}/context", ()),
    "missing": ("/t/nothing", ()),
}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", ["wide", "phone"])
def test_axe_finds_nothing_serious(reading: Opener, size: str, scheme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe  # noqa: PLC0415  only `make test-browser` installs it

    reader = reading(size, scheme, bypass_csp=True)
    found: list[str] = []
    for name, (path, keys) in STATES.items():
        page = reader.open(path)
        reader.keys(*keys)
        page.wait_for_timeout(300)
        violations = Axe().run(page).response["violations"]
        for one in violations:
            if one["impact"] in {"serious", "critical"}:
                places = [node["html"][:160] for node in one["nodes"][:3]]
                found.append(f"{name}: {one['id']}: {places}")
    assert not found, "\n".join(found)


def test_print_shows_the_transcript_alone(reading: Opener) -> None:
    reader = reading()
    page = reader.open(f"/t/{SHOP}")
    page.emulate_media(media="print")
    assert page.locator(".col").is_visible()
    for part in (".top", ".threads", ".treepane", ".outline"):
        assert not page.locator(part).is_visible()


def test_every_button_has_a_name_and_every_action_a_key(reading: Opener) -> None:
    reader = reading()
    page = reader.open(f"/t/{SHOP}")
    nameless = page.evaluate(
        "[...document.querySelectorAll('button, a[href]')].filter((one) => !(one.innerText.trim() || one.getAttribute('aria-label')) && one.offsetParent).map((one) => one.outerHTML)"
    )
    assert nameless == []
    reader.keys("?")
    shown = page.locator("dialog.help dt").count()
    assert shown >= 40
