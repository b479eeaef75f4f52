"""A restore in a visited folder: done whole, or taken back; what goes wrong is told in our words."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable
from typing import Any

from sessiontree.errors import WorkspaceError
from sessiontree.workspace.desk import Visit
from sessiontree.workspace.restore import apply, roll_back
from sessiontree.workspace.staging import Staged, Staging, discard, pending_restore

__all__ = ["change_files", "commit", "finish", "guarded", "take_back", "take_back_pending", "tidy"]


def change_files(visit: Visit, staging: Staging, staged: Staged) -> None:
    try:
        apply(visit.folder, staging, staged, visit.desk.disk, visit.key_at)
    except OSError as error:
        take_back(visit, staging, staged)
        raise _in_our_words(visit, error) from error
    except BaseException:
        take_back(visit, staging, staged)
        raise


def guarded(visit: Visit, function: Callable[..., Any], *arguments: Any) -> Any:
    """Preparing may fail, for example for lack of space: then the preparation goes, and nothing was changed."""
    try:
        return function(*arguments)
    except OSError as error:
        discard(visit.own.fd, visit.desk.disk)
        raise _in_our_words(visit, error) from error


def _in_our_words(visit: Visit, error: OSError) -> WorkspaceError:
    problem = "no space left" if error.errno in {errno.ENOSPC, errno.EDQUOT} else str(error)
    return WorkspaceError(visit.root, f"cannot be restored ({problem}); it is as it was before")


def take_back_pending(visit: Visit, staging: Staging) -> None:
    staging.close()
    found = pending_restore(visit.own.fd)
    if found is not None:
        take_back(visit, *found)


def take_back(visit: Visit, staging: Staging, staged: Staged) -> None:
    visit.folder.leave()
    try:
        roll_back(visit.folder, staging, staged, visit.desk.disk)
    except OSError as error:
        staging.close()
        problem = f"was left between two states ({error}); workspace.recover() brings it back when that is mended"
        raise WorkspaceError(visit.root, problem) from error
    tidy(visit, staging)


def commit(visit: Visit, staging: Staging) -> None:
    """A restore without a leaf move counts once it is settled."""
    try:
        finish(visit, staging)
    except OSError as error:
        take_back_pending(visit, staging)
        raise _in_our_words(visit, error) from error


def tidy(visit: Visit, staging: Staging) -> None:
    """What is decided is decided, even if the disk has no room to write that down: the next visit tidies up."""
    with contextlib.suppress(OSError):
        finish(visit, staging)


def finish(visit: Visit, staging: Staging) -> None:
    visit.folder.leave()
    try:
        staging.settle(visit.desk.disk)
    finally:
        staging.close()
    discard(visit.own.fd, visit.desk.disk)
