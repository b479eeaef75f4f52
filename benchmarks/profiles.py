"""What profiles show where a goal is, or was, missed: printed beneath the table of a run that misses it."""

from __future__ import annotations

_ONE_FILE_EACH = (
    "An append to JSONL goes to a file of its own: it is looked up, written, looked at again, and its line is written to the "
    "shared log too. Of 180 Python calls, 80 prepare the entry and wake its task, 100 decide and write, and none stands out."
)
_LOOKS_AT_THE_LOG = (
    "The run of 18 November 2026 looked at the files of the log with each append. A file whose times were looked at gets others with its "
    "next write, and these are synced too. The folder is looked at instead now: 231 to 189 us an append, alternating in one run (196 "
    "before layout 9)."
)
PROFILES: dict[tuple[str, str], str] = {
    ("append", "SQLite, one caller, rate against raw WAL FULL"): _LOOKS_AT_THE_LOG,
    ("append", "SQLite at 100,000 entries against 100"): _LOOKS_AT_THE_LOG,
    ("fork", "SQLite, in appends"): _LOOKS_AT_THE_LOG,
    ("append", "SQLite, one caller, against the best durable peer"):
        f"{_LOOKS_AT_THE_LOG} "
        "That peer is openai-agents SQLiteSession, which syncs each message once, as we do. To write and sync a line takes 158 "
        "of our 358 us before layout 9. An append of ours is 21 system calls and 33 KB of log (raw SQLite 18 KB): four pages, because "
        "ids and the order of threads have indexes; a lock between processes, and two looks at whether the file was replaced. Without a "
        "disk it takes about 50 us of CPU, of which SQLite's checksum of the log, the estimate of tokens, and Python's calls are the most. "
        "Pages of 4 KB in place of 8 would save 7 %, but 10,000 messages would take 1.36 times the raw JSON on disk, in place of 1.19.",
    ("writers", "SQLite, 64 tasks, against the best durable peer"):
        "64 tasks share a sync, so Python is the limit: the memory store, which writes nothing, is only a third faster.",
    ("processes", "SQLite, 8 processes, against raw SQLite with a busy timeout"):
        "Raw SQLite syncs while it holds its lock, so all processes together are as fast as one, and nearly all of it is one: the "
        "fastest writes 1,850 times as much as the slowest, which waits for seconds. Ours take turns and sync at the same time, "
        "which is worth more the longer a sync takes: while other programs kept the disk and both cores busy, bursts one after the "
        "other gave 0.9 to 6.9. A quiet virtual disk acknowledges a sync in 0.1 ms; then there is nothing to share, and the two "
        "cores are the limit: four times raw would be 21,000 a second, 94 us of CPU each, and raw SQLite itself needs about "
        "100. Ours need two to three times that, because SQLite reads 12 pages again, and we the row of the thread, after another "
        "process has committed. A thread waits for the lock, so that the wait has an end: without it the CPU was a tenth to a "
        "fifth less, and the rate did not clearly change.",
    ("1,000 chats", "JSONL against the best durable peer"): _ONE_FILE_EACH,
    ("append", "JSONL, one caller, rate against write + fdatasync"):
        "The sync takes as long in both. The rest is a lock between processes, three looks at whether another process changed or left "
        "something, the write, and 210 Python calls: to check the message, to decide, to keep the tree in memory, and to encode "
        "the line with its checksum. No single call takes a tenth of it. To sync a log over zeros in place of the file, which spares "
        "the file system its own journal, took the rate from 0.49 to 0.51, and was not worth a second place for every line.",
    ("writers", "JSONL, 64 tasks, against our one caller"): _ONE_FILE_EACH,
    ("append", "PostgreSQL, 1 connection, rate against INSERT + commit"):
        "An append is one round trip, in which a function of the server locks and updates the row of the thread and inserts the "
        "entry: 185 us of CPU in the server without the commit.",
    ("processes", "PostgreSQL, 8 connections, against INSERT + commit"):
        "As with one connection: an update and an insert, where the floor inserts. Both cores are busy.",
    ("full read", "SQLite, against the best peer"):
        "openai-agents SQLiteSession returns what json.loads makes of each row, ours typed entries with ids, parents and times: 33 and "
        "31 ms of CPU side by side. pi-durable JSONL is as fast, but takes 389 ms to open what our SQLite opens in 5.",
    ("list 50", "SQLite, of 100,000, against a raw query"):
        "The query is half of it, and has 3.3 times the instructions of the raw one, which reads one column of one row: it looks up "
        "each thread in three tables, because what every append changes, what rarely changes, and the counts of the last entry are "
        "apart. The counts in the row of the thread would save 7 % of the query. A quarter makes the records, which are copied once "
        "to get their counts; the last quarter checks the filters and encodes the cursor.",
}  # fmt: skip
"""By the case and the words of a goal."""

_COLLECTED = (
    "Full runs of Python's garbage collector walked over the index of the loaded tree: 0.26 s of CPU at 1,000,000 entries. "
    "Mended after this run: the index has nothing in it that the collector follows, and a full run takes 0.016 s, as with "
    "100,000 entries."
)
GROWTH_PROFILES: dict[tuple[str, str], str] = {
    ("last 100", "sessiontree JSONL"): _COLLECTED,
    ("context after a compaction", "sessiontree JSONL"): _COLLECTED,
}
"""By the verb and the system."""
