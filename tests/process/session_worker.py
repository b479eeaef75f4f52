"""One of several processes that serve the same peers: it talks, begins anew, or is killed while a model works."""

import random
import sys

import sessiontree as st
from sessiontree.sessions import SessionManager

POLICY = st.CompactionPolicy(window_tokens=6_000, keep_recent_tokens=500, summary_tokens=200)
PEERS = 3


def key_of(number: int) -> st.SessionKey:
    return st.SessionKey(agent="bot", channel="web", peer=f"p{number}")


def talk(url: str, name: str, messages: str) -> None:
    """Messages for all peers, sent twice now and then as after a lost answer, with new conversations in between."""
    choose = random.Random(name)
    with st.open(url, durability="process_crash") as journal:
        manager = SessionManager(journal, summarize=lambda _: "notes", policy=POLICY, system_prompt="Be kind.")
        print("ready", flush=True)
        sys.stdin.readline()
        for number in range(int(messages)):
            key = key_of(choose.randrange(PEERS))
            message, said = f"{name}-{number}", st.user("words " * 60)
            first = manager.add_message(key, said, id=message)
            if choose.random() < 0.1:
                manager.new(key)
            if choose.random() < 0.2:
                assert manager.add_message(key, said, id=message) == first
        manager.stop()
    print("done", flush=True)


def hang(url: str, _name: str, _messages: str) -> None:
    """A compaction that never ends."""
    with st.open(url) as journal:
        manager = SessionManager(journal, summarize=stuck, policy=POLICY, auto_compact="off")
        for number in range(40):
            manager.add_message(key_of(0), st.user(f"{number} " + "words " * 60))
        manager.compact(key_of(0))


def stuck(_request: st.SummaryRequest) -> str:
    print("asked", flush=True)
    return sys.stdin.readline()


if __name__ == "__main__":
    {"talk": talk, "hang": hang}[sys.argv[1]](*sys.argv[2:])
