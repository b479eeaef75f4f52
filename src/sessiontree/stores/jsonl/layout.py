"""Where things are in the folder of a JSONL store, and whether the folder is ours.

Any string is an id, so no id becomes a name: a name is a readable slug, and the hash of the id that decides.

>>> name_of("../etc/passwd")
'etc-passwd-7fef78f53440346c04dac510'
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import msgspec

from sessiontree.errors import ForeignStoreError, NewerFormatError
from sessiontree.model._base import Record, json_decoder
from sessiontree.stores._io import Files, ProcessLock, kind_of, refuse_network

__all__ = ["TREE_SUFFIX", "Layout", "name_of", "open_folder"]


TREE_SUFFIX = ".jsonl"
_FORMAT = "sessiontree-jsonl"
_VERSION = 1
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_SLUG = 40


class Marker(Record, frozen=True, kw_only=True):
    format: str
    version: int


class Layout(Record, frozen=True, kw_only=True):
    folder: Path

    @property
    def marker(self) -> Path:
        return self.folder / "sessiontree.json"

    @property
    def gate(self) -> Path:
        return self.folder / "gate.lock"

    @property
    def index(self) -> Path:
        return self.folder / "index.db"

    @property
    def search(self) -> Path:
        return self.folder / "search.db"

    @property
    def trees(self) -> Path:
        return self.folder / "trees"

    @property
    def forks(self) -> Path:
        return self.folder / "forks"

    @property
    def blobs(self) -> Path:
        return self.folder / "blobs"

    @property
    def torn(self) -> Path:
        return self.folder / "torn"

    def tree(self, name: str) -> Path:
        return self.trees / (name + TREE_SUFFIX)

    def pointer(self, thread_id: str) -> Path:
        return self.forks / name_of(thread_id)

    def home_of_fork(self, thread_id: str) -> str | None:
        """The tree that a fork lives in, as its pointer says."""
        try:
            return json_decoder(str).decode(self.pointer(thread_id).read_bytes())
        except (FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError):
            return None

    def leftovers(self, name: str) -> list[Path]:
        """What repairs cut out of a tree file."""
        prefix = name + TREE_SUFFIX + "."
        return [path for path in self.torn.iterdir() if path.name.startswith(prefix)]


def name_of(any_id: str) -> str:
    digest = hashlib.sha256(any_id.encode("utf-8", "surrogatepass")).hexdigest()[:24]
    slug = _UNSAFE.sub("-", any_id[: 4 * _LONGEST_SLUG])[:_LONGEST_SLUG].strip("-.")
    return f"{slug}-{digest}" if slug else digest


def open_folder(folder: Path, files: Files) -> tuple[Layout, ProcessLock]:
    """Make the folder a store, or find the store that it is; anything else is refused and left untouched."""
    layout = Layout(folder=folder)
    _refuse_what_is_no_folder(folder)
    refuse_network(folder)
    _make_with_parents(folder, files)
    if not _is_ours(layout):
        _refuse_strangers(layout)
    gate = ProcessLock(layout.gate, of=folder)
    try:
        with gate:
            _complete(layout, files)
    except BaseException:
        gate.close()
        raise
    return layout, gate


def _refuse_what_is_no_folder(folder: Path) -> None:
    try:
        kind = kind_of(folder)
    except NotADirectoryError:
        raise ForeignStoreError(str(folder), "a part of its path is a file") from None
    if kind not in ("nothing", "folder"):
        raise ForeignStoreError(str(folder), f"it is a {kind}, not a folder")


def _make_with_parents(folder: Path, files: Files) -> None:
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        files.make_folder(path)


def _is_ours(layout: Layout) -> bool:
    kind = kind_of(layout.marker)
    if kind == "nothing":
        return False
    if kind != "file":
        raise ForeignStoreError(str(layout.folder), f"{layout.marker.name} is a {kind}")
    text = layout.marker.read_bytes()
    try:
        marker = json_decoder(Marker).decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ForeignStoreError(str(layout.folder), f"{layout.marker.name} is not ours: {error}") from error
    if marker.format != _FORMAT:
        raise ForeignStoreError(str(layout.folder), f"{layout.marker.name} says {marker.format!r}")
    if marker.version > _VERSION:
        raise NewerFormatError(str(layout.folder), marker.version, _VERSION)
    return True


def _refuse_strangers(layout: Layout) -> None:
    own = {layout.gate.name, layout.marker.name + ".new"}
    strangers = sorted(path.name for path in layout.folder.iterdir() if path.name not in own)
    # Another process may have finished making the store between the two looks.
    if strangers and not _is_ours(layout):
        raise ForeignStoreError(str(layout.folder), f"a folder with {strangers[0]!r} and no {layout.marker.name}")


def _complete(layout: Layout, files: Files) -> None:
    if not _is_ours(layout):
        files.put(layout.marker, msgspec.json.encode(Marker(format=_FORMAT, version=_VERSION)) + b"\n")
    for path in (layout.trees, layout.forks, layout.torn, layout.blobs):
        files.make_folder(path)
