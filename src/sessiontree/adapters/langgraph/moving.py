"""Move the data of LangGraph's own savers in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import WRITES_IDX_MAP, BaseCheckpointSaver, CheckpointTuple, PendingWrite

from sessiontree.adapters.langgraph.saver import SessionTreeSaver

__all__ = ["import_checkpoints"]


def import_checkpoints(source: BaseCheckpointSaver[Any], target: SessionTreeSaver) -> int:
    """Store every checkpoint of another saver, with its writes, and return how many were new.

    What is there already is skipped, so that an interrupted import can be repeated. ``source`` is any blocking saver:
    ``SqliteSaver``, ``PostgresSaver`` or ``InMemorySaver``.

    The savers do not tell the paths of tasks; the order of the writes stays what it is.
    """
    configs = sorted((found.config for found in source.list(None)), key=_id)
    new = 0
    for config in configs:
        if target.get_tuple(config) is not None:
            continue
        found = source.get_tuple(config)
        if found is not None:
            _store(found, target)
            new += 1
    return new


def _store(found: CheckpointTuple, target: SessionTreeSaver) -> None:
    configurable = {**found.config["configurable"]}
    configurable.pop("checkpoint_id")
    if found.parent_config is not None:
        configurable["checkpoint_id"] = _id(found.parent_config)
    # Writes first: a checkpoint that is there has all of them.
    for number, (task_id, writes) in enumerate(_by_task(found.pending_writes or ())):
        for group in _groups(writes):
            target.put_writes(found.config, group, task_id, f"{number:08}")
    target.put({"configurable": configurable}, found.checkpoint, found.metadata, {})


def _id(config: RunnableConfig) -> str:
    return str(config["configurable"]["checkpoint_id"])


def _by_task(writes: Iterable[PendingWrite]) -> Iterator[tuple[str, list[tuple[str, Any]]]]:
    for task_id, group in groupby(writes, key=lambda write: write[0]):
        yield task_id, [(channel, value) for _, channel, value in group]


def _groups(writes: list[tuple[str, Any]]) -> Iterator[list[tuple[str, Any]]]:
    """Keep writes about the task itself apart from those to channels: the first ones replace each other."""
    special = [write for write in writes if write[0] in WRITES_IDX_MAP]
    plain = [write for write in writes if write[0] not in WRITES_IDX_MAP]
    yield from (group for group in (special, plain) if group)
