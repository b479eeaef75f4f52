import openai
import sessiontree as st
from weather import OPENAI_TOOLS, weather

client, dialect = openai.OpenAI(), st.DIALECTS["openai-responses"]
with st.open("agent.db") as journal:
    chat = journal.open_thread("demo", create=True)  # the same conversation after every restart
    chat.resume(owner="agent")  # closes a turn that a crash left open
    chat.append(st.user(input("> ")))
    with chat.turn(owner="agent") as turn:
        while (context := chat.context()).messages[-1].role != "assistant":
            reply = client.responses.create(model="gpt-5", tools=OPENAI_TOOLS, **dialect.to_request(context))
            answer = turn.append(dialect.from_response(reply))
            for call in answer.message.tool_calls:
                turn.append(st.tool_result(call.id, weather(call.arguments), name=call.name))
    print(chat.context().messages[-1].text)
