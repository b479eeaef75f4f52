"""Print what calls of frameworks cost with our classes and with their own, alternating in one run.

The frameworks need two environments: ``.venv-adapters/bin/python -m benchmarks.adapters langgraph openai_agents
agent_framework google_adk`` and ``.venv-adapters-openai2/bin/python -m benchmarks.adapters strands llama_index``. On PostgreSQL, openai_agents and google_adk need ``pip install sqlalchemy greenlet`` too.
"""

from __future__ import annotations

import sys
import tempfile
from importlib import import_module
from pathlib import Path

from benchmarks.adapters.calls import Calls, alternate

ROUNDS = {100: 51, 5_000: 9}


def main(frameworks: list[str]) -> None:
    """Print a table: milliseconds, ours / theirs."""
    print("| call, messages | CPU | elapsed |\n|---|---|---|")
    for framework in frameworks:
        kinds: dict[str, Calls] = import_module(f"benchmarks.adapters.{framework}").KINDS
        for kind, calls_of in kinds.items():
            for messages, rounds in ROUNDS.items():
                with tempfile.TemporaryDirectory() as folder, calls_of(Path(folder), messages) as calls:
                    for call in calls:
                        ours, theirs = alternate(call, rounds)
                        print(
                            f"| {framework}, {kind}, {call.name} {messages:,} "
                            f"| {ours.cpu:.2f} / {theirs.cpu:.2f} | {ours.elapsed:.2f} / {theirs.elapsed:.2f} |",
                            flush=True,
                        )


if __name__ == "__main__":
    main(sys.argv[1:])
