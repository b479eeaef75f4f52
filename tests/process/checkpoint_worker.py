"""One of several processes that change the same checkpointed sessions: it does what it is told, line by line."""

import sys
from pathlib import Path

import sessiontree as st


def talk(number: int) -> list[dict[str, str]]:
    """The messages that belong to a number of user turns."""
    return [{"role": "user", "content": f"{number} {at}"} for at in range(1 + number % 3)]


def do(sessions: st.CheckpointedSessions, verb: str, chat: str, number: int, root: Path) -> None:
    match verb:
        case "set_state":
            sessions.set_state(chat, talk(number), user_turns=number)
        case "snapshot":
            sessions.snapshot(chat, "m")
        case "rewind":
            sessions.rewind(chat, "u0")
        case "clone":
            sessions.clone(chat, f"{chat}/clone-{number}")
        case "fork":
            sessions.fork(chat)
        case "snapshot_files":
            sessions.snapshot_files(chat, "files", root)
        case "rewind_with_files":
            sessions.rewind(chat, "u0", files=root)


def main(url: str, root: str) -> None:
    with st.open(url, durability="process_crash") as journal:
        sessions = st.CheckpointedSessions(journal)
        print("ready", flush=True)
        for line in sys.stdin:
            verb, chat, number = line.split()
            if verb == "new_fork_id":
                print(sessions.new_fork_id(chat), flush=True)
            else:
                do(sessions, verb, chat, int(number), Path(root))
                print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
