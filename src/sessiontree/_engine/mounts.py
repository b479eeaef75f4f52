"""Which file system a path is on, because locks between machines cannot be trusted on network ones."""

from __future__ import annotations

import os
from pathlib import Path

from sessiontree.errors import NetworkFileSystemError

__all__ = ["file_system_of", "refuse_network"]

_MOUNTS = Path("/proc/self/mountinfo")
_NETWORK = frozenset(
    {"9p", "afs", "beegfs", "ceph", "cifs", "davfs", "fuse.glusterfs", "fuse.s3fs", "fuse.sshfs", "glusterfs",
     "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "smb2", "smb3", "smbfs"}
)  # fmt: skip


def refuse_network(path: Path, mounts: Path = _MOUNTS) -> None:
    """Raise NetworkFileSystemError if the path is, or would be, on a network file system."""
    kind = file_system_of(path, mounts)
    if kind in _NETWORK:
        raise NetworkFileSystemError(str(path), kind)


def file_system_of(path: Path, mounts: Path = _MOUNTS) -> str:
    """The type of the file system that holds a path, or "" where the system does not tell."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return ""
    real = os.path.realpath(path)
    best, kind = "", ""
    for line in lines:
        left, _, right = line.partition(" - ")
        point = _unescaped(left.split()[4])
        if len(point) >= len(best) and _is_under(real, point):
            best, kind = point, right.split()[0]
    return kind


def _is_under(path: str, point: str) -> bool:
    return point in {"/", path} or path.startswith(point + "/")


def _unescaped(text: str) -> str:
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, char)
    return text
