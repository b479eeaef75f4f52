"""Files that a crash or a bad disk left behind: torn at every byte, flipped in the middle, glued together."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from jsonl_commands import EVERYTHING, append, create, delete, do, draft, fork, ids, torn_bytes, tree_file
from property_settings import IS_DEEP
from sessiontree.errors import DamagedDataError, NewerFormatError, NotFoundError
from sessiontree.stores._io import Files
from sessiontree.stores.commands import Undo
from sessiontree.stores.jsonl import JsonlBackend
from sessiontree.stores.jsonl.lines import changed_line
from sessiontree.stores.queries import ReadEntries

COMMANDS = (
    (create("t", title="the thread"),),
    (append("t", "e1"),),
    (append("t", "m1", "m2", "m3"),),
    (append("t", "b1", "b2", parent="e1"),),
    (append("t", "e4"),),
)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[tuple[int, list[str]]]]:
    """A store, and after each command the size of its file and the path."""
    folder = tmp_path_factory.mktemp("sound") / "store"
    store = JsonlBackend(folder, durability="process_crash")
    steps: list[tuple[int, list[str]]] = [(0, [])]
    for group in COMMANDS:
        do(store, *group)
        steps.append((tree_file(folder).stat().st_size, ids(store, "t")))
    store.close()
    return folder, steps


class Unsynced(Files):
    """Nobody pulls the plug here, and thousands of syncs take their time."""

    def sync(self, file: int) -> None:
        pass

    def sync_folder(self, folder: Path) -> None:
        pass


def spoiled(sound: Path, target: Path, content: bytes) -> JsonlBackend:
    shutil.copytree(sound, target)
    tree_file(target).write_bytes(content)
    return JsonlBackend(target, durability="process_crash")


@pytest.mark.parametrize("fill", ["cut", "zeros", "garbage", "garbage line"])
def test_a_tail_torn_at_any_byte_costs_only_the_commands_it_tore(
    sound: tuple[Path, list[tuple[Any, ...]]], tmp_path: Path, fill: str
) -> None:
    folder, steps = sound
    whole = tree_file(folder).read_bytes()
    target = tmp_path / "torn"
    shutil.copytree(folder, target)
    every = (1 if fill == "cut" else 5) * (1 if IS_DEEP else 7)
    for cut in range(0, len(whole), every):
        tail = {
            "cut": b"",
            "zeros": b"\0" * (len(whole) - cut),
            "garbage": b"\x8f\xff{" * 3,
            "garbage line": b"\x8f\xff{\n}\n",
        }[fill]
        tree_file(target).write_bytes(whole[:cut] + tail)
        store = JsonlBackend(target, durability="process_crash", files=Unsynced())
        size, path = next((size, path) for size, path in reversed(steps) if size <= cut)
        check_recovered(store, target, path, whole[:cut] + tail, size, cut)
        store.close()
        for path in (target / "torn").iterdir():
            path.unlink()


def check_recovered(store: JsonlBackend, folder: Path, path: list[str], content: bytes, good: int, cut: int) -> None:
    if good == 0:
        with pytest.raises(NotFoundError):
            store.thread("t")
        do(store, create("t"))
    else:
        assert ids(store, "t") == path, cut
        assert tree_file(folder).read_bytes() == content, "a read never writes"
    do(store, append("t", "next"))
    again = JsonlBackend(folder, files=Unsynced())
    assert ids(again, "t") == [*path, "next"], cut
    assert again.inspect() == []
    again.close()
    kept = b"".join(torn_bytes(folder))
    assert content.endswith(kept)
    assert content[: len(content) - len(kept)] == tree_file(folder).read_bytes()[: len(content) - len(kept)]
    assert store.torn_ends_cut == (1 if kept else 0)


def line_starts(content: bytes) -> list[int]:
    starts = [0]
    while (end := content.find(b"\n", starts[-1])) >= 0:
        starts.append(end + 1)
    return starts[:-1]


def test_a_flip_in_the_middle_hides_no_thread_refuses_writes_and_is_repaired_on_request(
    sound: tuple[Path, list[tuple[Any, ...]]], tmp_path: Path
) -> None:
    folder, _ = sound
    whole = tree_file(folder).read_bytes()
    starts = line_starts(whole)
    for number, start in enumerate(starts[:-1]):
        target = tmp_path / str(number)
        broken = bytearray(whole)
        broken[start + 30] ^= 0x01
        store = spoiled(folder, target, bytes(broken))
        assert [thread.id for thread in store.threads(EVERYTHING).threads] == ["t"]
        readable = {entry.id for entry in store.entries(ReadEntries(thread_id="t"))}
        lost = json.loads(whole[start:].split(b"\n")[0]).get("id")
        assert readable == {"e1", "m1", "m2", "m3", "b1", "b2", "e4"} - {lost}
        with pytest.raises(DamagedDataError) as caught:
            do(store, append("t", "more"))
        assert caught.value.offset == start
        with pytest.raises(DamagedDataError):
            do(store, delete("t"))
        assert tree_file(target).read_bytes() == bytes(broken)
        assert ("damage", start) in {(finding.kind, finding.offset) for finding in store.inspect()}

        assert "damage" in {finding.kind for finding in store.repair()}
        assert [finding for finding in store.inspect() if finding.is_repairable] == []
        assert bytes(broken[start : starts[number + 1]]) in torn_bytes(target)
        assert {entry.id for entry in store.entries(ReadEntries(thread_id="t"))} == readable
        do(store, append("t", "more"))
        again = JsonlBackend(target)
        assert ids(again, "t")[-2:] == ["e4", "more"]
        assert again.repair() == []
        again.close()
        store.close()


def test_a_repair_of_the_last_command_keeps_the_lines_that_are_left_of_it(
    sound: tuple[Path, list[tuple[Any, ...]]], tmp_path: Path
) -> None:
    folder, steps = sound
    content = tree_file(folder).read_bytes()[: steps[3][0]]
    store = spoiled(folder, tmp_path / "x", content.replace(b"text of m2", b"TEXT of m2"))
    assert [finding.kind for finding in store.repair()] == ["damage"]
    assert [entry.id for entry in store.entries(ReadEntries(thread_id="t"))] == ["e1", "m1", "m3"]
    do(store, append("t", "next"))
    assert [entry.id for entry in store.entries(ReadEntries(thread_id="t"))] == ["e1", "m1", "m3", "next"]
    store.close()


def test_a_lost_newline_in_the_middle_is_damage_and_the_rest_stays(
    sound: tuple[Path, list[tuple[Any, ...]]], tmp_path: Path
) -> None:
    folder, _ = sound
    whole = tree_file(folder).read_bytes()
    end = line_starts(whole)[3] - 1
    store = spoiled(folder, tmp_path / "x", whole[:end] + b" " + whole[end + 1 :])
    assert {"m2", "m3", "b1", "b2", "e4"} <= {entry.id for entry in store.entries(ReadEntries(thread_id="t"))}
    assert store.repair()
    do(store, append("t", "more"))
    store.close()


def test_a_zeroed_block_inside_the_last_command_counts_as_torn(
    sound: tuple[Path, list[tuple[Any, ...]]], tmp_path: Path
) -> None:
    folder, steps = sound
    size, path = steps[3]
    content = tree_file(folder).read_bytes()[:size]
    second = line_starts(content)[-2]
    store = spoiled(folder, tmp_path / "x", content[:second] + b"\0" * 20 + content[second + 20 :])
    assert ids(store, "t") == steps[2][1] == path[:1]
    do(store, append("t", "next"))
    assert ids(store, "t") == ["e1", "next"]
    store.close()


def test_a_file_glued_to_itself_counts_once_and_is_reported(
    sound: tuple[Path, list[tuple[Any, ...]]], tmp_path: Path
) -> None:
    folder, steps = sound
    whole = tree_file(folder).read_bytes()
    store = spoiled(folder, tmp_path / "x", whole + whole)
    assert ids(store, "t") == steps[-1][1]
    assert {finding.kind for finding in store.inspect()} == {"duplicate", "reflog"}
    store.repair()
    assert store.inspect() == []
    assert ids(store, "t") == steps[-1][1]
    store.close()


def test_dangling_parents_and_cycles_are_reported_and_shown_as_roots(
    sound: tuple[Path, list[tuple[Any, ...]]], tmp_path: Path
) -> None:
    folder, _ = sound
    lines = tree_file(folder).read_bytes().splitlines()
    at = {json.loads(line).get("id"): number for number, line in enumerate(lines)}
    lines[at["e1"]] = resealed(lines[at["e1"]], b'"thread":"t"', b'"thread":"t","parent":"m1"')
    lines[at["e4"]] = resealed(lines[at["e4"]], b'"parent":"b2"', b'"parent":"nowhere"')
    store = spoiled(folder, tmp_path / "x", b"\n".join(lines) + b"\n")
    assert ids(store, "t") == ["e4"]
    assert {(finding.kind, finding.entry_id) for finding in store.inspect()} == {("cycle", "e1"), ("parent", "e4")}
    assert [thread.id for thread in store.threads(EVERYTHING).threads] == ["t"]
    do(store, append("t", "more"))
    store.close()


def resealed(line: bytes, old: bytes, new: bytes) -> bytes:
    assert old in line
    return changed_line(line.replace(old, new, 1), 1).rstrip(b"\n")


def test_an_entry_without_the_line_of_its_thread_still_shows_the_thread(
    sound: tuple[Path, list[tuple[Any, ...]]], tmp_path: Path
) -> None:
    folder, _ = sound
    lines = [
        line for line in tree_file(folder).read_bytes().splitlines(keepends=True) if b'"kind":"thread"' not in line
    ]
    store = spoiled(folder, tmp_path / "x", b"".join(lines))
    assert ids(store, "t")[-1] == "e4"
    assert [finding.kind for finding in store.inspect()] == ["thread"]
    store.repair()
    assert store.inspect() == []
    assert ids(store, "t")[-1] == "e4"
    store.close()


def test_a_reflog_with_a_hole_can_still_be_undone(sound: tuple[Path, list[tuple[Any, ...]]], tmp_path: Path) -> None:
    folder, _ = sound
    store = JsonlBackend(folder)
    store.close()
    store = spoiled(folder, tmp_path / "x", tree_file(folder).read_bytes())
    do(store, Undo(thread_id="t", at_ns=50))
    file = tree_file(tmp_path / "x")
    lines = file.read_bytes().splitlines(keepends=True)
    branch = next(line for line in lines if b'"branch"' in line)
    group = lines.index(branch)
    lines[group : group + 2] = [lines[group + 1]]
    file.write_bytes(b"".join(lines))
    assert ids(store, "t")
    assert "reflog" in {finding.kind for finding in store.inspect()}
    do(store, Undo(thread_id="t", at_ns=60))
    store.close()


def test_records_of_a_newer_version_are_carried_along(
    sound: tuple[Path, list[tuple[Any, ...]]], tmp_path: Path
) -> None:
    folder, steps = sound
    lines = tree_file(folder).read_bytes().splitlines(keepends=True)
    foreign = changed_line(b'{"kind":"hologram","thread":"other","depth":[1, 2],"crc":""}', 1)
    goes = changed_line(b'{"kind":"hologram","thread":"t","depth":4,"crc":""}', 1)
    store = spoiled(folder, tmp_path / "x", b"".join([*lines[:3], foreign, goes, *lines[3:]]))
    assert ids(store, "t") == steps[-1][1]
    assert store.inspect() == []
    do(store, fork("t", "f"), delete("t"))
    content = tree_file(tmp_path / "x").read_bytes()
    assert foreign in content
    assert goes not in content
    assert ids(store, "f") == steps[-1][1]
    store.close()


def test_a_tree_file_of_a_newer_format_is_shown_and_never_written(
    sound: tuple[Path, list[tuple[Any, ...]]], tmp_path: Path
) -> None:
    folder, steps = sound
    lines = tree_file(folder).read_bytes().splitlines()
    lines[0] = resealed(lines[0], b'"format":1', b'"format":7')
    content = b"\n".join(lines) + b"\n"
    store = spoiled(folder, tmp_path / "x", content)
    assert ids(store, "t") == steps[-1][1]
    with pytest.raises(NewerFormatError):
        do(store, append("t", "more"))
    assert store.repair() == []
    assert tree_file(tmp_path / "x").read_bytes() == content
    assert [finding.kind for finding in store.inspect()] == ["format"]
    store.close()


def test_a_reader_that_saw_a_write_that_was_taken_back_forgets_it(tmp_path: Path) -> None:
    writer, reader = JsonlBackend(tmp_path / "s"), JsonlBackend(tmp_path / "s")
    do(writer, create("t"), append("t", "e1"))
    file = tree_file(tmp_path / "s")
    size = file.stat().st_size
    do(writer, append("t", draft("phantom", "x" * 40)))
    assert ids(reader, "t") == ["e1", "phantom"]
    os.truncate(file, size)
    do(writer, append("t", draft("real-one", "y" * 39)))
    do(writer, append("t", draft("e3", "z" * 500)))
    assert ids(reader, "t") == ["e1", "real-one", "e3"]
    writer.close()
    reader.close()


def test_a_lost_pointer_to_a_fork_is_found_and_repaired(tmp_path: Path) -> None:
    store = JsonlBackend(tmp_path / "s")
    do(store, create("t"), append("t", "e1"), fork("t", "f"))
    (pointer,) = (tmp_path / "s" / "forks").iterdir()
    pointer.unlink()
    assert [(finding.kind, finding.thread_id) for finding in store.inspect()] == [("pointer", "f")]
    store.repair()
    assert store.inspect() == []
    assert ids(store, "f") == ["e1"]
    store.close()


def test_a_tree_file_under_a_wrong_name_is_found_and_renamed(
    sound: tuple[Path, list[tuple[Any, ...]]], tmp_path: Path
) -> None:
    folder, steps = sound
    store = spoiled(folder, tmp_path / "x", tree_file(folder).read_bytes())
    tree_file(tmp_path / "x").rename(tmp_path / "x" / "trees" / "moved.jsonl")
    assert [thread.id for thread in store.threads(EVERYTHING).threads] == ["t"]
    assert [finding.kind for finding in store.inspect()] == ["name"]
    store.repair()
    assert store.inspect() == []
    assert ids(store, "t") == steps[-1][1]
    store.close()


def test_an_empty_tree_file_gets_its_header_before_anything_else(tmp_path: Path) -> None:
    store = JsonlBackend(tmp_path / "s")
    do(store, create("t"))
    tree_file(tmp_path / "s").write_bytes(b"")
    do(store, create("t"), append("t", "e1"), fork("t", "f"), delete("t"))
    assert store.inspect() == []
    assert tree_file(tmp_path / "s").read_bytes().startswith(b'{"kind":"tree"')
    store.close()


def test_a_line_that_rots_after_it_was_read_is_left_out(
    sound: tuple[Path, list[tuple[Any, ...]]], tmp_path: Path
) -> None:
    folder, _ = sound
    store = spoiled(folder, tmp_path / "x", tree_file(folder).read_bytes())
    assert ids(store, "t") == ["e1", "b1", "b2", "e4"]
    file = tree_file(tmp_path / "x")
    content = file.read_bytes()
    times = file.stat()
    file.write_bytes(content.replace(b"text of b1", b"TEXT of b1"))
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert ids(store, "t") == ["b2", "e4"]
    assert [finding.kind for finding in store.inspect()] == ["damage", "parent"]
    store.close()
