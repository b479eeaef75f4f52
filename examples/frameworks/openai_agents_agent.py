"""An agent of the OpenAI Agents SDK that remembers: openai_agents_agent.py QUESTION. Two lines differ from SQLiteSession's."""

import sys

from agents import Agent, Runner, function_tool
from sessiontree.adapters.openai_agents import SessionTreeSession  # was: from agents import SQLiteSession


@function_tool
def weather(city: str) -> str:
    """Return the weather in a city."""
    return f"18 °C and sunny in {city}"


session = SessionTreeSession("sqlite:///agent.db", "demo")  # was: session = SQLiteSession("demo", "agent.db")
agent = Agent(name="Guide", model="gpt-5-mini", tools=[weather])
print(Runner.run_sync(agent, " ".join(sys.argv[1:]), session=session).final_output)
