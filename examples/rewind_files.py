"""Let an agent change files, and take the conversation and the files back to any of its steps."""

from pathlib import Path

import sessiontree as st

project = Path("project")
project.mkdir(exist_ok=True)
(project / "app.py").write_text("print('works')\n")

with st.open("files.db") as journal:
    chat = journal.open_thread("refactoring", create=True)
    good = chat.append(st.user("Rename the function."))
    journal.workspace.snapshot(chat, good.id, project)

    bad = chat.append(st.user("Now make it faster."))
    (project / "app.py").write_text("print('broken'\n")  # what the agent did
    (project / "cache.bin").write_text("left behind")
    journal.workspace.snapshot(chat, bad.id, project)

    chat.rewind(good.id, files=project)  # the conversation and the folder
    print("rewound:", (project / "app.py").read_text().strip(), sorted(path.name for path in project.glob("[!.]*")))

    chat.undo()  # a mistake? back again, the files too, also after a restart
    print("undone: ", (project / "app.py").read_text().strip(), sorted(path.name for path in project.glob("[!.]*")))
