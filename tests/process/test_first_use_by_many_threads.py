"""A process whose threads all use the journal for the first time at the same moment."""

import subprocess
import sys

CROWD = """
import sys, threading
import sessiontree as st
sys.setswitchinterval(1e-6)
journal = st.open("memory:")
start = threading.Barrier(8)
def use(name):
    start.wait()
    journal.create_thread(name)
    journal.append(name, st.user("hello"))
    page = journal.list_threads(limit=1)
    journal.list_threads(limit=1, cursor=page.cursor)
crew = [threading.Thread(target=use, args=[str(number)]) for number in range(8)]
for thread in crew:
    thread.start()
for thread in crew:
    thread.join()
assert journal.stats().entries == 8
"""


def test_nobody_stumbles_over_what_another_thread_is_still_making():
    """Decoders are made on first use, and making one is not safe in two threads at once."""
    for _ in range(5):
        done = subprocess.run([sys.executable, "-c", CROWD], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
