"""The jsonl store against the memory store, over random runs."""

from pathlib import Path
from typing import Any

import sessiontree as st
from sessiontree.testing.machine import JournalMachine, machine_test


class JsonlMachine(JournalMachine):
    def open_journal(self, folder: Path, **options: Any) -> st.Journal:
        return st.open(f"jsonl:///{folder}/journal", durability="process_crash", **options)


TestJsonlMachine = machine_test(JsonlMachine)
