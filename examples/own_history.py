"""Bring the sessions of coding agents into one store, and find what was said about something: own_history.py FOLDER WORDS…"""

import sys

import sessiontree as st

folder, *words = sys.argv[1:]
with st.open("history.db") as journal:
    report = st.import_sessions(journal, folder)
    print(f"{len(report.threads)} conversations, {report.entries_added} new entries")
    for hit in journal.search(" ".join(words), limit=5).hits:
        print(f"{hit.title or hit.thread_id}: {hit.snippet.text}")
