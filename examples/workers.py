"""Several workers serve the same conversations: workers.py URL WORKERS. One turn at a time, wherever it runs."""

import multiprocessing
import sys

import sessiontree as st

CHATS = 5


def work(url: str, name: str) -> None:
    with st.open(url) as journal:
        for number in range(CHATS):
            chat = journal.open_thread(f"customer-{number}")
            try:
                with chat.turn(owner=name) as turn:
                    last = chat.context().messages[-1]
                    if last.role == "user":  # nobody has answered yet
                        turn.append(st.assistant(f"{name} looks after: {last.text}"))
            except st.ActiveTurnError as error:
                print(f"{name}: {error.owner} is serving {error.thread_id}")


if __name__ == "__main__":
    url, workers = sys.argv[1], int(sys.argv[2])
    with st.open(url) as journal:
        for number in range(CHATS):
            journal.open_thread(f"customer-{number}", create=True).append(st.user("Where is my order?"))
    processes = [multiprocessing.Process(target=work, args=(url, f"worker-{number}")) for number in range(workers)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    with st.open(url) as journal:
        for thread in journal.iter_threads(order="created"):
            print(f"{thread.id}: {journal.context(thread.id).messages[-1].text}")
