"""What everybody can use: axe-core finds nothing serious, in both themes, with every overlay open; and print."""

from __future__ import annotations

from pathlib import Path

import pytest

import sessiontree as st
from browser.conftest import Opener, at_rest
from sample_store import SHOP

THREAD = f"/t/{SHOP}"
STATES: dict[str, tuple[str, tuple[str, ...], str]] = {
    "home": ("/", (), "#threads .th"),
    "thread": (THREAD, (), "#tree .tn"),
    "entry": (THREAD, ("g", "j"), ".e.sel"),
    "palette": (THREAD, ("Control+k",), ".pal >> text=Threads"),
    "help": (THREAD, ("?",), "dialog.help"),
    "rename": (THREAD, ("R",), "dialog.ask input"),
    "label": (THREAD, ("g", "m"), "dialog.ask input"),
    "tags": (THREAD, ("T",), "dialog.ask input"),
    "erase": (THREAD, ("g", "E"), "dialog.ask .danger"),
    "export": (THREAD, ("e",), ".pal >> text=markdown"),
    "compact": (THREAD, ("c",), "dialog.ask .go"),
    "restore": ("/t/files", ("G", "w"), "dialog.ask .plan >> text=a.py"),
    "refused": ("/t/files", ("u",), ".toast.wrong"),
    "done": (THREAD, ("s",), ".toast:not(.wrong)"),
    "search": ("/search?q=login", (), "#hits mark"),
    "context": (f"{THREAD}/context", (), "main"),
    "missing": ("/t/nothing", (), "main"),
    "look back": ("/look-back?span=1y", (), "svg.chart"),
    "compare": (f"/compare?a={SHOP}", (), ".side"),
}
"""Every page and every dialog: its address, the keys that open it, and what is there then."""


def make_files(journal: st.Journal, folder: Path) -> None:
    """A thread whose checkpoint differs from the folder."""
    journal.create_thread("files", title="Files")
    entry = journal.append("files", st.user("save"))
    folder.mkdir()
    (folder / "a.py").write_text("old\n")
    journal.workspace.snapshot("files", entry.id, folder)
    (folder / "a.py").write_text("new\n")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", ["wide", "phone"])
def test_axe_finds_nothing_serious(reading: Opener, tmp_path: Path, size: str, scheme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe  # noqa: PLC0415  only `make test-browser` installs it

    reader = reading(size, scheme, bypass_csp=True, reduced_motion="reduce")
    make_files(reader.journal, tmp_path / "shop")
    found: list[str] = []
    for name, (path, keys, shows) in STATES.items():
        page = reader.open(path)
        reader.keys(*keys)
        page.wait_for_selector(shows, state="attached")
        at_rest(page)
        page.evaluate("document.querySelectorAll('details.num').forEach((one) => { one.open = true })")
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
