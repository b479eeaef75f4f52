"""The sqlite store against the memory store, over random runs."""

from pathlib import Path
from typing import Any

import sessiontree as st
from sessiontree.testing.machine import JournalMachine, machine_test


class SqliteMachine(JournalMachine):
    def open_journal(self, folder: Path, **options: Any) -> st.Journal:
        return st.open(folder / "journal.db", durability="process_crash", **options)


TestSqliteMachine = machine_test(SqliteMachine)
