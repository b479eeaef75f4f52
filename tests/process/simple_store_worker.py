"""One of two processes that change the same sessions of a SimpleStore, a round for each line that it reads."""

import sys

import sessiontree as st
from sessiontree.sessions.simple_store import SimpleStore
from simple_races import make


def main(url: str, side: str) -> None:
    with st.open(url, durability="process_crash") as journal:
        store = SimpleStore(journal)
        print("ready", flush=True)
        for line in sys.stdin:
            change, key = line.rstrip("\n").split("\t")
            make(store, key, change, int(side))
            print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
