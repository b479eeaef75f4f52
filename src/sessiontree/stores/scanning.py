"""Search without an index: every entry is looked at. What the indexes of other stores must agree with."""

from __future__ import annotations

from collections.abc import Iterable

from sessiontree.errors import ThreadNotFoundError
from sessiontree.model.entry import Label
from sessiontree.queries import Search
from sessiontree.rules.appending import existing, visible
from sessiontree.rules.state import Node, ThreadState
from sessiontree.search import Hit, SearchPage, SearchQuery
from sessiontree.search.content import Searchable, searchable
from sessiontree.search.matching import document_of, ranked, satisfies
from sessiontree.search.results import Cursor, cursor_of, encode_cursor
from sessiontree.search.snippets import snippet_of
from sessiontree.stores.tree_state import TreeState

__all__ = ["matching_ids", "scan"]


def matching_ids(ids: Iterable[str], part: str) -> list[str]:
    """Ids that begin or end with a part, in order; the part alone where it is an id."""
    known = list(ids)
    if part in known:
        return [part]
    return sorted(name for name in known if name.startswith(part) or name.endswith(part))


def scan(state: TreeState, search: Search) -> SearchPage:
    query = search.query
    start = cursor_of(search.cursor) or Cursor(max(state.nodes, default=0), 0)
    allowed = _scope(state, query)
    nodes: list[Node] = []
    contents: list[Searchable] = []
    for key, node in state.nodes.items():
        if key > start.upto or (allowed is not None and key not in allowed):
            continue
        draft = state.draft(node)
        content = searchable(draft.payload)
        if content is not None and satisfies(content, draft.created_ns, query):
            nodes.append(node)
            contents.append(content)
    scores = ranked([document_of(content) for content in contents], query)
    found = [(nodes[at], contents[at], score) for at, score in scores]
    found.sort(key=lambda match: (-match[2] if search.order == "best" else 0.0, -match[0].key))
    end = start.offset + search.limit
    hits = [_hit(state, query, *match) for match in found[start.offset : end]]
    following = encode_cursor(Cursor(start.upto, end)) if len(found) > end else None
    return SearchPage(hits=tuple(hits), cursor=following)


def _scope(state: TreeState, query: SearchQuery) -> set[int] | None:
    """Keys that the filters about threads, branches and labels leave; None where there is no such filter."""
    sets: list[set[int]] = []
    if query.threads:
        seen = [state.visible_nodes(existing(state, name)) for name in query.threads]
        sets.append({node.key for nodes in seen for node in nodes})
    if query.branches:
        tips = [existing(state, name).leaf for name in query.branches]
        sets.append({node.key for tip in tips for node in state.upwards(tip)})
    if query.labels:
        sets.append(_labelled(state, query.labels))
    return set.intersection(*sets) if sets else None


def _labelled(state: TreeState, names: tuple[str, ...]) -> set[int]:
    label_of: dict[tuple[int, str], str] = {}
    trees = {node.key: tree for (tree, _), node in state.by_id.items()}
    for key in sorted(state.nodes):
        payload = state.draft(state.nodes[key]).payload
        if isinstance(payload, Label):
            label_of[trees[key], payload.target] = payload.label
    return {state.by_id[place].key for place, name in label_of.items() if name in names and place in state.by_id}


def _hit(state: TreeState, query: SearchQuery, node: Node, content: Searchable, score: float) -> Hit:
    thread = _shown_by(state, node)
    return Hit(
        thread_id=thread.meta.id,
        title=thread.meta.title,
        entry=state.entry(node),
        score=score,
        snippet=snippet_of(content.text, query),
    )


def _shown_by(state: TreeState, node: Node) -> ThreadState:
    """The thread that an entry was appended through, or a fork that still shows it."""
    owner = state.states.get(state.owner_ids[node.owner])
    if owner is not None and owner.key == node.owner:
        return owner
    for other in state.states.values():
        if other.tree and state.by_id.get((other.tree, node.id)) is node and visible(state, other, node.id):
            return other
    raise ThreadNotFoundError(state.owner_ids[node.owner])
