"""What is measured: a system stores conversations. One class a system, in a module of ``systems/``.

A method may be a coroutine function; then many writers are tasks of one event loop, otherwise threads. A system that
lacks a method is left out of the cases that need it.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Literal

Family = Literal["ours", "floor", "adapter", "peer"]
"""An adapter is a peer's own interface on sessiontree."""

CHAT = "main"
"""The chat that the cases about one conversation use."""


class System:
    """The base class. ``folder`` is where the system keeps its files; several cases may use the same one in turn."""

    name: ClassVar[str]
    family: ClassVar[Family] = "peer"
    packages: ClassVar[tuple[str, ...]] = ()
    most_messages: ClassVar[int] = 1_000_000
    """The longest conversation that can be filled in reasonable time."""
    most_chats: ClassVar[int] = 1_000
    most_processes: ClassVar[int] = 0
    """How many processes may write to one store; 0 if it is for one process."""
    is_remote: ClassVar[bool] = False
    """Another process writes: a database server."""
    is_in_memory: ClassVar[bool] = False

    fill: Callable[[str, list[str]], Any]
    """Append many messages as quickly as the system can."""
    append: Callable[[str, str], Any]
    """Append one message, durable as the system is by default."""
    last: Callable[[str, int], Any]
    read: Callable[[str], Any]
    fork: Callable[[str], Any]
    """Fork in the middle of a conversation."""
    list_chats: Callable[[int], Any]
    search: Callable[[str], Any]

    def __init__(self, folder: Path, *, is_filling: bool = False) -> None:
        self.folder = folder
        self.is_filling = is_filling
        self.loop = asyncio.Runner()
        self.call(self.open)

    def open(self) -> Any:
        """Open or create the store; may be a coroutine function."""
        raise NotImplementedError

    def close(self) -> Any:
        """Close the store; may be a coroutine function."""

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a method, in the event loop if it is a coroutine function."""
        if inspect.iscoroutinefunction(function):
            return self.loop.run(function(*arguments))
        return function(*arguments)

    def bytes_on_disk(self) -> int:
        """The size of everything in the folder."""
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())

    @classmethod
    def place(cls) -> tuple[str, str]:
        """The module and the name, by which a worker finds the class."""
        return cls.__module__, cls.name

    @classmethod
    def supports(cls, needs: tuple[str, ...]) -> bool:
        """Say whether the system has what a case needs."""
        return all(hasattr(cls, need) for need in needs)


def opener(module: str, name: str) -> type[System]:
    """The class of a system; the packages of all others stay out of the process."""
    found: type[System] = next(system for system in importlib.import_module(module).SYSTEMS if system.name == name)
    return found


def load_all(package: str, attribute: str) -> Iterator[Any]:
    """Yield what every module of a folder lists, so that a new module is found without being named anywhere."""
    for name in _modules(package):
        yield from getattr(importlib.import_module(name), attribute)


def _modules(package: str) -> list[str]:
    folder = importlib.import_module(f"benchmarks.{package}")
    return sorted(f"{folder.__name__}.{module.name}" for module in pkgutil.iter_modules(folder.__path__))


def left_out() -> dict[str, str]:
    """The modules of systems that cannot be imported, and why: a peer that fails must not end the run."""
    reasons = {}
    for name in _modules("systems"):
        try:
            importlib.import_module(name)
        except Exception as error:  # noqa: BLE001  a peer may raise anything
            reasons[name] = f"{type(error).__name__}: {error}"
    return reasons


def systems() -> dict[str, type[System]]:
    """Every system that can be imported by its name: ours, the floors, the adapters, the peers."""
    order = {"ours": 0, "floor": 1, "adapter": 2, "peer": 3}
    modules = [importlib.import_module(name) for name in _modules("systems") if name not in left_out()]
    found: list[type[System]] = [system for module in modules for system in module.SYSTEMS]
    return {system.name: system for system in sorted(found, key=lambda system: order[system.family])}
