"""Compare two trees: unified diffs of text files, renames, and notes about binary files. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Literal

from sessiontree.model._base import Record
from sessiontree.model.manifest import ManifestItem, Tree

__all__ = ["FileDiff", "TreeDiff", "contents_needed", "diff_trees"]


DiffKind = Literal["added", "removed", "changed", "renamed", "mode"]
Read = Callable[[ManifestItem], bytes]

_BINARY_PROBE = 8000
_SIMILAR = 0.6
_MOST_PAIRS = 2000
_LARGEST_TEXT = 1 << 20


class FileDiff(Record, frozen=True, kw_only=True):
    """The difference at one path. ``text`` is a unified diff, empty for binary files, folders and pure renames."""

    kind: DiffKind
    path: str
    old_path: str = ""
    old: ManifestItem | None = None
    new: ManifestItem | None = None
    is_binary: bool = False
    text: str = ""

    @property
    def line(self) -> str:
        """The difference as one line, such as ``M app.py``."""
        letter = {"added": "A", "removed": "D", "changed": "M", "renamed": "R", "mode": "T"}[self.kind]
        name = f"{self.old_path} -> {self.path}" if self.old_path else self.path
        return f"{letter} {name}" + (" (binary)" if self.is_binary else "")


class TreeDiff(Record, frozen=True, kw_only=True):
    """All differences, by path."""

    files: tuple[FileDiff, ...] = ()

    @property
    def text(self) -> str:
        """All differences as one patch."""
        return "".join(_noted(file) for file in self.files)

    def __iter__(self) -> Iterator[FileDiff]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)


def contents_needed(old: Tree, new: Tree) -> set[str]:
    """Return the hashes of the files in ``old`` that a diff to ``new`` reads."""
    return {item.hash for path, item in old.items() if item.kind == "file" and new.get(path) != item}


def diff_trees(old: Tree, new: Tree, read: Read) -> TreeDiff:
    """Compare two trees. ``read`` returns the content of a file; a link is compared by its target.

    >>> before = {"a": ManifestItem("link", 0o777, 0, b"x")}
    >>> diff_trees(before, {"b": ManifestItem("link", 0o777, 0, b"x")}, lambda item: b"").files[0].line
    'R a -> b'
    """
    removed = {path: item for path, item in old.items() if path not in new}
    added = {path: item for path, item in new.items() if path not in old}
    renames = _renames(removed, added, read)
    files = [_renamed(source, target, old[source], new[target], read) for target, source in renames.items()]
    files += [_one_sided("added", path, added[path], read) for path in added.keys() - renames.keys()]
    files += [_one_sided("removed", path, removed[path], read) for path in removed.keys() - set(renames.values())]
    files += [_changed(path, old[path], new[path], read) for path in old.keys() & new.keys() if old[path] != new[path]]
    return TreeDiff(files=tuple(sorted(files, key=lambda file: file.path)))


def _renames(removed: Mapping[str, ManifestItem], added: Mapping[str, ManifestItem], read: Read) -> dict[str, str]:
    """Return the old path for each renamed path: first files with the same content, then similar ones."""
    found: dict[str, str] = {}
    free = {
        path: item for path, item in removed.items() if item.kind != "folder" and (item.size or item.kind == "link")
    }
    by_content: dict[tuple[str, bytes], list[str]] = {}
    for path, item in sorted(free.items()):
        by_content.setdefault((item.kind, item.content), []).append(path)
    for path, item in sorted(added.items()):
        same = by_content.get((item.kind, item.content))
        if same and item.kind != "folder":
            found[path] = same.pop(0)
            del free[found[path]]
    _find_similar(free, {path: item for path, item in added.items() if path not in found}, read, found)
    return found


def _find_similar(
    removed: dict[str, ManifestItem], added: Mapping[str, ManifestItem], read: Read, found: dict[str, str]
) -> None:
    pairs = [(old, new) for new in added.items() for old in removed.items() if _may_be_similar(old[1], new[1])]
    if len(pairs) > _MOST_PAIRS:
        return
    lines: dict[bytes, Counter[bytes]] = {}
    scored = []
    for (source, old), (target, new) in pairs:
        score = _similarity(_lines(old, read, lines), _lines(new, read, lines))
        if score >= _SIMILAR:
            scored.append((-score, target, source))
    taken: set[str] = set()
    for _, target, source in sorted(scored):
        if target not in found and source not in taken:
            found[target] = source
            taken.add(source)


def _may_be_similar(old: ManifestItem, new: ManifestItem) -> bool:
    if old.kind != "file" or new.kind != "file" or max(old.size, new.size) > _LARGEST_TEXT:
        return False
    return min(old.size, new.size) >= _SIMILAR * max(old.size, new.size) / 2


def _lines(item: ManifestItem, read: Read, known: dict[bytes, Counter[bytes]]) -> Counter[bytes]:
    """Return how often each line occurs in a file; a binary file has no lines."""
    if item.content not in known:
        data = read(item)
        known[item.content] = Counter() if _is_binary(data) else Counter(data.splitlines())
    return known[item.content]


def _similarity(old: Counter[bytes], new: Counter[bytes]) -> float:
    """Return the share of lines that both files have, in any order: linear in their size, unlike a real diff."""
    both = old.total() + new.total()
    return 2 * (old & new).total() / both if both else 0.0


def _renamed(source: str, target: str, old: ManifestItem, new: ManifestItem, read: Read) -> FileDiff:
    text, is_binary = ("", False) if old.content == new.content else _text(source, target, old, new, read)
    return FileDiff(kind="renamed", path=target, old_path=source, old=old, new=new, is_binary=is_binary, text=text)


def _one_sided(kind: Literal["added", "removed"], path: str, item: ManifestItem, read: Read) -> FileDiff:
    old, new = (None, item) if kind == "added" else (item, None)
    text, is_binary = _text(path, path, old, new, read)
    return FileDiff(kind=kind, path=path, old=old, new=new, is_binary=is_binary, text=text)


def _changed(path: str, old: ManifestItem, new: ManifestItem, read: Read) -> FileDiff:
    if old.kind == new.kind and old.content == new.content:
        return FileDiff(kind="mode", path=path, old=old, new=new)
    text, is_binary = _text(path, path, old, new, read)
    return FileDiff(kind="changed", path=path, old=old, new=new, is_binary=is_binary, text=text)


def _text(source: str, target: str, old: ManifestItem | None, new: ManifestItem | None, read: Read) -> tuple[str, bool]:
    before, after = _bytes(old, read), _bytes(new, read)
    if _is_binary(before) or _is_binary(after):
        return "", True
    from difflib import unified_diff  # noqa: PLC0415  slow to load, and every journal imports this module

    lines = unified_diff(
        before.decode(errors="replace").splitlines(keepends=True),
        after.decode(errors="replace").splitlines(keepends=True),
        "/dev/null" if old is None else f"a/{source}",
        "/dev/null" if new is None else f"b/{target}",
    )
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines), False


def _bytes(item: ManifestItem | None, read: Read) -> bytes:
    match item:
        case ManifestItem(kind="file"):
            return read(item)
        case ManifestItem(kind="link", content=target):
            return target
        case _:
            return b""


def _is_binary(data: bytes) -> bool:
    if b"\0" in data[:_BINARY_PROBE] or len(data) > _LARGEST_TEXT:
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return True
    return False


def _noted(file: FileDiff) -> str:
    if file.kind == "mode" and file.old and file.new:
        return f"mode {file.old.mode:04o} -> {file.new.mode:04o} {file.path}\n"
    head = f"rename {file.old_path} -> {file.path}\n" if file.old_path else ""
    if file.is_binary:
        return f"{head}Binary file {file.path} {file.kind}\n"
    return head + (file.text or f"{file.kind} {file.path}\n" if not file.old_path else file.text)
