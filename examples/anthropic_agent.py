import anthropic
import sessiontree as st
from weather import ANTHROPIC_TOOLS, weather

client, dialect = anthropic.Anthropic(), st.DIALECTS["anthropic"]
with st.open("agent.db") as journal:
    chat = journal.open_thread("demo", create=True)
    chat.resume(owner="agent")
    chat.append(st.user(input("> ")))
    with chat.turn(owner="agent") as turn:
        while True:
            request = dict(dialect.to_request(chat.context()), model="claude-sonnet-5", max_tokens=4096)
            events = client.messages.create(tools=ANTHROPIC_TOOLS, stream=True, **request)
            answer = turn.stream(dialect, events, durable_every_seconds=0.2)
            for text in answer:
                print(text, end="", flush=True)
            for call in answer.message.tool_calls:
                turn.append(st.tool_result(call.id, weather(call.arguments), name=call.name))
            if not answer.message.tool_calls:
                break
