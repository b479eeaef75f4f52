"""When this machine's sessions were last imported: a document of the store, one for each machine."""

from __future__ import annotations

import os

from sessiontree.cli.context import CliContext

__all__ = ["last_import_ns", "remember_import"]


_SCOPE = "sessiontree"


def last_import_ns(cli: CliContext) -> int | None:
    """Return when the last import of everything on this machine began; ``None`` if there was none."""
    found = cli.journal.documents.get(_SCOPE, _key())
    return found.value if found is not None and isinstance(found.value, int) else None


def remember_import(cli: CliContext, began_ns: int) -> None:
    """Remember when an import of everything on this machine began."""
    cli.create_journal().documents.put(_SCOPE, _key(), began_ns)


def _key() -> str:
    return f"last import on {os.uname().nodename}"
