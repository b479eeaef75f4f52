"""One of two processes that change the same managed sessions, a round for each line that it reads."""

import sys

import sessiontree as st
from session_races import make, manager_of


def main(url: str, side: str) -> None:
    with st.open(url, durability="process_crash") as journal:
        manager = manager_of(journal)
        print("ready", flush=True)
        for line in sys.stdin:
            change, name = line.rstrip("\n").split("\t")
            make(manager, name, change, int(side))
            print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
