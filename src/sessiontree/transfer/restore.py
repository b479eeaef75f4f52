"""Make a store of a backup again, of the same or another kind."""

from __future__ import annotations

import os
import tempfile

from sessiontree.errors import BackupError, StoreError
from sessiontree.journal.address import parse_url
from sessiontree.journal.backups import Backup, find_backup, unpack_backup
from sessiontree.journal.opening import open as open_journal
from sessiontree.model import Progress, Record
from sessiontree.transfer.copy import copy_store

__all__ = ["RestoreReport", "restore_backup"]


class RestoreReport(Record, frozen=True, kw_only=True):
    """What was restored, and what ``check`` found in it: damage that the store had when it was backed up."""

    backup: Backup
    threads: int
    entries: int
    findings: tuple[str, ...] = ()


def restore_backup(
    folder: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    backup_id: str | None = None,
    progress: Progress | None = None,
) -> RestoreReport:
    """Make a store of a backup (the last one, if none is named) at an address where there is none.

    Every byte is checked against the hashes of the backup, then the store is opened and checked. A plain path becomes a
    store of the kind that was backed up; a URL of another kind is filled by ``copy_store``. ``progress(done, total)`` is
    called with byte counts. Raises BackupError, and leaves nothing behind, if a piece is damaged or if there is something at
    the target. If the store was made but could not be checked or synced, the text of the error says so.

    >>> import sessiontree as st, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with st.open(f"{folder}/journal.db") as journal:
    ...         thread = journal.create_thread()
    ...         _ = journal.append(thread.id, st.user("hello"))
    ...         _ = journal.backup(f"{folder}/backups")
    ...     st.restore_backup(f"{folder}/backups", f"{folder}/again.db").entries
    1
    """
    parse_url(target)
    kind = find_backup(folder, backup_id).kind
    url = f"{kind}:///{os.path.realpath(target)}" if _is_plain_path(target) else str(target)
    address = parse_url(url)
    if address.kind == kind:
        backup = unpack_backup(folder, address.target, backup_id=backup_id, progress=progress)
        return _checked(url, backup)
    with open_journal(url) as journal:
        if journal.stats().threads:
            raise BackupError(journal.store.place, "the store is not empty; restore into an empty one")
    with tempfile.TemporaryDirectory(prefix="sessiontree-") as scratch:
        backup = unpack_backup(folder, f"{scratch}/store", backup_id=backup_id, progress=progress)
        copy_store(f"{kind}:///{scratch}/store", url)
        return _checked(url, backup)


def _is_plain_path(target: str | os.PathLike[str]) -> bool:
    return isinstance(target, os.PathLike) or "://" not in target


def _checked(target: str, backup: Backup) -> RestoreReport:
    try:
        with open_journal(target) as journal:
            total = journal.stats()
            findings = [f"{finding.place}: {finding.problem}" for finding in journal.check()]
    except StoreError as error:
        problem = f"backup {backup.id} is restored, but could not be checked ({error}); run `sessiontree doctor` on it"
        raise BackupError(error.place, problem) from error
    return RestoreReport(backup=backup, threads=total.threads, entries=total.entries, findings=tuple(findings))
