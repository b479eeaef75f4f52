"""Search, the pure half: what a query means, what of an entry can be found, how hits are ranked and shown.

Every store answers with this meaning; how it finds the entries is its own business.
"""

from sessiontree.search.query import Hit, SearchOrder, SearchPage, SearchQuery, Snippet, Term

__all__ = ["Hit", "SearchOrder", "SearchPage", "SearchQuery", "Snippet", "Term"]
