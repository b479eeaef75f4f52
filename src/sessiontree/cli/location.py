"""Where the store is: flag, environment, project file, data folder, in that order."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from sessiontree.cli.exits import UsageError
from sessiontree.model.record import Record

__all__ = ["PROJECT_FILE", "VARIABLE", "Location", "locate"]

PROJECT_FILE = ".sessiontree.toml"
VARIABLE = "SESSIONTREE_STORE"


class Location(Record, frozen=True, kw_only=True):
    """A store's address and why it is that one."""

    url: str
    reason: str


def locate(flag: str | None, environment: Mapping[str, str], folder: Path) -> Location:
    if flag is not None:
        return Location(url=flag, reason="--store says so")
    if environment.get(VARIABLE):
        return Location(url=environment[VARIABLE], reason=f"the environment variable {VARIABLE} says so")
    project = _project_file(folder)
    if project is not None:
        return Location(url=_store_in(project), reason=f"the project file {project} says so")
    return Location(url=str(_data_file(environment)), reason="nothing else says so: this is the platform's data folder")


def _project_file(folder: Path) -> Path | None:
    """The nearest project file, from the folder upwards."""
    for place in (folder, *folder.parents):
        candidate = place / PROJECT_FILE
        if candidate.is_file():
            return candidate
    return None


def _store_in(project: Path) -> str:
    import tomllib  # noqa: PLC0415  most runs need it not

    try:
        settings = tomllib.loads(project.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{project} cannot be read: {error}") from error
    store = settings.get("store")
    if not isinstance(store, str) or not store:
        raise UsageError(f'{project} names no store; write a line such as: store = "conversations.db"')
    return (
        store if ":" in store else str(project.parent / Path(store).expanduser()) + ("/" if store.endswith("/") else "")
    )


def _data_file(environment: Mapping[str, str]) -> Path:
    if os.name == "posix" and environment.get("XDG_DATA_HOME"):
        return Path(environment["XDG_DATA_HOME"]) / "sessiontree" / "journal.db"
    from platformdirs import user_data_path  # noqa: PLC0415  only needed where nothing else says where

    return user_data_path("sessiontree", appauthor=False) / "journal.db"
