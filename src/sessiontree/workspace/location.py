"""The one spelling of a folder, so that a conversation is found again from the folder that it belongs to."""

from __future__ import annotations

import ntpath
import os

__all__ = ["is_path", "workspace_path"]


def workspace_path(path: str | os.PathLike[str] = os.curdir) -> str:
    """Return the real path of a folder, without links and without a slash at the end; by default, the current folder.

    The folder need not exist. An empty path stays empty, and so do names that are not paths of this system: addresses
    such as ``ssh://host/folder``, and paths of Windows elsewhere.

    >>> workspace_path("/no/such/../folder/")
    '/no/folder'
    >>> workspace_path("ssh://host/folder/"), workspace_path("")
    ('ssh://host/folder/', '')
    """
    text = os.fspath(path)
    is_foreign = "://" in text or "\0" in text or (os.name != "nt" and bool(ntpath.splitdrive(text)[0]))
    return text if not text or is_foreign else os.path.realpath(text)


def is_path(text: str) -> bool:
    """Whether a text is written as a path: absolute, or relative to the current folder with a leading dot."""
    first = text.replace(os.sep, "/").partition("/")[0]
    return os.path.isabs(text) or first in {os.curdir, os.pardir}  # noqa: PTH117  pathlib is slow to import
