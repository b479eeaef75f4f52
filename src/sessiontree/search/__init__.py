"""Search: the query language, what can be found of an entry, ranking and snippets, and the full-text index.

Every store returns the same hits for a query; how it finds them is up to the store.
"""

from sessiontree.search.query import Hit, SearchOrder, SearchPage, SearchQuery, Snippet, Term

__all__ = ["Hit", "SearchOrder", "SearchPage", "SearchQuery", "Snippet", "Term"]
