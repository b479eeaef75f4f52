"""Every call to the file system fails once: nothing acknowledged is lost, nothing else is half there."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jsonl_commands import append, create, delete, do, draft, fork, ids, tree_file
from sessiontree.errors import (
    CommitUnknownError,
    SessionTreeError,
    StoreError,
    StoreFullError,
    StorePoisonedError,
    StoreReadOnlyError,
    StoreUnavailableError,
)
from sessiontree.stores._io import Files
from sessiontree.stores.commands import Command
from sessiontree.stores.jsonl import JsonlBackend

CALLS = ("open_append", "append", "truncate", "sync", "sync_folder", "write_new", "replace", "remove", "make_folder")

SCRIPT: tuple[tuple[Command, ...], ...] = (
    (create("t"),),
    (append("t", "e1"),),
    (append("t", "m1", "m2", "m3"), create("u"), append("u", "u1")),
    (fork("t", "f", "e1"),),
    (append("f", "f1"), append("t", "e4"), append("u", "u2")),
    (delete("f"),),
    (append("u", "u3", "u4"),),
    (fork("t", "g", "m1"), append("g", "g1")),
    (delete("t"),),
    (append("g", "g2"),),
    (delete("u"),),
)


class FailingFiles(Files):
    """Counts the calls and fails the n-th: before it does anything, or, where it writes, after half of it."""

    def __init__(self, fails_at: int, code: int, *, names: tuple[str, ...] = CALLS, halfway: bool = False) -> None:
        self.calls = 0
        self.failed = ""
        self._fails_at = fails_at
        self._code = code
        self._names = names
        self._halfway = halfway

    def __getattribute__(self, name: str) -> Any:
        found = object.__getattribute__(self, name)
        return self._counted(name, found) if name in CALLS and name in self._names else found

    def _counted(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any) -> Any:
            self.calls += 1
            if self.calls != self._fails_at:
                return call(*arguments)
            self.failed = name
            if name == "append" and self._halfway:
                file, data = arguments
                os.write(file, data[: len(data) // 2])
            raise OSError(self._code, os.strerror(self._code))

        return counted


def state_of(folder: Path) -> dict[str, list[str]]:
    store = JsonlBackend(folder)
    assert store.erase_copies()
    assert [finding for finding in store.inspect() if finding.kind != "torn"] == []
    found = {name: ids(store, name) for name in "tufg" if _exists(store, name)}
    store.close()
    return found


def _exists(store: JsonlBackend, thread_id: str) -> bool:
    try:
        store.thread(thread_id)
    except SessionTreeError:
        return False
    return True


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, list[str]]]:
    """What a store holds after each group of the script."""
    folder = tmp_path_factory.mktemp("history") / "s"
    store = JsonlBackend(folder)
    states: list[dict[str, list[str]]] = [{}]
    for group in SCRIPT:
        do(store, *group)
        states.append(state_of(folder))
    store.close()
    return states


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize("halfway", [False, True])
def test_the_nth_failing_call_loses_nothing_that_was_acknowledged(
    tmp_path: Path, history: list[dict[str, Any]], code: int, halfway: bool
) -> None:
    fails_at = 0
    failed: set[str] = set()
    while True:
        fails_at += 1
        files = FailingFiles(fails_at, code, halfway=halfway)
        acknowledged = run_script(tmp_path / str(fails_at), files)
        if not files.failed:
            break
        failed.add(files.failed)
        if acknowledged >= 0:
            check_state(tmp_path / str(fails_at), acknowledged, history)
    assert failed >= {"open_append", "append", "sync", "sync_folder", "replace", "remove"}


def run_script(folder: Path, files: Files) -> int:
    """How many groups were acknowledged before one failed; -1 if the store did not even open."""
    try:
        store = JsonlBackend(folder, files=files)
    except StoreError:
        return -1
    try:
        for number, group in enumerate(SCRIPT):
            try:
                do(store, *group)
            except StoreError:
                return number
        return len(SCRIPT)
    finally:
        store.close()


def check_state(folder: Path, acknowledged: int, history: list[dict[str, list[str]]]) -> None:
    """All that was acknowledged is there; the group that failed is there wholly, or thread by thread, or not."""
    found = state_of(folder)
    before = history[acknowledged]
    after = history[min(acknowledged + 1, len(SCRIPT))]
    for name in "tufg":
        assert found.get(name) in possible(acknowledged, name, before.get(name), after.get(name))
    store = JsonlBackend(folder)
    for group in SCRIPT[acknowledged:]:
        for outcome in store.write(group):
            assert not isinstance(outcome, StoreError), outcome
    store.close()
    again = state_of(folder)
    assert again == history[-1]


def possible(group: int, name: str, before: list[str] | None, after: list[str] | None) -> list[list[str] | None]:
    """Each command is whole or not there: a thread may be made and not yet filled."""
    made_and_filled = group < len(SCRIPT) and before is None and after is not None and len(SCRIPT[group]) > 1
    return [before, after, [] if name == "u" else (after or [])[:-1]] if made_and_filled else [before, after]


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (errno.ENOSPC, StoreFullError),
        (errno.EDQUOT, StoreFullError),
        (errno.EFBIG, StoreFullError),
        (errno.EROFS, StoreReadOnlyError),
        (errno.EACCES, StoreReadOnlyError),
        (errno.EIO, StoreUnavailableError),
    ],
)
def test_a_failed_write_is_taken_back_and_can_be_tried_again(tmp_path: Path, code: int, error: Any) -> None:
    setup = JsonlBackend(tmp_path / "s")
    do(setup, create("t"), append("t", "e1"), create("u"))
    setup.close()
    files = FailingFiles(2, code, names=("append",), halfway=True)
    store = JsonlBackend(tmp_path / "s", files=files)
    group = (append("t", "e2"), append("u", "u1"))
    with pytest.raises(error):
        do(store, *group)
    assert (ids(store, "t"), ids(store, "u")) == (["e1"], [])
    assert store.inspect() == []
    do(store, *group)
    assert (ids(store, "t"), ids(store, "u")) == (["e1", "e2"], ["u1"])
    store.close()


def test_after_a_failed_sync_nothing_more_is_acknowledged(tmp_path: Path) -> None:
    setup = JsonlBackend(tmp_path / "s")
    do(setup, create("t"))
    setup.close()
    files = FailingFiles(1, errno.EIO, names=("sync",))
    store = JsonlBackend(tmp_path / "s", files=files)
    for command in (append("t", "e1"), append("t", "e2"), delete("t"), create("v")):
        with pytest.raises(StorePoisonedError):
            store.write([command])
    with pytest.raises(StorePoisonedError):
        store.repair()
    assert store.thread("t").id == "t"
    store.close()
    again = JsonlBackend(tmp_path / "s")
    do(again, append("t", "e3"))
    again.close()


def test_a_failed_sync_of_the_folder_of_a_new_tree_poisons_too(tmp_path: Path) -> None:
    JsonlBackend(tmp_path / "s").close()
    store = JsonlBackend(tmp_path / "s", files=FailingFiles(1, errno.EIO, names=("sync_folder",)))
    for _ in range(2):
        with pytest.raises(StorePoisonedError):
            store.write([create("t")])
    store.close()


def test_durability_process_crash_syncs_no_append(tmp_path: Path) -> None:
    files = FailingFiles(0, 0, names=("sync", "sync_folder"))
    store = JsonlBackend(tmp_path / "s", durability="process_crash", files=files)
    opening = files.calls
    do(store, create("t"), append("t", "e1"))
    do(store, append("t", "e2"))
    assert files.calls == opening
    store.close()


class StuckFiles(Files):
    """A write stops halfway, and it cannot be taken back."""

    def append(self, file: int, data: bytes) -> None:
        super().append(file, data[: data.index(b"\n") + 9])
        raise OSError(errno.ENOSPC, "full")

    def truncate(self, file: int, size: int) -> None:
        raise OSError(errno.EIO, "stuck")


def test_a_write_that_cannot_be_taken_back_is_unknown_and_settled_by_trying_again(tmp_path: Path) -> None:
    setup = JsonlBackend(tmp_path / "s")
    do(setup, create("t"), append("t", "e1"))
    stuck = JsonlBackend(tmp_path / "s", files=StuckFiles())
    group = append("t", "m1", "m2")
    with pytest.raises(CommitUnknownError) as caught:
        do(stuck, group)
    assert caught.value.entry_ids == ("m1", "m2")
    assert ids(stuck, "t") == ids(setup, "t") == ["e1"]
    do(setup, group)
    assert ids(stuck, "t") == ids(setup, "t") == ["e1", "m1", "m2"]
    assert setup.inspect() == []
    stuck.close()
    setup.close()


SHORT_WRITER = """
import resource, signal, sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from jsonl_commands import append, create, do, draft, ids
from sessiontree.errors import StoreFullError
from sessiontree.stores.jsonl import JsonlBackend
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = JsonlBackend(Path(sys.argv[1]))
do(store, create("t"), append("t", "e1"))
resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))
try:
    do(store, append("t", "m1", draft("m2", "x" * 5000)))
except StoreFullError:
    print("full")
print(ids(store, "t"))
do(store, append("t", "e2"))
print(ids(store, "t"))
store.close()
"""


def test_a_short_write_is_taken_back(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SHORT_WRITER, str(tmp_path / "s"), str(Path(__file__).parents[1])]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["full", "['e1']", "['e1', 'e2']"]
    store = JsonlBackend(tmp_path / "s")
    assert store.inspect() == []
    store.close()


KILLED = """
import os, sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from jsonl_commands import append, do
from sessiontree.stores.jsonl import JsonlBackend
store = JsonlBackend(Path(sys.argv[1]))
for number in range(1_000_000):
    do(store, append("t", f"{sys.argv[3]}-{number}-a", f"{sys.argv[3]}-{number}-b"))
    os.write(1, f"{sys.argv[3]}-{number}\\n".encode())
"""


def test_a_killed_writer_leaves_every_acknowledged_command_whole(tmp_path: Path) -> None:
    setup = JsonlBackend(tmp_path / "s")
    do(setup, create("t"))
    acknowledged: list[str] = []
    for turn in range(8):
        command = [sys.executable, "-c", KILLED, str(tmp_path / "s"), str(Path(__file__).parents[1]), str(turn)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            acknowledged += [writer.stdout.readline().strip() for _ in range(5 + turn)]
            writer.kill()
            acknowledged += [line.strip() for line in writer.stdout if line.endswith("\n")]
    do(setup, append("t", draft("last", "one")))
    found = ids(setup, "t")
    assert {f"{name}-{half}" for name in acknowledged for half in "ab"} <= set(found)
    assert [name[:-2] for name in found[:-1:2]] == [name[:-2] for name in found[1:-1:2]]
    assert setup.inspect() == []
    assert tree_file(tmp_path / "s").read_bytes().endswith(b"\n")
    setup.close()


MANY_CHATS = """
import asyncio, resource, sys
import sessiontree as st

async def main():
    async with st.open_async(sys.argv[1]) as journal:
        async def chat(name):
            await journal.append(name, st.user("first"), create=True)
            await journal.append(name, st.user("second"))
        await asyncio.gather(*(chat(f"chat {number}") for number in range(200)))
        print((await journal.stats()).entries)

resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
asyncio.run(main())
"""


def test_more_chats_than_descriptors_are_written_at_once(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MANY_CHATS, f"jsonl:///{tmp_path}/store"], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("400\n", "")
