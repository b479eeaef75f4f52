"""The PostgreSQL store against the memory store, over random runs."""

import sessiontree as st
from postgres_server import process_database, with_options
from sessiontree.testing.machine import JournalMachine, machine_test


class PostgresMachine(JournalMachine):
    def open_journal(self, folder, **options):
        return st.open(with_options(process_database(), namespace=folder), durability="process_crash", **options)


TestPostgresMachine = machine_test(PostgresMachine)
