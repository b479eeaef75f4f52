"""The PostgreSQL store against the memory store, over random runs."""

import os

from hypothesis import settings

import sessiontree as st
from postgres_server import process_database, with_options
from sessiontree.testing.machine import JournalMachine, machine_settings, machine_test


class PostgresMachine(JournalMachine):
    def open_journal(self, folder, **options):
        return st.open(with_options(process_database(), namespace=folder), durability="process_crash", **options)


TestPostgresMachine = machine_test(PostgresMachine)
if not {"SESSIONTREE_EXAMPLES", "SESSIONTREE_PROFILE"} & os.environ.keys():
    # A server answers slower than a file; make test-deep tries as much as everywhere.
    TestPostgresMachine.settings = settings(machine_settings(), max_examples=15)
