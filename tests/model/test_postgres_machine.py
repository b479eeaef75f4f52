"""The PostgreSQL store against the memory store, over random runs."""

from pathlib import Path
from typing import Any

from hypothesis import settings

import sessiontree as st
from postgres_server import process_database, with_options
from property_settings import examples
from sessiontree.testing.machine import JournalMachine, machine_settings, machine_test


class PostgresMachine(JournalMachine):
    def open_journal(self, folder: Path, **options: Any) -> st.Journal:
        return st.open(with_options(process_database(), namespace=folder), durability="process_crash", **options)


TestPostgresMachine = machine_test(PostgresMachine)
# A server answers more slowly than a file; make test-deep tries as much as for the other stores.
TestPostgresMachine.settings = settings(machine_settings(), max_examples=examples(15, deep=2_000).max_examples)
