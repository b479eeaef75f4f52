"""A chat in the terminal that survives kill -9: start it again, and it shows what was said, also of an unfinished answer."""

import openai
import sessiontree as st

client, dialect = openai.OpenAI(), st.DIALECTS["openai-chat"]

with st.open("chat.db") as journal:
    chat = journal.open_thread("terminal", create=True)
    chat.resume(owner="terminal")
    for entry in chat.path():
        if entry.message is not None:
            print(f"{entry.message.role}: {entry.message.text}")
    while question := input("> "):
        chat.append(st.user(question))
        with chat.turn(owner="terminal") as turn:
            request = dialect.to_request(chat.context())
            events = client.chat.completions.create(model="gpt-5", stream=True, **request)
            for text in turn.stream(dialect, events, durable_every_seconds=0):
                print(text, end="", flush=True)
            print()
