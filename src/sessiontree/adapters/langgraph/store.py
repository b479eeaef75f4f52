"""``SessionTreeStore``: LangGraph's long-term memory in the documents of a journal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Any
from urllib.parse import quote, unquote

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

from sessiontree.adapters._adapter import Adapter
from sessiontree.adapters._source import StoreOrJournal
from sessiontree.errors import InvalidInputError
from sessiontree.journal import Changes
from sessiontree.model import Record
from sessiontree.search.words import tokens_of

__all__ = ["SessionTreeStore"]

_ROOT = "langgraph.store"


class StoredItem(Record, frozen=True, kw_only=True):
    """An item, and where it is."""

    namespace: tuple[str, ...]
    key: str
    value: dict[str, Any]
    created: str
    updated: str
    ttl: float | None = None
    """In minutes, as LangGraph counts it."""

    def item(self) -> Item:
        """The item as ``get`` returns it."""
        return Item(namespace=self.namespace, key=self.key, value=self.value, **self._times())

    def search_item(self, score: float | None) -> SearchItem:
        """The item as ``search`` returns it."""
        return SearchItem(namespace=self.namespace, key=self.key, value=self.value, score=score, **self._times())

    def _times(self) -> dict[str, datetime]:
        return {
            "created_at": datetime.fromisoformat(self.created),
            "updated_at": datetime.fromisoformat(self.updated),
        }


class SessionTreeStore(Adapter, BaseStore):
    """A store of long-term memory on a store URL or an open journal, the same one that a ``SessionTreeSaver`` uses.

    Puts of one batch are one commit. Values are JSON. A search with a query ranks items by the words that they have in
    common with it; there are no embeddings.
    """

    supports_ttl = True

    def __init__(self, store: StoreOrJournal) -> None:
        Adapter.__init__(self, store)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations: reads first, then all puts in one commit."""
        given = list(ops)
        results = [self._read(op) for op in given]
        puts = {(op.namespace, op.key): op for op in given if isinstance(op, PutOp)}
        if puts:
            changes = Changes()
            for op in puts.values():
                self._add_put(changes, op)
            self.journal.commit(changes)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations, as ``batch`` does, without blocking the event loop."""
        return await self._in_thread(self.batch, list(ops))

    def _read(self, op: Op) -> Result:
        match op:
            case GetOp():
                return self._get(op)
            case SearchOp():
                return self._search(op)
            case ListNamespacesOp():
                return self._namespaces(op)
            case PutOp():
                return None

    def _get(self, op: GetOp) -> Item | None:
        stored = self._stored(op.namespace, op.key)
        if stored is None:
            return None
        self._refresh([stored], op.refresh_ttl)
        return stored.item()

    def _search(self, op: SearchOp) -> list[SearchItem]:
        matching = (item for item in self._items(op.namespace_prefix) if _passes(item.value, op.filter or {}))
        found: list[tuple[StoredItem, float | None]]
        if op.query:
            words = set(tokens_of(op.query))
            ranked = sorted(((_score(item.value, words), item) for item in matching), key=lambda one: -one[0])
            found = [(item, score) for score, item in ranked[op.offset : op.offset + op.limit]]
        else:
            found = [(item, None) for item in islice(matching, op.offset, op.offset + op.limit)]
        self._refresh([item for item, _ in found], op.refresh_ttl)
        return [item.search_item(score) for item, score in found]

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        conditions = op.match_conditions or ()
        found = {
            namespace[: op.max_depth]
            for namespace in self._all_namespaces()
            if all(_is_match(condition, namespace) for condition in conditions)
        }
        return sorted(found)[op.offset : op.offset + op.limit]

    def _add_put(self, changes: Changes, op: PutOp) -> None:
        scope = _scope(op.namespace)
        if op.value is None:
            changes.delete_document(scope, op.key)
            return
        now = datetime.now(UTC).isoformat()
        before = self._stored(op.namespace, op.key)
        value = {"value": dict(op.value), "created": before.created if before else now, "updated": now, "ttl": op.ttl}
        changes.put_document(scope, op.key, value, ttl_seconds=None if op.ttl is None else op.ttl * 60)

    def _stored(self, namespace: tuple[str, ...], key: str) -> StoredItem | None:
        document = self.journal.documents.get(_scope(namespace), key)
        return None if document is None else _item(namespace, key, document.value)

    def _items(self, prefix: tuple[str, ...]) -> Iterator[StoredItem]:
        for namespace in self._all_namespaces(prefix):
            for document in self.journal.documents.list(_scope(namespace)):
                yield _item(namespace, document.key, document.value)

    def _all_namespaces(self, prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
        scopes = self.journal.documents.scopes()
        namespaces = (_namespace(scope) for scope in scopes if scope.partition("/")[0] == _ROOT)
        return (namespace for namespace in namespaces if namespace[: len(prefix)] == prefix)

    def _refresh(self, items: Iterable[StoredItem], is_wanted: bool) -> None:
        """Let items that were read expire later."""
        changes = Changes()
        for item in items:
            if is_wanted and item.ttl is not None:
                value = {"value": item.value, "created": item.created, "updated": item.updated, "ttl": item.ttl}
                changes.put_document(_scope(item.namespace), item.key, value, ttl_seconds=item.ttl * 60)
        self.journal.commit(changes)


def _scope(namespace: tuple[str, ...]) -> str:
    return "/".join((_ROOT, *(quote(label, safe="") for label in namespace)))


def _namespace(scope: str) -> tuple[str, ...]:
    return tuple(unquote(label) for label in scope.split("/")[1:])


def _item(namespace: tuple[str, ...], key: str, value: Mapping[str, Any]) -> StoredItem:
    return StoredItem(
        namespace=namespace,
        key=key,
        value=value["value"],
        created=value["created"],
        updated=value["updated"],
        ttl=value["ttl"],
    )


def _score(value: Mapping[str, Any], words: set[str]) -> float:
    return len(words & set(tokens_of(str(value)))) / max(1, len(words))


def _passes(value: Mapping[str, Any], conditions: Mapping[str, Any]) -> bool:
    return all(_holds(value.get(name), wanted) for name, wanted in conditions.items())


def _holds(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict):
        if any(name.startswith("$") for name in wanted):
            return all(_compare(found, name, operand) for name, operand in wanted.items())
        return isinstance(found, dict) and all(_holds(found.get(name), value) for name, value in wanted.items())
    return bool(found == wanted)


def _compare(found: Any, operator: str, operand: Any) -> bool:
    match operator:
        case "$eq":
            return bool(found == operand)
        case "$ne":
            return bool(found != operand)
        case "$gt" | "$gte" | "$lt" | "$lte" if found is None:
            return False
        case "$gt":
            return float(found) > float(operand)
        case "$gte":
            return float(found) >= float(operand)
        case "$lt":
            return float(found) < float(operand)
        case "$lte":
            return float(found) <= float(operand)
        case _:
            raise InvalidInputError(f"unknown operator {operator!r} in a filter")


def _is_match(condition: MatchCondition, namespace: tuple[str, ...]) -> bool:
    path = condition.path
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in {"*", label} for wanted, label in zip(path, part, strict=True))
