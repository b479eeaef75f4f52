import sessiontree as st
from google import genai
from weather import GEMINI_TOOLS, weather

client, dialect = genai.Client(), st.DIALECTS["gemini"]
with st.open("agent.db") as journal:
    chat = journal.open_thread("demo", create=True)
    chat.resume(owner="agent")
    chat.append(st.user(input("> ")))
    with chat.turn(owner="agent") as turn:
        while True:
            request = dialect.to_request(chat.context())
            request["config"] = {"tools": GEMINI_TOOLS, "system_instruction": request.pop("system_instruction", None)}
            events = client.models.generate_content_stream(model="gemini-2.5-flash", **request)
            answer = turn.stream(dialect, events, durable_every_seconds=0.2)
            for text in answer:
                print(text, end="", flush=True)
            for call in answer.message.tool_calls:
                turn.append(st.tool_result(call.id, weather(call.arguments), name=call.name))
            if not answer.message.tool_calls:
                break
