"""The sqlite store against the memory store, with a tail so short that it is settled all the time."""

import pytest

import sessiontree as st
from sessiontree.stores.sqlite import view
from sessiontree.testing.machine import JournalMachine, machine_test


@pytest.fixture(autouse=True)
def short_tail(monkeypatch):
    monkeypatch.setattr(view, "LONGEST", 3)


class SqliteTailMachine(JournalMachine):
    def open_journal(self, folder, **options):
        return st.open(folder / "journal.db", durability="process_crash", **options)


TestSqliteTailMachine = machine_test(SqliteTailMachine)
