"""A full-text index beside a store: disposable, in a file of its own, brought up to date when somebody searches."""

from sessiontree.stores.fts.index import Found, Item, Scope, SearchIndex, Source, SourceState
from sessiontree.stores.fts.pages import page_of_hits

__all__ = ["Found", "Item", "Scope", "SearchIndex", "Source", "SourceState", "page_of_hits"]
