"""LangGraph: ``SessionTreeSaver`` stores the checkpoints of graphs.

graph = builder.compile(checkpointer=SessionTreeSaver("sqlite:///journal.db"))
"""

from sessiontree.adapters.langgraph.saver import SessionTreeSaver

__all__ = ["SessionTreeSaver"]
