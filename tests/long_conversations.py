"""Long conversations, and a model with scripted answers, for tests."""

from typing import Any

import sessiontree as st

SMALL = st.CompactionPolicy(window_tokens=8_000, keep_recent_tokens=600, keep_user_tokens=300, summary_tokens=300)


def talk(journal: st.Journal, thread_id: str, rounds: int = 20, start: int = 0, words: int = 80) -> None:
    """Rounds of question, two tools at once, two results, answer."""
    for number in range(start, start + rounds):
        journal.append_many(thread_id, round_of(number, words))


def round_of(number: int, words: int = 80) -> list[st.Payload]:
    return [
        st.user(f"question {number} " + "word " * words),
        st.assistant(
            calls=[
                st.call(f"r{number}", "read_file", f'{{"path": "src/in{number}.py"}}'),
                st.call(f"w{number}", "write_file", f'{{"path": "src/out{number}.py"}}'),
            ]
        ),
        st.tool_result(f"w{number}", "written", name="write_file"),
        st.tool_result(f"r{number}", "content " * words, name="read_file"),
        st.assistant(f"answer {number}"),
    ]


def texts(journal: st.Journal, thread_id: str) -> list[str]:
    return [message.text for message in journal.context(thread_id).messages]


class FakeModel:
    """A summariser that answers from a list, repeats the last answer, and records its requests."""

    def __init__(self, *answers: object) -> None:
        self.answers: list[Any] = list(answers) or ["a summary"]
        self.requests: list[st.SummaryRequest] = []

    def __call__(self, request: st.SummaryRequest) -> Any:
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer
