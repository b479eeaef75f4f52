"""A store as people have it, always the same: branches, labels, failures, edits, a compaction, a long thread, odd titles."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime, timedelta, timezone
from itertools import count
from pathlib import Path
from typing import Any

import sessiontree as st

ZONE = timezone(timedelta(0), "UTC")
NOW = datetime(2026, 11, 16, 12, 4, tzinfo=ZONE)
SHOP = "019a8c5e-41f0-7a53-9c1e-5b0f7d2e3a19"
LOGS = "019a7d20-93c4-7b11-8f2a-c0d94be18b1f"
INVOICES = "019a7d20-93c4-7b11-8f2a-c0d94be190bd"
MODEL = "claude-sonnet-4-5"

PROMPTS = """Read docs/format.md and then the parser, and tell me where the time goes.
Profile it on the 2 GB sample, not on the toy file.
continue
The numbers look too good. Do the tests still pass?
Undo the part in split_fields, I want that readable.
Now the second half: why do we build a dict for every line?
Use slots, keep the names.
ok
Compare with last week's figures and make a table.
What happens with a line that is cut in the middle?
Add a test with every length from 0 to 300 bytes.
That test takes 9 seconds. Make it smaller, keep what it proves.
Memory goes up to 1.9 GB. Find the leak.
Do not read the whole file, map it.
/usage
mmap fails on the pipe in CI. Fall back to reading in blocks.
Explain the block size, and put the reason in a comment.
Ordering is wrong on line 88,120. Look closer.
Use a sequence number, not the time.
Write what we know so far into docs/speed.md.
Shorter. Nobody reads two pages.
Tag it and we are done.""".splitlines()


class _Writer:
    """Appends to one thread with ids and times that are always the same."""

    def __init__(self, journal: st.Journal, thread_id: str, start: datetime, **fields: Any) -> None:
        self.journal, self.thread_id, self.now = journal, thread_id, start
        self.number = 0
        journal.create_thread(thread_id, created_ns=self.ns, **fields)

    @property
    def ns(self) -> int:
        return int(self.now.timestamp()) * 10**9

    def add(self, payload: st.Payload, seconds: int = 4, name: str = "", parent: str | None = None) -> str:
        self.now += timedelta(seconds=seconds)
        self.number += 1
        made = (
            hashlib.sha256(f"{self.thread_id}/{self.number}".encode()).hexdigest()[:4]
            + hashlib.md5(f"{self.thread_id}{self.number}".encode()).hexdigest()[:4]
        )
        where: dict[str, Any] = {} if parent is None else {"parent": parent}
        return self.journal.append(self.thread_id, payload, id=name or made, created_ns=self.ns, **where).id

    def say(self, text: str, seconds: int = 60, **where: Any) -> str:
        return self.add(st.user(text), seconds, **where)

    def answer(self, text: str, seconds: int = 3, cost: float = 0.01, **where: Any) -> str:
        return self.add(st.assistant(text, model=MODEL, usage=usage(self.number, cost)), seconds, **where)

    def step(
        self,
        *calls: tuple[str, dict[str, Any], str],
        text: str = "",
        reasoning: str = "",
        cost: float = 0.008,
        seconds: int = 3,
        failed: int = -1,
        **where: Any,
    ) -> str:
        made = [st.call(f"c{self.number}-{at}", name, json.dumps(given)) for at, (name, given, _) in enumerate(calls)]
        first = self.add(
            st.assistant(text, calls=made, reasoning=reasoning, model=MODEL, usage=usage(self.number, cost)),
            2,
            **where,
        )
        for at, ((name, _, said), call) in enumerate(zip(calls, made, strict=True)):
            self.add(st.tool_result(call.id, said, name=name, is_error=at == failed), seconds if at == 0 else 0)
        return first


def usage(number: int, cost: float) -> st.Usage:
    return st.Usage(
        input_tokens=900 + 7 * number,
        output_tokens=180,
        cache_read_tokens=4_000 + 331 * number,
        cost=cost,
        currency="USD",
    )


PYTEST = "collected 1 item\n\n>  user = users[name]\nE  KeyError: 'ann'\n\nsrc/login.py:7: KeyError\ntests/test_login.py F\n1 failed in 0.41s"


def make_sample(path: Path) -> None:
    """Write the sample store."""
    clock = [0]
    numbers = count()

    def random(size: int) -> bytes:
        return hashlib.sha256(f"sample {next(numbers)}".encode()).digest()[:size]

    with st.open(path, clock=lambda: clock[0], random=random, durability="process_crash") as journal:
        for fill in (_draft, _cjk, _odd, _chat, _themes, _invoices, _logs, _backup, _shop):
            fill(journal, clock)


def _close(writer: _Writer, clock: list[int], **fields: Any) -> None:
    clock[0] = writer.ns
    writer.journal.update_thread(writer.thread_id, updated_ns=writer.ns, **fields)


def _shop(journal: st.Journal, clock: list[int]) -> None:
    at = datetime(2026, 11, 16, 11, 51, tzinfo=ZONE)
    w = _Writer(journal, SHOP, at, workspace="/home/ann/code/shop", origin={"format": "pi"})
    root = w.say("The login test fails since this morning. Find out why and mend it.", 60, name="52e6b438")
    test = ("bash", {"command": "cd /home/ann/code/shop && pytest -x tests/test_login.py"}, PYTEST)
    w.step(
        (
            "read",
            {"path": "/home/ann/code/shop/tests/test_login.py"},
            "def test_login():\n    assert login('ann', 'x')\n",
        )
    )
    w.step(test, failed=0)
    w.step(
        (
            "edit",
            {
                "path": "tests/conftest.py",
                "oldText": "users = {}\n",
                "newText": "users = {}\nusers['ann'] = User('x')\n",
            },
            "ok",
        )
    )
    w.step(("bash", {"command": "pytest -x tests/test_login.py"}, "1 passed in 0.38s"))
    w.answer(
        "I put ann into the fixture, and the test passes. The server itself still starts without users.",
        name="0003ddb6",
    )
    w.say("That hides the fault. Go back.", 20)
    w.step(
        ("grep", {"pattern": "lru_cache", "path": "src"}, "src/cache.py:3:@lru_cache\nsrc/cache.py:9:@lru_cache"),
        text="Perhaps the users are cached before the file is written.",
        parent=root,
    )
    w.step(("read", {"path": "src/cache.py"}, "line\n" * 52))
    idea = w.answer(
        "The cache keeps an empty answer for 60 seconds. I can clear it when the file changes.", name="0009d7b0"
    )
    no = w.say("No, leave the cache alone.", 30)
    w.step(("bash", {"command": "python -m bench.cache --hits"}, "hits 0\nmisses 12"))
    w.answer("It is never hit. The cache is not the cause.", name="0004aa38")
    bisect = [st.call("c-bisect", "bash", json.dumps({"command": "git bisect run pytest -x tests/test_login.py"}))]
    w.add(st.assistant("", calls=bisect, model=MODEL), 20, name="0005bf91", parent=no)
    w.step(
        ("read", {"path": "/home/ann/code/shop/tests/test_login.py"}, "a\nb\nc"),
        ("read", {"path": "/home/ann/code/shop/src/login.py"}, "1\n2\n3\n4\n5\n6\n7\n8"),
        ("bash", {"command": "git log -3 --oneline -- src"}, "4be1c02 Load users later\n11aa000 x\n22bb000 y"),
        test, failed=3, parent=root, seconds=4,
        text="I read the test, the code and the last change at once.",
        reasoning="The KeyError comes from users being empty. Something must have called load_users before, and no longer does. I look at the last change of the file to see what it removed.",
    )  # fmt: skip
    old = "def login(name, password):\n    user = users[name]\n    return user.check(password)\n"
    new = "def login(name, password):\n    if not users:\n        load_users()\n    user = users.get(name)\n    return user is not None and user.check(password)\n"
    w.step(
        ("edit", {"path": "src/login.py", "oldText": old, "newText": new}, "ok"),
        text="Since `4be1c02` nobody calls `load_users()` before the first login. I load the users where they are needed.",
    )
    w.step(("bash", {"command": "pytest -x tests/test_login.py"}, "1 passed in 0.40s"))
    good = w.answer(
        "The test passes. `users` was empty because the last commit removed the call that filled it; an unknown name now fails cleanly instead of raising `KeyError`.",
        name="00044c94",
    )
    w.say("Now do the same for logout, please.", 100, name="00061bfb")
    w.add(
        st.Compaction(
            id="k1",
            summary="Login fixed in src/login.py: load_users() is called on demand. Tests pass.",
            tokens_before=31_400,
            tokens_after=4_100,
            through_entry_id=good,
        ),
        5,
        name="0007733f",
    )
    w.step(
        ("read", {"path": "src/logout.py"}, "x\n" * 27),
        ("web_search", {"query": "flask session.pop missing key"}, "Found 10 results"),
    )
    w.step(
        ("edit", {"path": "src/logout.py", "oldText": "    del session['name']\n", "newText": "    session.pop('name', None)\n"}, "ok"),
        ("write", {"path": "tests/test_logout.py", "content": "def test():\n    pass\n" * 9 + "\n"}, "created"),
    )  # fmt: skip
    w.step(("bash", {"command": "pytest -q"}, "................\n48 passed in 2.10s"), seconds=4)
    w.answer("Logging out twice no longer raises, and there is a test for it. All 48 tests pass.", name="0008e1f4")
    w.say("Write a line for the changelog.", 100, name="000931d0")
    w.step(
        (
            "edit",
            {
                "path": "CHANGELOG.md",
                "oldText": "## Unreleased\n",
                "newText": "## Unreleased\n- Fixed: login works right after a restart, and logging out twice is harmless.\n",
            },
            "ok",
        )
    )
    head = w.answer("Done: one line under “Unreleased”.", name="000ae08f")
    for entry, label in ((idea, "cache-idea"), (good, "good")):
        journal.label(SHOP, entry, label)
        journal.move_leaf(SHOP, head)
    _close(w, clock, title="The login test fails since this morning")
    clock[0] = int(NOW.timestamp()) * 10**9
    journal.acquire_lease(SHOP, owner="pi", ttl_seconds=3_000_000)


def _logs(journal: st.Journal, clock: list[int]) -> None:
    w = _Writer(
        journal,
        LOGS,
        datetime(2026, 11, 12, 9, 15, tzinfo=ZONE),
        workspace="/home/ann/code/logs",
        origin={"format": "pi"},
        title="Make the log parser twice as fast",
    )
    head = ""
    for at, words in enumerate(PROMPTS):
        prompt = w.say(words, 90 if at % 7 else 72_000 if at else 60)
        for step in range(1 if words.startswith("/") else 3 + 5 * at % 11):
            path = f"src/part{step % 4}.py"
            edit = {"path": path, "oldText": "a\nb\n", "newText": "a\nc\nd\n"}
            calls = [
                ("read", {"path": path}, "x\n" * 30),
                ("bash", {"command": "pytest -q"}, "1 failed" if step % 5 == 4 else "9 passed"),
                ("edit", edit, "ok"),
            ]
            w.step(calls[step % 3], failed=0 if step % 5 == 4 and step % 3 == 1 else -1, seconds=3 + step)
        head = w.answer("Done with that. The figures are in the table.", seconds=5)
        if at == 15:
            w.add(
                st.Compaction(id="k2", summary="What was found so far.", tokens_before=172_000, tokens_after=11_200), 3
            )
        if at == 10:
            journal.label(LOGS, prompt, "tested")
        if at == 17:
            w.say("Let us try the Rust crate as well, in a branch.", 30, name="00b7b711")
            w.answer("It is fast, but wheels are missing.", name="00b7b712")
            journal.label(LOGS, "00b7b711", "rust")
            journal.move_leaf(LOGS, head)
    _close(w, clock)


def _invoices(journal: st.Journal, clock: list[int]) -> None:
    w = _Writer(
        journal,
        INVOICES,
        datetime(2026, 11, 15, 16, 18, tzinfo=ZONE),
        workspace="/home/ann/code/shop",
        origin={"format": "codex"},
        title="Move the invoices to the new tax rates",
    )
    w.say("Please do not touch load_users in this change, somebody else is working on it.")
    w.step(("shell", {"command": ["bash", "-lc", "grep -rn load_users src | wc -l"]}, "14"))
    calls = [
        st.call(
            "open", "apply_patch", "*** Begin Patch\n*** Update File: src/tax.py\n-RATE = 19\n+RATE = 21\n*** End Patch"
        )
    ]
    w.add(st.assistant("Now the rates.", calls=calls))
    _close(w, clock)


def _backup(journal: st.Journal, clock: list[int]) -> None:
    w = _Writer(
        journal,
        "019a8b00-0000-7000-8000-00000000c4e7",
        datetime(2026, 11, 16, 6, 50, tzinfo=ZONE),
        workspace="/home/ann/infra",
        origin={"format": "claude-code"},
    )
    w.say("Why does the nightly backup take four hours?")
    w.step(
        ("Bash", {"command": "systemctl status backup"}, "active\nrunning"),
        ("Task", {"description": "read the logs of a week"}, "Twelve runs, all slow."),
    )
    w.answer(
        "The disk is read twice:\n\n1. once for the checksum\n2. once for the copy\n\n```python\nfor path in files:\n    copy(path)\n```\n\n| run | hours |\n|---|---|\n| Mon | 4.1 |\n\n# One pass is enough\n\nSee **the plan**.",
        cost=1.84,
    )
    _close(w, clock)


def _themes(journal: st.Journal, clock: list[int]) -> None:
    w = _Writer(
        journal,
        "019a7000-0000-7000-8000-00000000e617",
        datetime(2026, 11, 13, 10, 0, tzinfo=ZONE),
        workspace="/home/ann/code/ui",
        origin={"format": "pi"},
        title="Rework the colour themes",
    )
    w.say("Rework the colour themes")
    w.answer("They are reworked.", cost=30.34)
    _close(w, clock)


def _chat(journal: st.Journal, clock: list[int]) -> None:
    w = _Writer(
        journal,
        "019a7100-0000-7000-8000-000000001f6a",
        datetime(2026, 11, 11, 20, 0, tzinfo=ZONE),
        title="Plan four days in Lisbon with two children",
    )
    w.say("Plan four days in Lisbon with two children")
    w.add(st.assistant("Begin with the tram.", model="local"))
    _close(w, clock)


def _odd(journal: st.Journal, clock: list[int]) -> None:
    w = _Writer(
        journal, "odd-keys", datetime(2026, 11, 9, 9, 0, tzinfo=ZONE), title="Read a session with keys nobody knows"
    )
    w.say("\x1b[31mred\x1b[0m \x1b]0;owned\x07 \u202eevil")
    w.answer("Harmless.", cost=0.0)
    _close(w, clock)


def _cjk(journal: st.Journal, clock: list[int]) -> None:
    w = _Writer(
        journal,
        "019a0000-0000-7000-8000-000000007d03",
        datetime(2026, 5, 24, 9, 0, tzinfo=ZONE),
        workspace="/home/ann/code/shop",
        origin={"format": "opencode"},
    )
    w.say("日本語のテストを書いてください。長い文も正しく切れるか見ます。とても長い一行です。")
    w.answer("書きました。", cost=0.12)
    _close(w, clock)


def _draft(journal: st.Journal, clock: list[int]) -> None:
    w = _Writer(
        journal,
        "01930000-0000-7000-8000-00000000b2a8",
        datetime(2025, 11, 2, 9, 0, tzinfo=ZONE),
        workspace="/home/ann/notes",
        origin={"format": "aider"},
        title="Draft the talk about conversation trees",
    )
    root = w.say("Draft the talk about conversation trees")
    for number in range(3):
        w.add(
            st.assistant(f"Draft {number}.", model="gpt-4o", usage=st.Usage(input_tokens=9_000, output_tokens=3_000)),
            parent=root,
        )
    _close(w, clock)
