"""No password is shown, however the address of a store is written, in whatever a command has to say."""

from __future__ import annotations

from pathlib import Path

import pytest

import sessiontree as st
from screens import Screen

ADDRESSES = (
    "postgresql://ann:hunter2@127.0.0.1:1/talks",
    "postgresql://ann:my hunter2@127.0.0.1:1/talks",
    "postgresql://ann:p@ss/hunter2@127.0.0.1:1/talks",
    "postgresql://ann:p?hunter2@127.0.0.1:1/talks",
    "postgresql://127.0.0.1:1/talks?password=hunter2&connect_timeout=1",
    "postgresql:/ann:hunter2@127.0.0.1:1/talks",
    "postgresql:ann:hunter2@127.0.0.1:1/talks",
    "mysql://ann:hunter2@db/talks",
    "ann:hunter2@db/talks",
    "host=127.0.0.1 port=1 user=ann password=hunter2",
    "password = 'my hunter2' host=127.0.0.1",
    "sqlite://ann:hunter2@db",
    "ann_2:hunter2@db",
    "a:p/hunter2@db",
)  # fmt: skip
COMMANDS = (
    (), ("ls",), ("ls", "--json"), ("config", "show"), ("config", "show", "--json"), ("config", "--jsn"), ("doctor",),
    ("doctor", "--json"), ("new", "Title"), ("show", "@"), ("stats",), ("search", "x"), ("import", "nothing"), ("backup", "copies"),
)  # fmt: skip


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("width", [40, 100])
def test_no_command_shows_the_password_of_its_store(screen: Screen, address: str, width: int) -> None:
    screen.resize(width)
    for command in COMMANDS:
        assert_hidden(screen, *command[:1], "--store", _quick(address), *command[1:])
    assert_hidden(screen, "--store", _quick(address), "lst")
    assert [file for file in screen.store.parent.iterdir() if "hunter2" in file.name] == []


@pytest.mark.parametrize("address", ADDRESSES)
def test_no_command_shows_a_password_in_its_arguments(screen: Screen, address: str) -> None:
    screen.run("backup", "copies")
    for command in (
        ("restore", address), ("restore", "copies", address, "--dry-run"), ("copy", address, "--dry-run"),
        ("copy", address, "--dry-run", "--json"), ("import", address), ("copy", "--dry-run", "x.db", address),
        ("new", "a title", address), ("ls", f"--stoer={address}"), ("ls", "--limit", address), (address,), ("backup", address),
        ("backup", address, "--json"), ("export", "@", "-o", address), ("restore", "copies", address, "--json"),
        ("import", address, "--json"), ("doctor", address), ("copy", address),
    ):  # fmt: skip
        assert_hidden(screen, *(_quick(word) if word == address else word for word in command))
    assert [file for file in screen.store.parent.rglob("*") if "hunter2" in file.name] == []


@pytest.mark.parametrize("address", [one for one in ADDRESSES if "'" not in one])
def test_the_project_file_may_have_a_password(screen: Screen, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Path(screen.store.parent, ".sessiontree.toml").write_text(f'store = "{_quick(address)}"\n', encoding="utf-8")
    monkeypatch.setattr(Screen, "_use_store", lambda one: monkeypatch.chdir(one.store.parent))
    for command in (("config", "show"), ("config", "show", "--json"), ("ls",), ("doctor", "--json")):
        assert_hidden(screen, *command)


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_error_of_the_library_has_no_password(address: str) -> None:
    if not address.startswith("postgresql://"):
        with pytest.raises(st.errors.SessionTreeError) as caught:
            st.open(address)
        assert "hunter2" not in str(caught.value)


def assert_hidden(screen: Screen, *arguments: str) -> None:
    shown = screen.run(*arguments, typed="n\n", code=None)
    assert "hunter2" not in "".join(shown.split()), arguments
    assert "Traceback" not in shown


def _quick(address: str) -> str:
    """The address of a server that is not there, given up at once."""
    if not address.startswith("postgresql:"):
        return address
    return address + ("&" if "?" in address.rpartition("@")[2] else "?") + "open_retry_seconds=0&retry_seconds=0"
