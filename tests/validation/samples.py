"""The requests of every sample transcript that can be imported."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path

import sessiontree as st
from sessiontree.transfer.formats import detect
from validation.campaign import requests_problems

__all__ = ["sample_problems", "sources", "unpacked"]


def sources(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the format and the path of every file and folder below ``folder`` that an importer recognises.

    A folder is a source of its own, and so is what is in it: each importer decides what it takes as a whole.
    """
    for path in sorted(folder.rglob("*")):
        if name := detect(path):
            yield name, path


def unpacked(archive: Path, folder: Path) -> Path:
    """Unpack an archive of samples."""
    with tarfile.open(archive) as opened:
        opened.extractall(folder, filter="data")
    return folder


def sample_problems(name: str, path: Path, *, places: int = 1) -> Iterator[str]:
    """Import a sample, and yield what is wrong with the four requests of its threads, each at some places."""
    with st.open("memory:") as journal:
        try:
            st.import_sessions(journal, path, format=name)
        except st.DamagedDataError:
            return  # a sample of damage: importing it is tested elsewhere
        for thread in journal.iter_threads():
            path_ids = [entry.id for entry in journal.path(thread.id)]
            for leaf in {*path_ids[-1:], *path_ids[:: max(1, len(path_ids) // places)][1:places]}:
                context = journal.context(thread.id, leaf=leaf)
                if context.messages:
                    yield from (
                        f"{path.name} {dialect}: {problem}" for dialect, problem, _ in requests_problems(context)
                    )
