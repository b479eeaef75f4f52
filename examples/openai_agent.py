import openai
import sessiontree as st
from weather import OPENAI_TOOLS, weather

client, dialect = openai.OpenAI(), st.DIALECTS["openai-responses"]
with st.open("agent.db") as journal:
    chat = journal.open_thread("demo", create=True)
    chat.resume(owner="agent")  # after a crash: keep what was shown of the last answer
    chat.append(st.user(input("> ")))
    with chat.turn(owner="agent") as turn:
        while True:
            request = dialect.to_request(chat.context())
            events = client.responses.create(model="gpt-5", tools=OPENAI_TOOLS, stream=True, **request)
            answer = turn.stream(dialect, events, durable_every_seconds=0.2)
            for text in answer:
                print(text, end="", flush=True)
            for call in answer.message.tool_calls:
                turn.append(st.tool_result(call.id, weather(call.arguments), name=call.name))
            if not answer.message.tool_calls:
                break
