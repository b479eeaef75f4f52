"""Adapters: what agent frameworks store, stored in a journal.

One module for each framework, which imports it: ``pip install sessiontree[langgraph]``, then
``from sessiontree.adapters.langgraph import SessionTreeSaver``. Every class takes the URL of a store or an open journal as
its first argument.
"""
