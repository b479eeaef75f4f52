"""LangGraph: the checkpoints of graphs and their long-term memory.

graph = builder.compile(checkpointer=SessionTreeSaver("sqlite:///journal.db"))
"""

from sessiontree.adapters._extra import imports_of_extra

with imports_of_extra("langgraph"):
    from sessiontree.adapters.langgraph.moving import import_checkpoints
    from sessiontree.adapters.langgraph.saver import SessionTreeSaver
    from sessiontree.adapters.langgraph.store import SessionTreeStore

__all__ = ["SessionTreeSaver", "SessionTreeStore", "import_checkpoints"]
