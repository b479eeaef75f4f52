"""An agent of LangGraph that remembers: langgraph_agent.py QUESTION. Two lines differ from the one on LangGraph's own store."""

import sys

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from sessiontree.adapters.langgraph import SessionTreeSaver  # was: from langgraph.checkpoint.sqlite import SqliteSaver


def weather(city: str) -> str:
    """Return the weather in a city."""
    return f"18 °C and sunny in {city}"


with SessionTreeSaver("sqlite:///agent.db") as saver:  # was: with SqliteSaver.from_conn_string("agent.db") as saver:
    agent = create_agent(ChatOpenAI(model="gpt-5-mini"), [weather], checkpointer=saver)
    question = {"role": "user", "content": " ".join(sys.argv[1:])}
    state = agent.invoke({"messages": [question]}, {"configurable": {"thread_id": "demo"}})
    print(state["messages"][-1].content)
